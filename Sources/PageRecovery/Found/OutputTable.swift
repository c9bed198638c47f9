internal import PersistentStore
internal import RecoveryKit
internal import SQLiteFormat

/// A table of the result: the live rows of one table of the store, or rows that are kept apart from them.
///
/// It has the columns of the store's table with their types and its key. Checks, computed columns and triggers are left
/// out: rows are kept as they were found.
final class OutputTable {
  /// What the rows of an output table are.
  enum Role {
    /// One version of each row: what the store held.
    case live

    /// Rows that were deleted.
    case deleted

    /// Other versions of live rows, and rows that do not fit among them.
    case other

    /// The name of the output table for a table of the store.
    func name(_ table: String) -> String {
      switch self {
      case .live: table
      case .deleted: "lazaret_deleted_\(table)"
      case .other: "lazaret_other_\(table)"
      }
    }
  }

  /// The name.
  let name: String

  /// Rows written.
  private(set) var count: Int64 = 0

  private let insertion: OutputStatement
  private let comparison: OutputStatement?
  private let lookup: OutputStatement?
  private let database: OutputDatabase
  private let fieldCount: Int
  private let hasRowid: Bool
  private let aliasField: Int?
  private let defaults: [Value]
  private let hasEntityNumbers: Bool

  /// The table of the new store that takes all rows it can; the others come into this one.
  private let direct: (any NewTable)?

  /// Rows that SQLite inserted.
  private var insertedCount: Int64 = 0

  init(
    _ definition: TableDefinition, role: Role, in database: OutputDatabase, direct: (any NewTable)? = nil
  ) throws(SalvageError) {
    self.database = database
    self.direct = direct
    hasEntityNumbers = definition.column(named: "Z_ENT") != nil
    name = role.name(definition.name)
    let stored = definition.storedColumns
    fieldCount = stored.count
    let isLive = role == .live
    hasRowid = !definition.isWithoutRowid && isLive
    let alias = isLive ? definition.rowidAlias.flatMap { alias in stored.firstIndex(of: alias) } : nil
    aliasField = alias
    defaults = stored.map { definition.columns[$0].affinity.literal(definition.columns[$0].defaultValue) }
    try database.execute(Self.statement(definition, name: name, isLive: isLive))
    let columns = stored.map { SQLText.quotedIdentifier(definition.columns[$0].name) }
    let rowid = ["rowid", "_rowid_", "oid"].first { definition.column(named: $0) == nil }
    let table = SQLText.quotedIdentifier(name)
    var names = columns
    if hasRowid, aliasField == nil, let rowid { names.insert(rowid, at: 0) }
    // The rowid is always the first parameter, bound or not, so that fields have the same numbers everywhere.
    var values = (0..<columns.count).map { $0 == alias ? "?1" : "?\($0 + 2)" }
    if hasRowid, aliasField == nil, rowid != nil { values.insert("?1", at: 0) }
    insertion = try database.prepare(
      "INSERT OR IGNORE INTO \(table) (\(names.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")))")
    if isLive {
      var conditions = columns.enumerated().filter { $0.offset != alias }.map { "\($0.element) IS ?\($0.offset + 2)" }
      if let aliasField {
        conditions.insert("\(columns[aliasField]) = ?1", at: 0)
      } else if hasRowid, let rowid {
        conditions.insert("\(rowid) = ?1", at: 0)
      }
      comparison = try database.prepare("SELECT 1 FROM \(table) WHERE \(conditions.joined(separator: " AND "))")
      let key = alias.map { columns[$0] } ?? rowid
      lookup =
        definition.isWithoutRowid
        ? nil
        : try key.map { name throws(SalvageError) in try database.prepare("SELECT 1 FROM \(table) WHERE \(name) = ?1") }
    } else {
      comparison = nil
      lookup = nil
    }
  }

  /// Writes a row; false where a row with its key is there already.
  @inline(__always)
  func insert(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool {
    if let direct {
      if try direct.insert(bytes, from: start, length: length, rowid: rowid) {
        count &+= 1
        return true
      }
      if try direct.hasRow(rowid) { return false }
    }
    try insertion.insert(bytes, from: start, length: length, firstParameter: 2, fields: fieldCount) { bound in
      insertion.bind(rowid, at: 1)
      fill(insertion, from: bound)
    }
    guard database.hasChanged else { return false }
    count &+= 1
    insertedCount &+= 1
    return true
  }

  /// The number of rows that have an entity number, in the live table.
  func count(ofEntity number: Int) throws(SalvageError) -> Int64 {
    let taken = direct?.count(ofEntity: Int64(number)) ?? 0
    guard hasEntityNumbers, insertedCount > 0 else { return taken }
    let sql = "SELECT count(*) FROM \(SQLText.quotedIdentifier(name)) WHERE Z_ENT = \(number)"
    return taken + (try database.number(sql) ?? 0)
  }

  /// The number of rows with rowids in a range that went straight into the new store, as far as their keys are kept.
  func takenCount(above: Int64, upTo: Int64) -> Int64 { direct?.count(above: above, upTo: upTo) ?? 0 }

  /// The keys of the rows that went straight into the new store; nil where not all of them could be kept.
  var takenKeys: KeyRanges? {
    guard let direct else { return KeyRanges() }
    return direct.takenKeys
  }

  /// Whether the live table has a row of that rowid.
  func hasRow(_ rowid: Int64) throws(SalvageError) -> Bool {
    if let direct, try direct.hasRow(rowid) { return true }
    guard let lookup else { return false }
    lookup.bind(rowid, at: 1)
    let isThere = try lookup.step()
    lookup.reset()
    return isThere
  }

  /// Whether the live table holds exactly that row.
  func holds(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool {
    if let direct, try direct.holds(bytes, from: start, length: length, rowid: rowid) { return true }
    guard let comparison else { return false }
    return try comparison.exists(bytes, from: start, length: length, firstParameter: 2, fields: fieldCount) { bound in
      comparison.bind(rowid, at: 1)
      fill(comparison, from: bound)
    }
  }

  /// Columns that were added after a row was written have their defaults.
  private func fill(_ statement: OutputStatement, from bound: Int) {
    guard bound < fieldCount else { return }
    for field in bound..<fieldCount where field != aliasField { statement.bind(defaults[field], at: field + 2) }
  }

  /// The statement that makes the table: names quoted, types as declared where they are words, and the key.
  private static func statement(_ definition: TableDefinition, name: String, isLive: Bool) -> String {
    // Virtual generated columns are not stored and come out empty.
    var parts = definition.columns.indices.map { index in
      let column = definition.columns[index]
      var text = SQLText.quotedIdentifier(column.name)
      if !column.declaredType.isEmpty { text += " " + safeType(column.declaredType) }
      if isLive, index == definition.rowidAlias { text += " PRIMARY KEY" }
      if isLive, definition.isWithoutRowid, let collation = column.collation,
        ["nocase", "rtrim", "binary"].contains(collation.lowercased())
      {
        text += " COLLATE \(collation)"
      }
      return text
    }
    // Without a key that is known a table has rowids, which nobody sees.
    let isWithoutRowid = isLive && definition.isWithoutRowid && !definition.primaryKey.isEmpty
    if isWithoutRowid {
      parts.append("PRIMARY KEY (\(definition.primaryKey.map(SQLText.quotedIdentifier).joined(separator: ", ")))")
    }
    return "CREATE TABLE \(SQLText.quotedIdentifier(name)) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowid ? " WITHOUT ROWID" : "")
  }

  /// A declared type as it may be written: its affinity matters, and nothing of it may become another part of a statement.
  private static func safeType(_ type: String) -> String {
    let isPlain = type.utf8.allSatisfy { byte in
      let letter = byte | 0x20
      return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z") || byte >= 0x30 && byte <= 0x39
        || byte == UInt8(ascii: "_") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "(")
        || byte == UInt8(ascii: ")") || byte == UInt8(ascii: ",")
    }
    let isBalanced = !type.contains("(") || type.range(isSizeAtEnd: ())
    let hasKeyword = type.split { $0 == " " || $0 == "(" }.contains { keywords.contains($0.uppercased()) }
    return isPlain && isBalanced && !hasKeyword && type.utf8.first.map { $0 | 0x20 >= 0x61 } == true
      ? type : SQLText.quotedIdentifier(type)
  }

  /// The words that SQLite takes for no name, and so for no part of a type (sqlite.org/lang_keywords.html, those that its
  /// grammar lets fall back to no identifier).
  private static let keywords: Set<String> = [
    "ADD", "ALL", "ALTER", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE", "COMMIT", "CONSTRAINT",
    "CREATE", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE", "ESCAPE", "EXISTS", "FOREIGN", "FROM",
    "GROUP", "HAVING", "IN", "INDEX", "INSERT", "INTO", "IS", "ISNULL", "JOIN", "LIMIT", "NOT", "NOTHING", "NOTNULL",
    "NULL", "ON", "OR", "ORDER", "PRIMARY", "REFERENCES", "RETURNING", "SELECT", "SET", "TABLE", "THEN", "TO",
    "TRANSACTION", "UNION", "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
  ]
}

extension String {
  /// Whether the only parentheses are those of a size at the end: `VARCHAR(255)`, `DECIMAL(10,5)`.
  fileprivate func range(isSizeAtEnd: Void) -> Bool {
    guard let open = firstIndex(of: "("), last == ")" else { return false }
    return self[index(after: open)..<index(before: endIndex)].utf8.allSatisfy {
      $0 >= 0x30 && $0 <= 0x39 || $0 == UInt8(ascii: ",")
    }
  }
}

extension Affinity {
  /// A default's literal; NULL where there is none.
  fileprivate func literal(_ value: Value?) -> Value { value ?? .null }
}
