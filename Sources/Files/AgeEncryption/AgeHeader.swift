import Cryptography
import Foundation

/// The header of an age file: for whom its key is wrapped, and a sum under that key.
///
/// Source: age specification, "Header".
struct AgeHeader: Sendable {
  static let version = "age-encryption.org/v1"
  static let fileKeyLength = 16

  /// The most bytes of a header that is read: some thousand recipients.
  static let lengthLimit = 1 << 18

  /// The most stanzas: each costs a key agreement for each identity.
  static let stanzaLimit = 1024

  var stanzas: [AgeStanza]
  var sum: [UInt8]

  /// The bytes that the sum is of.
  private(set) var summed: [UInt8]

  /// A header for a file's key.
  init(_ stanzas: [AgeStanza], fileKey: SymmetricKey) {
    self.stanzas = stanzas
    summed = Array((Self.version + "\n" + stanzas.map(\.text).joined() + "---").utf8)
    sum = Self.sum(of: summed, fileKey: fileKey)
  }

  var bytes: [UInt8] { summed + Array((" " + UnpaddedBase64.encode(sum) + "\n").utf8) }

  /// Whether the header is unaltered, as the holder of the file's key can tell.
  func isValid(fileKey: SymmetricKey) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(sum, authenticating: summed, using: Self.sumKey(fileKey))
  }

  private static func sum(of bytes: [UInt8], fileKey: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: bytes, using: sumKey(fileKey)))
  }

  private static func sumKey(_ fileKey: SymmetricKey) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: fileKey, salt: [UInt8](), info: Array("header".utf8), outputByteCount: 32)
  }

  // MARK: Reading

  /// The header at the beginning of bytes and its length; nil where more bytes are needed.
  ///
  /// - Throws: as soon as the bytes cannot be the beginning of a header.
  static func read(_ bytes: [UInt8]) throws(AgeError) -> (header: AgeHeader, length: Int)? {
    var reader = AgeHeaderReader(bytes)
    return try reader.read()
  }

  /// A header as it was read.
  init(stanzas: [AgeStanza], sum: [UInt8], summed: [UInt8]) {
    self.stanzas = stanzas
    self.sum = sum
    self.summed = summed
  }
}
