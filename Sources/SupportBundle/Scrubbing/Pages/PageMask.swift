/// What each byte of a page is, so that structure wins over values and nothing is written twice.
struct PageMask {
  static let free: UInt8 = 0

  /// It is structure, or stays for other reasons.
  static let kept: UInt8 = 1

  /// It is part of a value that can be changed once more.
  static let value: UInt8 = 2

  /// It is a character of text that can be changed once more, or the lower half of one.
  static let text: UInt8 = 3

  /// It is a value that stays by a rule.
  static let stays: UInt8 = 4

  /// It is part of text or of a blob that must stay as it was made, because it keeps an order.
  static let fixed: UInt8 = 5

  /// It is the upper half of a character.
  static let rest: UInt8 = 6

  /// It is part of a number, which must stay as it was made.
  static let number: UInt8 = 7

  private(set) var marks: [UInt8]

  init(count: Int) { marks = [UInt8](repeating: PageMask.free, count: count) }

  /// Forgets everything, for so many bytes.
  mutating func clear(count: Int? = nil) {
    let count = count ?? marks.count
    marks.removeAll(keepingCapacity: true)
    marks.append(contentsOf: repeatElement(PageMask.free, count: count))
  }

  @inline(__always)
  subscript(index: Int) -> UInt8 {
    get { marks[index] }
    set { marks[index] = newValue }
  }

  /// Marks a range, as far as it is there; structure is never unmarked.
  @inline(__always)
  mutating func mark(_ range: Range<Int>, _ mark: UInt8) {
    var index = max(0, range.lowerBound)
    let high = min(marks.count, range.upperBound)
    var marks = marks.mutableSpan
    while index < high {
      if marks[index] == PageMask.free || mark == PageMask.kept { marks[index] = mark }
      index &+= 1
    }
  }

  /// Marks a range of UTF-16 of which the lower bytes may be changed.
  mutating func markWide(_ range: Range<Int>, isBigEndian: Bool) {
    var index = max(0, range.lowerBound)
    let high = min(marks.count, range.upperBound)
    while index < high {
      if marks[index] == PageMask.free {
        marks[index] = ((index - range.lowerBound) & 1 == 0) == isBigEndian ? PageMask.rest : PageMask.text
      }
      index &+= 1
    }
  }

  /// Takes over marks from another one, where the bytes are unclaimed.
  mutating func mark(from other: PageMask, _ range: Range<Int>, at place: Int) {
    let others = other.marks.span
    var marks = marks.mutableSpan
    var index = max(range.lowerBound, range.lowerBound &- place)
    let end = min(range.upperBound, range.lowerBound &+ marks.count &- place)
    while index < end {
      let target = place &+ index &- range.lowerBound
      let mark = others[index]
      if marks[target] == PageMask.free || mark == PageMask.kept { marks[target] = mark }
      index &+= 1
    }
  }
}
