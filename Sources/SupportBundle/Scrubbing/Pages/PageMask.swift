/// The role of each byte of a page: structure overrides values, and no byte is written twice.
struct PageMask {
  static let free: UInt8 = 0

  /// Structure, or kept for other reasons.
  static let kept: UInt8 = 1

  /// A value that may be changed again.
  static let value: UInt8 = 2

  /// A character that may be changed again, or its lower half.
  static let text: UInt8 = 3

  /// A value that stays by a rule.
  static let stays: UInt8 = 4

  /// Ordered text or blob, which must not change again.
  static let fixed: UInt8 = 5

  /// The upper half of a character.
  static let rest: UInt8 = 6

  /// A number, which must not change again.
  static let number: UInt8 = 7

  private(set) var marks: [UInt8]

  init(count: Int) { marks = [UInt8](repeating: PageMask.free, count: count) }

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

  /// Marks a range; structure is never unmarked.
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

  /// Marks UTF-16 with changeable lower bytes.
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

  /// Copies marks to unclaimed bytes.
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
