internal import GRDB
internal import PersistentStore
internal import Platform

/// The repair of a copy of a store, in one transaction on one connection: what the model promises and the copy lacks is
/// added, whatever else is there stays.
///
/// `ALTER TABLE … ADD COLUMN` puts columns last; Core Data addresses columns by name (format section 3.5), and a store that it
/// migrated in place has them last as well.
struct RepairRun {
  let database: Database
  let layout: StoreLayout
  let side: InferenceSide

  /// What the model asks of references and of values that must be unique.
  let rules: RecordRules

  /// The schema of the copy before the repair.
  let found: SQLSchema

  let drift: StoreDrift

  /// The records whose columns were added, by table: they get values together, because each is written anew.
  var fillings: [Filling] = []

  /// What has been done so far.
  var account: RepairAccount

  /// The numbers that records get which have others than the model's, by table.
  var renumberings: [String: Renumbering] = [:]

  /// Attributes that got values, so that no later step loses anything by dropping them again.
  var made = MadeValues()

  /// Values for the records of some entities of a table.
  struct Filling: Hashable {
    let table: String
    let column: String

    /// An expression over the table's own columns.
    let expression: String

    /// The numbers of the entities; nil for all records.
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

  /// Repairs the copy, altogether or not at all; nothing is pushed to the disk.
  ///
  /// - Throws: `repair-refused` for what cannot be made good without guessing, or what SQLite reports.
  mutating func run() throws {
    try database.execute(sql: "BEGIN")
    do {
      // No code of the app's runs while its rows get values; triggers come back as they were.
      let triggers = try dropTriggers()
      try completeBookkeeping()
      try resolveNumbers()
      try renumberRecords()
      try addTables()
      try addColumns()
      try fillColumns()
      try completePrimaryKeys()
      try replaceModelCache()
      try prepareAside()
      try repairRecords()
      try addIndexes()
      try computeDerivedValues()
      try restore(triggers)
      try addTriggers()
      tellRemarks()
      try tellDangling()
      try tellLostRecords()
      try countRows()
      try database.execute(sql: "COMMIT")
    } catch {
      // The first error is the one to report; the copy is thrown away.
      try? database.execute(sql: "ROLLBACK")
      if let error = error as? DatabaseError, error.resultCode == .SQLITE_CONSTRAINT {
        throw Self.refused(
          "a constraint that the store declares, such as CHECK, UNIQUE or NOT NULL, refuses what the repair would write",
          hint: "Drop the constraint in a copy of the store, then repair that; this store is as it was.")
      }
      throw error
    }
  }

  mutating func note(
    _ kind: RepairAccount.Kind, in table: String, _ name: String, rows: Int? = nil, _ text: String
  ) {
    account.changes.append(.init(kind: kind, table: table, name: name, rows: rows, text: text))
  }

  /// Notes what stays as it is.
  mutating func leaveOut(
    _ kind: RepairAccount.Kind, in table: String, _ name: String, rows: Int? = nil, examples: [Int64] = [],
    _ text: String
  ) {
    account.leftOut.append(.init(kind: kind, table: table, name: name, rows: rows, examples: examples, text: text))
  }

  /// Notes that rows stay as they are, with the keys of the first ten; nothing where there are none.
  ///
  /// - Parameters:
  ///   - place: the rows, as `FROM` and `WHERE` of a query.
  ///   - key: the column of their keys; nil where they have none.
  ///   - words: says it of so many rows.
  mutating func leaveOut(
    _ kind: RepairAccount.Kind, in table: String, _ name: String, rowsOf place: String, key: String? = "Z_PK",
    _ words: (Int) -> String
  ) throws {
    let rows = try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0
    guard rows > 0 else { return }
    let examples = try key.map { key in
      try Int64.fetchAll(database, sql: "SELECT \(key) \(place) ORDER BY \(key) LIMIT 10")
    }
    leaveOut(kind, in: table, name, rows: rows, examples: examples ?? [], words(rows))
  }

  /// The error for what cannot be repaired without guessing.
  static func refused(_ detail: String, hint: String? = nil) -> MigrationError {
    MigrationError(.repairRefused, operation: MigrationErrorKind.repairOperation, detail: detail, hint: hint)
  }

  /// A table of the copy, without regard to the case of letters.
  func foundTable(_ name: String) -> SQLTable? {
    if let table = found.tables[name] { return table }
    return found.tables.values.first { $0.name.uppercased() == name.uppercased() }
  }

  /// Whether the copy had a column.
  func hadColumn(_ column: String, in table: String) -> Bool {
    foundTable(table)?.columns.contains { $0.name.uppercased() == column.uppercased() } == true
  }

  /// The number of records of a table.
  func rows(of table: String) throws -> Int {
    try Int.fetchOne(database, sql: "SELECT count(*) FROM \(SQLText.identifier(table))") ?? 0
  }

  mutating func countRows() throws {
    account.rows = try layout.tables.reduce(0) { $0 + (try rows(of: $1.name)) }
  }

  // MARK: Tables

  /// Adds the tables of hierarchies, of many-to-many relationships and of the bookkeeping.
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

  /// Fills a join table that was added with the pairs of one that differs in the numbers of entities alone; where there is
  /// none, its pairs are lost.
  private mutating func fillAdded(_ table: JoinTableLayout) throws {
    let place = "join table \(printable(table.name))"
    let others = found.tables.values.filter { other in
      !other.isVirtual && Self.withoutNumber(other.name) == Self.withoutNumber(table.name)
        && !layout.tableNames.contains { $0.uppercased() == other.name.uppercased() }
        && Set(other.columns.map { Self.withoutNumber($0.name) }) == Set(table.columns.map(Self.withoutNumber))
        && other.columns.count == table.columns.count
    }
    // Columns that the number alone tells apart cannot be matched.
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
      sql: "INSERT OR IGNORE INTO \(SQLText.identifier(table.name)) "
        + "(\(columns.map { SQLText.identifier($0.0) }.joined(separator: ", "))) "
        + "SELECT \(columns.map { SQLText.quotedIdentifier($0.1) }.joined(separator: ", ")) "
        + "FROM \(SQLText.quotedIdentifier(other.name))")
    let pairs = try rows(of: table.name)
    note(
      .joinTable, in: table.name, table.name, rows: pairs,
      "\(place) is added, with the \(counted(pairs, "pair")) of table \(printable(other.name)), "
        + "which has another entity number in its name and stays")
  }

  /// The name of a join table or of its column without the number of an entity: `TOYS` for `Z_3TOYS`.
  private static func withoutNumber(_ name: String) -> String {
    let upper = name.uppercased()
    for prefix in ["Z_FOK_", "Z_"] where upper.hasPrefix(prefix) {
      let rest = upper.dropFirst(prefix.count)
      let bare = rest.drop { $0.isASCII && $0.isNumber }
      if bare.count < rest.count { return prefix + bare }
    }
    return upper
  }

  /// Refuses where something else has the name of a table: tables, views and indexes share their names.
  private func refuseTaken(_ name: String) throws {
    guard
      let kind = try String.fetchOne(
        database, sql: "SELECT type FROM sqlite_master WHERE upper(name) = upper(?) AND type <> 'trigger'",
        arguments: [name])
    else { return }
    throw Self.refused(
      "table \(printable(name)) is missing, and \(kind == "index" ? "an index" : "a \(printable(kind))") has its name",
      hint: "Drop what has the name of the table, then run the same command again.")
  }

  // MARK: Triggers

  private func dropTriggers() throws -> [String: String] {
    for name in found.triggers.keys.sorted() {
      try database.execute(sql: "DROP TRIGGER \(SQLText.quotedIdentifier(name))")
    }
    return found.triggers
  }

  /// Makes the triggers again that were there, word by word.
  private func restore(_ triggers: [String: String]) throws {
    for (name, statement) in triggers.ordered(by: { $0.key < $1.key }) {
      do {
        // One statement alone: a file may hold more in the place of one.
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

  // MARK: What is only told

  /// Tells what no repair changes, such as columns of the app's that keep the framework from inserting.
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

  /// Tells of each table that was added, empty, whether it had records: the bookkeeping knows the highest key that was given.
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

  /// Tells references and pairs that lead to no record, which only a repair of records cuts.
  mutating func tellDangling() throws {
    guard account.scope == .structure else { return }
    for reference in rules.references {
      let place = "FROM main.\(SQLText.identifier(reference.table)) AS o NOT INDEXED WHERE \(reference.leadsNowhere)"
      try leaveOut(.danglingReference, in: reference.table, reference.column, rowsOf: place) { rows in
        "\(counted(rows, "reference")) of \(printable(reference.key.description)) \(rows == 1 ? "leads" : "lead") to no "
          + "record; a repair of records cuts \(rows == 1 ? "it" : "them")"
      }
    }
    for pairs in rules.pairs {
      let place = "FROM main.\(SQLText.identifier(pairs.join.name)) AS o NOT INDEXED WHERE \(pairs.leadNowhere)"
      try leaveOut(.danglingPair, in: pairs.join.name, pairs.join.name, rowsOf: place, key: nil) { rows in
        "\(counted(rows, "pair")) of \(printable(pairs.join.relationship.description)) "
          + "\(rows == 1 ? "leads" : "lead") to no record; a repair of records sets \(rows == 1 ? "it" : "them") aside"
      }
    }
  }
}
