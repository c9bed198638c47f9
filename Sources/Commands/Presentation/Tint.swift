/// The meaning of text, shown as a colour.
enum Tint: Int, CaseIterable {
  case good

  case doubtful

  case bad

  case strong

  case faint

  /// The control sequence (ECMA-48, SGR), of the sixteen common colours.
  private var sequence: String {
    switch self {
    case .good: "\u{1B}[32m"
    case .doubtful: "\u{1B}[33m"
    case .bad: "\u{1B}[31m"
    case .strong: "\u{1B}[1m"
    case .faint: "\u{1B}[2m"
    }
  }

  /// The control characters around a tint, which displayed text lacks.
  ///
  /// A hostile store's text can only choose colours with them: `Terminal.write` escapes other control characters and
  /// ends tints at the line's end.
  fileprivate static let start: Unicode.Scalar = "\u{E}"
  fileprivate static let end: Unicode.Scalar = "\u{F}"
  fileprivate static let first = UInt32(UInt8(ascii: "a"))

  fileprivate init?(_ scalar: Unicode.Scalar) {
    guard scalar.value >= Self.first, let tint = Tint(rawValue: Int(scalar.value - Self.first)) else { return nil }
    self = tint
  }

  /// Shows a line with or without colours; escapes every other control character.
  static func shown(_ line: String, inColor: Bool, _ show: (String) -> String) -> String {
    guard line.unicodeScalars.contains(where: { $0 == start || $0 == end }) else { return show(line) }
    var result = ""
    var piece = String.UnicodeScalarView()
    var isOpen = false
    func flush() {
      result += show(String(piece))
      piece.removeAll()
    }
    var scalars = line.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      if scalar == start, let code = scalars.next() {
        flush()
        guard inColor, let tint = Tint(code) else { continue }
        result += tint.sequence
        isOpen = true
      } else if scalar == end {
        flush()
        if isOpen { result += "\u{1B}[0m" }
        isOpen = false
      } else {
        piece.append(scalar)
      }
    }
    flush()
    return isOpen ? result + "\u{1B}[0m" : result
  }

  static func width(of text: String) -> Int {
    guard text.unicodeScalars.contains(where: { $0 == start || $0 == end }) else { return text.count }
    return shown(text, inColor: false) { $0 }.count
  }
}

func tinted(_ text: String, _ tint: Tint?) -> String {
  guard let tint, !text.isEmpty, let code = Unicode.Scalar(Tint.first + UInt32(tint.rawValue)) else { return text }
  return "\(Tint.start)\(code)\(text)\(Tint.end)"
}
