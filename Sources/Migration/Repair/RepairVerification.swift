internal import GRDB
import ManagedObjectModel
package import PersistentStore
internal import Platform
package import SystemPackage

/// The checks of a repaired copy before it replaces the original.
///
/// They share no results with the repair and only read.
package struct RepairVerification {
  let layout: StoreLayout

  /// The repair's account; only what it reports may differ.
  let account: RepairAccount

  let renumberings: [String: Renumbering]

  /// Nil if records were not repaired.
  let aside: FilePath?

  package init(
    layout: StoreLayout, account: RepairAccount, renumberings: [String: Renumbering] = [:], aside: FilePath?
  ) {
    self.layout = layout
    self.account = account
    self.renumberings = renumberings
    self.aside = aside
  }

  /// Checks the copy against its source.
  ///
  /// - Throws: `migration-verification-failed`.
  package func check(_ target: FilePath, against source: FilePath) throws {
    let connection = try StepConnection(target, .immutable, attaching: [source] + (aside.map { [$0] } ?? []))
    try connection.read { database in
      try WorkingConnection.attach(source, .immutable, as: "old", to: database)
      if let aside { try WorkingConnection.attach(aside, .immutable, as: "aside", to: database) }
      try checkDrift(database)
      try checkObjects(database)
      try checkMetadata(database)
      try checkNumbers(database)
      try checkAside(database)
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

  func failed(_ detail: String) -> MigrationError {
    MigrationError(.verificationFailed, operation: "verify the repaired store", detail: detail)
  }

  // MARK: Completeness

  /// Checks that the model is complete except for reported parts.
  private func checkDrift(_ database: Database) throws {
    let leftOut = Set(account.leftOut.map(\.name))
    let rest = try StoreDrift(in: database, of: layout).differences.filter { difference in
      guard case .missingIndex(let index) = difference, leftOut.contains(index.name) else { return true }
      return try !cannotBeAdded(index, database)
    }
    guard let first = rest.first else { return }
    throw failed("it still lacks something: \(first.words)" + more(than: rest.count))
  }

  /// Whether a left-out index has to be: a taken name, or duplicate values.
  private func cannotBeAdded(_ index: IndexLayout, _ database: Database) throws -> Bool {
    if try database.kind(ofObject: index.name) != nil { return true }
    guard index.isUnique else { return false }
    return try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM main.\(index.tableName.sqlName) WHERE \(index.isFilled) "
        + "GROUP BY \(index.columnList) HAVING count(*) > 1)") ?? false
  }

  /// Checks new entity numbers by the original's `Z_PRIMARYKEY` or the table's only entity.
  private func checkNumbers(_ database: Database) throws {
    for (table, renumbering) in renumberings {
      guard let root = layout.entities.first(where: { $0.isRoot && $0.tableName == table }) else {
        throw failed("table \(printable(table)) holds no entity")
      }
      let mistake = failed("records of table \(printable(table)) have got the number of another entity")
      if let sole = renumbering.sole {
        guard sole == layout.soleNumber(ofRoot: root.name) else { throw mistake }
        continue
      }
      for (before, after) in renumbering.numbers {
        let name = try String.fetchOne(
          database, sql: "SELECT Z_NAME FROM old.Z_PRIMARYKEY WHERE Z_ENT = ?", arguments: [before])
        let entity = layout.entity(numbered: after)
        let former = entity.flatMap { layout.model.entities[$0.name]?.renamingIdentifier }
        guard let entity, root.numbers.contains(after), let name, name == entity.name || name == former else {
          throw mistake
        }
      }
    }
  }

  /// The tables that may be recreated: bookkeeping and empty join tables.
  private var remadeTables: String {
    let names = account.changes.filter { $0.kind == .remadeTable }.map(\.table).filter { name in
      StoreLayout.bookkeepingTableNames.contains(name) || layout.joinTables.contains { $0.name == name }
    }
    return "(" + names.map(SQLText.literal).joined(separator: ", ") + ")"
  }

  /// Checks that every table, index, trigger and view is unchanged but for added columns.
  private func checkObjects(_ database: Database) throws {
    let remade = remadeTables
    let lost = try Row.fetchAll(
      database,
      sql: """
        SELECT o.type, o.name FROM old.sqlite_master AS o WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_master AS n
        WHERE n.type = o.type AND n.name = o.name AND n.tbl_name = o.tbl_name AND (n.sql IS o.sql OR o.type = 'table'))
        AND NOT (o.sql IS NULL AND o.tbl_name IN \(remade))
        """)
    if let first = lost.first {
      let values = Array(first.databaseValues).map { String.fromDatabaseValue($0) ?? "" }
      throw failed("\(printable(values[0])) \(printable(values[1])) is not as it was")
    }
    let columns = try Int.fetchOne(
      database,
      sql: """
        SELECT count(*) FROM old.sqlite_master AS t, pragma_table_xinfo(t.name, 'old') AS o WHERE t.rootpage > 0
        AND t.type = 'table' AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name, 'main') AS n WHERE n.name = o.name
        AND (t.name IN \(remade) OR n.cid = o.cid AND n.type = o.type AND n."notnull" = o."notnull"
        AND n.dflt_value IS o.dflt_value AND n.pk = o.pk))
        """)
    guard columns == 0 else { throw failed("\(columns ?? 0) columns are not as they were") }
  }

  /// Checks that metadata and framework rows of `Z_PRIMARYKEY` are unchanged and no highest key falls.
  private func checkMetadata(_ database: Database) throws {
    let metadata = try list(["Z_UUID", "Z_PLIST"], of: "Z_METADATA", database).joined(separator: ", ")
    let differing = try Int.fetchOne(
      database,
      sql: """
        SELECT (SELECT count(*) FROM (SELECT \(metadata) FROM old.Z_METADATA EXCEPT SELECT \(metadata) FROM main.Z_METADATA))
        + (SELECT count(*) FROM (SELECT \(metadata) FROM main.Z_METADATA EXCEPT SELECT \(metadata) FROM old.Z_METADATA))
        + abs((SELECT count(*) FROM old.Z_METADATA) - (SELECT count(*) FROM main.Z_METADATA))
        """)
    guard differing == 0 else { throw failed("its metadata is not as it was") }
    let keys = try list(["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"], of: "Z_PRIMARYKEY", database)
    guard !keys.isEmpty else { return }
    let values = keys.map { $0 == "Z_NAME" ? $0 : "ifnull(CAST(\($0) AS INTEGER), 0)" }.joined(separator: ", ")
    var fallen = try database.count(
      from: keys.contains("Z_ENT")
        ? "(SELECT \(values) FROM old.Z_PRIMARYKEY WHERE CAST(Z_ENT AS INTEGER) > \(StoreRebuild.firstReservedNumber) "
          + "EXCEPT SELECT \(values) FROM main.Z_PRIMARYKEY)"
        : "old.Z_PRIMARYKEY WHERE Z_NAME NOT IN (SELECT Z_NAME FROM main.Z_PRIMARYKEY)")
    if keys.contains("Z_NAME"), keys.contains("Z_MAX") {
      fallen += try database.count(
        from: "old.Z_PRIMARYKEY AS o JOIN main.Z_PRIMARYKEY AS n ON n.Z_NAME = o.Z_NAME "
          + "WHERE n.Z_MAX < CAST(o.Z_MAX AS INTEGER)")
    }
    guard fallen == 0 else { throw failed("rows of Z_PRIMARYKEY have gone, or their highest keys have fallen") }
  }

  private func list(_ columns: [String], of table: String, _ database: Database) throws -> [String] {
    let found = try String.fetchAll(
      database,
      sql: "SELECT upper(c.name) FROM old.sqlite_master AS t, pragma_table_info(t.name, 'old') AS c WHERE t.name = ? "
        + "AND t.type = 'table'", arguments: [table])
    return columns.filter(found.contains)
  }

  // MARK: Rows

  private func checkRows(of table: String, _ database: Database) throws {
    let name = table.quotedName
    let columns = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?, 'old') WHERE hidden = 0 ORDER BY cid", arguments: [table])
    let hasRowids = try database.hasRowids(table, in: "old") ?? false
    let taken = Set(columns.map { $0.lowercased() })
    let noted = try notedColumns(of: table, database)
    let (before, after) = (try database.count(from: "old.\(name)"), try database.count(from: "main.\(name)"))
    guard hasRowids, let rowid = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) }) else {
      let list = columns.map(\.quotedName).joined(separator: ", ")
      let lost = try database.count(
        from: "(SELECT \(list) FROM old.\(name) EXCEPT SELECT \(list) FROM main.\(name))")
      guard before == after, lost == 0 else { throw differs(table, before - after + lost) }
      return
    }
    let kept = try database.count(
      from: "old.\(name) AS o CROSS JOIN main.\(name) AS n ON n.\(rowid) = o.\(rowid) "
        + "WHERE \(SQLText.all(columns.map { condition($0, table, isNoted: noted.contains($0)) }))")
    let removed = try setAsideRows(of: table, columns, rowid, database)
    guard kept == after, kept + removed == before else { throw differs(table, before - kept - removed) }
  }

  private func differs(_ table: String, _ rows: Int) -> MigrationError {
    failed("\(rows) rows of table \(printable(table)) are not as they were")
  }

  /// The new number of a record's entity; nil for other columns.
  func renumbered(_ column: String, _ table: String) -> String? {
    guard !renumberings.isEmpty, let role = layout.role(ofColumn: column, table: table) else { return nil }
    var hierarchy: String?
    switch role {
    case .entityNumber: hierarchy = table
    case .toOneEntity(let key): hierarchy = layout.destination(of: key)?.tableName
    case .primaryKey, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneOrder, .owner, .ownerOrder: return nil
    }
    return hierarchy.flatMap { renumberings[$0] }?.sql(of: "o.\(column.quotedName)", isOwn: role == .entityNumber)
  }
}

/// Checks a repair of records without trusting its set-aside file.
///
/// Old values must match the original, new ones the repaired store; the rest must be equal.
extension RepairVerification {
  func checkAside(_ database: Database) throws {
    guard aside != nil else { return }
    let tables = try String.fetchAll(
      database, sql: "SELECT name FROM aside.sqlite_master WHERE type = 'table' AND name LIKE ? ESCAPE '@'",
      arguments: ["lazaret@_set@_aside@_%"])
    let rows = try tables.reduce(0) { try $0 + database.count(from: "aside.\(SQLText.quotedIdentifier($1))") }
    let values = try database.count(from: "aside.lazaret_values_changed")
    guard rows == account.setAsideRows, values == account.changedValues else {
      throw failed(
        "\(counted(rows, "row")) and \(counted(values, "value")) lie in the file of what was set aside, and "
          + "\(account.setAsideRows) and \(account.changedValues) were counted")
    }
    try checkNotes(database)
    try checkRules(database)
  }

  /// Checks that a value's notes are consecutive and end with the present value.
  private func checkNotes(_ database: Database) throws {
    let broken = try Int.fetchOne(
      database,
      sql: """
        SELECT count(*) FROM (SELECT "before" AS b, typeof("before") AS t, lag("after") OVER w AS a,
        lag(typeof("after")) OVER w AS u FROM aside.lazaret_values_changed
        WINDOW w AS (PARTITION BY "table", "column", "row" ORDER BY rowid)) WHERE u IS NOT NULL AND (b IS NOT a OR t <> u)
        """)
    guard broken == 0 else { throw failed("\(broken ?? 0) notes of changed values do not follow on each other") }
    let places = try Row.fetchAll(
      database, sql: "SELECT DISTINCT \"table\", \"column\" FROM aside.lazaret_values_changed ORDER BY 1, 2")
    for place in places {
      guard let table = String.fromDatabaseValue(place[0] as DatabaseValue),
        let column = String.fromDatabaseValue(place[1] as DatabaseValue),
        layout.table(named: table)?.column(named: column) != nil
      else { throw failed("a value is noted as changed in a place that the model has not") }
      let (name, key) = (table.sqlName, column.sqlName)
      let wrong =
        try Int.fetchOne(
          database,
          sql: """
            SELECT count(*) FROM aside.lazaret_values_changed AS c LEFT JOIN main.\(name) AS n ON n.Z_PK = c."row"
            WHERE c."table" = ? AND c."column" = ? AND NOT EXISTS (SELECT 1 FROM aside.lazaret_values_changed AS l
            WHERE l."table" = c."table" AND l."column" = c."column" AND l."row" = c."row" AND l.rowid > c.rowid)
            AND (n.Z_PK IS NULL OR n.\(key) COLLATE BINARY IS NOT c."after" OR typeof(n.\(key)) <> typeof(c."after"))
            """, arguments: [table, column]) ?? 0
      guard wrong == 0 else {
        throw failed(
          "\(counted(wrong, "value")) of column \(printable(column)) of table \(printable(table)) are not what was noted"
        )
      }
    }
  }

  /// Checks that only reported violations remain.
  private func checkRules(_ database: Database) throws {
    let told = Set(account.leftOut.map { "\($0.table).\($0.name)" })
    let constraints = RecordRules(layout).constraints.map(\.index)
    let left = try DataCheck(database, layout).findings.first { finding in
      switch finding.kind {
      case .missingValue: !finding.columns.allSatisfy { told.contains("\(finding.table).\($0)") }
      case .duplicate:
        !constraints.contains { index in
          index.tableName == finding.table && index.columns.map(\.name) == finding.columns
            && told.contains("\(index.tableName).\(index.name)")
        }
      case .duplicateKey, .wrongEntityNumber, .danglingReference, .oneSidedRelationship, .danglingJoinRow: true
      case .missingFile: false
      }
    }
    if let left { throw failed("it still breaks a rule: \(left.words)") }
  }

  /// The rows that are missing from a table and fully set aside.
  ///
  /// - Throws: `migration-verification-failed` for further set-aside rows.
  func setAsideRows(of table: String, _ columns: [String], _ rowid: String, _ database: Database) throws -> Int {
    let place = "lazaret_set_aside_\(table)"
    guard aside != nil,
      try Bool.fetchOne(
        database, sql: "SELECT count(*) > 0 FROM aside.sqlite_master WHERE name = ?", arguments: [place]) == true
    else { return 0 }
    let (name, kept) = (table.quotedName, place.quotedName)
    let conditions = columns.map { same($0, table) }
    let removed = try database.count(
      from: "old.\(name) AS o JOIN aside.\(kept) AS n ON n.lazaret_key = o.\(rowid) WHERE \(SQLText.all(conditions)) "
        + "AND NOT EXISTS (SELECT 1 FROM main.\(name) AS m WHERE m.\(rowid) = o.\(rowid))")
    let all = try database.count(from: "aside.\(kept)")
    guard all == removed else {
      throw failed(
        "\(counted(all - removed, "row")) set aside from table \(printable(table)) were not there, or still are")
    }
    return removed
  }

  func notedColumns(of table: String, _ database: Database) throws -> Set<String> {
    guard aside != nil else { return [] }
    return Set(
      try String.fetchAll(
        database, sql: "SELECT DISTINCT \"column\" FROM aside.lazaret_values_changed WHERE \"table\" = ?",
        arguments: [table]))
  }

  /// The condition that a value is unchanged, or changed as noted.
  ///
  /// - Parameter isNoted: Whether the file has notes on the column.
  func condition(_ column: String, _ table: String, isNoted: Bool) -> String {
    let same = same(column, table)
    guard isNoted else { return same }
    let name = column.quotedName
    let old = renumbered(column, table) ?? "o.\(name)"
    let notes =
      "FROM aside.lazaret_values_changed AS c WHERE c.\"table\" = \(SQLText.literal(table)) "
      + "AND c.\"column\" = \(SQLText.literal(column)) AND c.\"row\" = o.Z_PK"
    let first = "SELECT c.\"before\" IS \(old) COLLATE BINARY AND typeof(c.\"before\") = typeof(\(old)) \(notes)"
    let last = "SELECT c.\"after\" IS n.\(name) COLLATE BINARY AND typeof(c.\"after\") = typeof(n.\(name)) \(notes)"
    return "CASE WHEN EXISTS (SELECT 1 \(notes)) THEN (\(first) ORDER BY c.rowid LIMIT 1) "
      + "AND (\(last) ORDER BY c.rowid DESC LIMIT 1) ELSE \(same) END"
  }

  /// The condition of equal bytes and storage class.
  private func same(_ column: String, _ table: String) -> String {
    let name = column.quotedName
    let old = renumbered(column, table) ?? "o.\(name)"
    return "(n.\(name) COLLATE BINARY IS \(old) COLLATE BINARY AND typeof(n.\(name)) = typeof(\(old)))"
  }
}
