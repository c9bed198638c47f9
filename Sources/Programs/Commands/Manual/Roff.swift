/// Text for `man`: requests of man(7) and lines between them, with everything escaped that has a meaning there.
package struct Roff {
  /// The lines so far.
  package private(set) var text = ""

  /// An empty text.
  package init() {}

  /// A request with its arguments, such as `.SH NAME`.
  package mutating func request(_ name: String, _ arguments: String...) {
    text += "." + name
    for argument in arguments { text += " \"\(Self.escaped(argument))\"" }
    text += "\n"
  }

  /// Lines of plain text.
  package mutating func lines(_ words: String) {
    for line in words.split(separator: "\n", omittingEmptySubsequences: true) {
      write(String(line).trimmed.map(Self.escaped))
    }
  }

  /// A line that keeps its spaces; between the requests `EX` and `EE`.
  package mutating func verbatim(_ line: String) { write(Self.escaped(line)) }

  /// A line of parts in fonts of their own.
  package mutating func line(_ parts: [(font: Font, words: String)]) {
    write(parts.map { part in part.font.marked(Self.escaped(part.words)) }.joined())
  }

  /// How words look.
  package enum Font: String {
    case plain = "R"
    /// What is typed as it stands.
    case bold = "B"
    /// What stands for something else.
    case italic = "I"

    fileprivate func marked(_ words: String) -> String {
      self == .plain ? words : "\\f\(rawValue)\(words)\\fR"
    }
  }

  /// A line may not begin as a request does.
  private mutating func write(_ line: String?) {
    guard let line, !line.isEmpty else { return }
    text += (line.hasPrefix(".") ? "\\&" : "") + line + "\n"
  }

  /// The text with all that is no plain character of ASCII, or means something to `man`, written by its name.
  package static func escaped(_ words: String) -> String {
    var result = ""
    for scalar in words.unicodeScalars {
      switch scalar {
      case "\\": result += "\\e"
      case "-": result += "\\-"
      case "'": result += "\\(aq"
      case "\"": result += "\\(dq"
      case "`": result += "\\(ga"
      case "^": result += "\\(ha"
      case "~": result += "\\(ti"
      case "\n", "\t": result += " "
      case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
      default:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        result += "\\[u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "]"
      }
    }
    return result
  }
}

extension String {
  /// The text without spaces at its ends; nil for none.
  fileprivate var trimmed: String? {
    let words = self[...].trimmingSpaces
    return words.isEmpty ? nil : String(words)
  }
}
