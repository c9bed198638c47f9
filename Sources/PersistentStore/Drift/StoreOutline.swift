package import GRDB
internal import ManagedObjectModel
import Platform

/// A store's schema and bookkeeping, read from bytes by the examiner or through SQL by the repair engine.
package struct StoreOutline: Sendable, Hashable {
  struct Column: Sendable, Hashable {
    var name: String

    var declaredType: String

    /// Whether inserts need a value: not NULL, no default, neither generated nor the rowid.
    var isMandatory = false
  }

  /// A table, possibly a shadow table.
  struct Table: Sendable, Hashable {
    var name: String

    /// The columns; empty for virtual tables.
    var columns: [Column]

    var isVirtual = false

    /// The integer primary key that aliases the rowid, if any.
    var rowidAlias: String?
  }

  /// An index, including automatic ones.
  struct Index: Sendable, Hashable {
    var name: String

    var tableName: String

    var isUnique: Bool

    var isPartial: Bool

    /// The columns in order; nil for an expression.
    var columns: [String?]
  }

  struct KeyRow: Sendable, Hashable {
    var number: Int64

    /// `Z_NAME`; nil unless text.
    var name: String?

    /// `Z_SUPER`; nil unless an integer.
    var parentNumber: Int64?

    /// `Z_MAX`; nil unless an integer.
    var maximum: Int64?
  }

  enum CachedModel: Sendable, Hashable {
    /// Also if the table is missing, as in old stores.
    case none

    /// Content that is not a model.
    case unreadable

    case model([String: VersionHash])
  }

  var tables: [Table] = []

  var indexes: [Index] = []

  var triggers: [String] = []

  /// View names, which compete with table names.
  var views: [String] = []

  /// The `Z_PRIMARYKEY` rows; nil if unread and so not compared.
  var keyRows: [KeyRow]?

  /// By upper-cased table name, absent for empty or unread tables.
  var highestKeys: [String: Int64] = [:]

  /// The numbers seen, by upper-cased table name.
  var entityNumbers: [String: Set<Int64>] = [:]

  /// Upper-cased names of tables with a non-integer entity number.
  var tablesWithoutNumbers: Set<String> = []

  var cachedModel = CachedModel.none

  init() {}

  /// Returns the name that SQLite compares: ASCII letters upper-cased.
  package static func key(_ name: String) -> String { String(decoding: NameAllocator.key(name), as: UTF8.self) }
}

extension StoreOutline {
  /// Reads an open Core Data store through SQL, including every row's entity number.
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

  /// Returns `Z_PRIMARYKEY` rows; missing columns give nil, a missing number column no rows.
  private static func keyRows(of table: Table, _ database: Database) throws -> [KeyRow] {
    let found = Set(table.columns.map { key($0.name) })
    let list = ["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"].map { found.contains($0) ? $0 : "NULL" }
    let rows = try Row.fetchAll(database, sql: "SELECT \(list.joined(separator: ", ")) FROM main.Z_PRIMARYKEY")
    return rows.compactMap { row in
      row.integer(0).map { number in
        KeyRow(number: number, name: row.text(1), parentNumber: row.integer(2), maximum: row.integer(3))
      }
    }
  }

  /// Adds entity numbers; nil for a non-integer.
  mutating func note(_ numbers: some Sequence<Int64?>, in table: String) {
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
      guard let name = entry.text(1) else { continue }
      let statement = entry.text(2) ?? ""
      switch entry.text(0) {
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

  private static func columns(of table: String, _ database: Database) throws -> ([Column], String?) {
    let rows = try Row.fetchAll(
      database, sql: "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?, 'main')",
      arguments: [table])
    let hasRowids = try Bool.fetchOne(
      database, sql: "SELECT wr = 0 FROM pragma_table_list(?) WHERE schema = 'main'", arguments: [table])
    let keys = rows.filter { $0.integer(4) != 0 }
    let alias = hasRowids == true && keys.count == 1 ? keys.first { $0.text(1)?.uppercased() == "INTEGER" } : nil
    let columns = rows.compactMap { row -> Column? in
      guard let name = row.text(0) else { return nil }
      let isMandatory =
        row.integer(2) == 1 && (row[3] as DatabaseValue).isNull && row.integer(4) == 0 && row.integer(5) == 0
      return Column(name: name, declaredType: row.text(1) ?? "", isMandatory: isMandatory)
    }
    return (columns, alias.flatMap { $0.text(0) })
  }

  private mutating func readCachedModel(_ database: Database, isThere: Bool) throws {
    guard isThere, let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM main.Z_MODELCACHE"),
      let bytes = value.blob
    else { return }
    do {
      cachedModel = .model(try ManagedObjectModel(modelCache: bytes).versionHashes())
    } catch {
      cachedModel = .unreadable
    }
  }

  private static func integer(_ value: DatabaseValue) -> Int64? { Int64.fromDatabaseValue(value) }
}
