package import Foundation
package import Platform
package import SystemPackage

extension FilePath {
  package init(file url: URL) { self.init(url.path) }
}

extension URL {
  init(file path: FilePath) { self.init(fileURLWithPath: path.string) }

  /// Nil if the path is not text.
  package init?(_ text: PathText?) {
    guard let path = text?.path else { return nil }
    self.init(file: path)
  }
}

extension Date {
  init(_ timestamp: Timestamp) {
    self.init(timeIntervalSince1970: Double(timestamp.secondsSince1970) + Double(timestamp.nanoseconds) / 1e9)
  }

  init?(rfc3339 text: String?) {
    guard let timestamp = text.flatMap({ Timestamp($0) }) else { return nil }
    self.init(timestamp)
  }
}

extension Timestamp {
  /// To the second.
  init?(_ date: Date?) {
    guard let seconds = date?.timeIntervalSince1970.rounded(.down), let whole = Int64(exactly: seconds) else {
      return nil
    }
    self.init(secondsSince1970: whole)
  }
}
