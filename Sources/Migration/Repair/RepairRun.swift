internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Adds missing model parts to a copy in one transaction.
///
/// `ALTER TABLE … ADD COLUMN` puts columns last; Core Data addresses them by name (format section 3.5) and does the
/// same.
struct RepairRun {
  let database: Database
  let layout: StoreLayout
  let side: InferenceSide

  let rules: RecordRules

  let found: SQLSchema

  let drift: StoreDrift

  /// The values of added columns by table, written together because each record is rewritten.
  var fillings: [Filling] = []

  var account: RepairAccount

  var renumberings: [String: Renumbering] = [:]

  /// The filled attributes, so that dropping them later is no loss.
  var made = MadeValues()

  /// The values for some entities of a table.
  struct Filling: Hashable {
    let table: String
    let column: String

    let expression: String

    /// Nil for all.
    let numbers: [Int]?
  }

  init(_ database: Database, _ entry: LayoutCache.Entry, version: String?, scope: RepairScope) throws {
    self.database = database
    layout = entry.layout
    side = entry.side
    rules = RecordRules(entry.layout)
    found = try SQLSchema(database)
    drift = try StoreDrift(in: database, of: entry.layout)
    account = RepairAccount(version: version, scope: scope)
  }

  /// Repairs the copy atomically, without syncing.
  ///
  /// - Throws: `repair-refused` if it would need guessing, or SQLite's error.
  mutating func run() throws {
    try database.execute(sql: "BEGIN")
    do {
      // App triggers must not run during changes; they are restored.
      for name in found.triggers.keys.sorted() { try database.execute(sql: "DROP TRIGGER \(name.quotedName)") }
      try completeBookkeeping()
      try resolveNumbers()
      try renumberRecords()
      try addTables()
      try addColumns()
      try fillColumns()
      try completePrimaryKeys()
      try replaceModelCache()
      try makeAsideTable()
      try repairRecords()
      try addIndexes()
      try computeDerivedValues()
      try restoreTriggers()
      try addTriggers()
      tellRemarks()
      try tellDangling()
      try tellLostRecords()
      try countRows()
      try database.execute(sql: "COMMIT")
    } catch {
      // Report the first error only; the copy is discarded.
      try? database.execute(sql: "ROLLBACK")
      if let error = error as? DatabaseError, error.resultCode == .SQLITE_CONSTRAINT {
        throw Self.refused(
          "a constraint that the store declares, such as CHECK, UNIQUE or NOT NULL, refuses what the repair would write",
          hint: "Drop the constraint in a copy of the store, then repair that; this store is as it was.")
      }
      throw error
    }
  }

  mutating func note(_ kind: RepairAccount.Kind, in table: String, _ name: String, rows: Int? = nil, _ text: String) {
    account.changes.append(.init(kind: kind, table: table, name: name, rows: rows, text: text))
  }

  mutating func leaveOut(
    _ kind: RepairAccount.Kind, in table: String, _ name: String, rows: Int? = nil, examples: [Int64] = [],
    _ text: String
  ) {
    account.leftOut.append(.init(kind: kind, table: table, name: name, rows: rows, examples: examples, text: text))
  }

  /// Notes a change of records, if there are any.
  mutating func note(
    _ kind: RepairAccount.Kind, in table: String, _ name: String, changed rows: Int, _ text: @autoclosure () -> String
  ) {
    if rows > 0 { note(kind, in: table, name, rows: rows, text()) }
  }

  /// Reports remaining rows with ten keys.
  ///
  /// - Parameters:
  ///   - place: The table, and the condition on its rows.
  ///   - key: The key column, if any.
  /// - Returns: Their number.
  @discardableResult
  mutating func leaveOut(
    _ kind: RepairAccount.Kind, in table: String, _ name: String, rowsOf place: String, key: String? = "Z_PK",
    _ words: (Int) -> String
  ) throws -> Int {
    let rows = try database.count(from: place)
    guard rows > 0 else { return 0 }
    let examples = try key.map { try database.examples(from: place, key: $0) }
    leaveOut(kind, in: table, name, rows: rows, examples: examples ?? [], words(rows))
    return rows
  }

  static func refused(_ detail: String, hint: String? = nil) -> MigrationError {
    MigrationError(.repairRefused, operation: MigrationErrorKind.repairOperation, detail: detail, hint: hint)
  }

  /// A table of the copy, ignoring case.
  func foundTable(_ name: String) -> SQLTable? {
    if let table = found.tables[name] { return table }
    return found.tables.values.first { $0.name.uppercased() == name.uppercased() }
  }

  func hadColumn(_ column: String, in table: String) -> Bool {
    foundTable(table)?.columns.contains { $0.name.uppercased() == column.uppercased() } == true
  }

  func rows(of table: String) throws -> Int { try database.count(from: table.sqlName) }

  mutating func countRows() throws { account.rows = try layout.tables.reduce(0) { $0 + (try rows(of: $1.name)) } }

  // MARK: Tables

  private mutating func addTables() throws {
    for difference in drift.differences {
      let (kind, name): (RepairAccount.Kind, String)
      switch difference {
      case .missingTable(let table): (kind, name) = (.table, table.name)
      case .missingJoinTable(let table): (kind, name) = (.joinTable, table.name)
      case .missingBookkeepingTable(let table, _): (kind, name) = (.table, table)
      case .missingBookkeepingColumn, .otherBookkeepingTable, .missingColumn, .missingJoinColumn, .missingIndex,
        .missingSpatialIndex, .missingTrigger, .missingKeyRow, .otherEntityNumber, .otherParentNumber, .otherEntityName,
        .lowKeyMaximum, .otherNumbersInRows, .missingNumbersInRows, .otherModelCached:
        continue
      }
      guard let statement = difference.statement else { continue }
      try refuseTaken(name)
      try database.execute(sql: statement)
      if case .missingJoinTable(let table) = difference {
        try fillAdded(table)
      } else {
        note(kind, in: name, name, "table \(printable(name)) is added, empty")
      }
    }
  }

  /// Fills a join table from one with other entity numbers; without one the pairs are lost.
  private mutating func fillAdded(_ table: JoinTableLayout) throws {
    let place = "join table \(printable(table.name))"
    let others = found.tables.values.filter { other in
      !other.isVirtual && Self.withoutNumber(other.name) == Self.withoutNumber(table.name)
        && !layout.tableNames.contains { $0.uppercased() == other.name.uppercased() }
        && Set(other.columns.map { Self.withoutNumber($0.name) }) == Set(table.columns.map(Self.withoutNumber))
        && other.columns.count == table.columns.count
    }
    // Columns that differ only in number are ambiguous.
    let isClear = Set(table.columns.map(Self.withoutNumber)).count == table.columns.count
    guard isClear, others.count == 1, let other = others.first else {
      note(.joinTable, in: table.name, table.name, "\(place) is added, empty")
      let ends = [table.relationship, table.inverse].compactMap { layout.entity(named: $0.entityName)?.tableName }
      guard try ends.allSatisfy({ name in try foundTable(name) != nil && rows(of: name) > 0 }) else { return }
      leaveOut(
        .lostRecords, in: table.name, table.name,
        "\(place) was missing; the pairs of \(printable(table.relationship.description)) that were in it are lost")
      return
    }
    let columns = table.columns.compactMap { column in
      other.columns.first { Self.withoutNumber($0.name) == Self.withoutNumber(column) }.map { (column, $0.name) }
    }
    try database.execute(
      sql: "INSERT OR IGNORE INTO \(table.name.sqlName) (\(columns.map { $0.0.sqlName }.joined(separator: ", "))) "
        + "SELECT \(columns.map { $0.1.quotedName }.joined(separator: ", ")) FROM \(other.name.quotedName)")
    let pairs = try rows(of: table.name)
    note(
      .joinTable, in: table.name, table.name, rows: pairs,
      "\(place) is added, with the \(counted(pairs, "pair")) of table \(printable(other.name)), "
        + "which has another entity number in its name and stays")
  }

  /// A join table's or column's name without entity number: `TOYS` for `Z_3TOYS`.
  private static func withoutNumber(_ name: String) -> String {
    let upper = name.uppercased()
    for prefix in ["Z_FOK_", "Z_"] where upper.hasPrefix(prefix) {
      let rest = upper.dropFirst(prefix.count)
      let bare = rest.drop { $0.isASCII && $0.isNumber }
      if bare.count < rest.count { return prefix + bare }
    }
    return upper
  }

  /// Rejects a taken name; tables, views and indexes share a namespace.
  private func refuseTaken(_ name: String) throws {
    guard let kind = try database.kind(ofObject: name) else { return }
    throw Self.refused(
      "table \(printable(name)) is missing, and \(kind == "index" ? "an index" : "a \(printable(kind))") has its name",
      hint: "Drop what has the name of the table, then run the same command again.")
  }

  // MARK: Triggers

  private func restoreTriggers() throws {
    for (name, statement) in found.triggers.ordered(by: { $0.key < $1.key }) {
      do {
        // Run one statement only: a file may contain several.
        try database.makeStatement(sql: statement).execute()
      } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR || error.resultCode == .SQLITE_MISUSE {
        throw Self.refused(
          "trigger \(printable(name)) of the app's cannot be made again",
          hint: "Drop the trigger before the repair and make it again afterwards.")
      }
    }
  }

  private mutating func addTriggers() throws {
    for case .missingTrigger(let trigger) in drift.differences {
      try database.execute(sql: trigger.statement)
      note(
        .trigger, in: trigger.tableName, trigger.name,
        "trigger \(printable(trigger.name)) of table \(printable(trigger.tableName)) is added")
    }
  }

  // MARK: Reports

  /// Reports problems no repair changes, such as app columns that block inserts.
  mutating func tellRemarks() {
    for remark in drift.remarks {
      switch remark {
      case .mandatoryColumn(let table, let column): leaveOut(.appColumn, in: table, column, remark.words)
      case .otherType(let table, let column, _, _): leaveOut(.column, in: table, column, remark.words)
      case .otherPrimaryKey(let table, _): leaveOut(.otherObject, in: table, table, remark.words)
      case .otherObject(let name, _): leaveOut(.otherObject, in: name, name, remark.words)
      }
    }
  }

  /// Reports whether added tables had records, by the highest key in the bookkeeping.
  private mutating func tellLostRecords() throws {
    for case .missingTable(let table) in drift.differences {
      guard let root = layout.entities.first(where: { $0.isRoot && $0.tableName == table.name }),
        let highest = try Int64.fetchOne(
          database, sql: "SELECT max(Z_MAX) FROM Z_PRIMARYKEY WHERE Z_NAME = ? AND typeof(Z_MAX) = 'integer'",
          arguments: [root.name]), highest > 0
      else { continue }
      leaveOut(
        .lostRecords, in: table.name, table.name,
        "table \(printable(table.name)) was missing; the records that were in it are likely lost, "
          + "\(highest == 1 ? "one" : "\(grouped(highest))") at most by the highest key that was given")
    }
  }

  /// Reports dangling references and pairs; only a repair of records cuts them.
  mutating func tellDangling() throws {
    guard account.scope == .structure else { return }
    for reference in rules.references {
      let place = RecordRules.rows(reference.table, where: reference.leadsNowhere)
      try leaveOut(.danglingReference, in: reference.table, reference.column, rowsOf: place) { rows in
        "\(counted(rows, "reference")) of \(printable(reference.key.description)) \(rows == 1 ? "leads" : "lead") to no "
          + "record; a repair of records cuts \(rows == 1 ? "it" : "them")"
      }
    }
    for pairs in rules.pairs {
      let place = RecordRules.rows(pairs.join.name, where: pairs.leadNowhere)
      try leaveOut(.danglingPair, in: pairs.join.name, pairs.join.name, rowsOf: place, key: nil) { rows in
        "\(counted(rows, "pair")) of \(printable(pairs.join.relationship.description)) "
          + "\(rows == 1 ? "leads" : "lead") to no record; a repair of records sets \(rows == 1 ? "it" : "them") aside"
      }
    }
  }
}

extension StoreDrift {
  /// Compares an open store with its own model.
  init(in database: Database, of layout: StoreLayout) throws {
    self.init(
      of: try StoreOutline(database, layout: layout), to: layout, hashes: layout.model.versionHashes())
  }
}
