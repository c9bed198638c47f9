internal import Platform

/// A default value of an attribute.
public enum AttributeValue: Sendable, Hashable {
  case integer(Int64)
  case real(Double)

  /// Plain digits (`-12.50`), to keep precision.
  case decimal(String)
  case boolean(Bool)
  case string(String)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case data([UInt8])

  case uuid([UInt8])
  case uri(String)

  /// An unsupported default.
  case opaque(className: String)
}

extension AttributeValue {
  /// The value as in source; data as hexadecimal digits.
  package var plainText: String {
    switch self {
    case .integer(let value): String(value)
    case .real(let value): numberFormat(value)
    case .decimal(let digits): digits
    case .boolean(let value): value ? "YES" : "NO"
    case .string(let text), .uri(let text): text
    case .date(let seconds): numberFormat(seconds)
    case .data(let bytes), .uuid(let bytes): bytes.prefix(64).hexadecimal
    case .opaque(let className): "<\(className)>"
    }
  }
}

// MARK: Archived values

extension AttributeValue {
  /// Reads an archived default.
  init(archived object: ArchivedObject) {
    switch object.content {
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .unsigned(let value): self = .real(Double(value))
    case .real(let value): self = .real(value)
    case .string(let value): self = .string(value)
    case .data(let value): self = .data(value)
    case .date(let value): self = .date(value)
    case .dictionary: self = Self.ofObject(object)
    case .null, .uid, .array: self = .opaque(className: "?")
    }
  }

  private static func ofObject(_ object: ArchivedObject) -> AttributeValue {
    switch object.className {
    case "NSDate": if let seconds = object.real("NS.time") { return .date(seconds) }
    case "NSString", "NSMutableString": if let text = object.string { return .string(text) }
    case "NSUUID": if let bytes = object["NS.uuidbytes"]?.data, bytes.count == 16 { return .uuid(bytes) }
    case "NSURL": if let text = object.string("NS.relative") { return .uri(text) }
    case "NSData", "NSMutableData":
      if let bytes = object["NS.data"]?.data ?? object.object("NS.data")?.content.data { return .data(bytes) }
    case "NSDecimalNumberPlaceholder", "NSDecimalNumber":
      if let number = decimal(object) { return .decimal(number.digits) }
    default: break
    }
    return .opaque(className: object.className ?? "?")
  }

  /// The mantissa has 16-bit words, lowest first; `NS.mantissa.bo` is 1 for little-endian ones.
  private static func decimal(_ object: ArchivedObject) -> DecimalNumber? {
    guard let bytes = object["NS.mantissa"]?.data, bytes.count <= 16, let exponent = object.integer("NS.exponent"),
      (-128...127).contains(exponent), let words = object.integer("NS.length"), (0...8).contains(words)
    else { return nil }
    let isLittleEndian = object.integer("NS.mantissa.bo") != 2
    var mantissa = DecimalMantissa()
    for index in (0..<min(Int(words), bytes.count / 2)).reversed() {
      let (first, second) = (UInt16(bytes[2 * index]), UInt16(bytes[2 * index + 1]))
      mantissa.append(word: isLittleEndian ? second << 8 | first : first << 8 | second)
    }
    return DecimalNumber(isNegative: object.boolean("NS.negative"), mantissa: mantissa, exponent: Int(exponent))
  }

  /// Converts to an attribute type, if compatible.
  func normalized(for type: AttributeType) -> AttributeValue {
    switch (type, self) {
    case (.boolean, .integer(let value)): .boolean(value != 0)
    case (.boolean, .real(let value)): .boolean(value != 0)
    case (.integer16, .boolean(let value)), (.integer32, .boolean(let value)), (.integer64, .boolean(let value)):
      .integer(value ? 1 : 0)
    case (.integer16, .real(let value)), (.integer32, .real(let value)), (.integer64, .real(let value)):
      Int64(exactly: value).map { .integer($0) } ?? self
    case (.double, .integer(let value)), (.float, .integer(let value)): .real(Double(value))
    case (.double, .boolean(let value)), (.float, .boolean(let value)): .real(value ? 1 : 0)
    case (.decimal, .integer(let value)): .decimal(String(value))
    case (.decimal, .real(let value)): DecimalNumber(value.description).map { .decimal($0.digits) } ?? self
    case (.date, .real(let value)): .date(value)
    case (.date, .integer(let value)): .date(Double(value))
    case (.uri, .string(let value)): .uri(value)
    case (.string, .uri(let value)): .string(value)
    default: self
    }
  }
}

enum ArchivedValues {
  static func add(_ value: AttributeValue, to archive: inout KeyedArchiveWriter) -> KeyedArchiveWriter.Reference {
    switch value {
    case .integer(let number): return archive.value(.integer(number))
    case .real(let number): return archive.value(.real(number))
    case .boolean(let flag): return archive.value(.boolean(flag))
    case .string(let text): return archive.string(text)
    case .data(let bytes): return archive.value(.data(bytes))
    case .date(let seconds): return archive.add(classes: ["NSDate", "NSObject"], ["NS.time": .real(seconds)])
    case .uuid(let bytes): return archive.add(classes: ["NSUUID", "NSObject"], ["NS.uuidbytes": .data(bytes)])
    case .uri(let text):
      let relative = archive.string(text)
      return archive.add(
        classes: ["NSURL", "NSObject"],
        ["NS.base": KeyedArchiveWriter.Reference.null.value, "NS.relative": relative.value])
    case .decimal(let digits):
      guard let number = DecimalNumber(digits) else { return .null }
      return archive.add(
        classes: ["NSDecimalNumberPlaceholder", "NSDecimalNumber", "NSNumber", "NSValue", "NSObject"],
        [
          "NS.mantissa": .data(number.mantissa.bytes), "NS.mantissa.bo": .integer(1),
          "NS.length": .integer(Int64((number.mantissa.bitCount + 15) / 16)),
          "NS.exponent": .integer(Int64(number.exponent)), "NS.negative": .boolean(number.isNegative),
          "NS.compact": .boolean(false),
        ])
    case .opaque: return .null
    }
  }
}

// MARK: Decimal numbers

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
    let padded = zeroPadded(whole, to: decimals + 1)
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
    return parts.reversed().reduce(String(low)) { $0 + zeroPadded(String($1), to: 18) }
  }
}
