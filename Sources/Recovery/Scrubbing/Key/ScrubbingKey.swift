internal import Cryptography
public import StoreFiles

/// The secret that pseudonyms follow from.
///
/// The same key gives the same pseudonyms, so that two scrubbed copies of a store can be compared; its holder can test
/// guesses, so that it stays with the owner of the store and never goes into a bundle.
public struct ScrubbingKey: Sendable {
  /// The number of bytes of a key.
  public static let length = 32

  /// The bytes of the key.
  let bytes: [UInt8]

  /// A key of 32 bytes.
  ///
  /// - Throws: `scrubbing-key` where there are more or fewer.
  public init(_ bytes: [UInt8]) throws(ScrubbingError) {
    guard bytes.count == Self.length else {
      throw ScrubbingError(
        .key, operation: "use the scrubbing key", detail: "it has \(bytes.count) bytes",
        hint: "A key has \(Self.length) bytes.")
    }
    self.bytes = bytes
  }

  private init(random bytes: [UInt8]) { self.bytes = bytes }

  /// A new key of random bytes, from the system's generator unless told otherwise.
  public static func random() -> ScrubbingKey {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// A new key of random bytes.
  public static func random(using generator: inout some RandomNumberGenerator) -> ScrubbingKey {
    ScrubbingKey(random: (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  /// A keyed function for one purpose (the expanding half of HKDF with SHA-256, RFC 5869).
  func function(for purpose: String, attempt: Int) -> KeyedFunction {
    let info = Array("lazaret scrubbing 1 \(purpose) \(attempt)".utf8) + [1]
    let material = HMAC<SHA256>.authenticationCode(for: info, using: SymmetricKey(data: bytes))
    var words: [UInt64] = [0, 0]
    for (index, byte) in material.enumerated() where index < 16 {
      words[index / 8] |= UInt64(byte) << UInt64(8 * (index % 8))
    }
    return KeyedFunction(words[0], words[1])
  }
}
