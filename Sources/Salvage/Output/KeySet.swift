/// A set of primary keys: a bit for each, in pieces, so that keys which lie together cost little.
struct KeySet {
  /// The memory that all sets of a run may take together.
  final class Budget {
    private var pieces: Int

    /// A budget of 16 MB unless told otherwise.
    init(pieces: Int = 4096) { self.pieces = pieces }

    fileprivate func take() -> Bool {
      guard pieces > 0 else { return false }
      pieces -= 1
      return true
    }
  }

  private static let wordsPerPiece = 512

  private let budget: Budget
  private var places: [Int64: Int] = [:]
  private var words: [UInt64] = []
  private var recentPiece = Int64.min
  private var recentPlace = 0

  /// Whether every key that was put in is there; false where the memory did not suffice.
  private(set) var isExact = true

  init(_ budget: Budget) { self.budget = budget }

  /// Puts a key in.
  @inline(__always)
  mutating func insert(_ key: Int64) {
    let piece = key >> 15
    if piece != recentPiece {
      guard select(piece) else { return }
    }
    let bit = Int(key & 0x7fff)
    words[recentPlace &+ bit >> 6] |= 1 << UInt64(bit & 63)
  }

  private mutating func select(_ piece: Int64) -> Bool {
    if let place = places[piece] {
      recentPlace = place
    } else {
      guard isExact, budget.take() else {
        isExact = false
        return false
      }
      recentPlace = words.count
      places[piece] = recentPlace
      words.append(contentsOf: repeatElement(0, count: Self.wordsPerPiece))
    }
    recentPiece = piece
    return true
  }

  /// Whether all keys are in another set too; false where that cannot be told.
  func isKnownSubset(of other: KeySet) -> Bool {
    guard isExact else { return false }
    for (piece, place) in places {
      let there = other.places[piece]
      for index in 0..<Self.wordsPerPiece where words[place + index] != 0 {
        guard let there, words[place + index] & ~other.words[there + index] == 0 else { return false }
      }
    }
    return true
  }
}
