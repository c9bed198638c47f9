/// The longer text of a help: paragraphs, and blocks under a heading in capitals.
struct Discussion {
  /// Text that flows, or lines that keep their breaks.
  struct Paragraph {
    var lines: [Substring]

    /// Adds it, with the space before it.
    func add(to roff: inout Roff) {
      roff.request("PP")
      if lines.contains(where: { $0.first == " " }) {
        roff.addVerbatim(lines)
      } else {
        for line in lines { roff.lines(String(line)) }
      }
    }
  }

  /// A block under a heading.
  struct Section {
    var title: String
    var lines: [Substring]

    /// Adds it: a list where each line is a word and what it means, else the lines as they stand.
    func add(to roff: inout Roff) {
      roff.request("SH", title)
      let entries = lines.map(Self.entry)
      guard title != Self.examples, entries.allSatisfy({ $0 != nil }) else { return roff.addVerbatim(lines) }
      for case (let word, let meaning)? in entries {
        roff.request("TP")
        roff.line([(.bold, word)])
        roff.lines(meaning)
      }
    }

    fileprivate static let examples = "EXAMPLES"
    fileprivate static let exitStatus = "EXIT STATUS"

    /// The name that manuals have for what the help calls otherwise.
    fileprivate static func title(of heading: String) -> String {
      switch heading {
      case "EXAMPLE": examples
      case "EXIT CODES": exitStatus
      default: heading
      }
    }

    /// The word that a line begins with, and what stands behind two spaces or more.
    private static func entry(_ line: Substring) -> (word: String, meaning: String)? {
      let content = line.trimmingSpaces
      let word = content.prefix { $0 != " " }
      let rest = content.dropFirst(word.count)
      guard !word.isEmpty, rest.hasPrefix("  ") else { return nil }
      return (String(word), String(rest.trimmingSpaces))
    }
  }

  /// What is not under a heading.
  private(set) var paragraphs: [Paragraph] = []
  /// What is, in the order of manuals: exit status and examples last.
  private(set) var sections: [Section] = []

  /// Reads a text whose blocks are parted by empty lines.
  init(_ text: String) {
    var block: [Substring] = []
    // An empty line ends the last one.
    for line in (text + "\n\n").split(separator: "\n", omittingEmptySubsequences: false) {
      if !line.trimmingSpaces.isEmpty {
        block.append(line)
      } else if !block.isEmpty {
        take(block)
        block = []
      }
    }
    let last = [Section.exitStatus, Section.examples]
    sections =
      sections.filter { !last.contains($0.title) }
      + last.flatMap { title in sections.filter { $0.title == title } }
  }

  private mutating func take(_ block: [Substring]) {
    guard let heading = block.first, block.count > 1, heading.contains(where: \.isLetter),
      heading.allSatisfy({ $0.isUppercase || $0 == " " })
    else { return paragraphs.append(Paragraph(lines: block)) }
    sections.append(Section(title: Section.title(of: String(heading)), lines: Array(block.dropFirst())))
  }
}

extension Roff {
  /// Adds lines that keep their breaks, without what all are indented by.
  fileprivate mutating func addVerbatim(_ lines: [Substring]) {
    let indent = lines.map { $0.prefix { $0 == " " }.count }.min() ?? 0
    request("EX")
    for line in lines { verbatim(String(line.dropFirst(indent))) }
    request("EE")
  }
}
