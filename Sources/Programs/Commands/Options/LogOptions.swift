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
      "Tell on standard error what goes on: trace, debug, info, notice, warning, error or critical. At debug every SQL statement, without values.",
      valueName: "level"))
  var level: Level?

  /// The logger to pass on; one that says nothing where no level was given.
  ///
  /// - Parameter json: whether each line is JSON.
  func logger(json: Bool) -> Logger {
    guard let level, let threshold = Logger.Level(rawValue: level.rawValue) else {
      return Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
    }
    return Logger(label: "lazaret") { _ in StandardErrorLog(level: threshold, json: json) }
  }
}
