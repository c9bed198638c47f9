import Foundation

extension Sequence<UInt8> {
  /// Lower-case digits.
  package var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * underestimatedCount)
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// A UUID's text, in upper case as Core Data writes it.
  package var uuidText: String {
    let digits = Array(hexadecimal.uppercased().utf8)
    let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { digits[$0.clamped(to: digits.indices)] }
    return groups.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
  }
}

extension [UInt8] {
  /// Returns nil for other text than digits of either case.
  package init?(hexadecimal text: some StringProtocol) { self.init(hexadecimal: Array(text.utf8)) }

  package init?(hexadecimal digits: [UInt8]) {
    guard digits.count.isMultiple(of: 2) else { return nil }
    self.init()
    reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = nibble(digits[index]), let low = nibble(digits[index + 1]) else { return nil }
      append(high << 4 | low)
    }
  }
}

private func nibble(_ digit: UInt8) -> UInt8? {
  switch digit {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// Percent-encoding of paths and queries (RFC 3986, section 2.1).
package enum PercentEncoding {
  /// Decodes to bytes; nil if a percent sign lacks two hexadecimal digits.
  static func bytes(of text: Substring.UTF8View, plusIsSpace: Bool = false) -> [UInt8]? {
    var result: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(nibble), let low = rest.popFirst().flatMap(nibble) else { return nil }
        result.append(high << 4 | low)
      case UInt8(ascii: "+") where plusIsSpace: result.append(UInt8(ascii: " "))
      default: result.append(byte)
      }
    }
    return result
  }

  /// Decodes to text; nil if malformed or not UTF-8.
  package static func decode(_ text: Substring, plusIsSpace: Bool = false) -> String? {
    bytes(of: text.utf8, plusIsSpace: plusIsSpace).flatMap { String(utf8: $0) }
  }

  /// Encodes all but unreserved bytes, with upper-case digits, as S3 signatures need.
  package static func encode(_ text: String, keepsSlashes: Bool = false) -> String {
    // Fast path for most texts.
    if text.utf8.allSatisfy(isUnreserved) { return text }
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) || keepsSlashes && byte == UInt8(ascii: "/") {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Whether a byte is never encoded (RFC 3986, section 2.3).
  private static func isUnreserved(_ byte: UInt8) -> Bool { byte.isOfWord || byte == UInt8(ascii: "~") }
}

extension UInt8 {
  /// Whether it is a letter, a digit, `.`, `-` or `_` of ASCII.
  package var isOfWord: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}

/// Canonical base64 with padding (RFC 4648, section 4).
package enum Base64 {
  package static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// Accepts only the output of ``encode(_:)``.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let text = String(text)
    guard let data = Data(base64Encoded: text) else { return nil }
    let bytes = [UInt8](data)
    return encode(bytes) == text ? bytes : nil
  }
}
