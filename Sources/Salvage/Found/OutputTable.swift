internal import PersistentStore
import Platform
internal import SQLiteFormat

/// A table of the result: the live rows of one table of the store, or rows that are set aside from them.
///
/// It has the columns of the store's table with their types and its key. Checks, triggers and the virtual columns, which no
/// record holds, are left out: rows are kept as they were found.
final class OutputTable {
  /// How much of a table's declaration the output table has; each has less than the one before.
  enum Declaration: CaseIterable {
    /// Its name, the names and types of its columns, and its key.
    case asDeclared

    /// Its name and those of its columns.
    case names

    /// Its name; the columns are `c0`, `c1` and so on.
    case tableName

    /// None of it; the table is called `found_1`, by its number.
    case underOtherName
  }

  /// How many names are tried where a table's own cannot be used.
  private static let otherNames = 1000

  let name: String

  /// How many of the store's columns it has no room for.
  let columnsLeftOut: Int

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

  private var insertedCount: Int64 = 0

  /// Makes the table with as much of the declaration as SQLite accepts.
  ///
  /// - Parameters:
  ///   - number: tells the table from others where its name cannot be used.
  ///   - isOwn: whether it is a table of the result's own.
  ///   - direct: the table of the new store that takes all rows it can; nil where all rows come into this one.
  ///   - refusal: what SQLite said of the first declaration that it refused; nil where it accepted the first one.
  static func make(
    _ definition: TableDefinition, role: OutputRole, number: Int, in database: OutputDatabase, isOwn: Bool = false,
    direct: (any NewTable)? = nil,
    refusal: inout String?
  ) throws(SalvageError) -> OutputTable {
    // Names that begin so are the result's own.
    let isOwnName = !isOwn && role == .live && definition.name.lowercased().hasPrefix("lazaret_")
    if isOwnName { refusal = "the name is one of the result's own" }
    for declaration in Declaration.allCases where declaration != .underOtherName && !isOwnName {
      do throws(SalvageError) {
        return try OutputTable(
          definition, declaration, role: role, number: "\(number)", in: database, direct: direct, refusal: &refusal)
      } catch {
        guard error.kind == .output else { throw error }
      }
    }
    // A table of the store may have that name too.
    for attempt in 1...Self.otherNames {
      do throws(SalvageError) {
        return try OutputTable(
          definition, .underOtherName, role: role, number: attempt == 1 ? "\(number)" : "\(number)_\(attempt)",
          in: database, direct: direct, refusal: &refusal)
      } catch {
        guard error.kind == .output, attempt < Self.otherNames else { throw error }
      }
    }
    throw SalvageError(.output, operation: "write what was salvaged", detail: "a table could not be made")
  }

  private init(
    _ definition: TableDefinition, _ declaration: Declaration, role: OutputRole, number: String,
    in database: OutputDatabase,
    direct: (any NewTable)?, refusal: inout String?
  ) throws(SalvageError) {
    self.database = database
    self.direct = direct
    hasEntityNumbers = definition.column(named: "Z_ENT") != nil
    let shape = Shape(definition, declaration, role: role, number: number, maximumColumns: database.maximumColumns)
    name = shape.name
    columnsLeftOut = shape.columnsLeftOut
    fieldCount = shape.fields.count
    hasRowid = shape.hasRowid
    aliasField = role == .live ? shape.alias : nil
    defaults = shape.fields.map { definition.defaultValue(ofColumn: $0, encoding: .utf8) }
    if shape.untyped != shape.statement, let words = try database.refusal(of: shape.statement, making: shape.name) {
      if refusal == nil { refusal = words }
      throw SalvageError(.output, operation: "write what was salvaged", detail: "SQLite refused a table")
    }
    do throws(SalvageError) {
      try database.execute(shape.untyped)
    } catch {
      if refusal == nil { refusal = database.message }
      throw error
    }
    do throws(SalvageError) {
      insertion = try database.prepare(shape.insertion)
      comparison = try role == .live ? database.prepare(shape.comparison) : nil
      lookup = try shape.lookup.map { sql throws(SalvageError) in try database.prepare(sql) }
    } catch {
      if refusal == nil { refusal = database.message }
      // The next attempt, with less of the declaration, may have the same name.
      try database.execute("DROP TABLE \(SQLText.quotedIdentifier(shape.name))")
      throw error
    }
    if shape.untyped != shape.statement { database.declare(shape.name, later: shape.statement) }
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

  /// Writes a row into a table of rows that are not live.
  ///
  /// - Parameter rowid: the rowid that it has, or had; nil where that is lost.
  func insertApart(_ record: Span<UInt8>, rowid: Int64?) throws(SalvageError) {
    try insertion.insert(record, from: 0, length: record.count, firstParameter: 2, fields: fieldCount) { bound in
      if let rowid { insertion.bind(rowid, at: 1) } else { insertion.bindNull(at: 1) }
      fill(insertion, from: bound)
    }
    count &+= 1
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
}

extension OutputTable {
  /// What an output table is like, and the statements that it is made and used by.
  struct Shape {
    let name: String

    /// For each field of a record that the table has a column for, the place of that column in the definition.
    let fields: [Int]

    /// How many of the store's columns it has no room for.
    let columnsLeftOut: Int

    /// The field that is another name for the rowid.
    let alias: Int?

    /// Whether rows are written with their rowids.
    let hasRowid: Bool

    /// The statement that the table is declared by.
    let statement: String

    /// The same without types, which would make other values of some: in such a table every value is kept as it is.
    let untyped: String

    /// The names of the columns as they stand in SQL, in the order of the fields.
    private let columns: [String]

    /// The fields that are the first ones of their columns: a key may have a column more than once.
    private let ownFields: [Int]

    /// A name that stands for the rowid and is no column's; nil where all three are.
    private let rowidName: String?

    private let isLive: Bool

    init(
      _ definition: TableDefinition, _ declaration: Declaration, role: OutputRole, number: String, maximumColumns: Int
    ) {
      let stored = definition.storedColumns
      let fields = Array(stored.prefix(maximumColumns))
      self.fields = fields
      columnsLeftOut = stored.count - fields.count
      isLive = role == .live
      alias = definition.rowidAlias.flatMap { alias in fields.firstIndex(of: alias) }
      hasRowid = isLive && !definition.isWithoutRowid
      name =
        declaration == .underOtherName
        ? role == .live ? "found_\(number)" : role.name("found_\(number)") : role.name(definition.name)
      let names: [String] =
        switch declaration {
        case .asDeclared, .names: fields.map { definition.columns[$0].name }
        case .tableName, .underOtherName: fields.indices.map { "c\($0)" }
        }
      let taken = Set(names.map { $0.lowercased() })
      rowidName = ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
      columns = names.map(SQLText.quotedIdentifier)
      ownFields = fields.indices.filter { fields.firstIndex(of: fields[$0]) == $0 }
      let key = isLive && !definition.isWithoutRowid ? alias : nil
      statement = Self.statement(
        definition, declaration, table: name, columns: columns, fields: fields, ownFields: ownFields, isLive: isLive,
        alias: key)
      untyped = Self.statement(
        definition, declaration, table: name, columns: columns, fields: fields, ownFields: ownFields, isLive: isLive,
        alias: key,
        hasTypes: false)
    }

    /// The statement that writes a row.
    ///
    /// The rowid is always the first parameter, bound or not, so that fields have the same numbers everywhere. A record has
    /// NULL where a column is another name for the rowid.
    var insertion: String {
      var names = ownFields.map { columns[$0] }
      var values = ownFields.map { field in
        guard field == alias else { return "?\(field + 2)" }
        return isLive ? "?1" : "coalesce(?\(field + 2), ?1)"
      }
      if let ownRowid {
        names.insert(ownRowid, at: 0)
        values.insert("?1", at: 0)
      }
      return "INSERT OR IGNORE INTO \(SQLText.quotedIdentifier(name)) (\(names.joined(separator: ", "))) "
        + "VALUES (\(values.joined(separator: ", ")))"
    }

    /// The query of a row that is exactly as a record.
    var comparison: String {
      var conditions = ownFields.filter { $0 != alias }.map { "\(columns[$0]) IS ?\($0 + 2)" }
      if let key { conditions.insert("\(key) = ?1", at: 0) }
      return "SELECT 1 FROM \(SQLText.quotedIdentifier(name)) WHERE \(SQLText.all(conditions))"
    }

    /// The query of a row of a rowid; nil where the table's rows have none.
    var lookup: String? {
      guard hasRowid else { return nil }
      return key.map { "SELECT 1 FROM \(SQLText.quotedIdentifier(name)) WHERE \($0) = ?1" }
    }

    /// What stands for the rowid of a live row.
    private var key: String? {
      guard hasRowid else { return nil }
      return alias.map { columns[$0] } ?? rowidName
    }

    /// What stands for the rowid where no column does.
    private var ownRowid: String? { hasRowid && alias == nil ? rowidName : nil }
  }
}

extension OutputTable.Shape {
  /// The statement that makes the table: names quoted, types as declared where they are words, and the key.
  private static func statement(
    _ definition: TableDefinition, _ declaration: OutputTable.Declaration, table: String, columns: [String],
    fields: [Int], ownFields: [Int], isLive: Bool, alias: Int?, hasTypes: Bool = true
  ) -> String {
    let isDeclared = declaration == .asDeclared
    // A record of a table without rowids has its key first; the table's columns keep the order that they were declared in.
    let order = isDeclared ? ownFields.sorted { fields[$0] < fields[$1] } : ownFields
    // Without a key that is known a table has rowids, which are not seen.
    let isWithoutRowid = isDeclared && isLive && definition.isWithoutRowid && !definition.primaryKey.isEmpty
    var parts = order.map { field in
      let column = definition.columns[fields[field]]
      var text = columns[field]
      if isDeclared, !column.declaredType.isEmpty, hasTypes || field == alias {
        text += " " + safeType(column.declaredType)
      } else if field == alias {
        text += " INTEGER"
      }
      if field == alias { text += " PRIMARY KEY" }
      return isWithoutRowid ? text + collate(column.collation) : text
    }
    if isWithoutRowid {
      let key = definition.primaryKeyColumns.compactMap { column in
        column.name.map { SQLText.quotedIdentifier($0) + collate(column.collation) }
      }
      parts.append("PRIMARY KEY (\(key.joined(separator: ", ")))")
    }
    return "CREATE TABLE \(SQLText.quotedIdentifier(table)) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowid ? " WITHOUT ROWID" : "")
  }

  /// The words for a collation that every SQLite has; none for others.
  private static func collate(_ collation: String?) -> String {
    guard let collation, ["nocase", "rtrim", "binary"].contains(collation.lowercased()) else { return "" }
    return " COLLATE \(collation)"
  }

  /// A declared type as it may be written: its affinity matters, and nothing of it may become another part of a statement.
  private static func safeType(_ type: String) -> String {
    let isPlain = type.utf8.allSatisfy { byte in
      let letter = byte | 0x20
      return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z") || byte >= 0x30 && byte <= 0x39
        || byte == UInt8(ascii: "_") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "(")
        || byte == UInt8(ascii: ")") || byte == UInt8(ascii: ",")
    }
    // Outside of a size a comma or a parenthesis would end the column.
    let isBalanced = !type.contains { "(),".contains($0) } || type.range(isSizeAtEnd: ())
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

/// What the rows of a table of the result are.
package enum OutputRole: String, Sendable, CaseIterable {
  /// One version of each row: what the store held.
  case live

  /// Other versions of live rows, and rows that do not fit among them.
  case other

  case deleted

  /// The name that the table of the result has for a table of the store.
  package func name(_ table: String) -> String {
    switch self {
    case .live: table
    case .other: "lazaret_other_\(table)"
    case .deleted: "lazaret_deleted_\(table)"
    }
  }
}
