/// A decimal number as archives keep it: a sign, a whole mantissa of up to 128 bits, and a power of ten.
struct DecimalNumber: Hashable {
  var isNegative: Bool
  var mantissa: DecimalMantissa
  var exponent: Int

  init(isNegative: Bool, mantissa: DecimalMantissa, exponent: Int) {
    self.isNegative = isNegative
    self.mantissa = mantissa
    self.exponent = exponent
  }

  /// Reads plain or scientific digits (`-12.50`, `1e3`); nil where it is no number or does not fit.
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

  /// The number as plain digits, with as many decimals as it was given with.
  var digits: String {
    let sign = isNegative ? "-" : ""
    let whole = mantissa.digits
    guard exponent < 0 else { return sign + whole + (mantissa.isZero ? "" : String(repeating: "0", count: exponent)) }
    let decimals = -exponent
    let padded = String(repeating: "0", count: max(0, decimals + 1 - whole.count)) + whole
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }
}
