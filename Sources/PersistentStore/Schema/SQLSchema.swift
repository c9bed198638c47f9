public import GRDB
public import Platform

/// The schema of an SQLite database: its tables and indexes, its views and triggers.
public struct SQLSchema: Sendable, Hashable {
  /// The tables by name; SQLite's own and the inner tables of virtual ones are left out.
  public var tables: [String: SQLTable]

  /// The indexes by name, those that SQLite makes for primary keys and unique columns included.
  public var indexes: [String: SQLIndex]

  /// The statements of triggers, by name.
  public var triggers: [String: String]

  /// The statements of views, by name.
  public var views: [String: String]
}

/// A table of an SQLite database.
public struct SQLTable: Sendable, Hashable {
  /// The name, as the database holds it.
  public var name: String

  /// The columns in the order of the table.
  public var columns: [SQLColumn]

  /// Whether a module provides it.
  public var isVirtual: Bool

  /// The statement that created it, as the database holds it.
  public var statement: String

  /// The columns whose values are in the file: reading them evaluates no expression of the schema.
  package var storedColumns: [SQLColumn] { columns.filter { !$0.isComputed } }
}

/// A column of a table.
public struct SQLColumn: Sendable, Hashable {
  /// The name, as the table declares it.
  public var name: String

  /// The declared type, as it is written.
  public var declaredType: String

  /// Whether the column refuses NULL.
  public var isNotNull: Bool

  /// Its place in the primary key from 1; 0 where it is not in it.
  public var primaryKeyPosition: Int

  /// Whether SQLite computes it whenever it is read: a virtual generated column, of which the file holds no values.
  public var isComputed: Bool
}

/// An index of a table.
public struct SQLIndex: Sendable, Hashable {
  /// The name, as the database holds it.
  public var name: String

  /// The table it belongs to.
  public var tableName: String

  /// Whether it allows each value once.
  public var isUnique: Bool

  /// Whether it covers only the rows of a condition.
  public var isPartial: Bool

  /// The columns; an empty name stands for an expression.
  public var columns: [String]
}

extension SQLSchema {
  /// Reads the schema of an open database.
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

  /// The names of tables of a kind, as SQLite itself tells them apart.
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

  /// Reads the indexes alone, by name, those of SQLite's own tables included.
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

  /// The text of a column, whatever the database holds there.
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
  /// The schema that a script creates.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` where a statement is not SQLite's or not allowed.
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

  /// The schema of the tables and indexes that a layout's stores have, as SQLite itself reads it.
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
