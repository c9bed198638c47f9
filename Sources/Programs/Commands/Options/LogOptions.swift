import ArgumentParser
import Logging

/// Whether what goes on inside is told.
struct LogOptions: ParsableArguments {
  /// How much is told; swift-log's levels.
  enum Level: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error, critical
  }

  @Option(
    name: .customLong("log-level"),
    help: ArgumentHelp(
      "Print on standard error what is done: trace, debug, info, notice, warning, error or critical. At debug every SQL statement, without values.",
      valueName: "level"))
  var level: Level?

  /// The logger to pass on; one that says nothing where no level was given, nor `--verbose`.
  ///
  /// - Parameter json: whether each line is JSON.
  func logger(json: Bool) -> Logger {
    let told = level ?? (TextStyle.current.isVerbose ? .info : nil)
    guard let told, let threshold = Logger.Level(rawValue: told.rawValue) else {
      return Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
    }
    return Logger(label: "lazaret") { _ in StandardErrorLog(level: threshold, json: json) }
  }
}
