import ArgumentParser
import Platform
import SystemPackage

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

/// A path argument; any bytes but zero.
struct PathArgument: ExpressibleByArgument {
  var path: FilePath

  private let isFolder: Bool

  init?(argument: String) {
    guard !argument.isEmpty else { return nil }
    path = RawArguments.path(of: argument)
    isFolder = argument.hasSuffix("/")
  }

  /// Throws for a new file written as a missing folder or named like a part of a store.
  func requirePlace() throws {
    if let store = try StoreFileSet.store(withPart: path, in: FileSystem()) {
      throw ValidationError(
        "\(quoted(path)) is the name of a part of the store \(quoted(store)), and SQLite would take it for one. Choose another name."
      )
    }
    guard isFolder, try FileSystem().status(of: path)?.kind != .directory else { return }
    throw ValidationError("There is no folder \(quoted(path)). Make it first, or leave out the / at the end.")
  }

  static var defaultCompletionKind: CompletionKind { .file() }
}

/// The process's arguments, byte for byte.
///
/// A path may be invalid UTF-8, but the parser takes only text. It gets such an argument with replacements, and
/// `PathArgument` looks up the original bytes.
package enum RawArguments {
  private static let paths = Mutex<[String: FilePath]>([:])

  /// Exits if the system hides the arguments.
  ///
  /// Without `/proc` Swift's runtime has none on Linux, and a verb would silently do nothing.
  static func requireProcFS() {
    guard CommandLine.argc < 1 else { return }
    Terminal.standardError.write(
      "lazaret: the command line cannot be read: /proc is not mounted here. Mount it and try again.\n")
    LazaretCommand.exit(withError: ExitStatus.failed)
  }

  static func take() -> [String] {
    var raw: [[UInt8]] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let start = unsafe CommandLine.unsafeArgv[index] else { break }
      raw.append(unsafe nullTerminatedBytes(start))
    }
    let (texts, standIns) = texts(of: raw)
    paths.withLock { paths in
      for (text, bytes) in standIns { paths[text] = FilePath(rawBytes: bytes) }
    }
    return texts
  }

  /// Returns the arguments' texts, and the original bytes of the replaced ones.
  package static func texts(of arguments: [[UInt8]]) -> (texts: [String], standIns: [String: [UInt8]]) {
    // A replacement must differ from every real argument.
    var taken = Set(arguments.compactMap { String(utf8: $0) })
    var standIns: [String: [UInt8]] = [:]
    var texts: [String] = []
    for argument in arguments {
      if let text = String(utf8: argument) {
        texts.append(text)
        continue
      }
      // Of --option=value only the value is a path.
      var prefix = ""
      var value = argument[...]
      if argument.starts(with: Array("--".utf8)), let equals = argument.firstIndex(of: UInt8(ascii: "=")),
        let name = String(utf8: argument[...equals])
      {
        prefix = name
        value = argument[(equals + 1)...]
      }
      var standIn = String(decoding: value, as: UTF8.self)
      while taken.contains(standIn) || (standIns[standIn] ?? Array(value)) != Array(value) { standIn += "\u{FFFD}" }
      taken.insert(prefix + standIn)
      standIns[standIn] = Array(value)
      texts.append(prefix + standIn)
    }
    return (texts, standIns)
  }

  static func path(of argument: String) -> FilePath { paths.withLock { $0[argument] } ?? FilePath(argument) }
}
