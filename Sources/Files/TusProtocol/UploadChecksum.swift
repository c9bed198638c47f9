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
