internal import GRDB
internal import PersistentStore
internal import Salvage

/// What a file of found rows knows of a table: which of its keys are live rows', and where its other rows are.
package struct TableProvenance: Sendable, Hashable {
  /// Rows of a table that are no live ones, in the table that the salvage wrote them into.
  struct Apart: Sendable, Hashable {
    /// The number of that table in the notes.
    var id: Int64

    var name: String

    /// The states that its rows have.
    var states: Set<RowState>

    /// The columns of the table of live rows as these rows have them, with the keys that were given to them, as SQL.
    fileprivate var columns: String

    /// Where the rows are, each with its note `n`, as SQL.
    fileprivate var rows: String

    /// The selection of the rows with another column before theirs: that of their note.
    func selection(with column: String) -> String { "SELECT n.\(column), \(columns) FROM \(rows)" }

    /// The selection of the rows that are in some states; nil where none can be.
    fileprivate func selection(_ wanted: Set<RowState>) -> String? {
      let listed = states.intersection(wanted)
      guard !listed.isEmpty else { return nil }
      let condition = listed == states ? "" : " AND n.state IN (\(TableProvenance.words(listed)))"
      return "SELECT \(columns) FROM \(rows)\(condition)"
    }
  }

  /// The number of the table in the notes.
  var id: Int64

  /// The lowest key of a live row; rows that are none have lower ones, which were given to them.
  var lowest: Int64

  /// How many live rows have a note of their own.
  var noted: Int64

  /// Where its rows are that are no live ones.
  var apart: [Apart] = []

  private var live: String

  /// What stands for their rowid in it, as SQL.
  private var rowid: String

  /// The notes on single rows, as they stand in SQL.
  static let rows = "lazaret_browsed_rows"

  static let places = "lazaret_browsed_places"

  /// The tables that have notes.
  static let tables = "lazaret_browsed_tables"

  /// The model that the store was found to be of.
  static let model = "lazaret_browsed_model"

  /// Beyond so many notes a row's own is looked up, instead of all of them being gathered first.
  private static let manyNotes = 50_000

  /// The numbers in the notes of all tables that it has rows in, as a list of SQL.
  var ids: String { ([id] + apart.map(\.id)).map(String.init).joined(separator: ", ") }

  /// The selection of the keys of rows that have notes and that have, or had, a key in the store.
  func keys(storedAs key: String) -> String {
    "SELECT k FROM \(Self.rows) WHERE tbl IN (\(ids)) AND key = \(key)"
  }

  private static func words(_ states: Set<RowState>) -> String {
    RowState.allCases.filter(states.contains).map { "'\($0.rawValue)'" }.joined(separator: ", ")
  }

  // MARK: Conditions

  /// The rows in some states as a table of SQL; nil where no others are asked for than those in the table of live ones.
  func source(_ states: Set<RowState>) -> String? {
    var selections = apart.compactMap { $0.selection(states) }
    guard !selections.isEmpty else { return nil }
    if states.contains(where: \.isLive) {
      selections.append(live + PageStatement.whereClause([condition(states, key: rowid)].compactMap(\.self)))
    }
    return "(\(selections.joined(separator: " UNION ALL ")))"
  }

  /// The condition that a live row is in one of some states, as SQL; nil where every one is.
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
  /// Reads what a file of found rows knows of its tables, by their names.
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
  /// - Parameters:
  ///   - live: the table of live rows.
  ///   - below: what the rowids of the rows are taken from to give their keys.
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
    // The keys are in the notes, in their order, so that a page costs no more than its rows.
    rows =
      "\(TableProvenance.rows) AS n CROSS JOIN \(SQLText.quotedIdentifier(table.name)) AS o "
      + "ON o.\(rowid) = \(below) - n.k WHERE n.tbl = \(id)"
  }
}

/// How far a row of a damaged store is to be believed, and whether it was one of its records at all.
package enum RowState: String, Sendable, Hashable, CaseIterable {
  /// A cell of a page that its table leads to.
  case certain

  /// Its page or its place is told by evidence: found by content, rebuilt from an index.
  case probable

  /// A live row of which something contradicts something else.
  case doubtful

  /// A record that was deleted; its bytes were still there.
  case deleted

  /// Written by a transaction that never ended.
  case uncommitted

  /// Another version of a record, or a row that does not fit among the live ones.
  case version

  /// What was found of a live row of the same cell, of which a part is lost; no row besides it.
  case part

  /// Whether it is counted as a record of the store.
  package var isLive: Bool { self == .certain || self == .probable || self == .doubtful }

  /// A word on it for people.
  package var words: String {
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
