/// A set of page numbers, one bit for each page up to the highest one in it.
package struct PageSet: Sendable {
  private var words: [UInt64] = []

  /// How many pages are in it.
  package private(set) var count = 0

  /// An empty set.
  package init() {}

  /// Whether a page is in it.
  package func contains(_ page: UInt32) -> Bool {
    let word = Int(page >> 6)
    guard word < words.count else { return false }
    return words[word] & (1 << UInt64(page & 63)) != 0
  }

  /// Puts a page in, and returns whether it was new.
  ///
  /// Memory grows to an eighth of a byte per page number, so callers check first that the page exists in the file.
  package mutating func insert(_ page: UInt32) -> Bool {
    let word = Int(page >> 6)
    if word >= words.count {
      words.append(contentsOf: repeatElement(0, count: max(word + 1, words.count &* 2) - words.count))
    }
    let bit: UInt64 = 1 << UInt64(page & 63)
    guard words[word] & bit == 0 else { return false }
    words[word] |= bit
    count += 1
    return true
  }
}
