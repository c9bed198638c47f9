/// An archived decimal number: sign, mantissa of up to 128 bits, and power of ten.
struct DecimalNumber: Hashable {
  var isNegative: Bool
  var mantissa: DecimalMantissa
  var exponent: Int

  init(isNegative: Bool, mantissa: DecimalMantissa, exponent: Int) {
    self.isNegative = isNegative
    self.mantissa = mantissa
    self.exponent = exponent
  }

  /// Parses `-12.50` or `1e3`; nil if invalid or too large.
  init?(_ text: String) {
    var rest = Substring(text)
    isNegative = rest.first == "-"
    if rest.first == "-" || rest.first == "+" { rest = rest.dropFirst() }
    var power = 0
    if let mark = rest.firstIndex(where: { $0 == "e" || $0 == "E" }) {
      guard let given = Int(rest[rest.index(after: mark)...]), abs(given) <= 200 else { return nil }
      power = given
      rest = rest[..<mark]
    }
    var mantissa = DecimalMantissa()
    var digits = 0
    var fraction: Int?
    for character in rest.utf8 {
      if character == UInt8(ascii: "."), fraction == nil {
        fraction = 0
        continue
      }
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { return nil }
      guard mantissa.append(digit: character - UInt8(ascii: "0")), digits < 60 else { return nil }
      digits += 1
      if let count = fraction { fraction = count + 1 }
    }
    guard digits > 0 else { return nil }
    self.mantissa = mantissa
    exponent = power - (fraction ?? 0)
    guard (-128...127).contains(exponent) else { return nil }
  }

  /// The plain digits, with given decimals.
  var digits: String {
    let sign = isNegative ? "-" : ""
    let whole = mantissa.digits
    guard exponent < 0 else { return sign + whole + (mantissa.isZero ? "" : String(repeating: "0", count: exponent)) }
    let decimals = -exponent
    let padded = String(repeating: "0", count: max(0, decimals + 1 - whole.count)) + whole
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }
}

/// A decimal's 128-bit mantissa.
///
/// The standard library's integer needs newer systems than those supported.
package struct DecimalMantissa: Hashable {
  private var high: UInt64 = 0
  private var low: UInt64 = 0

  package init() {}

  package var isZero: Bool { high == 0 && low == 0 }

  /// Returns false, unchanged, on overflow.
  package mutating func append(digit: UInt8) -> Bool {
    let product = low.multipliedFullWidth(by: 10)
    let (tens, isTooHigh) = high.multipliedReportingOverflow(by: 10)
    let (upper, isTooHighThen) = tens.addingReportingOverflow(product.high)
    let (lower, carries) = product.low.addingReportingOverflow(UInt64(digit))
    let (whole, isTooHighAtLast) = upper.addingReportingOverflow(carries ? 1 : 0)
    guard !isTooHigh, !isTooHighThen, !isTooHighAtLast else { return false }
    (high, low) = (whole, lower)
    return true
  }

  /// Drops the highest bits.
  package mutating func append(word: UInt16) {
    high = high << 16 | low >> 48
    low = low << 16 | UInt64(word)
  }

  package var bitCount: Int { high > 0 ? 128 - high.leadingZeroBitCount : 64 - low.leadingZeroBitCount }

  package var bytes: [UInt8] {
    [low, high].flatMap { part in (0..<8).map { UInt8(truncatingIfNeeded: part >> (8 * $0)) } }
  }

  package var digits: String {
    guard high > 0 else { return String(low) }
    // 18 digits at a time keep the remainder below 2^64.
    let part: UInt64 = 1_000_000_000_000_000_000
    var (high, low) = (high, low)
    var parts: [UInt64] = []
    while high > 0 {
      let upper = high.quotientAndRemainder(dividingBy: part)
      let lower = part.dividingFullWidth((upper.remainder, low))
      (high, low) = (upper.quotient, lower.quotient)
      parts.append(lower.remainder)
    }
    return parts.reversed().reduce(String(low)) { text, part in
      let digits = String(part)
      return text + String(repeating: "0", count: 18 - digits.count) + digits
    }
  }
}
