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
      guard let name = Self.text(entry, 1), !shadows.contains(name) else { continue }
      let statement = Self.text(entry, 3) ?? ""
      switch Self.text(entry, 0) {
      case "table":
        tables[name] = SQLTable(
          name: name, columns: [], isVirtual: virtual.contains(name), statement: statement)
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
      guard let table = Self.text(row, 0), let name = Self.text(row, 1) else { continue }
      tables[table]?.columns.append(
        SQLColumn(
          name: name, declaredType: Self.text(row, 2) ?? "", isNotNull: Self.integer(row, 3) != 0,
          primaryKeyPosition: Int(Self.integer(row, 4)), isComputed: Self.integer(row, 5) == 2))
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
      guard let table = Self.text(row, 0), let name = Self.text(row, 1) else { continue }
      let empty = SQLIndex(
        name: name, tableName: table, isUnique: Self.integer(row, 2) != 0, isPartial: Self.integer(row, 3) != 0,
        columns: [])
      indexes[name, default: empty].columns.append(Self.text(row, 4) ?? "")
    }
    return indexes
  }

  private static func text(_ row: Row, _ index: Int) -> String? {
    let value: DatabaseValue = row[index]
    return String.fromDatabaseValue(value)
  }

  private static func integer(_ row: Row, _ index: Int) -> Int64 {
    let value: DatabaseValue = row[index]
    return Int64.fromDatabaseValue(value) ?? 0
  }
}

extension SQLSchema {
  /// Creates a script's schema.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` for an invalid or forbidden statement.
  public init(_ script: SchemaScript) throws(PersistentStoreError) {
    do {
      self = try MemoryDatabase.open().inDatabase { database in
        try script.run(in: database)
        return try SQLSchema(database)
      }
    } catch let error as PersistentStoreError {
      throw error
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: "read the schema", path: nil)
    } catch {
      throw SchemaScript.refused("an unforeseen failure")
    }
  }

  /// Creates a layout's tables and indexes as SQLite reads them.
  public init(_ layout: StoreLayout) throws(PersistentStoreError) {
    do {
      self = try MemoryDatabase.open().inDatabase { database in
        for statement in layout.statements { try database.execute(sql: statement) }
        return try SQLSchema(database)
      }
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: "lay out the model", path: nil)
    } catch {
      throw PersistentStoreError(.database, operation: "lay out the model", detail: "an unforeseen failure")
    }
  }
}
