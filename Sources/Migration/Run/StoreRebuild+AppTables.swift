internal import Foundation
internal import GRDB
internal import PersistentStore
internal import Platform

internal import struct SQLiteFormat.TableDefinition

extension StoreRebuild {
  /// Whether a table belongs to CloudKit mirroring (format section 3.11).
  static func isMirroring(_ table: String) -> Bool { table.hasPrefix("ANSCK") }

  static func foreignTables(_ contents: SourceContents, _ layout: StoreLayout) -> [SQLTable] {
    let own = Set(layout.tableNames.map { $0.uppercased() })
    return contents.schema.tables.values.filter { !own.contains($0.name.uppercased()) }.ordered { $0.name < $1.name }
  }

  /// Copies persistent history and the app's tables.
  ///
  /// - Throws: `migration-data-violation` for mirroring tables if entity numbers change, and for virtual tables other
  ///   than full-text and R-tree indexes with their own content.
  func copyForeign(
    _ database: Database, _ contents: SourceContents, _ custom: CustomRun?, _ account: inout StepAccount
  ) throws {
    let tables = Self.foreignTables(contents, layout.source)
    for table in tables { try Self.check(table, layout) }
    // Full-text indexes may use other tables' content.
    for table in tables.filter({ !$0.isVirtual }) + tables.filter(\.isVirtual) {
      if table.isVirtual {
        try copyVirtual(table, database)
        continue
      }
      try database.execute(sql: table.statement)
      let name = table.name.quotedName
      try copyRows(of: table, name, database)
      if table.name == "ACHANGE" {
        try custom?.moveHistory()
        try renumberHistory(database, &account)
      }
      for index in contents.schema.indexes.values.filter({ $0.tableName == table.name }).ordered(by: {
        $0.name < $1.name
      }) {
        if let statement = contents.indexStatements[index.name] { try database.execute(sql: statement) }
      }
    }
    if try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM old.sqlite_master WHERE name = 'sqlite_sequence'")
      == true,
      try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM main.sqlite_master WHERE name = 'sqlite_sequence'")
        == true
    {
      try database.execute(
        sql: "DELETE FROM main.sqlite_sequence; INSERT INTO main.sqlite_sequence SELECT * FROM old.sqlite_sequence")
    }
  }

  private func copyRows(of table: SQLTable, _ name: String, _ database: Database) throws {
    let columns = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid", arguments: [table.name])
    let taken = Set(columns.map { $0.lowercased() })
    let hasRowids = TableDefinition(sql: table.statement)?.isWithoutRowid == false
    let rowid = hasRowids ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    let list = ([rowid].compactMap(\.self) + columns.map(\.quotedName)).joined(separator: ", ")
    try database.execute(sql: "INSERT INTO main.\(name) (\(list)) SELECT \(list) FROM old.\(name)")
  }

  static func check(_ table: SQLTable, _ layout: StepLayout) throws {
    guard let refusal = refusal(table, layout) else { return }
    throw MigrationError(.dataViolation, detail: refusal.detail, hint: refusal.wayRound)
  }

  static func refusal(_ table: SQLTable, _ layout: StepLayout) -> MigrationRefusal? {
    if isMirroring(table.name), layout.isRenumbering || layout.isCustom {
      return MigrationRefusal(
        .foreignTable, entity: table.name, reason: "The store is mirrored to CloudKit",
        detail: "the store is mirrored to CloudKit, and "
          + (layout.isCustom ? "the step is a custom one" : "entities would get other numbers")
          + ", which the tables of the mirroring cannot follow",
        wayRound: "Choose entity names that keep the alphabetical order, or switch the mirroring off first.")
    }
    if table.isVirtual, VirtualTable(table) == nil {
      return MigrationRefusal(
        .foreignTable, entity: table.name, reason: "The store has a virtual table that is not the model's",
        detail: "the virtual table \(printable(table.name)) is not the model's and cannot be copied",
        wayRound: "Drop the table before the migration and make it again afterwards.")
    }
    return nil
  }

  func recreateAppObjects(_ database: Database, _ contents: SourceContents, _ account: inout StepAccount) throws {
    let tables = Set(layout.source.tables.map(\.name) + layout.source.joinTables.map(\.name))
    let indexes = contents.schema.indexes.values.filter { index in
      tables.contains(index.tableName) && !index.name.hasPrefix("Z") && contents.indexStatements[index.name] != nil
    }
    try Self.make(
      indexes.map { ($0.name, contents.indexStatements[$0.name] ?? "") } + contents.schema.appObjects, database,
      &account)
  }

  /// Recreates app objects sorted by name and leaves behind misfits.
  static func make(
    _ statements: [(name: String, sql: String)], _ database: Database, _ account: inout StepAccount
  ) throws {
    for (name, statement) in statements.ordered(by: { $0.0 < $1.0 }) {
      do {
        try database.execute(sql: statement)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
        account.leftBehind.append(name)
      }
    }
  }
}

extension SQLSchema {
  var appObjects: [(name: String, sql: String)] {
    views.map { ($0.key, $0.value) } + triggers.filter { !StoreLayout.isOwnTrigger($0.key) }.map { ($0.key, $0.value) }
  }
}

/// A full-text or R-tree index to recreate.
struct VirtualTable {
  enum Filling {
    case rows

    /// Rows with rowids.
    case numberedRows

    /// The indexed table.
    case rebuild
  }

  let filling: Filling

  /// Nil for other modules, and for contentless full-text indexes.
  init?(_ table: SQLTable) {
    let words = table.statement.lowercased().split(whereSeparator: { $0.isWhitespace || $0 == "(" })
    guard let using = words.firstIndex(of: "using"), using + 1 < words.count else { return nil }
    switch words[using + 1] {
    case "rtree", "rtree_i32", "geopoly": filling = .rows
    case "fts3", "fts4", "fts5":
      guard let content = Self.content(table.statement) else {
        filling = .numberedRows
        return
      }
      if content.isEmpty { return nil }
      filling = .rebuild
    default: return nil
    }
  }

  /// The unquoted `content=` option, if given.
  private static func content(_ statement: String) -> String? {
    let text = statement.lowercased().filter { !$0.isWhitespace }
    // A column may be named content too.
    for separator in ["(", ","] {
      guard let range = text.range(of: separator + "content=") else { continue }
      let value = text[range.upperBound...].prefix { $0 != "," && $0 != ")" }
      return value.filter { !"'\"`[]".contains($0) }
    }
    return nil
  }
}

extension StoreRebuild {
  /// Recreates an app's virtual table; SQLite makes its shadow tables.
  func copyVirtual(_ table: SQLTable, _ database: Database) throws {
    guard let virtual = VirtualTable(table) else { return }
    do {
      try database.execute(sql: table.statement)
      let name = table.name.quotedName
      let columns = try String.fetchAll(
        database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table.name]
      ).map(\.quotedName)
      switch virtual.filling {
      case .rows: try database.execute(sql: "INSERT INTO main.\(name) SELECT * FROM old.\(name)")
      case .numberedRows:
        let list = (["rowid"] + columns).joined(separator: ", ")
        try database.execute(sql: "INSERT INTO main.\(name) (\(list)) SELECT \(list) FROM old.\(name)")
      case .rebuild: try database.execute(sql: "INSERT INTO main.\(name) (\(name)) VALUES ('rebuild')")
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      throw MigrationError(
        .dataViolation,
        detail: "the virtual table \(printable(table.name)) is not the model's and cannot be made again",
        hint: "Drop the table before the migration and make it again afterwards.")
    }
  }
}
