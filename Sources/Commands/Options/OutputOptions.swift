import ArgumentParser
import Logging
import Platform

struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON for programs; errors go to standard error as JSON too.") var json = false

  @Option(help: .text("When to use colours; auto: on a terminal, unless NO_COLOR is set.", "when"))
  var color = TextStyle.ColorChoice.auto

  @Flag(name: .shortAndLong, help: "Say nothing but errors, warnings and questions; the exit code tells the rest.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Say more: every row and column, and where work is long, its steps.")
  var verbose = false

  func validate() throws {
    guard !quiet || !verbose else { throw ValidationError("Give --quiet or --verbose, not both.") }
    TextStyle.change { style in
      style.isForPeople = !json
      style.color = color
      style.isQuiet = quiet
      style.isVerbose = verbose
      if verbose { style.showsZeros = true }
      style.folder = json ? nil : TextStyle.currentFolder()
    }
  }

  func print<Value: Encodable>(
    _ value: @autoclosure () throws -> Value, _ words: @autoclosure () throws -> String
  ) throws {
    Terminal.standardOutput.write(try json ? JSON.shown(value()) : words())
  }

  /// Prints requested content, such as a key, even with `--quiet`.
  func print<Value: Encodable>(
    _ value: @autoclosure () throws -> Value, content: @autoclosure () throws -> String
  ) throws {
    Terminal.standardOutput.writeContent(try json ? JSON.shown(value()) : content())
  }
}

extension TextStyle.ColorChoice: ExpressibleByArgument {}

extension ArgumentHelp {
  /// The help of an option, and the name of its value.
  static func text(_ words: String, _ value: String) -> ArgumentHelp { ArgumentHelp(words, valueName: value) }
}

extension NameSpecification {
  /// The names of a new file's option, of verbs whose `output` are the options of printing.
  static let output: NameSpecification = [.customLong("output"), .customShort("o")]
}

struct LogOptions: ParsableArguments {
  enum Level: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error, critical
  }

  @Option(
    help: .text(
      "Print on standard error what is done: trace, debug, info, notice, warning, error or critical. At debug every SQL statement, without values.",
      "level"))
  var logLevel: Level?

  /// Makes the logger; silent without a level or `--verbose`.
  ///
  /// - Parameter json: whether to log JSON lines.
  func logger(json: Bool) -> Logger {
    let told = logLevel ?? (TextStyle.current.isVerbose ? .info : nil)
    guard let told, let threshold = Logger.Level(rawValue: told.rawValue) else {
      return Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
    }
    return Logger(label: "lazaret") { _ in StandardErrorLog(level: threshold, json: json) }
  }
}

struct StandardErrorLog: LogHandler {
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]
  private let json: Bool

  init(level: Logger.Level, json: Bool) {
    logLevel = level
    self.json = json
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var metadata = metadata
    if let more = event.metadata { metadata.merge(more) { _, new in new } }
    let texts = metadata.mapValues { "\($0)" }
    if json {
      let texts = texts.sorted { $0.key < $1.key }.map { JSON.Value.Member($0.key, .string($0.value)) }
      let entry: JSON.Value = [
        "level": .string(event.level.rawValue), "message": .string("\(event.message)"), "metadata": .object(texts),
      ]
      Terminal.standardError.write(JSON.Value.members(("log", entry)).text + "\n")
    } else {
      let facts = texts.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
      Terminal.standardError.write("\(event.level.rawValue): \(event.message)\(facts)\n")
    }
  }
}
