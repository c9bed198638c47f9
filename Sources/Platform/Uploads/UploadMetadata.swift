import Foundation

/// The `Upload-Metadata` of an upload.
///
/// Comma-separated pairs of key, space and optional base64 value (tus 1.0, "Creation").
package struct UploadMetadata: Sendable, Hashable {
  package static let fileName = "filename"

  package static let fileType = "filetype"

  package static let sha256 = "sha256"

  package static let lengthLimit = 8 << 10

  package private(set) var values: [String: [UInt8]] = [:]

  package init() {}

  /// Returns nil for a malformed, overlong or repetitive field.
  package init?(_ field: String) {
    guard field.utf8.count <= Self.lengthLimit else { return nil }
    let trimmed = field.drop { $0 == " " }
    if trimmed.isEmpty { return }
    for pair in trimmed.split(separator: ",", omittingEmptySubsequences: false) {
      let parts = pair.split(separator: " ")
      guard (1...2).contains(parts.count), let key = parts.first.map(String.init), Self.isKey(key) else { return nil }
      guard let value = parts.count == 2 ? Base64.decode(parts[1]) : [] else { return nil }
      guard values.updateValue(value, forKey: key) == nil else { return nil }
    }
  }

  package subscript(_ key: String) -> String? {
    get { values[key].flatMap { String(utf8: $0) } }
    set { values[key] = newValue.map { Array($0.utf8) } }
  }

  package var field: String {
    values.sorted { $0.key < $1.key }
      .map { $0.value.isEmpty ? $0.key : "\($0.key) \(Base64.encode($0.value))" }
      .joined(separator: ",")
  }

  private static func isKey(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ",") }
  }
}

/// The checksum of a part in `Upload-Checksum`: algorithm, space, base64 (tus 1.0, "Checksum").
package struct UploadChecksum: Sendable, Hashable {
  /// The algorithm, in lower case, such as `sha256`.
  package var algorithm: String

  package var sum: [UInt8]

  package init(algorithm: String, sum: [UInt8]) {
    self.algorithm = algorithm
    self.sum = sum
  }

  package init?(_ field: String) {
    let parts = field.split(separator: " ")
    guard field.utf8.count <= 256, parts.count == 2, let sum = Base64.decode(parts[1]), !sum.isEmpty else { return nil }
    self.init(algorithm: parts[0].lowercased(), sum: sum)
  }

  package var field: String { "\(algorithm) \(Base64.encode(sum))" }
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
