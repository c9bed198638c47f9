internal import GRDB

/// Asks SQLite itself whether it takes a statement that makes a table.
///
/// Nothing is carried out: a statement that a damaged store holds is only compiled, in a private database without tables.
package struct StatementChecker {
  private let queue: DatabaseQueue

  /// Opens the private database.
  package init() throws { queue = try MemoryDatabase.open() }

  /// Whether the text is one statement that SQLite compiles.
  package func accepts(_ statement: String) -> Bool {
    do {
      try queue.inDatabase { _ = try $0.makeStatement(sql: statement) }
      return true
    } catch {
      // Whatever SQLite has against it, the statement cannot be used.
      return false
    }
  }
}
