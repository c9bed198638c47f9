internal import SQLiteFormat

/// A list of numbers that never become smaller, in one or two bytes each where they lie close together.
package struct AscendingNumbers {
  private static let countPerMark = 64

  /// How far each number is from the one before, as varints.
  private var bytes: [UInt8] = []

  /// Every sixty-fourth number, and where the distance of the next one begins.
  private var marks: [(number: Int64, offset: Int)] = []

  /// How many there are.
  package private(set) var count = 0
  private var last: Int64 = 0

  /// No numbers.
  package init() {}

  /// Adds a number that is not smaller than the last one.
  package mutating func append(_ number: Int64) {
    if count % Self.countPerMark == 0 {
      marks.append((number, bytes.count))
    } else {
      // A distance that no signed number can hold is right again when it is added.
      let distance = number &- last
      let start = bytes.count
      bytes.append(contentsOf: repeatElement(0, count: Varint.length(of: distance)))
      _ = bytes.set(varint: distance, at: start)
    }
    last = number
    count += 1
  }

  /// The number at a place.
  package subscript(place: Int) -> Int64 {
    let mark = marks[place / Self.countPerMark]
    var (number, offset) = mark
    for _ in 0..<(place % Self.countPerMark) { number &+= step(&offset) }
    return number
  }

  private func step(_ offset: inout Int) -> Int64 { Varint.read(bytes.span, at: &offset, before: bytes.count) ?? 0 }

  /// The place of the first number that is not below another; the count where all are.
  package func place(notBelow limit: Int64) -> Int {
    var low = 0
    var high = marks.count
    while low < high {
      let middle = (low + high) / 2
      if marks[middle].number < limit { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return 0 }
    let first = (low - 1) * Self.countPerMark
    var (number, offset) = marks[low - 1]
    for place in first..<min(count, first + Self.countPerMark) {
      if place > first { number &+= step(&offset) }
      if number >= limit { return place }
    }
    return min(count, first + Self.countPerMark)
  }

  /// The numbers in their order.
  package func makeIterator() -> Iterator { Iterator(numbers: self) }

  /// Goes through the numbers once.
  package struct Iterator: IteratorProtocol {
    fileprivate let numbers: AscendingNumbers
    private var place = 0
    private var offset = 0
    private var number: Int64 = 0

    fileprivate init(numbers: AscendingNumbers) { self.numbers = numbers }

    /// The next number; nil at the end.
    package mutating func next() -> Int64? {
      guard place < numbers.count else { return nil }
      if place % AscendingNumbers.countPerMark == 0 {
        number = numbers.marks[place / AscendingNumbers.countPerMark].number
      } else {
        number &+= numbers.step(&offset)
      }
      place += 1
      return number
    }
  }
}
