/// A line-by-line decoder of armour.
///
/// Only white space around the armour and CR LF line ends are tolerated.
struct ArmorReader: Sendable {
  private enum Place {
    case before, within
    /// After a short line: only the end may follow.
    case lastLine
    case after
  }

  private var place = Place.before
  private var line: [UInt8] = []
  private var skipped = 0

  static func isArmor(_ bytes: some Collection<UInt8>) -> Bool {
    bytes.drop(while: isSpace).starts(with: ArmorWriter.begin.utf8)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

  private static func damaged(_ detail: String) -> FileError { FileError(.ageArmor, detail) }

  mutating func read(_ bytes: some Collection<UInt8>) throws(FileError) -> [UInt8] {
    var opened: [UInt8] = []
    for byte in bytes {
      if place == .before, line.isEmpty, Self.isSpace(byte) {
        skipped += 1
        guard skipped <= 1024 else { throw Self.damaged("there is too much white space before the armour") }
        continue
      }
      if byte == UInt8(ascii: "\n") {
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        opened += try take()
        line.removeAll(keepingCapacity: true)
      } else {
        line.append(byte)
        guard line.count <= 66 else { throw Self.damaged("a line of the armour is longer than 64 characters") }
      }
    }
    return opened
  }

  mutating func finish() throws(FileError) {
    if !line.isEmpty { _ = try take() }
    guard place == .after else { throw Self.damaged("the end of the armour is missing") }
  }

  private mutating func take() throws(FileError) -> [UInt8] {
    let text = String(decoding: line, as: UTF8.self)
    switch place {
    case .before:
      guard text == ArmorWriter.begin else { throw Self.damaged("the first line of the armour is another") }
      place = .within
      return []
    case .within where text != ArmorWriter.end:
      guard !text.isEmpty, text.utf8.count <= 64, let bytes = Base64.decode(text) else {
        throw Self.damaged("a line of the armour is not base64")
      }
      if bytes.count < ArmorWriter.bytesInLine { place = .lastLine }
      return bytes
    case .within, .lastLine:
      guard text == ArmorWriter.end else { throw Self.damaged("a line of the armour follows one that was not full") }
      place = .after
      return []
    case .after:
      guard line.allSatisfy(Self.isSpace) else { throw Self.damaged("something follows the armour") }
      return []
    }
  }
}

/// An encoder of ASCII armour: base64 in lines of 64 characters.
///
/// Source: age specification, "ASCII armor"; RFC 7468 in its strict form.
struct ArmorWriter: Sendable {
  static let begin = "-----BEGIN AGE ENCRYPTED FILE-----"
  static let end = "-----END AGE ENCRYPTED FILE-----"
  static let bytesInLine = 48

  private var waiting: [UInt8] = []
  private var hasBegun = false

  mutating func write(_ bytes: [UInt8]) -> [UInt8] {
    waiting += bytes
    var text = hasBegun ? "" : Self.begin + "\n"
    hasBegun = true
    var position = 0
    while waiting.count - position >= Self.bytesInLine {
      text += Base64.encode(Array(waiting[position..<(position + Self.bytesInLine)])) + "\n"
      position += Self.bytesInLine
    }
    waiting.removeFirst(position)
    return Array(text.utf8)
  }

  mutating func finish() -> [UInt8] {
    let rest = waiting.isEmpty ? "" : Base64.encode(waiting) + "\n"
    return Array((rest + Self.end + "\n").utf8)
  }
}
