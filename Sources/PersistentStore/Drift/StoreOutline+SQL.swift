package import GRDB
internal import ManagedObjectModel

extension StoreOutline {
  /// Reads the outline of an open Core Data store through SQL: every row's entity number is looked at.
  ///
  /// - Parameter layout: whose tables are looked into for primary keys and entity numbers.
  package init(_ database: Database, layout: StoreLayout) throws {
    self.init()
    try readSchema(database)
    let names = Dictionary(
      tables.filter { !$0.isVirtual }.map { (Self.key($0.name), $0) }, uniquingKeysWith: { first, _ in first })
    if names["Z_PRIMARYKEY"] != nil {
      keyRows = try Row.fetchAll(database, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM main.Z_PRIMARYKEY")
        .compactMap { row in
          Self.integer(row[0]).map { number in
            KeyRow(
              number: number, name: String.fromDatabaseValue(row[1] as DatabaseValue),
              parentNumber: Self.integer(row[2]),
              maximum: Self.integer(row[3]))
          }
        }
    }
    for table in layout.tables {
      guard let found = names[Self.key(table.name)] else { continue }
      let name = SQLText.identifier(found.name)
      let columns = Set(found.columns.map { Self.key($0.name) })
      if columns.contains("Z_PK") {
        highestKeys[Self.key(table.name)] = try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM main.\(name)")
      }
      if columns.contains("Z_ENT") {
        entityNumbers[Self.key(table.name)] = Set(
          try DatabaseValue.fetchAll(database, sql: "SELECT DISTINCT Z_ENT FROM main.\(name)")
            .compactMap { Self.integer($0) })
      }
    }
    try readCachedModel(database, isThere: names["Z_MODELCACHE"] != nil)
  }

  private mutating func readSchema(_ database: Database) throws {
    let entries = try Row.fetchCursor(
      database, sql: "SELECT type, name, sql FROM main.sqlite_master WHERE name NOT LIKE 'sqlite@_%' ESCAPE '@'")
    while let entry = try entries.next() {
      guard let name = String.fromDatabaseValue(entry[1] as DatabaseValue) else { continue }
      let statement = String.fromDatabaseValue(entry[2] as DatabaseValue) ?? ""
      switch String.fromDatabaseValue(entry[0] as DatabaseValue) {
      case "table":
        let isVirtual = statement.uppercased().hasPrefix("CREATE VIRTUAL")
        tables.append(Table(name: name, columns: [], isVirtual: isVirtual))
      case "trigger": triggers.append(name)
      case "view": views.append(name)
      default: break
      }
    }
    // A virtual table's columns would need its module.
    for place in tables.indices where !tables[place].isVirtual {
      tables[place].columns = try Self.columns(of: tables[place].name, database)
    }
    indexes = try SQLSchema.indexes(of: database).values.map { index in
      Index(
        name: index.name, tableName: index.tableName, isUnique: index.isUnique, isPartial: index.isPartial,
        columns: index.columns.map { $0.isEmpty ? nil : $0 })
    }.sorted { $0.name < $1.name }
  }

  private static func columns(of table: String, _ database: Database) throws -> [Column] {
    try Row.fetchAll(
      database, sql: "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?, 'main')",
      arguments: [table]
    ).compactMap { row in
      guard let name = String.fromDatabaseValue(row[0] as DatabaseValue) else { return nil }
      let isMandatory =
        integer(row[2]) == 1 && (row[3] as DatabaseValue).isNull && integer(row[4]) == 0 && integer(row[5]) == 0
      return Column(
        name: name, declaredType: String.fromDatabaseValue(row[1] as DatabaseValue) ?? "", isMandatory: isMandatory)
    }
  }

  private mutating func readCachedModel(_ database: Database, isThere: Bool) throws {
    guard isThere, let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM main.Z_MODELCACHE"),
      let bytes = BlobBytes.fromDatabaseValue(value)?.bytes
    else { return }
    do {
      cachedModel = .model(try ManagedObjectModel(modelCache: bytes).versionHashes())
    } catch {
      // What is there is no model; that is what is told of it.
      cachedModel = .unreadable
    }
  }

  private static func integer(_ value: DatabaseValue) -> Int64? { Int64.fromDatabaseValue(value) }
}
