internal import GRDB
internal import PersistentStore
internal import Platform

/// Checks a repair of records without trusting its set-aside file.
///
/// Old values must match the original, new ones the repaired store; the rest must be equal.
extension RepairVerification {
  func checkAside(_ database: Database) throws {
    guard aside != nil else { return }
    let tables = try String.fetchAll(
      database, sql: "SELECT name FROM aside.sqlite_master WHERE type = 'table' AND name LIKE ? ESCAPE '@'",
      arguments: ["lazaret@_set@_aside@_%"])
    var rows = 0
    for table in tables {
      rows += try Int.fetchOne(database, sql: "SELECT count(*) FROM aside.\(SQLText.quotedIdentifier(table))") ?? 0
    }
    let values = try Int.fetchOne(database, sql: "SELECT count(*) FROM aside.lazaret_values_changed") ?? 0
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
      let (name, key) = (SQLText.identifier(table), SQLText.identifier(column))
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
  func setAsideRows(
    of table: String, _ columns: [String], _ rowid: String, _ database: Database
  ) throws -> Int {
    let place = "lazaret_set_aside_\(table)"
    guard aside != nil,
      try Bool.fetchOne(
        database, sql: "SELECT count(*) > 0 FROM aside.sqlite_master WHERE name = ?", arguments: [place]) == true
    else { return 0 }
    let (name, kept) = (SQLText.quotedIdentifier(table), SQLText.quotedIdentifier(place))
    let conditions = columns.map { same($0, table) }
    let removed =
      try Int.fetchOne(
        database,
        sql: "SELECT count(*) FROM old.\(name) AS o JOIN aside.\(kept) AS n "
          + "ON n.lazaret_key = o.\(rowid) WHERE \(SQLText.all(conditions)) AND NOT EXISTS "
          + "(SELECT 1 FROM main.\(name) AS m WHERE m.\(rowid) = o.\(rowid))") ?? 0
    let all = try Int.fetchOne(database, sql: "SELECT count(*) FROM aside.\(kept)") ?? 0
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
    let name = SQLText.quotedIdentifier(column)
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
    let name = SQLText.quotedIdentifier(column)
    let old = renumbered(column, table) ?? "o.\(name)"
    return "(n.\(name) COLLATE BINARY IS \(old) COLLATE BINARY AND typeof(n.\(name)) = typeof(\(old)))"
  }
}
