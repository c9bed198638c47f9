/// Different integers of up to six digits: a few as they are, more as one bit for each that there can be.
package struct ShortNumbers: Sendable {
  private var few: [Int32] = []
  private var bits: [UInt64] = []

  /// None.
  package init() {}

  /// How many there are.
  package private(set) var count = 0

  private static let mostFew = 64
  private static let largest = Int32(NumberRegion.kept)

  private static func place(_ number: Int32) -> (word: Int, bit: UInt64) {
    let place = Int(number + largest)
    return (place >> 6, 1 << UInt64(place & 63))
  }

  /// Whether a number is among them.
  package func contains(_ number: Int32) -> Bool {
    guard !bits.isEmpty else { return few.contains(number) }
    guard abs(Int64(number)) <= Int64(Self.largest) else { return false }
    let (word, bit) = Self.place(number)
    return bits[word] & bit != 0
  }

  /// Puts a number in; one of more digits is left out.
  package mutating func insert(_ number: Int32) {
    guard abs(Int64(number)) <= Int64(Self.largest), !contains(number) else { return }
    count += 1
    if bits.isEmpty, few.count < Self.mostFew {
      few.append(number)
      return
    }
    if bits.isEmpty {
      bits = [UInt64](repeating: 0, count: Int(2 * Self.largest) / 64 + 1)
      for other in few { setBit(other) }
      few = []
    }
    setBit(number)
  }

  private mutating func setBit(_ number: Int32) {
    let (word, bit) = Self.place(number)
    bits[word] |= bit
  }

  /// Puts in what is in another one.
  package mutating func formUnion(_ other: ShortNumbers) {
    for number in other.sorted() { insert(number) }
  }

  /// All of them, the least first.
  package func sorted() -> [Int32] {
    guard !bits.isEmpty else { return few.sorted() }
    var numbers: [Int32] = []
    numbers.reserveCapacity(count)
    for (place, bits) in bits.enumerated() where bits != 0 {
      var rest = bits
      while rest != 0 {
        numbers.append(Int32(64 * place + rest.trailingZeroBitCount) - Self.largest)
        rest &= rest &- 1
      }
    }
    return numbers
  }
}
