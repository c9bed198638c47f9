internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Salvage
internal import SystemPackage

/// A salvage's notes on found rows, indexed by row.
///
/// Rows stay where the salvage wrote them. Rows that are not live get keys below all live keys, so both can be read
/// together; the notes keep the original keys. Columns of relationships get indexes.
struct FoundRows {
  private let database: Database

  /// The tables of live rows, by number.
  private var live: [(id: Int64, table: SQLTable)] = []

  /// Arranges the private file written by a raw salvage.
  static func arrange(_ path: FilePath, model: ManagedObjectModel?) throws {
    let queue = try DatabaseQueue(path: PersistentStore.address(of: path, isReadOnly: false))
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -3072;
          PRAGMA foreign_keys = OFF
          """)
      try database.inTransaction {
        var rows = FoundRows(database: database)
        try rows.run(model)
        return .commit
      }
    }
    try queue.close()
  }

  private mutating func run(_ model: ManagedObjectModel?) throws {
    try makeTables()
    try listTables()
    try takeNotes()
    if let model {
      try makeIndexes(model)
      try database.execute(sql: "CREATE TABLE \(TableProvenance.model) (content BLOB)")
      try database.execute(
        sql: "INSERT INTO \(TableProvenance.model) VALUES (?)", arguments: [Data(try model.modelCache())])
    }
  }

  private func makeTables() throws {
    for name in [TableProvenance.tables, TableProvenance.rows, TableProvenance.places, TableProvenance.model] {
      try database.execute(sql: "DROP TABLE IF EXISTS \(name)")
    }
    try database.execute(
      sql: """
        CREATE TABLE \(TableProvenance.tables) (id INTEGER PRIMARY KEY, name TEXT UNIQUE, role TEXT, live INTEGER,
          below INTEGER, lowest INTEGER, noted INTEGER);
        CREATE TABLE \(TableProvenance.rows) (tbl INTEGER, k INTEGER, state TEXT, key INTEGER, page INTEGER, cell INTEGER,
          source TEXT, reason TEXT, PRIMARY KEY (tbl, k)) WITHOUT ROWID;
        CREATE TABLE \(TableProvenance.places) (tbl INTEGER, first INTEGER, last INTEGER, page INTEGER, source TEXT,
          found_by TEXT, certainty TEXT, reason TEXT)
        """)
  }

  // MARK: Tables

  /// Numbers the tables of live rows and of their other rows.
  private mutating func listTables() throws {
    let withRowid = try Set(
      String.fetchAll(database, sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 0"))
    let schema = try SQLSchema(database)
    for table in schema.tables.values.sorted(by: { $0.name < $1.name })
    where withRowid.contains(table.name) && !table.name.lowercased().hasPrefix("lazaret_") {
      try list(table, schema)
    }
  }

  private mutating func list(_ table: SQLTable, _ schema: SQLSchema) throws {
    guard let rowid = table.rowidName else { return }
    let lowest = try Int64.fetchOne(database, sql: "SELECT min(\(rowid)) FROM \(SQLText.quotedIdentifier(table.name))")
    try database.execute(
      sql: "INSERT INTO \(TableProvenance.tables) (name, role, lowest) VALUES (?, ?, ?)",
      arguments: [table.name, OutputRole.live.rawValue, lowest ?? 1])
    let id = database.lastInsertedRowID
    live.append((id, table))
    var below = min(0, lowest ?? 0)
    // A store may hold any key; without room for lower keys or a key column, rows stay separate.
    guard below > Int64.min / 2, table.columns.count + 2 <= PageStatement.mostColumns else { return }
    for role in [OutputRole.other, .deleted] {
      guard let apart = schema.tables[role.name(table.name)], let apartRowid = apart.rowidName,
        table.sharesColumns(with: apart),
        let last = try Int64.fetchOne(
          database, sql: "SELECT max(\(apartRowid)) FROM \(SQLText.quotedIdentifier(apart.name))")
      else { continue }
      try database.execute(
        sql: "INSERT INTO \(TableProvenance.tables) (name, role, live, below) VALUES (?, ?, ?, ?)",
        arguments: [apart.name, role.rawValue, id, below])
      below -= last
    }
  }

  // MARK: Notes

  /// Moves the salvage's notes, which aren't needed in their original form.
  private func takeNotes() throws {
    try database.execute(
      sql: """
        INSERT INTO \(TableProvenance.places) SELECT t.id, p.first_key, p.last_key, p.page, p.source, p.found_by,
          p.certainty, p.reason
        FROM (\(EvidenceNotes.pages(in: ""))) AS p CROSS JOIN \(TableProvenance.tables) AS t ON t.name = p."table";
        INSERT OR REPLACE INTO \(TableProvenance.rows) SELECT t.id, coalesce(t.below - r."row", r."row"),
          CASE
            WHEN t.role = 'deleted' THEN 'deleted'
            WHEN t.role = 'other' THEN
              CASE WHEN r.reason LIKE '\(EvidenceNotes.uncommitted)%' THEN 'uncommitted' ELSE 'version' END
            WHEN r.certainty = 'doubtful' THEN 'doubtful' ELSE 'probable'
          END, r."key", r.page, r.cell, r.source, r.reason
        FROM (\(EvidenceNotes.rows(in: ""))) AS r CROSS JOIN \(TableProvenance.tables) AS t ON t.name = r."table"
        WHERE r."row" IS NOT NULL;
        UPDATE \(TableProvenance.rows) AS o SET state = 'part' WHERE state = 'version' AND cell IS NOT NULL AND EXISTS (
          SELECT 1 FROM \(TableProvenance.tables) AS t CROSS JOIN \(TableProvenance.rows) AS l
          WHERE t.id = o.tbl AND l.tbl = t.live AND l.k = o.key AND l.state = 'doubtful'
            AND l.page = o.page AND l.cell = o.cell AND l.source = o.source);
        DROP VIEW lazaret_pages; DROP VIEW lazaret_provenance; DROP TABLE lazaret_evidence;
        CREATE INDEX lazaret_browsed_unsure ON \(TableProvenance.places) (tbl) WHERE certainty <> 'certain'
        """)
    for (id, table) in live { try takePageNotes(id, table) }
    try database.execute(
      sql: """
        DROP INDEX lazaret_browsed_unsure;
        UPDATE \(TableProvenance.tables) SET noted =
          (SELECT count(*) FROM \(TableProvenance.rows) AS r WHERE r.tbl = \(TableProvenance.tables).id);
        CREATE INDEX lazaret_browsed_keys ON \(TableProvenance.rows) (tbl, key);
        CREATE INDEX lazaret_browsed_firsts ON \(TableProvenance.places) (tbl, first)
        """)
  }

  /// Adds notes to rows of uncertain pages.
  private func takePageNotes(_ id: Int64, _ table: SQLTable) throws {
    guard let name = table.rowidName else { return }
    let rowid = "t.\(name)"
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO \(TableProvenance.rows) SELECT \(id), \(rowid),
          CASE p.certainty WHEN 'doubtful' THEN 'doubtful' ELSE 'probable' END, \(rowid), p.page, NULL, p.source, p.reason
        FROM \(TableProvenance.places) AS p CROSS JOIN \(SQLText.quotedIdentifier(table.name)) AS t
        WHERE p.tbl = \(id) AND p.certainty <> 'certain' AND \(rowid) BETWEEN p.first AND p.last
        """)
  }

  private func makeIndexes(_ model: ManagedObjectModel) throws {
    let layout = try StoreLayout(model)
    var wanted: [(table: String, column: String)] = []
    for table in layout.tables {
      for column in table.columns {
        if case .toOne = column.role { wanted.append((table.name, column.name)) }
      }
    }
    for entity in layout.entities {
      for name in layout.model.properties(of: entity.name).keys {
        if case .toManyByJoinTable(let table, let own, _, _) = layout.storage(of: name, in: entity.name) {
          wanted.append((table, own))
        }
      }
    }
    var made: Set<String> = []
    for (table, column) in wanted where made.insert("\(table).\(column)".lowercased()).inserted {
      let found = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
      guard found.contains(where: { $0.lowercased() == column.lowercased() }) else { continue }
      try database.execute(
        sql: "CREATE INDEX \(SQLText.quotedIdentifier("lazaret_browsed_\(made.count)")) "
          + "ON \(SQLText.quotedIdentifier(table)) (\(SQLText.quotedIdentifier(column)))")
    }
  }
}

/// A table's live keys and other rows, in a file of found rows.
struct TableProvenance: Sendable, Hashable {
  /// Rows that aren't live, in the table the salvage wrote.
  struct Apart: Sendable, Hashable {
    /// The table's number in the notes.
    var id: Int64

    var name: String

    var states: Set<RowState>

    /// The SQL columns of the live table, with the assigned keys.
    fileprivate var columns: String

    fileprivate var rows: String

    /// Selects rows, preceded by a column of their note.
    func selection(with column: String) -> String { "SELECT n.\(column), \(columns) FROM \(rows)" }

    /// Selects rows in some states; nil if none can match.
    fileprivate func selection(_ wanted: Set<RowState>) -> String? {
      let listed = states.intersection(wanted)
      guard !listed.isEmpty else { return nil }
      let condition = listed == states ? "" : " AND n.state IN (\(TableProvenance.words(listed)))"
      return "SELECT \(columns) FROM \(rows)\(condition)"
    }
  }

  var id: Int64

  /// The lowest live key; other rows were assigned lower ones.
  var lowest: Int64

  /// The number of live rows with a note.
  var noted: Int64

  /// The tables of rows that aren't live.
  var apart: [Apart] = []

  private var live: String

  /// SQL for their rowid.
  private var rowid: String

  /// The SQL table of notes on single rows.
  static let rows = "lazaret_browsed_rows"

  static let places = "lazaret_browsed_places"

  /// The SQL table of tables with notes.
  static let tables = "lazaret_browsed_tables"

  /// The SQL table of the model that the store was found to use.
  static let model = "lazaret_browsed_model"

  /// Above this, each row's note is looked up instead of gathering all first.
  private static let manyNotes = 50_000

  /// The SQL list of the tables' numbers.
  var ids: String { ([id] + apart.map(\.id)).map(String.init).joined(separator: ", ") }

  /// Selects the keys of annotated rows with a present or former key.
  func keys(storedAs key: String) -> String { "SELECT k FROM \(Self.rows) WHERE tbl IN (\(ids)) AND key = \(key)" }

  private static func words(_ states: Set<RowState>) -> String {
    RowState.allCases.filter(states.contains).map { "'\($0.rawValue)'" }.joined(separator: ", ")
  }

  // MARK: Conditions

  /// A SQL table of the rows in some states; nil if the live table suffices.
  func source(_ states: Set<RowState>) -> String? {
    var selections = apart.compactMap { $0.selection(states) }
    guard !selections.isEmpty else { return nil }
    if states.contains(where: \.isLive) {
      selections.append(live + PageStatement.whereClause([condition(states, key: rowid)].compactMap(\.self)))
    }
    return "(\(selections.joined(separator: " UNION ALL ")))"
  }

  /// The condition that a live row is in one of some states; nil if all are.
  func condition(_ states: Set<RowState>, key: String) -> String? {
    let live = Set(RowState.allCases.filter(\.isLive))
    let wanted = live.intersection(states)
    guard !wanted.isEmpty else { return "0" }
    guard wanted != live else { return nil }
    // Certain rows have no notes.
    let isNegative = wanted.contains(.certain)
    let prefix = isNegative ? "NOT " : ""
    let words = Self.words(isNegative ? live.subtracting(wanted) : wanted)
    if noted > Self.manyNotes {
      return "\(prefix)EXISTS (SELECT 1 FROM \(Self.rows) AS m WHERE m.tbl = \(id) AND m.k = \(key) "
        + "AND m.state IN (\(words)))"
    }
    return "\(key) \(prefix)IN (SELECT k FROM \(Self.rows) WHERE tbl = \(id) AND state IN (\(words)))"
  }

  static func all(_ database: Database, _ schema: SQLSchema) throws -> [String: TableProvenance] {
    var result: [String: TableProvenance] = [:]
    var names: [Int64: String] = [:]
    let listed = try Row.fetchAll(
      database, sql: "SELECT id, name, role, live, below, lowest, noted FROM \(tables) ORDER BY id")
    for row in listed {
      let name: String = row[1]
      guard let role = OutputRole(rawValue: row[2]), let table = schema.tables[name] else { continue }
      if role == .live {
        names[row[0]] = name
        result[name] = TableProvenance(table, id: row[0], lowest: row[5], noted: row[6])
      } else if let below = row[4] as Int64?, let owner = (row[3] as Int64?).flatMap({ names[$0] }),
        let live = schema.tables[owner], let apart = Apart(table, of: live, role: role, id: row[0], below: below)
      {
        result[owner]?.apart.append(apart)
      }
    }
    return result
  }

  private init?(_ table: SQLTable, id: Int64, lowest: Int64, noted: Int64) {
    guard let rowidName = table.rowidName else { return nil }
    self.id = id
    self.lowest = lowest
    self.noted = noted
    rowid = "t.\(rowidName)"
    let columns = table.columns.map { SQLText.quotedIdentifier($0.name) }.map { "t.\($0) AS \($0)" }
    live =
      "SELECT \((["\(rowid) AS \(rowidName)"] + columns).joined(separator: ", ")) "
      + "FROM \(SQLText.quotedIdentifier(table.name)) AS t"
  }
}

extension TableProvenance.Apart {
  /// - Parameter below: the value from which rowids are subtracted to give keys.
  fileprivate init?(_ table: SQLTable, of live: SQLTable, role: OutputRole, id: Int64, below: Int64) {
    guard let key = live.rowidName, let rowid = table.rowidName else { return nil }
    self.id = id
    name = table.name
    states = role == .deleted ? [.deleted] : [.uncommitted, .version, .part]
    let own = Set(table.columns.map { $0.name.lowercased() })
    let values = live.columns.map { column in
      let name = SQLText.quotedIdentifier(column.name)
      if column.name == live.rowidAlias { return "n.k AS \(name)" }
      return own.contains(column.name.lowercased()) ? "o.\(name) AS \(name)" : "NULL AS \(name)"
    }
    columns = (["n.k AS \(key)"] + values).joined(separator: ", ")
    // The notes hold the keys in order, so a page costs only its own rows.
    rows =
      "\(TableProvenance.rows) AS n CROSS JOIN \(SQLText.quotedIdentifier(table.name)) AS o "
      + "ON o.\(rowid) = \(below) - n.k WHERE n.tbl = \(id)"
  }
}

/// The reliability of a row in a damaged store.
package enum RowState: String, Sendable, Hashable, CaseIterable {
  /// A cell of a page reached from its table's root.
  case certain

  /// The page or position comes from evidence: found by content, or rebuilt from an index.
  case probable

  /// A live row with contradictory data.
  case doubtful

  /// A deleted record with surviving bytes.
  case deleted

  /// Written by an uncommitted transaction.
  case uncommitted

  /// Another version of a record, or a conflicting row.
  case version

  /// A fragment of a live row's cell, not a separate row.
  case part

  /// Whether it counts as a record.
  package var isLive: Bool { self == .certain || self == .probable || self == .doubtful }

  var words: String {
    switch self {
    case .certain: "certain"
    case .probable: "probable"
    case .doubtful: "doubtful"
    case .deleted: "deleted"
    case .uncommitted: "not committed"
    case .version: "another version"
    case .part: "part of a record"
    }
  }
}

extension SQLTable {
  /// A rowid name that isn't a column's, if any.
  var rowidName: String? {
    let taken = Set(columns.map { $0.name.lowercased() })
    return ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
  }

  /// The column that aliases the rowid, if any.
  var rowidAlias: String? {
    let key = columns.filter { $0.primaryKeyPosition > 0 }
    return key.count == 1 && key[0].declaredType.uppercased() == "INTEGER" ? key[0].name : nil
  }

  /// Whether another table shares a column other than the rowid.
  func sharesColumns(with other: SQLTable) -> Bool {
    let own = Set(other.columns.map { $0.name.lowercased() })
    return columns.contains { $0.name != rowidAlias && own.contains($0.name.lowercased()) }
  }
}
