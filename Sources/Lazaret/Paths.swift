package import Foundation
package import Platform
package import SystemPackage

extension FilePath {
  /// The path that the URL of a file stands for.
  package init(file url: URL) { self.init(url.path) }
}

extension URL {
  /// The URL of a file.
  package init(file path: FilePath) { self.init(fileURLWithPath: path.string) }

  /// The URL of a file that a report names; nil where its path is no text.
  package init?(_ text: PathText?) {
    guard let path = text?.path else { return nil }
    self.init(file: path)
  }
}

extension Date {
  /// The moment of a timestamp.
  init(_ timestamp: Timestamp) {
    self.init(timeIntervalSince1970: Double(timestamp.secondsSince1970) + Double(timestamp.nanoseconds) / 1e9)
  }

  /// The moment that a text in RFC 3339 names; nil where it names none.
  init?(rfc3339 text: String?) {
    guard let timestamp = text.flatMap({ Timestamp($0) }) else { return nil }
    self.init(timestamp)
  }
}

extension Timestamp {
  /// The moment of a date, to the second.
  init?(_ date: Date?) {
    guard let seconds = date?.timeIntervalSince1970.rounded(.down), let whole = Int64(exactly: seconds) else {
      return nil
    }
    self.init(secondsSince1970: whole)
  }
}
