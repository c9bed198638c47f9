import Foundation

/// The encrypted content: chunks of 64 KiB, each sealed with its number and whether it is the last.
///
/// Source: age specification, "Payload"; Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its
/// Nonce-Reuse Misuse-Resistance" (2015), STREAM.
struct AgePayload: Sendable {
  static let chunk = 64 << 10
  static let tag = 16
  static let nonceLength = 16

  private let key: SymmetricKey
  private var counter: UInt64 = 0

  /// The content under a file's key.
  init(fileKey: SymmetricKey, nonce: [UInt8]) {
    key = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: fileKey, salt: nonce, info: Array("payload".utf8), outputByteCount: 32)
  }

  /// The same content, before a chunk, counted from 0.
  func at(_ chunk: UInt64) -> AgePayload {
    var copy = self
    copy.counter = chunk
    return copy
  }

  /// What the bytes of the next chunk decrypt to, whether they are what was sealed or not.
  ///
  /// ChaCha20 adds a stream of its own to the content; zeros, sealed under the same number, show that stream.
  func unproven(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8] {
    var copy = self
    guard let stream = try? copy.seal([UInt8](repeating: 0, count: bytes.count)[...], isLast: isLast) else {
      // Zeros can always be sealed; what could not be is as good as lost.
      return [UInt8](repeating: 0, count: bytes.count)
    }
    return zip(bytes, stream).map { $0 ^ $1 }
  }

  /// How many chunks there were.
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

  /// The next chunk, opened; nil where it is not the next, or is not the last as it should be.
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

  /// Eleven bytes of the chunk's number, the highest first, and one that is 1 for the last.
  private func nonce(isLast: Bool) throws -> ChaChaPoly.Nonce {
    var bytes = [UInt8](repeating: 0, count: 12)
    for index in 0..<8 { bytes[3 + index] = UInt8(truncatingIfNeeded: counter >> UInt64(8 * (7 - index))) }
    bytes[11] = isLast ? 1 : 0
    return try ChaChaPoly.Nonce(data: bytes)
  }
}
