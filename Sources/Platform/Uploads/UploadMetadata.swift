import Foundation

/// What a sender says about an upload: keys with values, as `Upload-Metadata` has them.
///
/// Pairs are separated by commas, key and value by a space; a value is encoded in base64 and may be missing (tus 1.0, "Creation").
package struct UploadMetadata: Sendable, Hashable {
  /// The name of the file.
  package static let fileName = "filename"

  /// The type of the file.
  package static let fileType = "filetype"

  /// The SHA-256 of the whole file in hexadecimal digits.
  package static let sha256 = "sha256"

  /// The most bytes that a field may have.
  package static let lengthLimit = 8 << 10

  /// The values by key.
  package private(set) var values: [String: [UInt8]] = [:]

  /// Nothing said.
  package init() {}

  /// What a field says; nil where it is malformed, too long, or says one thing twice.
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

  /// The value of a key as text; nil where it is missing or no UTF-8.
  package subscript(_ key: String) -> String? {
    get { values[key].flatMap { String(utf8: $0) } }
    set { values[key] = newValue.map { Array($0.utf8) } }
  }

  /// The field, by key.
  package var field: String {
    values.sorted { $0.key < $1.key }
      .map { $0.value.isEmpty ? $0.key : "\($0.key) \(Base64.encode($0.value))" }
      .joined(separator: ",")
  }

  private static func isKey(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ",") }
  }
}

/// The sum of one part, as `Upload-Checksum` has it: an algorithm, a space, the sum in base64 (tus 1.0, "Checksum").
package struct UploadChecksum: Sendable, Hashable {
  /// The algorithm, in lower case, such as `sha256`.
  package var algorithm: String

  /// The sum.
  package var sum: [UInt8]

  /// A sum.
  package init(algorithm: String, sum: [UInt8]) {
    self.algorithm = algorithm
    self.sum = sum
  }

  /// What a field says; nil where it is malformed.
  package init?(_ field: String) {
    let parts = field.split(separator: " ")
    guard field.utf8.count <= 256, parts.count == 2, let sum = Base64.decode(parts[1]), !sum.isEmpty else { return nil }
    self.init(algorithm: parts[0].lowercased(), sum: sum)
  }

  /// The field.
  package var field: String { "\(algorithm) \(Base64.encode(sum))" }
}

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
