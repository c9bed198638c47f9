/// The manual's page of a verb, made from its help.
struct ManualPage {
  /// The words that call the verb, such as `lazaret backup list`.
  let path: [String]
  let command: CommandDescription
  let usage: String
  /// The version that the page is of.
  let version: String

  /// The name of the page, without its section.
  var name: String { Self.name(of: path) }

  /// The name of its file.
  var fileName: String { name + ".1" }

  /// The page for `man`.
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

extension CommandDescription {
  /// Whether it has a page: the verbs that the help lists, without the parser's own.
  var isDocumented: Bool { shouldDisplay && commandName != "help" }
}

extension CommandDescription.Argument {
  /// Adds how it is written, and what it is for.
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
