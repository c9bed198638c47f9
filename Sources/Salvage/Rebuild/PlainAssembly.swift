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
  var aside: SetAsideRows
  var account: SalvageReport.Rebuild
  var remarks: [String] = []

  /// Whether a declaration is missing or changed.
  var lacksDeclarations = false

  var recounts: [SalvageReport.Recount] = []

  /// Missing referenced rows by lowercase table name, without other evidence of losses.
  private(set) var referredTo: [String: Int64] = [:]

  init(
    _ database: GRDB.Database, found: RawSalvage, store: NewStore?, account: SalvageReport.Rebuild
  ) throws {
    self.database = database
    self.found = found
    self.store = store
    self.account = account
    raw = try RawTables(database)
    aside = SetAsideRows(database)
  }

  mutating func run(tell: (Int64, Int64) throws -> Void) throws {
    let statements = found.statements.filter { !$0.isVirtual }
    var names = raw.all.map(\.name).filter { !$0.hasPrefix("lazaret_") }.map(found.ownName)
    let known = Set(names.map { $0.lowercased() })
    names += statements.filter { $0.kind == "table" && !known.contains($0.name.lowercased()) }.map(\.name)
    let doubtful =
      found.report.hasDoubts
      ? try DoubtfulRows(database, raw, made: Set(store?.tables.keys.map(\.self) ?? [])) : nil
    var plain = try PlainTables(database, raw, doubtful, store, found)
    let byTable = Dictionary(grouping: statements.filter { ["table", "index"].contains($0.kind) }) { statement in
      (statement.kind == "table" ? statement.name : statement.table).lowercased()
    }
    for (index, name) in names.enumerated() {
      account.setAside += try plain.make([name], by: byTable[name.lowercased()] ?? [], &aside)
      try tell(Int64(index + 1), Int64(names.count))
    }
    try plain.makeRest(statements, virtual: found.entries.filter { $0.kind == .table }, sequences: found.sequences)
    remarks += plain.remarks + plain.conversions
    recounts += plain.recounts
    lacksDeclarations = !plain.remarks.isEmpty
    if let header = found.header, header.hasMagic {
      try database.execute(sql: "PRAGMA main.user_version = \(header.userVersion)")
      try database.execute(
        sql: "PRAGMA main.application_id = \(Int32(bitPattern: header.applicationID))")
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
    guard Set(["Z_VERSION", "Z_UUID", "Z_PLIST"]).isSubset(of: columns),
      try Int.fetchOne(database, sql: "SELECT count(*) FROM main.Z_METADATA") == 0
    else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
      arguments: [metadata.uuid, Data(try metadata.propertyListBytes())])
  }

  // MARK: References

  /// Counts dangling references, and once each the missing rows.
  private mutating func countReferredTo() throws {
    let apart = Set(account.setAside.map { $0.entity.lowercased() })
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
          "FROM main.\(SQLText.quotedIdentifier(table)) AS c WHERE \(value) NOT NULL AND \(value) COLLATE BINARY NOT IN "
          + "(SELECT p.\(column) FROM main.\(SQLText.quotedIdentifier(source.name)) AS p WHERE p.\(column) NOT NULL)"
        let count = try Int64.fetchOne(database, sql: "SELECT count(*) \(rows)") ?? 0
        guard count > 0 else { continue }
        account.referencesLeft.append(
          SalvageReport.Rebuild.Repair(entity: table, property: name, reason: nil, count: count, primaryKeys: []))
        selections.append("SELECT \(value) COLLATE BINARY AS k \(rows)")
      }
      guard !entity.isLostExact, !apart.contains(source.name.lowercased()), !selections.isEmpty else { continue }
      referredTo[entity.name.lowercased()] =
        try Int64.fetchOne(
          database, sql: "SELECT count(*) FROM (\(selections.joined(separator: " UNION ")))") ?? 0
    }
  }

  /// Returns the single, ungenerated primary key column; else nil.
  private func primaryKey(of table: String) throws -> String? {
    let names = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE pk > 0 AND hidden = 0", arguments: [table])
    return names.count == 1 ? names[0] : nil
  }

  private func isOrdinary(_ column: String, of table: String) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM pragma_table_xinfo(?, 'main') WHERE lower(name) = ? AND hidden = 0)",
      arguments: [table, column.lowercased()]) == true
  }
}
