/// A set of primary keys as a sparse bitmap, compact for nearby keys.
struct KeySet {
  /// The memory shared by all sets of a run.
  final class Budget {
    private var pieces: Int

    /// Creates a budget, 16 MB by default.
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

  /// Whether all inserted keys are present; false once memory ran out.
  private(set) var isExact = true

  init(_ budget: Budget) { self.budget = budget }

  @inline(__always)
  mutating func insert(_ key: Int64) {
    let piece = key >> 15
    if piece != recentPiece {
      guard select(piece) else { return }
    }
    let bit = Int(key & 0x7fff)
    words[recentPlace &+ bit >> 6] |= 1 << UInt64(bit & 63)
  }

  /// Whether a key was inserted; false is certain, and true too while the set is exact.
  @inline(__always)
  mutating func mayContain(_ key: Int64) -> Bool {
    guard isExact else { return true }
    let piece = key >> 15
    if piece != recentPiece {
      guard let place = places[piece] else { return false }
      recentPiece = piece
      recentPlace = place
    }
    let bit = Int(key & 0x7fff)
    return words[recentPlace &+ bit >> 6] & 1 << UInt64(bit & 63) != 0
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

  /// Whether another set has all keys; false if unknown.
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

  /// Visits the keys in ascending order, as far as memory sufficed.
  func forEachKey(_ body: (Int64) -> Void) {
    for (piece, place) in places.sorted(by: { $0.key < $1.key }) {
      for index in 0..<Self.wordsPerPiece {
        var word = words[place + index]
        while word != 0 {
          body(piece << 15 + Int64(index * 64 + word.trailingZeroBitCount))
          word &= word - 1
        }
      }
    }
  }

  /// The number of keys in a range, as far as memory sufficed.
  func count(above: Int64, upTo: Int64) -> Int64 {
    guard above < upTo else { return 0 }
    var total = 0
    for (piece, place) in places where piece >= above >> 15 && piece <= upTo >> 15 {
      let first = piece << 15
      for index in 0..<Self.wordsPerPiece where words[place + index] != 0 {
        let base = first + Int64(index) * 64
        if base > above, base + 63 <= upTo {
          total += words[place + index].nonzeroBitCount
        } else {
          for bit in 0..<64 where words[place + index] & 1 << UInt64(bit) != 0 {
            let key = base + Int64(bit)
            if key > above, key <= upTo { total += 1 }
          }
        }
      }
    }
    return Int64(total)
  }
}
