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
  public init(_ text: some StringProtocol) throws(FileError) {
    guard let (prefix, bytes) = Bech32.decode(String(text)) else {
      throw FileError(.ageIdentity, "the secret key is mistyped: its sum is wrong")
    }
    guard prefix == Self.prefix, bytes.count == 32 else {
      throw FileError(.ageIdentity, "the secret key is not an X25519 key that begins with AGE-SECRET-KEY-1")
    }
    do { key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes) } catch {
      throw FileError(.ageIdentity, "the secret key cannot be used")
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
  public static func identities(in text: String) throws(FileError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    for (number, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line.isEmpty || line.hasPrefix("#") { continue }
      guard number < 1000 else {
        throw FileError(.ageIdentity, "the file of secret keys has more than a thousand lines")
      }
      do throws(FileError) { identities.append(try AgeIdentity(line)) } catch {
        throw FileError(.ageIdentity, "line \(number + 1) of the file holds no X25519 secret key")
      }
    }
    guard !identities.isEmpty else { throw FileError(.ageIdentity, "the file holds no secret key") }
    return identities
  }

  /// Unwraps the file key; nil for another recipient's stanza.
  ///
  /// - Throws: if it is malformed.
  func unwrap(_ stanza: AgeStanza) throws(FileError) -> SymmetricKey? {
    guard stanza.arguments.first == AgeRecipient.stanza else { return nil }
    guard stanza.arguments.count == 2, let share = UnpaddedBase64.decode(stanza.arguments[1]), share.count == 32 else {
      throw FileError(.ageHeader, "a stanza for an X25519 key has no share of 32 bytes")
    }
    // Checked first, so that the answer does not reveal which of several keys fitted.
    guard stanza.body.count == AgeHeader.fileKeyLength + 16 else {
      throw FileError(.ageHeader, "a stanza for an X25519 key wraps a key of another length")
    }
    let wrappingKey: SymmetricKey
    do {
      let theirs = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: share)
      let shared = try key.sharedSecretFromKeyAgreement(with: theirs)
      wrappingKey = AgeRecipient.wrappingKey(shared, share: share, recipient: recipient.bytes)
    } catch {
      throw FileError(.ageHeader, "a stanza's share is a key of low order, which keeps nothing secret")
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

/// An X25519 public key to encrypt to, written `age1…`.
///
/// Source: age specification (C2SP age-encryption.org/v1), "The X25519 recipient type".
public struct AgeRecipient: Sendable, Hashable, CustomStringConvertible {
  static let prefix = "age"
  static let stanza = "X25519"
  static let label = Array("age-encryption.org/v1/X25519".utf8)

  let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Parses a recipient in lower or upper case, not mixed.
  public init(_ text: String) throws(FileError) {
    guard let (prefix, bytes) = Bech32.decode(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw FileError(.ageRecipient, "the recipient is mistyped: its sum is wrong")
    }
    guard prefix == Self.prefix, bytes.count == 32 else {
      throw FileError(.ageRecipient, "the recipient is not an X25519 key that begins with age1")
    }
    self.bytes = bytes
  }

  /// The recipient's text.
  public var description: String { Bech32.encode(bytes, prefix: Self.prefix) }

  func wrap(_ fileKey: [UInt8]) throws(FileError) -> AgeStanza {
    let ephemeral = Curve25519.KeyAgreement.PrivateKey()
    do {
      let theirs = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes)
      let shared = try ephemeral.sharedSecretFromKeyAgreement(with: theirs)
      let share = Array(ephemeral.publicKey.rawRepresentation)
      let key = Self.wrappingKey(shared, share: share, recipient: bytes)
      let box = try ChaChaPoly.seal(fileKey, using: key, nonce: Self.nonce())
      return AgeStanza(
        arguments: [Self.stanza, UnpaddedBase64.encode(share)], body: Array(box.ciphertext) + Array(box.tag))
    } catch {
      // The library rejects a key of low order, which keeps no secret.
      throw FileError(.ageRecipient, "the recipient's key cannot be used")
    }
  }

  static func wrappingKey(_ shared: SharedSecret, share: [UInt8], recipient: [UInt8]) -> SymmetricKey {
    shared.hkdfDerivedSymmetricKey(using: SHA256.self, salt: share + recipient, sharedInfo: label, outputByteCount: 32)
  }

  /// Twelve zeros: each wrapping key is used once.
  static func nonce() throws -> ChaChaPoly.Nonce { try ChaChaPoly.Nonce(data: [UInt8](repeating: 0, count: 12)) }
}

/// Bech32, the encoding of age's keys, with a checksum of six characters.
///
/// Source: BIP 173, without its limit of 90 characters, as in the age specification.
enum Bech32 {
  private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)

  static func encode(_ bytes: some Sequence<UInt8>, prefix: String) -> String {
    let data = regroup(bytes, from: 8, to: 5, padding: true) ?? []
    let sum = checksum(expanded(prefix) + data + [UInt8](repeating: 0, count: 6)) ^ 1
    let digits = data + (0..<6).map { UInt8(sum >> UInt32(5 * (5 - $0)) & 31) }
    return prefix + "1" + String(decoding: digits.map { alphabet[Int($0)] }, as: UTF8.self)
  }

  /// Decodes a text; nil if it is mistyped or in mixed case.
  static func decode(_ text: String) -> (prefix: String, bytes: [UInt8])? {
    let lower = text.lowercased()
    guard text == lower || text == text.uppercased(), text.utf8.allSatisfy({ (33...126).contains($0) }),
      let separator = lower.lastIndex(of: "1")
    else { return nil }
    let prefix = String(lower[..<separator])
    var data: [UInt8] = []
    for character in lower[lower.index(after: separator)...].utf8 {
      guard let digit = alphabet.firstIndex(of: character) else { return nil }
      data.append(UInt8(digit))
    }
    guard !prefix.isEmpty, data.count >= 6, checksum(expanded(prefix) + data) == 1,
      let bytes = regroup(data.dropLast(6), from: 5, to: 8, padding: false)
    else { return nil }
    return (prefix, bytes)
  }

  private static func expanded(_ prefix: String) -> [UInt8] {
    prefix.utf8.map { $0 >> 5 } + [0] + prefix.utf8.map { $0 & 31 }
  }

  private static func checksum(_ values: [UInt8]) -> UInt32 {
    let generator: [UInt32] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3]
    var sum: UInt32 = 1
    for value in values {
      let top = sum >> 25
      sum = (sum & 0x1ff_ffff) << 5 ^ UInt32(value)
      for (bit, term) in generator.enumerated() where top >> UInt32(bit) & 1 == 1 { sum ^= term }
    }
    return sum
  }

  /// Regroups the bits; nil if leftover bits are nonzero.
  private static func regroup(_ values: some Sequence<UInt8>, from: UInt32, to: UInt32, padding: Bool) -> [UInt8]? {
    var (buffer, bits) = (UInt32(0), UInt32(0))
    var result: [UInt8] = []
    for value in values {
      buffer = (buffer << from | UInt32(value)) & 0xfff
      bits += from
      while bits >= to {
        bits -= to
        result.append(UInt8(buffer >> bits & (1 << to - 1)))
      }
    }
    let rest = buffer & (1 << bits - 1)
    if padding {
      if bits > 0 { result.append(UInt8(rest << (to - bits))) }
    } else {
      guard bits < from, rest == 0 else { return nil }
    }
    return result
  }
}
