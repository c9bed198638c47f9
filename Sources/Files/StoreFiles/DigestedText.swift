/// A JSON object as text whose last key, `digest`, is the SHA-256 of the text as it is without that key.
///
/// The text ends with `,"digest":"<64 hexadecimal digits>"}` and a newline. Without what stands from that comma to the last
/// quotation mark it is the text that the digest is of, so that no reader has to know all keys to check it.
package enum DigestedText {
  /// What a text says of itself.
  package enum Verdict: Sendable, Hashable {
    case right

    /// It has a digest, and is not what the digest is of.
    case changed

    /// It does not end with a digest.
    case none
  }

  private static let end = Array("}\n".utf8)
  private static let key = Array(",\"digest\":\"".utf8)
  private static let last = Array("\"}\n".utf8)
  private static let digits = 64

  /// The bytes that a digest adds to a text.
  package static let addedLength = key.count + digits + last.count - end.count

  /// The text of an object, which ends with a brace and a newline, with its digest.
  package static func adding(to text: [UInt8]) -> [UInt8] {
    guard text.suffix(end.count).elementsEqual(end) else { return text }
    return text.dropLast(end.count) + key + Array(FileDigest(of: text).hexadecimal.utf8) + last
  }

  /// Whether a text ends with a digest, and whether that is its own.
  package static func verdict(_ bytes: [UInt8]) -> Verdict {
    let tail = key.count + digits + last.count
    guard bytes.count > tail, bytes.suffix(last.count).elementsEqual(last),
      bytes.suffix(tail).prefix(key.count).elementsEqual(key)
    else { return .none }
    let written = bytes.suffix(digits + last.count).prefix(digits)
    let text = bytes.dropLast(tail) + end
    return written.elementsEqual(FileDigest(of: Array(text)).hexadecimal.utf8) ? .right : .changed
  }

  /// The digest that a text ends with; nil where it has none, or one that is not its own.
  package static func digest(of bytes: [UInt8]) -> String? {
    guard verdict(bytes) == .right else { return nil }
    return String(decoding: bytes.suffix(digits + last.count).prefix(digits), as: UTF8.self)
  }
}
