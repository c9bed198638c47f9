extension StoreLayout {
  /// The statements that create an empty store, in Core Data's order and words.
  ///
  /// Each table is followed by the join tables that its entities name; then come indexes, triggers and the three tables of
  /// Core Data's own. Persistent history is not created.
  public var statements: [String] {
    let joinTables = Dictionary(grouping: joinTables) { entity(named: $0.relationship.entityName)?.rootName }
    return tables.flatMap { table in
      [table.statement] + (joinTables[table.rootEntityName] ?? []).map(\.statement)
    } + indexes.map(\.statement) + spatialIndexes.map(\.statement) + triggers.map(\.statement)
      + Self.bookkeepingStatements
  }

  /// The statements that create the tables every Core Data store has (format sections 3.2 to 3.4).
  package static let bookkeepingStatements = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  /// The columns of those tables with their declared types, and the one that is the primary key; `Z_MODELCACHE` has none.
  static let bookkeepingTables: [BookkeepingTable] = zip(
    bookkeepingStatements,
    [
      ("Z_PRIMARYKEY", "Z_ENT", [("Z_NAME", "VARCHAR"), ("Z_SUPER", "INTEGER"), ("Z_MAX", "INTEGER")]),
      ("Z_METADATA", "Z_VERSION", [("Z_UUID", "VARCHAR(255)"), ("Z_PLIST", "BLOB")]),
      ("Z_MODELCACHE", nil, [("Z_CONTENT", "BLOB")]),
    ]
  ).map { BookkeepingTable(name: $1.0, statement: $0, key: $1.1, columns: $1.2) }

  /// One of the tables that every Core Data store has.
  struct BookkeepingTable: Sendable {
    let name: String
    let statement: String

    /// The column that is the primary key, an integer; nil where there is none.
    let key: String?

    /// The other columns.
    let columns: [(name: String, type: String)]
  }

  /// The names of the tables every Core Data store has.
  public static let bookkeepingTableNames = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]

  /// What a column of a table holds; nil where the layout has no such column, or it is one of a join table.
  public func role(ofColumn column: String, table: String) -> ColumnRole? {
    self.table(named: table)?.column(named: column)?.role
  }

  /// The statement that fills a spatial index, just created and still empty, from the rows of its table.
  ///
  /// The table and the index are in the schema `main`.
  package func fillingStatement(of index: SpatialIndexLayout) -> String {
    let columns = index.columns.map(SQLText.identifier)
    let numbers = entity(named: index.entityName)?.numbers ?? 0...0
    let conditions =
      columns.map { "\($0) IS NOT NULL" } + ["Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound)"]
    return "INSERT INTO main.\(SQLText.identifier(index.name)) SELECT Z_PK, "
      + columns.flatMap { [$0, $0] }.joined(separator: ", ")
      + " FROM main.\(SQLText.identifier(index.tableName)) WHERE \(conditions.joined(separator: " AND "))"
  }
}
