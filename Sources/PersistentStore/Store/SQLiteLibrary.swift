internal import GRDBSQLite

/// The SQLite that this process runs with.
public enum SQLiteLibrary {
  /// Its version, such as `3.40.1`.
  public static var version: String { unsafe String(cString: sqlite3_libversion()) }
}
