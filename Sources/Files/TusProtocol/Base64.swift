import Foundation

/// Base64 with padding, in its one canonical spelling (RFC 4648, section 4).
enum Base64 {
  static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// The bytes; nil where the text is not what ``encode(_:)`` writes for them.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let text = String(text)
    guard let data = Data(base64Encoded: text) else { return nil }
    let bytes = [UInt8](data)
    return encode(bytes) == text ? bytes : nil
  }
}
