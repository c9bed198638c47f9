import Cryptography
import Foundation

/// To whom a file is encrypted: an X25519 public key, written `age1…`.
///
/// Source: age specification (C2SP age-encryption.org/v1), "The X25519 recipient type".
public struct AgeRecipient: Sendable, Hashable, CustomStringConvertible {
  static let prefix = "age"
  static let stanza = "X25519"
  static let label = Array("age-encryption.org/v1/X25519".utf8)

  /// The public key's 32 bytes.
  let bytes: [UInt8]

  /// A recipient from its key.
  init(bytes: [UInt8]) { self.bytes = bytes }

  /// A recipient from its text; case does not matter as long as it is not mixed.
  public init(_ text: String) throws(AgeError) {
    guard let (prefix, bytes) = Bech32.decode(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw AgeError(.recipient, "the recipient is mistyped: its sum is wrong")
    }
    guard prefix == Self.prefix, bytes.count == 32 else {
      throw AgeError(.recipient, "the recipient is not an X25519 key that begins with age1")
    }
    self.bytes = bytes
  }

  /// The recipient as it is published.
  public var description: String { Bech32.encode(bytes, prefix: Self.prefix) }

  /// The file's key, wrapped for this recipient.
  ///
  /// - Parameter ephemeral: the key that is used once; a new one if not given.
  func wrap(_ fileKey: [UInt8], ephemeral: Curve25519.KeyAgreement.PrivateKey = .init()) throws(AgeError)
    -> AgeStanza
  {
    do {
      let theirs = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes)
      let shared = try ephemeral.sharedSecretFromKeyAgreement(with: theirs)
      let share = Array(ephemeral.publicKey.rawRepresentation)
      let key = Self.wrappingKey(shared, share: share, recipient: bytes)
      let box = try ChaChaPoly.seal(fileKey, using: key, nonce: Self.nonce())
      return AgeStanza(
        arguments: [Self.stanza, UnpaddedBase64.encode(share)], body: Array(box.ciphertext) + Array(box.tag))
    } catch {
      // The library refuses a key of low order, which keeps nothing secret.
      throw AgeError(.recipient, "the recipient's key cannot be used")
    }
  }

  /// The key that wraps the file's key.
  static func wrappingKey(_ shared: SharedSecret, share: [UInt8], recipient: [UInt8]) -> SymmetricKey {
    shared.hkdfDerivedSymmetricKey(
      using: SHA256.self, salt: share + recipient, sharedInfo: label, outputByteCount: 32)
  }

  /// Twelve zeros: each wrapping key is used once.
  static func nonce() throws -> ChaChaPoly.Nonce { try ChaChaPoly.Nonce(data: [UInt8](repeating: 0, count: 12)) }
}
