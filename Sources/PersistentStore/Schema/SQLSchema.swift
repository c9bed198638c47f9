public import GRDB
public import Platform

/// The schema of an SQLite database.
public struct SQLSchema: Sendable, Hashable {
  /// Tables by name, except SQLite's own and shadow tables.
  public var tables: [String: SQLTable]

  /// Indexes by name, including automatic ones.
  public var indexes: [String: SQLIndex]

  /// Trigger statements by name.
  public var triggers: [String: String]

  /// View statements by name.
  public var views: [String: String]
}

/// A table.
public struct SQLTable: Sendable, Hashable {
  /// The stored name.
  public var name: String

  /// The columns in order.
  public var columns: [SQLColumn]

  /// Whether a module provides it.
  public var isVirtual: Bool

  /// The stored `CREATE` statement.
  public var statement: String

  /// Stored columns, readable without evaluating schema expressions.
  package var storedColumns: [SQLColumn] { columns.filter { !$0.isComputed } }
}

/// A column.
public struct SQLColumn: Sendable, Hashable {
  /// The declared name.
  public var name: String

  /// The declared type as written.
  public var declaredType: String

  /// Whether it refuses NULL.
  public var isNotNull: Bool

  /// The position in the primary key, from 1, else 0.
  public var primaryKeyPosition: Int

  /// Whether it is a virtual generated column, without values in the file.
  public var isComputed: Bool
}

/// An index.
public struct SQLIndex: Sendable, Hashable {
  /// The stored name.
  public var name: String

  /// The indexed table.
  public var tableName: String

  /// Whether values are unique.
  public var isUnique: Bool

  /// Whether a condition selects rows.
  public var isPartial: Bool

  /// The columns; an empty name is an expression.
  public var columns: [String]
}

extension SQLSchema {
  /// Reads an open database.
  public init(_ database: Database) throws {
    self.init(tables: [:], indexes: [:], triggers: [:], views: [:])
    let shadows = try Self.names(of: "shadow", in: database)
    let virtual = try Self.names(of: "virtual", in: database)
    let entries = try Row.fetchCursor(
      database, sql: "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite@_%' ESCAPE '@'")
    while let entry = try entries.next() {
      guard let name = entry.text(1), !shadows.contains(name) else { continue }
      let statement = entry.text(3) ?? ""
      switch entry.text(0) {
      case "table":
        tables[name] = SQLTable(name: name, columns: [], isVirtual: virtual.contains(name), statement: statement)
      case "trigger": triggers[name] = statement
      case "view": views[name] = statement
      default: break
      }
    }
    try readColumns(database)
    indexes = try Self.indexes(of: database).filter { tables[$0.value.tableName] != nil }
  }

  private static func names(of kind: String, in database: Database) throws -> Set<String> {
    try Set(
      String.fetchAll(
        database, sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = ?", arguments: [kind]))
  }

  private mutating func readColumns(_ database: Database) throws {
    let columns = try Row.fetchCursor(
      database,
      sql: """
        SELECT m.name, c.name, c.type, c."notnull", c.pk, c.hidden FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c
        WHERE m.type = 'table' ORDER BY m.name, c.cid
        """)
    while let row = try columns.next() {
      guard let table = row.text(0), let name = row.text(1) else { continue }
      tables[table]?.columns.append(
        SQLColumn(
          name: name, declaredType: row.text(2) ?? "", isNotNull: row.integer(3) ?? 0 != 0,
          primaryKeyPosition: Int(row.integer(4) ?? 0), isComputed: row.integer(5) == 2))
    }
  }

  /// Reads indexes by name, including those of SQLite's own tables.
  package static func indexes(of database: Database) throws -> [String: SQLIndex] {
    var indexes: [String: SQLIndex] = [:]
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT m.name, i.name, i."unique", i.partial, c.name
        FROM sqlite_master AS m, pragma_index_list(m.name) AS i, pragma_index_info(i.name) AS c
        WHERE m.type = 'table' ORDER BY m.name, i.name, c.seqno
        """)
    while let row = try rows.next() {
      guard let table = row.text(0), let name = row.text(1) else { continue }
      let empty = SQLIndex(
        name: name, tableName: table, isUnique: row.integer(2) ?? 0 != 0, isPartial: row.integer(3) ?? 0 != 0,
        columns: [])
      indexes[name, default: empty].columns.append(row.text(4) ?? "")
    }
    return indexes
  }
}

extension SQLSchema {
  /// Creates a script's schema.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` for an invalid or forbidden statement.
  public init(_ script: SchemaScript) throws(PersistentStoreError) {
    self = try PersistentStoreError.reporting("read the schema", unforeseen: .schemaScriptRefused) {
      try MemoryDatabase.open().inDatabase { database in
        try script.run(in: database)
        return try SQLSchema(database)
      }
    }
  }

  /// Creates a layout's tables and indexes as SQLite reads them.
  public init(_ layout: StoreLayout) throws(PersistentStoreError) {
    self = try PersistentStoreError.reporting("lay out the model") {
      try MemoryDatabase.open().inDatabase { database in
        for statement in layout.statements { try database.execute(sql: statement) }
        return try SQLSchema(database)
      }
    }
  }
}

// MARK: Differences

/// A difference between expected and found schema.
///
/// Names ignore ASCII case, as in SQLite. Column order and index names do not count: Core Data changes both in
/// migrations.
public enum SchemaDifference: Sendable, Hashable {
  case missingTable(String)
  case unexpectedTable(String)
  case missingColumn(table: String, column: String)
  case unexpectedColumn(table: String, column: String)

  case otherType(table: String, column: String, expected: String, found: String)

  /// An index over these columns is missing.
  case missingIndex(table: String, columns: [String], isUnique: Bool)
  case unexpectedIndex(table: String, columns: [String], isUnique: Bool)
}

extension SchemaDifference {
  /// The difference in one sentence without a period.
  public var text: String {
    switch self {
    case .missingTable(let table): "table \(printable(table)) is missing"
    case .unexpectedTable(let table): "table \(printable(table)) is not the model's"
    case .missingColumn(let table, let column): "column \(printable(column)) of table \(printable(table)) is missing"
    case .unexpectedColumn(let table, let column):
      "column \(printable(column)) of table \(printable(table)) is not the model's"
    case .otherType(let table, let column, let expected, let found):
      """
      column \(printable(column)) of table \(printable(table)) is declared as \(printable(found)), not as \
      \(printable(expected))
      """
    case .missingIndex(let table, let columns, let isUnique):
      "the \(isUnique ? "unique " : "")index of table \(printable(table)) over \(Self.list(columns)) is missing"
    case .unexpectedIndex(let table, let columns, let isUnique):
      "the \(isUnique ? "unique " : "")index of table \(printable(table)) over \(Self.list(columns)) is not the model's"
    }
  }

  private static func list(_ columns: [String]) -> String { columns.map(printable).joined(separator: ", ") }
}

extension SQLSchema {
  /// Returns the differences of another schema, tables sorted by name.
  public func differences(to found: SQLSchema) -> [SchemaDifference] {
    let expectedTables = Self.byKey(tables)
    let foundTables = Self.byKey(found.tables)
    var result: [SchemaDifference] = []
    for (key, expected) in expectedTables.ordered(by: { $0.key < $1.key }) {
      guard let other = foundTables[key] else {
        result.append(.missingTable(expected.name))
        continue
      }
      result += Self.differences(between: expected, and: other)
      result += Self.differences(
        between: indexes.values.filter { Self.key($0.tableName) == key },
        and: found.indexes.values.filter { Self.key($0.tableName) == key }, table: expected.name)
    }
    for (key, other) in foundTables.ordered(by: { $0.key < $1.key }) where expectedTables[key] == nil {
      result.append(.unexpectedTable(other.name))
    }
    return result
  }

  private static func differences(between expected: SQLTable, and found: SQLTable) -> [SchemaDifference] {
    let foundColumns = Dictionary(found.columns.map { (key($0.name), $0) }, uniquingKeysWith: { first, _ in first })
    let expectedNames = Set(expected.columns.map { key($0.name) })
    var result: [SchemaDifference] = []
    for column in expected.columns {
      guard let other = foundColumns[key(column.name)] else {
        result.append(.missingColumn(table: expected.name, column: column.name))
        continue
      }
      if key(column.declaredType) != key(other.declaredType) {
        result.append(
          .otherType(
            table: expected.name, column: column.name, expected: column.declaredType, found: other.declaredType))
      }
    }
    for column in found.columns where !expectedNames.contains(key(column.name)) {
      result.append(.unexpectedColumn(table: expected.name, column: column.name))
    }
    return result
  }

  private static func differences(
    between expected: [SQLIndex], and found: [SQLIndex], table: String
  ) -> [SchemaDifference] {
    struct Shape: Hashable {
      let columns: [String]
      let isUnique: Bool
    }
    func shapes(_ indexes: [SQLIndex]) -> Set<Shape> {
      // The order in a unique set is irrelevant: Core Data renames a join table when the other side becomes the naming
      // one, but keeps its key's order (real stores of fw 1044 and 1145).
      Set(
        indexes.map {
          Shape(columns: $0.isUnique ? $0.columns.map(key).sorted() : $0.columns.map(key), isUnique: $0.isUnique)
        })
    }
    func ordered(_ shapes: Set<Shape>) -> [Shape] {
      shapes.ordered {
        ($0.columns.joined(separator: ","), $0.isUnique ? 1 : 0) < (
          $1.columns.joined(separator: ","), $1.isUnique ? 1 : 0
        )
      }
    }
    let wanted = shapes(expected)
    let there = shapes(found)
    return ordered(wanted.subtracting(there)).map {
      .missingIndex(table: table, columns: $0.columns, isUnique: $0.isUnique)
    }
      + ordered(there.subtracting(wanted)).map {
        .unexpectedIndex(table: table, columns: $0.columns, isUnique: $0.isUnique)
      }
  }

  private static func byKey(_ tables: [String: SQLTable]) -> [String: SQLTable] {
    Dictionary(tables.map { (key($0), $1) }, uniquingKeysWith: { first, _ in first })
  }

  private static func key(_ name: String) -> String { StoreOutline.key(name) }
}
