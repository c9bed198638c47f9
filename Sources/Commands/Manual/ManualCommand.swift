import ArgumentParser
import Foundation
import Platform
import SystemPackage

/// `lazaret manual`: the manual pages, for `Scripts/install` and packages.
struct ManualCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "manual", abstract: "Writes the manual's pages, a file for each verb.", shouldDisplay: false)

  @Option(help: .text("The folder that the pages are written into.", "dir")) var into: PathArgument

  @OptionGroup var output: OutputOptions

  func perform() throws {
    let system = FileSystem()
    try system.makeDirectory(into.path)
    let pages = try Self.pages()
    for page in pages {
      try system.writeAtomically(
        Array(page.text.utf8), to: into.path.appending(page.fileName), replacing: true,
        permissions: .init(rawValue: 0o644))
    }
    let names = pages.map(\.fileName)
    try output.print(["pages": names], names.joined(separator: "\n") + "\n")
  }

  /// One page a listed verb, the command's own first.
  private static func pages() throws -> [ManualPage] {
    func pages(_ description: CommandDescription, _ type: any ParsableCommand.Type, _ path: [String]) -> [ManualPage] {
      let page = ManualPage(
        path: path, command: description, usage: LazaretCommand.usageString(for: type), version: LibraryVersion.current)
      return [page]
        + type.configuration.subcommands.flatMap { subcommand -> [ManualPage] in
          let name = subcommand.configuration.commandName
          guard let name, let below = description.subcommands?.first(where: { $0.commandName == name }),
            below.isDocumented
          else { return [] }
          return pages(below, subcommand, path + [name])
        }
    }
    let description: CommandDescription
    do { description = try CommandDescription.of(LazaretCommand.self) } catch { throw CommandError(unforeseen: error) }
    return pages(description, LazaretCommand.self, [description.commandName])
  }
}

struct CommandDescription: Decodable {
  struct Argument: Decodable {
    struct Name: Decodable {
      var kind: String
      var name: String

      var spelling: String { (kind == "long" ? "--" : "-") + name }
    }

    var kind: String
    var shouldDisplay: Bool
    var isRepeating: Bool
    var sectionTitle: String?
    var names: [Name]?
    var valueName: String?
    var defaultValue: String?
    var allValues: [String]?
    var abstract: String?
    var discussion: String?

    var isPositional: Bool { kind == "positional" }
  }

  var commandName: String
  var abstract: String?
  var discussion: String?
  var shouldDisplay: Bool
  var arguments: [Argument]?
  var subcommands: [CommandDescription]?

  /// Whether it is listed and not the parser's own.
  var isDocumented: Bool { shouldDisplay && commandName != "help" }

  private struct Dump: Decodable {
    var command: CommandDescription
  }

  static func of(_ command: any ParsableCommand.Type) throws -> CommandDescription {
    try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8)).command
  }
}

struct ManualPage {
  /// The words that call the verb, such as `lazaret backup list`.
  let path: [String]
  let command: CommandDescription
  let usage: String
  let version: String

  var name: String { Self.name(of: path) }

  var fileName: String { name + ".1" }

  var text: String {
    var roff = Roff()
    roff.request("TH", name.uppercased(), "1", "", "Lazaret \(version)", "Lazaret")
    roff.request("SH", "NAME")
    roff.line([(.plain, "\(name) - \(command.abstract.map(Self.withoutStop) ?? name)")])
    roff.request("SH", "SYNOPSIS")
    addUsage(to: &roff)
    let discussion = Discussion(command.discussion ?? "")
    roff.request("SH", "DESCRIPTION")
    roff.lines(command.abstract ?? "")
    for paragraph in discussion.paragraphs { paragraph.add(to: &roff) }
    addCommands(to: &roff)
    addArguments(to: &roff)
    for section in discussion.sections { section.add(to: &roff) }
    addRelated(to: &roff)
    return roff.text
  }

  private static func name(of path: [String]) -> String { path.joined(separator: "-") }

  private static func withoutStop(_ sentence: String) -> String {
    sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
  }

  private func addUsage(to roff: inout Roff) {
    for (number, line) in usage.split(separator: "\n").enumerated() {
      if number > 0 { roff.request("br") }
      roff.line(SynopsisParts.of(line.trimmingSpaces, command: path.joined(separator: " ")))
    }
  }

  private func addCommands(to roff: inout Roff) {
    let commands = (command.subcommands ?? []).filter(\.isDocumented)
    guard !commands.isEmpty else { return }
    roff.request("SH", "COMMANDS")
    for subcommand in commands {
      roff.request("TP")
      roff.line([(.bold, Self.name(of: path + [subcommand.commandName])), (.plain, "(1)")])
      roff.lines(subcommand.abstract ?? "")
    }
  }

  private func addArguments(to roff: inout Roff) {
    let shown = (command.arguments ?? []).filter(\.shouldDisplay)
    let positional = shown.filter(\.isPositional)
    if !positional.isEmpty { roff.request("SH", "ARGUMENTS") }
    for argument in positional { argument.add(to: &roff) }
    let options = shown.filter { !$0.isPositional }
    guard !options.isEmpty else { return }
    roff.request("SH", "OPTIONS")
    for argument in options where argument.sectionTitle == nil { argument.add(to: &roff) }
    var titles: [String] = []
    for case let title? in options.map(\.sectionTitle) where !titles.contains(title) { titles.append(title) }
    for title in titles {
      roff.request("SS", title)
      for argument in options where argument.sectionTitle == title { argument.add(to: &roff) }
    }
  }

  private func addRelated(to roff: inout Roff) {
    let above = (1..<path.count).map { Self.name(of: Array(path.prefix($0))) }
    guard !above.isEmpty else { return }
    roff.request("SH", "SEE ALSO")
    var parts: [(Roff.Font, String)] = []
    for name in above { parts += [(.plain, parts.isEmpty ? "" : ", "), (.bold, name), (.plain, "(1)")] }
    roff.line(parts)
  }
}

extension CommandDescription.Argument {
  fileprivate func add(to roff: inout Roff) {
    roff.request("TP")
    let value = valueName ?? "value"
    var parts: [(Roff.Font, String)] = []
    if isPositional {
      parts.append((.italic, value))
    } else {
      for name in names ?? [] { parts += [(.plain, parts.isEmpty ? "" : ", "), (.bold, name.spelling)] }
      if kind == "option" { parts += [(.plain, " "), (.italic, value)] }
    }
    if isRepeating { parts.append((.plain, " …")) }
    roff.line(parts)
    var words = abstract ?? ""
    var notes: [String] = []
    if let allValues, !allValues.isEmpty { notes.append("values: " + allValues.joined(separator: ", ")) }
    if let defaultValue { notes.append("default: \(defaultValue)") }
    if !notes.isEmpty { words += (words.isEmpty ? "" : " ") + "(\(notes.joined(separator: "; ")))" }
    roff.lines(words.isEmpty ? value : words)
    if let discussion, !discussion.isEmpty { roff.lines(discussion) }
  }
}

enum SynopsisParts {
  /// Splits a line such as `lazaret kit show <kit> [--json]`.
  ///
  /// - Parameter command: the line's literal first words.
  static func of(_ line: Substring, command: String) -> [(font: Roff.Font, words: String)] {
    var rest = line
    var parts: [(font: Roff.Font, words: String)] = []
    if rest.hasPrefix(command) {
      parts.append((.bold, command))
      rest = rest.dropFirst(command.count)
    }
    var plain = ""
    while let next = rest.first {
      if next == "<", let end = rest.firstIndex(of: ">") {
        parts += [(.plain, plain), (.italic, String(rest[rest.index(after: rest.startIndex)..<end]))]
        plain = ""
        rest = rest[rest.index(after: end)...]
      } else if next == "-", plain.last.map({ " [(|/".contains($0) }) ?? true {
        let name = rest.prefix { $0 == "-" || $0.isLetter || $0.isNumber }
        parts += [(.plain, plain), (.bold, String(name))]
        plain = ""
        rest = rest.dropFirst(name.count)
      } else {
        plain.append(next)
        rest = rest.dropFirst()
      }
    }
    return (parts + [(.plain, plain)]).filter { !$0.words.isEmpty }
  }
}

/// An escaped man(7) document.
package struct Roff {
  package private(set) var text = ""

  package init() {}

  /// Adds a request, such as `.SH NAME`.
  package mutating func request(_ name: String, _ arguments: String...) {
    text += "." + name
    for argument in arguments { text += " \"\(Self.escaped(argument))\"" }
    text += "\n"
  }

  package mutating func lines(_ words: String) {
    for line in words.split(separator: "\n") { write(Self.escaped(String(line.trimmingSpaces))) }
  }

  /// Adds a line with its spaces kept, between the requests `EX` and `EE`.
  package mutating func verbatim(_ line: String) { write(Self.escaped(line)) }

  mutating func line(_ parts: [(font: Font, words: String)]) {
    write(parts.map { part in part.font.marked(Self.escaped(part.words)) }.joined())
  }

  enum Font: String {
    case plain = "R"
    case bold = "B"
    case italic = "I"

    fileprivate func marked(_ words: String) -> String { self == .plain ? words : "\\f\(rawValue)\(words)\\fR" }
  }

  /// A line of text must not begin like a request.
  private mutating func write(_ line: String) {
    guard !line.isEmpty else { return }
    text += (line.hasPrefix(".") ? "\\&" : "") + line + "\n"
  }

  /// Escapes non-ASCII and special characters by name.
  package static func escaped(_ words: String) -> String {
    words.unicodeScalars.map { scalar in
      switch scalar {
      case "\\": "\\e"
      case "-": "\\-"
      case "'": "\\(aq"
      case "\"": "\\(dq"
      case "`": "\\(ga"
      case "^": "\\(ha"
      case "~": "\\(ti"
      case "\n", "\t": " "
      case _ where scalar.isASCII: String(scalar)
      default: "\\[u\(zeroPadded(String(scalar.value, radix: 16, uppercase: true), to: 4))]"
      }
    }.joined()
  }
}

/// A help discussion: paragraphs, and sections under headings in capitals.
struct Discussion {
  struct Paragraph {
    var lines: [Substring]

    func add(to roff: inout Roff) {
      roff.request("PP")
      if lines.contains(where: { $0.first == " " }) {
        roff.addVerbatim(lines)
      } else {
        for line in lines { roff.lines(String(line)) }
      }
    }
  }

  struct Section {
    var title: String
    var lines: [Substring]

    /// Adds a list if each line is a term with its meaning, else verbatim lines.
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

    fileprivate static func title(of heading: String) -> String {
      switch heading {
      case "EXAMPLE": examples
      case "EXIT CODES": exitStatus
      default: heading
      }
    }

    /// Splits a line at two or more spaces into term and meaning.
    private static func entry(_ line: Substring) -> (word: String, meaning: String)? {
      let content = line.trimmingSpaces
      let word = content.prefix { $0 != " " }
      let rest = content.dropFirst(word.count)
      guard !word.isEmpty, rest.hasPrefix("  ") else { return nil }
      return (String(word), String(rest.trimmingSpaces))
    }
  }

  private(set) var paragraphs: [Paragraph] = []
  /// The sections in manual order: exit status and examples last.
  private(set) var sections: [Section] = []

  /// Parses blocks separated by empty lines.
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
  /// Adds verbatim lines without their common indentation.
  fileprivate mutating func addVerbatim(_ lines: [Substring]) {
    let indent = lines.map { $0.prefix { $0 == " " }.count }.min() ?? 0
    request("EX")
    for line in lines { verbatim(String(line.dropFirst(indent))) }
    request("EE")
  }
}
