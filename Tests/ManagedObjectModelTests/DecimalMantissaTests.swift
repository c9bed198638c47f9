import ManagedObjectModel
import Testing

/// The 128 bits of a decimal, against the standard library's own integer of that width.
struct DecimalMantissaTests {
  private func mantissa(_ number: UInt128) -> DecimalMantissa {
    var mantissa = DecimalMantissa()
    for index in (0..<8).reversed() { mantissa.append(word: UInt16(truncatingIfNeeded: number >> UInt128(16 * index))) }
    return mantissa
  }

  private static let numbers: [UInt128] =
    [0, 1, 9, 10, 65_535, 65_536, .max, .max - 1]
    + (0..<39).map { power in (0..<power).reduce(1) { result, _ in result * 10 } }
    + [UInt128(UInt64.max), UInt128(UInt64.max) + 1, 340_282_366_920_938_463_463_374_607_431_768_211_455]

  @Test(arguments: numbers) func itHasTheDigitsOfTheNumber(_ number: UInt128) {
    let mantissa = mantissa(number)
    #expect(mantissa.digits == String(number))
    #expect(mantissa.isZero == (number == 0))
    #expect(mantissa.bitCount == UInt128.bitWidth - number.leadingZeroBitCount)
    #expect(mantissa.bytes == (0..<16).map { UInt8(truncatingIfNeeded: number >> UInt128(8 * $0)) })
  }

  @Test(arguments: numbers) func digitsAddUpToTheNumber(_ number: UInt128) {
    var made = DecimalMantissa()
    let fits = String(number).utf8.map { made.append(digit: $0 - 48) }
    #expect(!fits.contains(false))
    #expect(made == mantissa(number))
  }

  @Test func whatDoesNotFitIsLeftOut() {
    var most = mantissa(.max)
    let fits = most.append(digit: 0)
    #expect(!fits)
    #expect(most == mantissa(.max))
    // 2^128 - 1 ends in 5: one more is too much, and so is a digit more.
    var tenth = mantissa(.max / 10)
    var same = tenth
    let isLast = tenth.append(digit: 5)
    #expect(isLast)
    #expect(tenth == mantissa(.max))
    let isBeyond = same.append(digit: 6)
    #expect(!isBeyond)
    #expect(same == mantissa(.max / 10))
  }
}
