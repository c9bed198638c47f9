import Foundation
import Logging
import StoreCoordination

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
