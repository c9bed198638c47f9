internal import Compatibility

/// Images of one file that a thread goes through.
struct Stretch: Sendable {
  /// The images of a file from which on two threads go through them.
  private static let leastImages = 4096

  /// The file, by its place in the store's parts.
  var part: Int

  /// The images, by their places in the file.
  var images: Range<Int>

  /// Whether what follows the last image belongs to it.
  var hasRest: Bool

  /// All images of a store: in one list, or where a file has a great many of them half of these in each of two.
  ///
  /// - Parameter overlap: how many images of the first half are in the second half too.
  static func lists(of store: CheckedStore, overlap: Int) -> [[Stretch]] {
    var lists: [[Stretch]] = [[], []]
    for (place, part) in store.parts.enumerated() {
      let count = part.images.count
      if count >= leastImages {
        lists[0].append(Stretch(part: place, images: 0..<(count / 2), hasRest: false))
        lists[1].append(Stretch(part: place, images: (count / 2 - overlap)..<count, hasRest: true))
      } else {
        lists[0].append(Stretch(part: place, images: 0..<count, hasRest: true))
      }
    }
    return lists.filter { !$0.isEmpty }
  }
}

/// How far the check is, told by any of its threads.
final class CheckProgress: Sendable {
  private let done = Mutex<Int64>(0)
  private let total: Int64
  private let tell: ResultCheck.Progress

  init(total: Int64, _ tell: @escaping ResultCheck.Progress) {
    self.total = total
    self.tell = tell
  }

  /// Adds bytes; false where the check is to end.
  func add(_ bytes: Int64) -> Bool {
    let sum = done.withLock { done in
      done += bytes
      return done
    }
    return tell(min(total, sum), total)
  }
}
