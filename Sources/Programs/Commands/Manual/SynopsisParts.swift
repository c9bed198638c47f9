/// How a verb is called, cut into what is typed as it stands and what stands for something else.
enum SynopsisParts {
  /// The parts of a line such as `lazaret kit show <kit> [--json]`.
  ///
  /// - Parameter command: the words that the line begins with, which are typed as they stand.
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
