package import GRDB
internal import ManagedObjectModel
internal import StoreFiles

extension StoreOutline {
  /// Reads the outline of an open Core Data store through SQL: every row's entity number is looked at.
  ///
  /// - Parameter layout: whose tables are looked into for primary keys and entity numbers.
  package init(_ database: Database, layout: StoreLayout) throws {
    self.init()
    try readSchema(database)
    let names = Dictionary(
      tables.filter { !$0.isVirtual }.map { (Self.key($0.name), $0) }, uniquingKeysWith: { first, _ in first })
    if let table = names["Z_PRIMARYKEY"] { keyRows = try Self.keyRows(of: table, database) }
    for table in layout.tables {
      guard let found = names[Self.key(table.name)] else { continue }
      let name = SQLText.identifier(found.name)
      let columns = Set(found.columns.map { Self.key($0.name) })
      if columns.contains("Z_PK") {
        highestKeys[Self.key(table.name)] = try Int64.fetchOne(database, sql: "SELECT max(Z_PK) FROM main.\(name)")
      }
      if columns.contains("Z_ENT") {
        let values = try DatabaseValue.fetchAll(database, sql: "SELECT DISTINCT Z_ENT FROM main.\(name) NOT INDEXED")
        note(values.map(Self.integer), in: table.name)
      }
    }
    let cache = names["Z_MODELCACHE"]?.columns.contains { Self.key($0.name) == "Z_CONTENT" }
    try readCachedModel(database, isThere: cache == true)
  }

  /// The rows of `Z_PRIMARYKEY`; a column that it lacks has no value, and without numbers there are no rows.
  private static func keyRows(of table: Table, _ database: Database) throws -> [KeyRow] {
    let found = Set(table.columns.map { key($0.name) })
    let list = ["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"].map { found.contains($0) ? $0 : "NULL" }
    return try Row.fetchAll(database, sql: "SELECT \(list.joined(separator: ", ")) FROM main.Z_PRIMARYKEY")
      .compactMap { row in
        integer(row[0]).map { number in
          KeyRow(
            number: number, name: String.fromDatabaseValue(row[1] as DatabaseValue), parentNumber: integer(row[2]),
            maximum: integer(row[3]))
        }
      }
  }

  /// Notes the entity numbers of some rows of a table; nil stands for what is no integer.
  package mutating func note(_ numbers: some Sequence<Int64?>, in table: String) {
    for number in numbers {
      if let number {
        entityNumbers[Self.key(table), default: []].insert(number)
      } else {
        tablesWithoutNumbers.insert(Self.key(table))
      }
    }
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
      (tables[place].columns, tables[place].rowidAlias) = try Self.columns(of: tables[place].name, database)
    }
    indexes = try SQLSchema.indexes(of: database).values.map { index in
      Index(
        name: index.name, tableName: index.tableName, isUnique: index.isUnique, isPartial: index.isPartial,
        columns: index.columns.map { $0.isEmpty ? nil : $0 })
    }.ordered { $0.name < $1.name }
  }

  /// The columns of a table, and the one that is the rowid by another name.
  private static func columns(of table: String, _ database: Database) throws -> ([Column], String?) {
    let rows = try Row.fetchAll(
      database, sql: "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?, 'main')",
      arguments: [table])
    let hasRowids = try Bool.fetchOne(
      database, sql: "SELECT wr = 0 FROM pragma_table_list(?) WHERE schema = 'main'", arguments: [table])
    let keys = rows.filter { integer($0[4]) != 0 }
    let alias =
      hasRowids == true && keys.count == 1
      ? keys.first { String.fromDatabaseValue($0[1] as DatabaseValue)?.uppercased() == "INTEGER" } : nil
    let columns = rows.compactMap { row -> Column? in
      guard let name = String.fromDatabaseValue(row[0] as DatabaseValue) else { return nil }
      let isMandatory =
        integer(row[2]) == 1 && (row[3] as DatabaseValue).isNull && integer(row[4]) == 0 && integer(row[5]) == 0
      return Column(
        name: name, declaredType: String.fromDatabaseValue(row[1] as DatabaseValue) ?? "", isMandatory: isMandatory)
    }
    return (columns, alias.flatMap { String.fromDatabaseValue($0[0] as DatabaseValue) })
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
