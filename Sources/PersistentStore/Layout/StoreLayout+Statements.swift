extension StoreLayout {
  /// The statements that create an empty store, in Core Data's order and words.
  ///
  /// Tables first, then indexes, triggers and the three tables of Core Data's own. Persistent history is not created.
  public var statements: [String] {
    tables.map(\.statement) + joinTables.map(\.statement) + indexes.map(\.statement) + spatialIndexes.map(\.statement)
      + triggers.map(\.statement) + Self.bookkeepingStatements
  }

  /// The statements that create the tables every Core Data store has (format sections 3.2 to 3.4).
  static let bookkeepingStatements = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  /// The names of the tables every Core Data store has.
  public static let bookkeepingTableNames = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]

  /// What a column of a table holds; nil where the layout has no such column, or it is one of a join table.
  public func role(ofColumn column: String, table: String) -> ColumnRole? {
    self.table(named: table)?.column(named: column)?.role
  }
}
