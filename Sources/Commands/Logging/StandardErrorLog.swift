import Foundation
import Logging

/// A log on standard error: a line for each entry, in words or as JSON.
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

  /// An entry as JSON.
  private struct Line: Encodable {
    struct Entry: Encodable {
      var level: String
      var message: String
      var metadata: [String: String]
    }

    var log: Entry
  }

  func log(event: LogEvent) {
    var metadata = metadata
    if let more = event.metadata { metadata.merge(more) { _, new in new } }
    let texts = metadata.mapValues { "\($0)" }
    if json {
      Terminal.standardError.write(
        JSONText.line(Line(log: .init(level: event.level.rawValue, message: "\(event.message)", metadata: texts))))
    } else {
      let facts = texts.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
      Terminal.standardError.write("\(event.level.rawValue): \(event.message)\(facts)\n")
    }
  }
}
