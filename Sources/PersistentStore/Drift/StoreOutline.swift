package import GRDB
package import ManagedObjectModel
import Platform

/// What a store has besides its records: tables and columns, indexes, triggers and the bookkeeping, however it was read.
///
/// The examiner reads it from bytes, the repair engine through SQL; the comparison with a model is the same.
package struct StoreOutline: Sendable, Hashable {
  /// A column of a table.
  package struct Column: Sendable, Hashable {
    /// The name, as the table declares it.
    package var name: String

    /// The declared type, as it is written.
    package var declaredType: String

    /// Whether a row without a value for it is refused: not NULL, no default, not generated and not the rowid.
    package var isMandatory: Bool

    /// A column of these facts.
    package init(name: String, declaredType: String, isMandatory: Bool = false) {
      self.name = name
      self.declaredType = declaredType
      self.isMandatory = isMandatory
    }
  }

  /// A table; the inner tables of virtual ones may be among them.
  package struct Table: Sendable, Hashable {
    /// The name.
    package var name: String

    /// The columns; empty for a virtual table, whose columns its module knows.
    package var columns: [Column]

    /// Whether a module provides it.
    package var isVirtual: Bool

    /// The column that is the rowid by another name, an integer primary key; nil where there is none.
    package var rowidAlias: String?

    /// A table of these facts.
    package init(name: String, columns: [Column], isVirtual: Bool = false, rowidAlias: String? = nil) {
      self.name = name
      self.columns = columns
      self.isVirtual = isVirtual
      self.rowidAlias = rowidAlias
    }
  }

  /// An index, those that SQLite makes for keys and unique columns included.
  package struct Index: Sendable, Hashable {
    /// The name.
    package var name: String

    /// The table that it indexes.
    package var tableName: String

    /// Whether it allows each value once.
    package var isUnique: Bool

    /// Whether it has a condition, and so does not hold every row.
    package var isPartial: Bool

    /// The columns in their order; nil for an expression.
    package var columns: [String?]

    /// An index of these facts.
    package init(name: String, tableName: String, isUnique: Bool, isPartial: Bool, columns: [String?]) {
      self.name = name
      self.tableName = tableName
      self.isUnique = isUnique
      self.isPartial = isPartial
      self.columns = columns
    }
  }

  /// A row of `Z_PRIMARYKEY`.
  package struct KeyRow: Sendable, Hashable {
    /// `Z_ENT`.
    package var number: Int64

    /// `Z_NAME`; nil where it is no text.
    package var name: String?

    /// `Z_SUPER`; nil where it is no integer.
    package var parentNumber: Int64?

    /// `Z_MAX`; nil where it is no integer.
    package var maximum: Int64?

    /// A row of these values.
    package init(number: Int64, name: String?, parentNumber: Int64?, maximum: Int64?) {
      self.number = number
      self.name = name
      self.parentNumber = parentNumber
      self.maximum = maximum
    }
  }

  /// What `Z_MODELCACHE` holds.
  package enum CachedModel: Sendable, Hashable {
    /// Nothing, or there is no such table, as in old stores.
    case none

    /// Something that is no model.
    case unreadable

    /// A model of these version hashes.
    case model([String: VersionHash])
  }

  /// The tables.
  package var tables: [Table] = []

  /// The indexes.
  package var indexes: [Index] = []

  /// The names of triggers.
  package var triggers: [String] = []

  /// The names of views, which take names that tables could have.
  package var views: [String] = []

  /// The rows of `Z_PRIMARYKEY`; nil where they were not read, so that nothing is said of them.
  package var keyRows: [KeyRow]?

  /// The highest primary key of tables, under their upper-cased names; a table without rows or not looked at has none.
  package var highestKeys: [String: Int64] = [:]

  /// The entity numbers met in rows of tables, under their upper-cased names, as far as these were looked at.
  package var entityNumbers: [String: Set<Int64>] = [:]

  /// The tables with rows whose entity number is no integer, under their upper-cased names, as far as these were looked at.
  package var tablesWithoutNumbers: Set<String> = []

  /// The model that the store carries.
  package var cachedModel = CachedModel.none

  /// An outline without anything.
  package init() {}

  /// A table's or index's name as SQLite compares it: ASCII letters upper-cased.
  package static func key(_ name: String) -> String { String(decoding: NameAllocator.key(name), as: UTF8.self) }
}

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
