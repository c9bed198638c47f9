internal import GRDB

/// A check whether SQLite accepts a `CREATE TABLE` statement.
///
/// A damaged store's statement is only compiled, in an empty private database.
package struct StatementChecker {
  private let queue: DatabaseQueue

  package init() throws { queue = try MemoryDatabase.open() }

  /// Returns whether the text is one statement that SQLite compiles.
  package func accepts(_ statement: String) -> Bool {
    do {
      try queue.inDatabase { _ = try $0.makeStatement(sql: statement) }
      return true
    } catch {
      // Any SQLite error makes the statement unusable.
      return false
    }
  }
}
