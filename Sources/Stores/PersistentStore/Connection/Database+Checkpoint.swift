package import GRDB

extension Database {
  /// Brings everything that is committed into the main file, and empties the log.
  ///
  /// SQLite tells in a row, and not by an error, that a lock has kept it from doing so: a file that is taken without its log
  /// would lack what was written last.
  ///
  /// - Throws: `SQLITE_BUSY` where another connection stood in the way.
  package func bringLogIntoMainFile() throws {
    let isBusy = try Int.fetchOne(self, sql: "PRAGMA main.wal_checkpoint(TRUNCATE)") ?? 0
    if isBusy != 0 { throw DatabaseError(resultCode: .SQLITE_BUSY) }
  }
}
