internal import PersistentStore
import Platform
internal import SQLiteFormat

/// A table of the result: a store table's live rows, or rows set aside from it.
///
/// It has the stored columns, types and key, but no checks or triggers: rows stay as found.
final class OutputTable {
  /// The part of a declaration kept, in descending order.
  enum Declaration: CaseIterable {
    case asDeclared

    case names

    /// The table name, with columns `c0`, `c1` and so on.
    case tableName

    /// The name `found_1`, by the table's number.
    case underOtherName
  }

  private static let otherNames = 1000

  private let shape: Shape

  private(set) var count: Int64 = 0

  private let insertion: OutputStatement

  /// Statements that few tables need; nil where a table has none.
  private lazy var comparison = Result { [database, shape] in
    shape.isLive ? try database.prepare(shape.comparison) : nil
  }
  private lazy var lookup = Result { [database, shape] in try shape.lookup.map(database.prepare) }
  private let hasLookup: Bool
  private let database: OutputDatabase
  private let fieldCount: Int
  private let defaults: [Value]
  private let hasEntityNumbers: Bool

  /// The new store's table that takes rows first.
  private let direct: DirectTable?

  private var insertedCount: Int64 = 0

  /// The rowids of inserted rows, which SQLite finds too, and more slowly.
  private var insertedKeys: KeySet

  /// Creates the table with as much of the declaration as SQLite accepts.
  ///
  /// - Parameters:
  ///   - number: distinguishes tables with unusable names.
  ///   - isOwn: whether it is one of the result's own tables.
  ///   - direct: the new store's table that takes rows first.
  ///   - refusal: SQLite's first error message.
  static func make(
    _ definition: TableDefinition, role: OutputRole, number: Int, in database: OutputDatabase, isOwn: Bool = false,
    direct: DirectTable? = nil, refusal: inout String?
  ) throws -> OutputTable {
    let isOwnName = !isOwn && role == .live && definition.name.lowercased().hasPrefix("lazaret_")
    if isOwnName { refusal = "the name is one of the result's own" }
    for declaration in Declaration.allCases where declaration != .underOtherName && !isOwnName {
      do {
        return try OutputTable(
          definition, declaration, role: role, number: "\(number)", in: database, direct: direct, refusal: &refusal)
      } catch let error as SalvageError where error.kind == .output {
      }
    }
    // A store table may have that name too.
    for attempt in 1...Self.otherNames {
      do {
        return try OutputTable(
          definition, .underOtherName, role: role, number: attempt == 1 ? "\(number)" : "\(number)_\(attempt)",
          in: database, direct: direct, refusal: &refusal)
      } catch let error as SalvageError where error.kind == .output && attempt < Self.otherNames {
      }
    }
    throw SalvageError(.output, operation: "write what was salvaged", detail: "a table could not be made")
  }

  private init(
    _ definition: TableDefinition, _ declaration: Declaration, role: OutputRole, number: String,
    in database: OutputDatabase, direct: DirectTable?, refusal: inout String?
  ) throws {
    self.database = database
    self.direct = direct
    insertedKeys = KeySet(database.keyBudget)
    hasEntityNumbers = definition.column(named: "Z_ENT") != nil
    let shape = Shape(definition, declaration, role: role, number: number, maximumColumns: database.maximumColumns)
    self.shape = shape
    fieldCount = shape.fields.count
    hasLookup = shape.lookup != nil
    defaults = shape.fields.map { definition.defaultValue(ofColumn: $0, encoding: .utf8) }
    if let words = try shape.types.compactMap(database.refusal(ofType:)).first {
      if refusal == nil { refusal = words }
      throw SalvageError(.output, operation: "write what was salvaged", detail: "SQLite refused a table")
    }
    let untyped = shape.statement(hasTypes: false)
    do {
      try database.execute(untyped)
    } catch {
      if refusal == nil { refusal = database.message }
      throw error
    }
    do {
      insertion = try database.prepare(shape.insertion)
    } catch {
      if refusal == nil { refusal = database.message }
      try database.execute("DROP TABLE \(SQLText.quotedIdentifier(shape.name))")
      throw error
    }
    let statement = shape.statement(hasTypes: true)
    if untyped != statement { database.declare(name, later: statement) }
  }

  var name: String { shape.name }

  /// Store columns above SQLite's limit.
  var columnsLeftOut: Int { shape.columnsLeftOut }

  /// Writes a row; returns false if its key exists.
  @inline(__always)
  func insert(_ record: Span<UInt8>, rowid: Int64) throws -> Bool {
    if let direct {
      if try direct.rows.insert(record, rowid: rowid) {
        count &+= 1
        return true
      }
      if try direct.rows.hasRow(rowid) { return false }
    }
    try insertion.run(record, firstParameter: 2, fields: fieldCount) { bound in
      insertion.bind(rowid, at: 1)
      fill(insertion, from: bound)
    }
    guard database.hasChanged else { return false }
    count &+= 1
    insertedCount &+= 1
    if shape.hasRowid { insertedKeys.insert(rowid) }
    return true
  }

  func insertApart(_ record: Span<UInt8>, rowid: Int64?) throws {
    try insertion.run(record, firstParameter: 2, fields: fieldCount) { bound in
      if let rowid { insertion.bind(rowid, at: 1) } else { insertion.bindNull(at: 1) }
      fill(insertion, from: bound)
    }
    count &+= 1
  }

  func count(ofEntity number: Int) throws -> Int64 {
    let taken = direct?.rows.count(ofEntity: Int64(number)) ?? 0
    guard hasEntityNumbers, insertedCount > 0 else { return taken }
    let sql = "SELECT count(*) FROM \(SQLText.quotedIdentifier(name)) WHERE Z_ENT = \(number)"
    return taken + (try database.number(sql) ?? 0)
  }

  /// The rows in a range written directly into the new store, as far as keys are kept.
  func takenCount(above: Int64, upTo: Int64) -> Int64 { direct?.rows.keys.count(above: above, upTo: upTo) ?? 0 }

  /// The keys of rows written directly into the new store; nil if incomplete.
  var takenKeys: KeyRanges? {
    guard let direct else { return KeyRanges() }
    guard direct.rows.keys.isExact else { return nil }
    var taken = KeyRanges()
    direct.rows.keys.forEachKey { taken.append($0) }
    return taken
  }

  func hasRow(_ rowid: Int64) throws -> Bool {
    if let direct, try direct.rows.hasRow(rowid) { return true }
    guard hasLookup, insertedKeys.mayContain(rowid) else { return false }
    guard !insertedKeys.isExact, let lookup = try lookup.get() else { return true }
    lookup.bind(rowid, at: 1)
    let isThere = try lookup.step()
    lookup.reset()
    return isThere
  }

  func holds(_ record: Span<UInt8>, rowid: Int64) throws -> Bool {
    if let direct, try direct.rows.holds(record, rowid: rowid) { return true }
    guard !hasLookup || insertedKeys.mayContain(rowid), let search = try comparison.get() else { return false }
    return try search.run(record, firstParameter: 2, fields: fieldCount) { bound in
      search.bind(rowid, at: 1)
      fill(search, from: bound)
    }
  }

  /// Binds defaults of columns added later.
  private func fill(_ statement: OutputStatement, from bound: Int) {
    guard bound < fieldCount else { return }
    let aliasField = shape.isLive ? shape.alias : nil
    for field in bound..<fieldCount where field != aliasField { statement.bind(defaults[field], at: field + 2) }
  }
}

extension OutputTable {
  struct Shape {
    let name: String

    /// The definition's column index for each field.
    let fields: [Int]

    /// Store columns above SQLite's limit.
    let columnsLeftOut: Int

    let alias: Int?

    let hasRowid: Bool

    /// The column types of the statement.
    let types: [String]

    private let definition: TableDefinition
    private let declaration: Declaration
    private let columns: [String]

    /// The first field of each column, as a key may repeat columns.
    private let ownFields: [Int]

    /// A rowid name that isn't a column's.
    private let rowidName: String?

    let isLive: Bool

    init(
      _ definition: TableDefinition, _ declaration: Declaration, role: OutputRole, number: String, maximumColumns: Int
    ) {
      let stored = definition.storedColumns
      let fields = Array(stored.prefix(maximumColumns))
      self.fields = fields
      self.definition = definition
      self.declaration = declaration
      columnsLeftOut = stored.count - fields.count
      isLive = role == .live
      alias = definition.rowidAlias.flatMap { alias in fields.firstIndex(of: alias) }
      hasRowid = isLive && !definition.isWithoutRowid
      name =
        declaration == .underOtherName
        ? role == .live ? "found_\(number)" : role.name("found_\(number)") : role.name(definition.name)
      let names =
        switch declaration {
        case .asDeclared, .names: fields.map { definition.columns[$0].name }
        case .tableName, .underOtherName: fields.indices.map { "c\($0)" }
        }
      let taken = Set(names.map { $0.lowercased() })
      rowidName = ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
      columns = names.map(SQLText.quotedIdentifier)
      ownFields = fields.indices.filter { fields.firstIndex(of: fields[$0]) == $0 }
      let key = hasRowid ? alias : nil
      types =
        declaration == .asDeclared
        ? ownFields.filter { $0 != key }.map { definition.columns[fields[$0]].declaredType }.filter { !$0.isEmpty }
          .map(Self.safeType) : []
    }

    /// The INSERT statement.
    ///
    /// The rowid is always the first parameter, so that field numbers are constant. A record has NULL for a rowid
    /// alias.
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

    var comparison: String {
      var conditions = ownFields.filter { $0 != alias }.map { "\(columns[$0]) IS ?\($0 + 2)" }
      if let key { conditions.insert("\(key) = ?1", at: 0) }
      return "SELECT 1 FROM \(SQLText.quotedIdentifier(name)) WHERE \(SQLText.all(conditions))"
    }

    var lookup: String? {
      guard hasRowid else { return nil }
      return key.map { "SELECT 1 FROM \(SQLText.quotedIdentifier(name)) WHERE \($0) = ?1" }
    }

    private var key: String? { hasRowid ? alias.map { columns[$0] } ?? rowidName : nil }

    private var ownRowid: String? { hasRowid && alias == nil ? rowidName : nil }
  }
}

extension OutputTable.Shape {
  /// The CREATE TABLE statement; without types, no affinity converts values.
  func statement(hasTypes: Bool) -> String {
    let isDeclared = declaration == .asDeclared
    let alias = hasRowid ? self.alias : nil
    // Records begin with the key; columns keep their declared order.
    let order = isDeclared ? ownFields.sorted { fields[$0] < fields[$1] } : ownFields
    // Without a known key the table gets hidden rowids.
    let isWithoutRowid = isDeclared && isLive && definition.isWithoutRowid && !definition.primaryKey.isEmpty
    var parts = order.map { field in
      let column = definition.columns[fields[field]]
      var text = columns[field]
      if isDeclared, !column.declaredType.isEmpty, hasTypes || field == alias {
        text += " " + Self.safeType(column.declaredType)
      } else if field == alias {
        text += " INTEGER"
      }
      if field == alias { text += " PRIMARY KEY" }
      return isWithoutRowid ? text + Self.collate(column.collation) : text
    }
    if isWithoutRowid {
      let key = definition.primaryKeyColumns.compactMap { column in
        column.name.map { SQLText.quotedIdentifier($0) + Self.collate(column.collation) }
      }
      parts.append("PRIMARY KEY (\(key.joined(separator: ", ")))")
    }
    return "CREATE TABLE \(SQLText.quotedIdentifier(name)) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowid ? " WITHOUT ROWID" : "")
  }

  private static func collate(_ collation: String?) -> String {
    guard let collation, ["nocase", "rtrim", "binary"].contains(collation.lowercased()) else { return "" }
    return " COLLATE \(collation)"
  }

  /// A declared type, quoted unless plain, against SQL injection.
  private static func safeType(_ type: String) -> String {
    // Outside a size, a comma or parenthesis would end the column.
    let isBalanced = !type.contains { "(),".contains($0) } || type.hasParenthesesOnlyForSizeAtEnd
    let hasKeyword = type.split { $0 == " " || $0 == "(" }.contains { keywords.contains($0.uppercased()) }
    return type.isPlainSQL && isBalanced && !hasKeyword && type.utf8.first.map { $0 | 0x20 >= 0x61 } == true
      ? type : SQLText.quotedIdentifier(type)
  }

  /// Keywords that can't be part of a type (sqlite.org/lang_keywords.html, those without fallback to an identifier).
  private static let keywords: Set<String> = [
    "ADD", "ALL", "ALTER", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE", "COMMIT", "CONSTRAINT",
    "CREATE", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE", "ESCAPE", "EXISTS", "FOREIGN", "FROM",
    "GROUP", "HAVING", "IN", "INDEX", "INSERT", "INTO", "IS", "ISNULL", "JOIN", "LIMIT", "NOT", "NOTHING", "NOTNULL",
    "NULL", "ON", "OR", "ORDER", "PRIMARY", "REFERENCES", "RETURNING", "SELECT", "SET", "TABLE", "THEN", "TO",
    "TRANSACTION", "UNION", "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
  ]
}

extension String {
  /// Whether it is only words, spaces, commas and parentheses, which SQLite must parse as we do.
  var isPlainSQL: Bool {
    utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "_ (),".utf8.contains(byte)
      }
    }
  }

  /// Whether parentheses only enclose a trailing size: `VARCHAR(255)`, `DECIMAL(10,5)`.
  fileprivate var hasParenthesesOnlyForSizeAtEnd: Bool {
    guard let open = firstIndex(of: "("), last == ")" else { return false }
    return self[index(after: open)..<index(before: endIndex)].utf8.allSatisfy {
      $0 >= 0x30 && $0 <= 0x39 || $0 == UInt8(ascii: ",")
    }
  }
}

package enum OutputRole: String, Sendable, CaseIterable {
  /// One version of each row in the store.
  case live

  /// Other versions of live rows, and conflicting rows.
  case other

  case deleted

  package func name(_ table: String) -> String {
    switch self {
    case .live: table
    case .other: "lazaret_other_\(table)"
    case .deleted: "lazaret_deleted_\(table)"
    }
  }
}
