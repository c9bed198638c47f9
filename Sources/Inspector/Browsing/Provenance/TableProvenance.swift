internal import GRDB
internal import PersistentStore
internal import Salvage

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
  func keys(storedAs key: String) -> String {
    "SELECT k FROM \(Self.rows) WHERE tbl IN (\(ids)) AND key = \(key)"
  }

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
}

extension TableProvenance {
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
