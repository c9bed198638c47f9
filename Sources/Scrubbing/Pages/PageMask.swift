/// What each byte of a page is, so that structure wins over values and nothing is written twice.
struct PageMask {
  /// Nobody has claimed the byte.
  static let free: UInt8 = 0

  /// It is structure, or stays for other reasons.
  static let kept: UInt8 = 1

  /// It is part of a value that must stay as it was made.
  static let value: UInt8 = 2

  /// It is part of text that can be changed once more.
  static let text: UInt8 = 3

  /// It is a value that stays by a rule.
  static let stays: UInt8 = 4

  private(set) var marks: [UInt8]

  init(count: Int) { marks = [UInt8](repeating: PageMask.free, count: count) }

  /// Forgets everything.
  mutating func clear() {
    var span = marks.mutableSpan
    for index in span.indices { span[index] = PageMask.free }
  }

  @inline(__always)
  subscript(index: Int) -> UInt8 {
    get { marks[index] }
    set { marks[index] = newValue }
  }

  /// Marks a range, as far as it is on the page; structure is never unmarked.
  @inline(__always)
  mutating func mark(_ range: Range<Int>, _ mark: UInt8) {
    let low = max(0, range.lowerBound)
    let high = min(marks.count, range.upperBound)
    var index = low
    while index < high {
      if marks[index] == PageMask.free || mark == PageMask.kept { marks[index] = mark }
      index &+= 1
    }
  }
}
