internal import GRDBSQLite

/// The process's SQLite library.
public enum SQLiteLibrary {
  /// The version, such as `3.40.1`.
  public static var version: String { unsafe String(cString: sqlite3_libversion()) }
}
