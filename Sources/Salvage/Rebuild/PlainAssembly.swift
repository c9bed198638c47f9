internal import Foundation
internal import GRDB
internal import PersistentStore
internal import SQLiteFormat

/// Fills a new plain database from a raw salvage, by the given schema or the store's own.
struct PlainAssembly {
  let database: GRDB.Database
  let found: RawSalvage

  /// The new store, with the rows written during the search.
  let store: NewStore?
  let raw: RawTables
  let aside: SetAsideRows
  var filled: Filled

  mutating func run(tell: (Int64, Int64) throws -> Void) throws {
    let statements = found.statements.filter { !$0.isVirtual }
    var names = raw.all.map(\.name).filter { !$0.hasPrefix("lazaret_") }.map(found.ownName)
    let known = Set(names.map { $0.lowercased() })
    names += statements.filter { $0.kind == "table" && !known.contains($0.name.lowercased()) }.map(\.name)
    let doubtful =
      found.report.hasDoubts ? try DoubtfulRows(database, raw, made: Set(store?.tables.keys.map(\.self) ?? [])) : nil
    var plain = try PlainTables(database, raw, doubtful, store, found, aside)
    try plain.make(names, by: statements, tell: tell)
    filled.account.setAside += plain.setAside
    try plain.makeRest(statements, virtual: found.entries.filter { $0.kind == .table }, sequences: found.sequences)
    filled.remarks += plain.remarks + plain.conversions
    filled.recounts += plain.recounts
    filled.isWhole = plain.remarks.isEmpty
    if let header = found.header, header.hasMagic {
      try database.execute(sql: "PRAGMA main.user_version = \(header.userVersion)")
      try database.execute(sql: "PRAGMA main.application_id = \(Int32(bitPattern: header.applicationID))")
    }
    try noteMetadata()
    try recount(doubtful)
    try countReferredTo()
    try aside.takeOver(raw, isDoubtful: found.report.hasDoubts)
  }

  /// Writes metadata for a Core Data store of an unknown model if none were found, since Core Data cannot open it
  /// without.
  private func noteMetadata() throws {
    guard let metadata = found.metadata else { return }
    for statement in StoreLayout.bookkeepingStatements where statement.contains(" Z_METADATA ") {
      try database.execute(sql: statement.replacing("CREATE TABLE ", with: "CREATE TABLE IF NOT EXISTS main."))
    }
    let columns = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info('Z_METADATA', 'main')")
    guard Set(["Z_VERSION", "Z_UUID", "Z_PLIST"]).isSubset(of: columns), try database.count("main.Z_METADATA") == 0
    else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
      arguments: [metadata.uuid, Data(try metadata.propertyListBytes())])
  }

  /// Recounts tables with set-aside or doubtful rows.
  private mutating func recount(_ doubtful: DoubtfulRows?) throws {
    let changed = Set(filled.account.setAside.map { $0.entity.lowercased() })
    for source in raw.all where !source.name.hasPrefix("lazaret_") {
      let isDoubtful = doubtful?.tables.contains(source.name.lowercased()) == true
      let own = found.ownName(source.name)
      guard isDoubtful || changed.contains(own.lowercased()) || changed.contains(source.name.lowercased()) else {
        continue
      }
      guard try database.hasTable(source.name) else { continue }
      let name = "main.\(SQLText.quotedIdentifier(source.name))"
      let count = try database.count(name)
      let doubts = try source.rowid.map { rowid in
        try doubtful?.counts(database, source.name, in: name, key: rowid, by: "1")[1] ?? [:]
      }
      filled.recounts.append(.init(name: source.name, table: source.name, recovered: count, doubts: doubts))
    }
  }

  // MARK: References

  /// Counts dangling references, and once each the missing rows.
  private mutating func countReferredTo() throws {
    let apart = Set(filled.account.setAside.map { $0.entity.lowercased() })
    let references = Dictionary(
      grouping: try Row.fetchAll(
        database,
        sql: """
          SELECT m.name, max(f."from"), lower(max(f."to")), lower(max(f."table"))
          FROM main.sqlite_master AS m, pragma_foreign_key_list(m.name, 'main') AS f
          WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' GROUP BY m.name, f.id HAVING count(*) = 1
          """)
    ) { row -> String in row[3] }
    for entity in found.report.entities {
      guard let source = raw[entity.table], let leading = references[source.name.lowercased()],
        let key = try primaryKey(of: source.name)
      else { continue }
      let column = SQLText.quotedIdentifier(key)
      var selections: [String] = []
      for reference in leading where reference[2] == nil || reference[2] == key.lowercased() {
        let (table, name): (String, String) = (reference[0], reference[1])
        guard try isOrdinary(name, of: table) else { continue }
        // `COLLATE BINARY` avoids the app's own collations, which this connection lacks.
        let value = "c.\(SQLText.quotedIdentifier(name))"
        let rows =
          "main.\(SQLText.quotedIdentifier(table)) AS c WHERE \(value) NOT NULL AND \(value) COLLATE BINARY NOT IN "
          + "(SELECT p.\(column) FROM main.\(SQLText.quotedIdentifier(source.name)) AS p WHERE p.\(column) NOT NULL)"
        let count = try database.count(rows)
        guard count > 0 else { continue }
        StoreAssembly.note(&filled.account.referencesLeft, table, name, count: count, keys: [])
        selections.append("SELECT \(value) COLLATE BINARY AS k FROM \(rows)")
      }
      guard !entity.isLostExact, !apart.contains(source.name.lowercased()), !selections.isEmpty else { continue }
      filled.referredTo[entity.name.lowercased()] = try database.count("(\(selections.joined(separator: " UNION ")))")
    }
  }

  /// Returns the single, ungenerated primary key column; else nil.
  private func primaryKey(of table: String) throws -> String? {
    let names = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE pk > 0 AND hidden = 0", arguments: [table])
    return names.count == 1 ? names[0] : nil
  }

  private func isOrdinary(_ column: String, of table: String) throws -> Bool {
    try database.hasRows(
      "pragma_table_xinfo(?, 'main') WHERE lower(name) = ? AND hidden = 0", [table, column.lowercased()])
  }
}
