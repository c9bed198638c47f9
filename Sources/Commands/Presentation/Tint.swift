/// What a piece of text is about, shown as a colour where colours are shown.
enum Tint: Int, CaseIterable {
  case good

  /// Doubtful, or with a warning.
  case doubtful

  case bad

  case strong

  /// What matters less than the rest.
  case faint

  /// The control sequence that begins it on a terminal (ECMA-48, SGR); of the sixteen colours that every scheme has.
  private var sequence: String {
    switch self {
    case .good: "\u{1B}[32m"
    case .doubtful: "\u{1B}[33m"
    case .bad: "\u{1B}[31m"
    case .strong: "\u{1B}[1m"
    case .faint: "\u{1B}[2m"
    }
  }

  /// Begins and ends a tint inside of a text: control characters, which no text that is shown to people has.
  ///
  /// A text that was made of a hostile store's can choose colours with them, and nothing else: `Terminal.write` makes every other
  /// control character visible, and ends each tint at the end of its line.
  fileprivate static let start: Unicode.Scalar = "\u{E}"
  fileprivate static let end: Unicode.Scalar = "\u{F}"
  fileprivate static let first = UInt32(UInt8(ascii: "a"))

  fileprivate init?(_ scalar: Unicode.Scalar) {
    guard scalar.value >= Self.first, let tint = Tint(rawValue: Int(scalar.value - Self.first)) else { return nil }
    self = tint
  }

  /// A line with its tints as a terminal understands them, or without; every other control character is made visible.
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

  /// How many columns a text takes, its tints left out.
  static func width(of text: String) -> Int {
    guard text.unicodeScalars.contains(where: { $0 == start || $0 == end }) else { return text.count }
    return shown(text, inColor: false) { $0 }.count
  }
}

/// A text in a tint; one that is empty stays so.
func tinted(_ text: String, _ tint: Tint?) -> String {
  guard let tint, !text.isEmpty, let code = Unicode.Scalar(Tint.first + UInt32(tint.rawValue)) else { return text }
  return "\(Tint.start)\(code)\(text)\(Tint.end)"
}
