internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// The checks that a repaired copy must pass before it may take the place of its original.
///
/// Nothing of what the repair did counts here: both files are looked at anew, through connections that change neither.
struct RepairVerification {
  let layout: StoreLayout

  /// What the repair says of itself: only what it tells may differ.
  let account: RepairAccount

  /// Whether records got the numbers of the model, and which ones, by table.
  let renumberings: [String: [Int: Int]]

  /// What a repair of records has taken out; nil where records were not repaired.
  let aside: FilePath?

  /// Checks the copy.
  ///
  /// - Parameters:
  ///   - target: the repaired copy.
  ///   - source: what it is a copy of.
  /// - Throws: `migration-verification-failed`.
  func check(_ target: FilePath, against source: FilePath) throws(MigrationError) {
    let connection = try StepConnection(target, .immutable, attaching: [source] + (aside.map { [$0] } ?? []))
    try connection.read { database in
      try database.execute(
        sql: "ATTACH DATABASE ? AS old", arguments: [WorkingConnection.address(source, .immutable)])
      if let aside {
        try database.execute(
          sql: "ATTACH DATABASE ? AS aside", arguments: [WorkingConnection.address(aside, .immutable)])
      }
      try checkDrift(database)
      try checkObjects(database)
      try checkMetadata(database)
      let tables = try String.fetchAll(
        database,
        sql: """
          SELECT name FROM old.sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT IN
          ('Z_PRIMARYKEY', 'Z_METADATA', 'Z_MODELCACHE') ORDER BY name
          """)
      for table in tables { try checkRows(of: table, database) }
    }
    try connection.close()
  }

  private func failed(_ detail: String) -> MigrationError {
    MigrationError(.verificationFailed, operation: "verify the repaired store", detail: detail)
  }

  // MARK: What must be there

  /// Everything that the model wants is there, apart from what was told as left out.
  private func checkDrift(_ database: Database) throws {
    let leftOut = Set(account.leftOut.map(\.name))
    let rest = try StoreDrift(in: database, of: layout).differences.filter { difference in
      guard case .missingIndex(let index) = difference else { return true }
      return !leftOut.contains(index.name)
    }
    guard let first = rest.first else { return }
    throw failed("it still lacks something: \(first.words)" + (rest.count > 1 ? " (and \(rest.count - 1) more)" : ""))
  }

  /// Every table, index, trigger and view that was there is there as it was; tables may have got columns.
  private func checkObjects(_ database: Database) throws {
    let lost = try Row.fetchAll(
      database,
      sql: """
        SELECT o.type, o.name FROM old.sqlite_master AS o WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_master AS n
        WHERE n.type = o.type AND n.name = o.name AND n.tbl_name = o.tbl_name AND (n.sql IS o.sql OR o.type = 'table'))
        """)
    if let first = lost.first {
      let values = Array(first.databaseValues).map { String.fromDatabaseValue($0) ?? "" }
      throw failed("\(printable(values[0])) \(printable(values[1])) is not as it was")
    }
    let columns = try Int.fetchOne(
      database,
      sql: """
        SELECT count(*) FROM old.sqlite_master AS t, pragma_table_xinfo(t.name, 'old') AS o WHERE t.rootpage > 0
        AND t.type = 'table' AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name, 'main') AS n WHERE n.cid = o.cid AND n.name = o.name
        AND n.type = o.type AND n."notnull" = o."notnull" AND n.dflt_value IS o.dflt_value AND n.pk = o.pk)
        """)
    guard columns == 0 else { throw failed("\(columns ?? 0) columns are not as they were") }
  }

  /// The metadata is the same to the byte; rows of `Z_PRIMARYKEY` that are the framework's own stay, and no highest key falls.
  private func checkMetadata(_ database: Database) throws {
    let differing = try Int.fetchOne(
      database,
      sql: """
        SELECT (SELECT count(*) FROM (SELECT * FROM old.Z_METADATA EXCEPT SELECT * FROM main.Z_METADATA))
        + (SELECT count(*) FROM (SELECT * FROM main.Z_METADATA EXCEPT SELECT * FROM old.Z_METADATA))
        """)
    guard differing == 0 else { throw failed("its metadata is not as it was") }
    guard
      try Bool.fetchOne(database, sql: "SELECT count(*) > 0 FROM old.sqlite_master WHERE name = 'Z_PRIMARYKEY'") == true
    else { return }
    let fallen = try Int.fetchOne(
      database,
      sql: """
        SELECT (SELECT count(*) FROM (SELECT * FROM old.Z_PRIMARYKEY WHERE Z_ENT > \(StoreRebuild.firstReservedNumber)
        EXCEPT SELECT * FROM main.Z_PRIMARYKEY)) + (SELECT count(*) FROM old.Z_PRIMARYKEY AS o JOIN main.Z_PRIMARYKEY AS n
        ON n.Z_NAME = o.Z_NAME WHERE n.Z_MAX < o.Z_MAX)
        """)
    guard fallen == 0 else { throw failed("rows of Z_PRIMARYKEY have gone, or their highest keys have fallen") }
  }

  // MARK: Rows

  /// Every row of a table of the original is there with every value.
  private func checkRows(of table: String, _ database: Database) throws {
    let name = SQLText.quotedIdentifier(table)
    let columns = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?, 'old') WHERE hidden = 0 ORDER BY cid", arguments: [table])
    let hasRowids =
      try Bool.fetchOne(
        database, sql: "SELECT wr = 0 FROM pragma_table_list(?) WHERE schema = 'old'", arguments: [table])
      ?? false
    let taken = Set(columns.map { $0.lowercased() })
    let before = try Int.fetchOne(database, sql: "SELECT count(*) FROM old.\(name)") ?? 0
    let after = try Int.fetchOne(database, sql: "SELECT count(*) FROM main.\(name)") ?? 0
    guard hasRowids, let rowid = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) }) else {
      let list = columns.map(SQLText.quotedIdentifier).joined(separator: ", ")
      let lost =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM (SELECT \(list) FROM old.\(name) EXCEPT SELECT \(list) FROM main.\(name))") ?? 0
      guard before == after, lost == 0 else { throw differs(table, before - after + lost) }
      return
    }
    let kept =
      try Int.fetchOne(
        database,
        sql: "SELECT count(*) FROM old.\(name) AS o CROSS JOIN main.\(name) AS n ON n.\(rowid) = o.\(rowid) "
          + "WHERE \(SQLText.all(columns.map { condition($0, table, rowid) }))") ?? 0
    let removed = try setAsideRows(of: table, columns, rowid, database)
    guard kept == after, kept + removed == before else { throw differs(table, before - kept - removed) }
  }

  private func differs(_ table: String, _ rows: Int) -> MigrationError {
    failed("\(rows) rows of table \(printable(table)) are not as they were")
  }

  /// The rows of a table that are there no more, and lie with every value among what was set aside.
  private func setAsideRows(
    of table: String, _ columns: [String], _ rowid: String, _ database: Database
  ) throws -> Int {
    let place = "lazaret_set_aside_\(table)"
    guard aside != nil,
      try Bool.fetchOne(
        database, sql: "SELECT count(*) > 0 FROM aside.sqlite_master WHERE name = ?", arguments: [place]) == true
    else { return 0 }
    let name = SQLText.quotedIdentifier(table)
    let conditions = columns.map { condition($0, table, nil) }
    return try Int.fetchOne(
      database,
      sql: "SELECT count(*) FROM old.\(name) AS o JOIN aside.\(SQLText.quotedIdentifier(place)) AS n "
        + "ON n.lazaret_key = o.\(rowid) WHERE \(SQLText.all(conditions)) AND NOT EXISTS "
        + "(SELECT 1 FROM main.\(name) AS m WHERE m.\(rowid) = o.\(rowid))") ?? 0
  }

  /// That a value is the same, byte by byte and of the same class.
  ///
  /// - Parameter rowid: how the row is called; with it, a value that was noted as changed, as it was, may be another.
  private func condition(_ column: String, _ table: String, _ rowid: String?) -> String {
    let name = SQLText.quotedIdentifier(column)
    let old = renumbered(column, table) ?? "o.\(name)"
    let same = "(n.\(name) COLLATE BINARY IS \(old) COLLATE BINARY AND typeof(n.\(name)) = typeof(o.\(name)))"
    guard aside != nil, let rowid else { return same }
    let (inTable, ofColumn) = (SQLText.literal(table), SQLText.literal(column))
    return "(\(same) OR EXISTS (SELECT 1 FROM aside.lazaret_values_changed AS c WHERE c.\"table\" = \(inTable) "
      + "AND c.\"column\" = \(ofColumn) AND c.\"row\" = o.\(rowid) AND c.\"before\" IS \(old)))"
  }

  /// The number that a record's entity has now; nil for other columns.
  private func renumbered(_ column: String, _ table: String) -> String? {
    guard !renumberings.isEmpty, let role = layout.role(ofColumn: column, table: table) else { return nil }
    var hierarchy: String?
    switch role {
    case .entityNumber: hierarchy = table
    case .toOneEntity(let key):
      hierarchy = layout.model.entities[key.entityName]?.properties[key.name]?.relationship
        .flatMap { layout.entity(named: $0.destinationEntityName)?.tableName }
    default: return nil
    }
    guard let numbers = hierarchy.flatMap({ renumberings[$0] }) else { return nil }
    let name = "o.\(SQLText.quotedIdentifier(column))"
    let cases = numbers.sorted { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
    return "CASE \(name) \(cases) ELSE \(name) END"
  }
}
