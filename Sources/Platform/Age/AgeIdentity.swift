import Foundation

/// An X25519 secret key, written `AGE-SECRET-KEY-1…`.
///
/// It prints as its recipient, to keep the key out of logs.
public struct AgeIdentity: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  private static let prefix = "age-secret-key-"

  private let key: Curve25519.KeyAgreement.PrivateKey

  /// Makes a random identity.
  public init() { key = Curve25519.KeyAgreement.PrivateKey() }

  /// Parses an identity.
  public init(_ text: some StringProtocol) throws(AgeError) {
    guard let (prefix, bytes) = Bech32.decode(String(text)) else {
      throw AgeError(.identity, "the secret key is mistyped: its sum is wrong")
    }
    guard prefix == Self.prefix, bytes.count == 32 else {
      throw AgeError(.identity, "the secret key is not an X25519 key that begins with AGE-SECRET-KEY-1")
    }
    do {
      key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes)
    } catch {
      throw AgeError(.identity, "the secret key cannot be used")
    }
  }

  /// The matching public key.
  public var recipient: AgeRecipient { AgeRecipient(bytes: Array(key.publicKey.rawRepresentation)) }

  /// The secret key's text, for the owner's key file.
  public var secretText: String { Bech32.encode(key.rawRepresentation, prefix: Self.prefix).uppercased() }

  /// The recipient; never the secret key.
  public var description: String { "the identity of \(recipient)" }

  /// The recipient; never the secret key.
  public var debugDescription: String { description }

  /// An empty mirror, so that no dump shows the key.
  public var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Parses a file of `age-keygen`: one identity a line, comments after `#`.
  ///
  /// - Parameter text: at most a thousand lines are read.
  public static func identities(in text: String) throws(AgeError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    for (number, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line.isEmpty || line.hasPrefix("#") { continue }
      guard number < 1000 else { throw AgeError(.identity, "the file of secret keys has more than a thousand lines") }
      do throws(AgeError) {
        identities.append(try AgeIdentity(line))
      } catch {
        throw AgeError(.identity, "line \(number + 1) of the file holds no X25519 secret key")
      }
    }
    guard !identities.isEmpty else { throw AgeError(.identity, "the file holds no secret key") }
    return identities
  }

  /// Unwraps the file key; nil for another recipient's stanza.
  ///
  /// - Throws: if it is malformed.
  func unwrap(_ stanza: AgeStanza) throws(AgeError) -> SymmetricKey? {
    guard stanza.arguments.first == AgeRecipient.stanza else { return nil }
    guard stanza.arguments.count == 2, let share = UnpaddedBase64.decode(stanza.arguments[1]), share.count == 32 else {
      throw AgeError(.header, "a stanza for an X25519 key has no share of 32 bytes")
    }
    // Checked first, so that the answer does not reveal which of several keys fitted.
    guard stanza.body.count == AgeHeader.fileKeyLength + 16 else {
      throw AgeError(.header, "a stanza for an X25519 key wraps a key of another length")
    }
    let wrappingKey: SymmetricKey
    do {
      let theirs = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: share)
      let shared = try key.sharedSecretFromKeyAgreement(with: theirs)
      wrappingKey = AgeRecipient.wrappingKey(shared, share: share, recipient: recipient.bytes)
    } catch {
      throw AgeError(.header, "a stanza's share is a key of low order, which keeps nothing secret")
    }
    do {
      let box = try ChaChaPoly.SealedBox(
        nonce: AgeRecipient.nonce(), ciphertext: stanza.body.dropLast(16), tag: stanza.body.suffix(16))
      return SymmetricKey(data: try ChaChaPoly.open(box, using: wrappingKey))
    } catch {
      // Another key's stanza.
      return nil
    }
  }
}
