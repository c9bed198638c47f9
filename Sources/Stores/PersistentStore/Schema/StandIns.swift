internal import Foundation
package import GRDB

/// What stands in for the collations and functions that only an app has, so that a schema which names them can be made.
///
/// A collation compares bytes; a function gives NULL and must not be asked for values.
package enum StandIns {
  /// What SQLite says is missing.
  package enum Missing: Sendable, Hashable {
    case collation(String)
    case function(String)

    /// Reads SQLite's words; nil where they are about something else.
    package init?(_ message: String?) {
      guard let parts = message?.split(separator: ": ", maxSplits: 1), parts.count == 2 else { return nil }
      switch parts[0] {
      case "no such collation sequence": self = .collation(String(parts[1]))
      case "no such function": self = .function(String(parts[1]))
      default: return nil
      }
    }
  }

  /// How many of a schema are stood in for at most.
  package static let limit = 256

  /// Adds one to a connection.
  package static func add(_ missing: Missing, to database: Database) {
    switch missing {
    case .collation(let name):
      database.add(
        collation: DatabaseCollation(name) { first, second in
          first.utf8.elementsEqual(second.utf8)
            ? .orderedSame : first.utf8.lexicographicallyPrecedes(second.utf8) ? .orderedAscending : .orderedDescending
        })
    case .function(let name): database.add(function: DatabaseFunction(name, pure: true) { _ in nil })
    }
  }
}
