import Crypto

/// A SHA-256 of bytes that come one after the other.
struct RunningDigest: Sendable {
  private var hasher = SHA256()

  /// Adds bytes.
  mutating func add(_ bytes: [UInt8]) { hasher.update(data: bytes) }

  /// The digest of everything so far, in hexadecimal digits.
  var hexadecimal: String { Self.text(hasher.finalize()) }

  /// The digest of bytes, in hexadecimal digits.
  static func hexadecimal(_ bytes: [UInt8]) -> String { text(SHA256.hash(data: bytes)) }

  private static func text(_ digest: SHA256.Digest) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(64)
    for byte in digest {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}
