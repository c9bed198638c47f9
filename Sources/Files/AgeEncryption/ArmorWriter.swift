import Foundation

/// Writes the armour that carries an age file through what only takes text: base64 in lines of 64 characters.
///
/// Source: age specification, "ASCII armor"; RFC 7468 in its strict form.
struct ArmorWriter: Sendable {
  static let begin = "-----BEGIN AGE ENCRYPTED FILE-----"
  static let end = "-----END AGE ENCRYPTED FILE-----"
  static let bytesInLine = 48

  private var waiting: [UInt8] = []
  private var hasBegun = false

  /// Adds bytes, and gives the lines that are full.
  mutating func write(_ bytes: [UInt8]) -> [UInt8] {
    waiting += bytes
    var text = hasBegun ? "" : Self.begin + "\n"
    hasBegun = true
    var position = 0
    while waiting.count - position >= Self.bytesInLine {
      text += Data(waiting[position..<(position + Self.bytesInLine)]).base64EncodedString() + "\n"
      position += Self.bytesInLine
    }
    waiting.removeFirst(position)
    return Array(text.utf8)
  }

  mutating func finish() -> [UInt8] {
    let rest = waiting.isEmpty ? "" : Data(waiting).base64EncodedString() + "\n"
    return Array((rest + Self.end + "\n").utf8)
  }
}
