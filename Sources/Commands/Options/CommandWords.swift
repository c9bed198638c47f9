import ArgumentParser
import Platform

/// The words of a command line that select the verb, before parsing.
struct CommandWords {
  private let arguments: [String]

  init(_ arguments: [String]) { self.arguments = arguments }

  /// The options of every verb, also allowed before it.
  private static let flags: Set<String> = ["--json", "--quiet", "-q", "--verbose", "-v"]
  private static let valued: Set<String> = ["--color", "--home"]

  /// The arguments with leading options moved after the verb for the parser.
  var sorted: [String] {
    var leading: [String] = []
    var rest = arguments[...]
    while let first = rest.first {
      if Self.flags.contains(first) || Self.valued.contains(where: { first.hasPrefix($0 + "=") }) {
        leading.append(first)
        rest.removeFirst()
      } else if Self.valued.contains(first), rest.count > 1 {
        leading += rest.prefix(2)
        rest.removeFirst(2)
      } else {
        break
      }
    }
    guard !leading.isEmpty, let verb = rest.first, !verb.hasPrefix("-") else { return arguments }
    // After two dashes there are no options.
    let end = rest.firstIndex(of: "--") ?? rest.endIndex
    return rest[..<end] + leading + rest[end...]
  }

  struct UnknownVerb: Error {
    let message: String

    /// The parent command, such as `lazaret backup`.
    let group: String

    var text: String {
      """
      Error: \(message)
      Usage: \(group) <subcommand>
        See '\(group) --help' for the verbs that there are.
      """
    }
  }

  /// Throws for an unknown verb, also after `help`.
  func check(under root: any ParsableCommand.Type) throws(UnknownVerb) {
    var command = root
    var path = ["lazaret"]
    var isHelp = false
    for word in arguments {
      let verbs = command.configuration.subcommands
      guard !verbs.isEmpty, !word.hasPrefix("-") else { return }
      if let verb = verbs.first(where: { Self.names($0).contains(word) }) {
        command = verb
        path.append(word)
        continue
      }
      // The parser's own.
      if path.count == 1, word == "help", !isHelp {
        isHelp = true
        continue
      }
      let isVerbNeeded = isHelp || command.configuration.defaultSubcommand == nil
      if !isHelp || word != "help" { try Self.refuse(word, verbs, after: path, isVerbNeeded: isVerbNeeded) }
      return
    }
  }

  private static func refuse(
    _ word: String, _ verbs: [any ParsableCommand.Type], after path: [String], isVerbNeeded: Bool
  ) throws(UnknownVerb) {
    let names = verbs.filter { $0.configuration.shouldDisplay }.flatMap { Self.names($0) }
    let meant = Likeness.nearest(to: word, among: names)
    if !isVerbNeeded {
      // Perhaps the argument of an omitted verb: an existing file or a path.
      guard meant != nil, !word.contains("/"), !word.contains("."), !isThere(word) else { return }
    }
    let group = path.joined(separator: " ")
    throw UnknownVerb(
      message: "'\(printable(word))' is no verb of \(group)." + (meant.map { " Did you mean '\($0)'?" } ?? ""),
      group: group)
  }

  private static func names(_ verb: any ParsableCommand.Type) -> [String] {
    [verb.configuration.commandName ?? ""] + verb.configuration.aliases
  }

  private static func isThere(_ word: String) -> Bool {
    // The verb reports an inaccessible file.
    (try? FileSystem().status(of: RawArguments.path(of: word))) != .some(nil)
  }

  /// Adds the closest value to the parser's message about an invalid one.
  ///
  /// It matches "The value 'x' is invalid for '--level <level>'. Please provide one of 'a', 'b' or 'c'."; other
  /// messages pass unchanged.
  static func suggesting(_ message: String) -> String {
    let parts = message.split(separator: "Please provide one of", maxSplits: 1)
    guard parts.count == 2, !message.contains("Did you mean"),
      let word = quotedWords(in: parts[0]).first, let end = parts[1].firstIndex(of: ".")
    else { return message }
    let question = Likeness.question(word, among: quotedWords(in: parts[1][..<end]))
    let after = parts[1].index(after: end)
    return "\(parts[0])Please provide one of\(parts[1][..<after])\(question)\(parts[1][after...])"
  }

  private static func quotedWords(in text: Substring) -> [String] {
    // Every second piece is quoted.
    text.split(separator: "'", omittingEmptySubsequences: false).enumerated()
      .compactMap { $0.offset.isMultiple(of: 2) ? nil : String($0.element) }
  }
}

enum Likeness {
  private static let lengthLimit = 64

  /// Returns the closest word, if similar.
  ///
  /// One letter in three may be replaced, missing, added or swapped with its neighbour; a unique prefix of three
  /// letters or an added suffix counts too.
  static func nearest(to word: String, among words: [String]) -> String? {
    let word = word.lowercased()
    guard !word.isEmpty, word.count <= lengthLimit else { return nil }
    let limit = max(1, word.count / 3)
    var best: (word: String, distance: Int)?
    for candidate in words where candidate.count <= lengthLimit {
      let distance = distance(Array(word), Array(candidate.lowercased()))
      if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    if let best { return best.word }
    let longer = words.filter { $0.lowercased().hasPrefix(word) }
    if word.count >= 3, longer.count == 1 { return longer.first }
    let shorter = words.filter { $0.count >= 3 && word.hasPrefix($0.lowercased()) }
    return shorter.max { $0.count < $1.count }
  }

  /// Optimal string alignment.
  static func distance(_ left: [Character], _ right: [Character]) -> Int {
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var before: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var next = [row]
      for column in 1...right.count {
        var least = min(last[column] + 1, next[column - 1] + 1)
        least = min(least, last[column - 1] + (left[row - 1] == right[column - 1] ? 0 : 1))
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          least = min(least, before[column - 2] + 1)
        }
        next.append(least)
      }
      (before, last) = (last, next)
    }
    return last[right.count]
  }

  /// Prefixes a hint with the closest word to the first unknown one.
  static func hint(_ hint: String, for given: [String], among words: [String]) -> String {
    let wrong = given.first { !words.contains($0) }
    let question = wrong.map { Self.question($0, among: words) } ?? ""
    return question.isEmpty ? hint : "\(question.dropFirst()) \(hint)"
  }

  /// Asks whether the closest word was meant, after a space; empty without one.
  static func question(_ word: String, among words: [String]) -> String {
    nearest(to: word, among: words).map { " Did you mean '\($0)'?" } ?? ""
  }
}
