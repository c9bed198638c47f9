import Foundation

/// The encrypted content: chunks of 64 KiB, each sealed with its number and a last-chunk flag.
///
/// Source: age specification, "Payload"; Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its
/// Nonce-Reuse Misuse-Resistance" (2015), STREAM.
struct AgePayload: Sendable {
  static let chunk = 64 << 10
  static let tag = 16
  static let nonceLength = 16

  private let key: SymmetricKey
  private var counter: UInt64 = 0

  init(fileKey: SymmetricKey, nonce: [UInt8]) {
    key = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: fileKey, salt: nonce, info: Array("payload".utf8), outputByteCount: 32)
  }

  func at(_ chunk: UInt64) -> AgePayload {
    var copy = self
    copy.counter = chunk
    return copy
  }

  /// Decrypts the next chunk without authentication.
  ///
  /// ChaCha20 adds a key stream to the content; sealing zeros under the same number yields that stream.
  func unproven(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8] {
    var copy = self
    guard let stream = try? copy.seal([UInt8](repeating: 0, count: bytes.count)[...], isLast: isLast) else {
      // Sealing zeros cannot fail; if it does, the chunk is lost.
      return [UInt8](repeating: 0, count: bytes.count)
    }
    return zip(bytes, stream).map { $0 ^ $1 }
  }

  var chunks: UInt64 { counter }

  mutating func seal(_ bytes: ArraySlice<UInt8>, isLast: Bool) throws(AgeError) -> [UInt8] {
    do {
      let box = try ChaChaPoly.seal(bytes, using: key, nonce: nonce(isLast: isLast))
      counter += 1
      return Array(box.ciphertext) + Array(box.tag)
    } catch {
      throw AgeError(.payload, "a part of the content could not be encrypted")
    }
  }

  /// Opens the next chunk; nil if its number or last-chunk flag is wrong.
  mutating func open(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8]? {
    do {
      let box = try ChaChaPoly.SealedBox(
        nonce: nonce(isLast: isLast), ciphertext: bytes.dropLast(Self.tag), tag: bytes.suffix(Self.tag))
      let opened = try ChaChaPoly.open(box, using: key)
      counter += 1
      return Array(opened)
    } catch {
      return nil
    }
  }

  /// The chunk's number in eleven bytes, big-endian, then 1 for the last chunk.
  private func nonce(isLast: Bool) throws -> ChaChaPoly.Nonce {
    var bytes = [UInt8](repeating: 0, count: 12)
    for index in 0..<8 { bytes[3 + index] = UInt8(truncatingIfNeeded: counter >> UInt64(8 * (7 - index))) }
    bytes[11] = isLast ? 1 : 0
    return try ChaChaPoly.Nonce(data: bytes)
  }
}
