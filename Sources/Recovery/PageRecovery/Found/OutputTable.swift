internal import PersistentStore
internal import RecoveryKit
internal import SQLiteFormat
internal import StoreFiles

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
