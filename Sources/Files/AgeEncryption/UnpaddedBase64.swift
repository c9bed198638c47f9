import Foundation

/// Base64 without padding (RFC 4648, section 3.2), in its one canonical spelling.
enum UnpaddedBase64 {
  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let padded = Data(bytes).base64EncodedString()
    return String(padded.prefix { $0 != "=" })
  }

  /// The bytes of a text; nil where it is padded, has other characters, or bits set that stand for nothing.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let text = String(text)
    guard !text.contains("="),
      let data = Data(base64Encoded: text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))
    else { return nil }
    let bytes = [UInt8](data)
    return encode(bytes) == text ? bytes : nil
  }
}
