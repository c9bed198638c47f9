internal import Foundation
package import GRDB
internal import GRDBSQLite
public import Platform

/// The schema of a plain SQLite store as text: the statements that create its tables, as in a `.sql` file.
///
/// The text is trusted with nothing but a private database in memory: it can attach no other database, load no code,
/// switch no protection off and neither run nor grow without end.
public struct SchemaScript: Sendable, Hashable {
  /// The longest text that is read, in bytes.
  public static let maximumLength = 4 << 20

  /// The most statements that are run.
  static let maximumStatements = 10_000

  /// The most steps of SQLite's virtual machine for the whole script.
  static let maximumSteps = 50_000_000

  /// The statements, as they were given.
  public let text: String

  /// Takes the text of a schema file.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` where it is too long or holds a zero byte.
  public init(_ text: String) throws(PersistentStoreError) {
    guard text.utf8.count <= Self.maximumLength else {
      throw Self.refused("the schema is longer than \(Self.maximumLength >> 20) MB")
    }
    guard !text.utf8.contains(0) else { throw Self.refused("the schema contains a zero byte") }
    self.text = text
  }

  /// Takes the bytes of a schema file, which must be UTF-8.
  public init(bytes: [UInt8]) throws(PersistentStoreError) {
    guard let text = String(utf8: bytes) else {
      throw Self.refused("the schema is not UTF-8 text")
    }
    try self.init(text.hasPrefix("\u{FEFF}") ? String(text.unicodeScalars.dropFirst()) : text)
  }

  /// The schema that a store lists, by the statements of its tables, indexes, views and triggers in that order; what SQLite
  /// makes by itself may be among them.
  package init(of statements: [String]) throws(PersistentStoreError) {
    try self.init(statements.map { $0 + "\n;\n" }.joined())
  }

  /// Whether a text begins as a schema does, behind comments.
  package static func isLikely(_ text: String) -> Bool {
    var scanner = SchemaScanner(bytes: Array(text.utf8))
    scanner.skipSeparators()
    return ["CREATE", "PRAGMA", "BEGIN"].contains(scanner.words(1).first)
      && ["TABLE", "VIRTUAL", "FOREIGN_KEYS", "TRANSACTION", ";", "INDEX", "UNIQUE", "VIEW", "TRIGGER"].contains(
        scanner.words(2).last)
  }

  static func refused(_ detail: String) -> PersistentStoreError {
    PersistentStoreError(.schemaScriptRefused, operation: "read the schema", detail: detail)
  }
}

extension SchemaScript {
  /// Runs the script in a private database, statement by statement.
  ///
  /// Transactions are left out, because the whole database is thrown away on an error. The tables that SQLite makes by itself,
  /// its own and those behind virtual tables, are passed over, and collations and functions of the app's are stood in for.
  func run(in database: Database) throws {
    DatabaseImage.limit(database)
    try database.execute(sql: "PRAGMA max_page_count = 16384")
    var position = SchemaScanner(bytes: Array(text.utf8))
    var statements = try database.allStatements(sql: text)
    var number = 0
    var steps = 0
    var standIns = 0
    while true {
      position.skipSeparators()
      guard !position.isAtEnd else { return }
      number += 1
      let place = "statement \(number) (line \(position.line))"
      guard number <= Self.maximumStatements else { throw Self.refused("there are too many statements") }
      // Some pragmas act when they are compiled, so the words are judged before SQLite sees them.
      let verdict = SchemaStatementRule.verdict(on: position.words(4))
      if case .refuse(let reason) = verdict { throw Self.refused("\(place) \(reason)") }
      if let made = position.made, try Self.isSQLitesOwn(made, database) {
        position.skipStatement()
        statements = try database.allStatements(sql: position.rest)
        continue
      }
      if let made = position.made, made.isVirtual { try Self.dropShadows(of: made.name, database) }
      var isCompiled = false
      do {
        guard let statement = try statements.next() else { return }
        isCompiled = true
        guard position.advance(over: Array(statement.sql.utf8)) else {
          throw Self.refused("\(place) could not be found again in the text")
        }
        if case .run = verdict {
          try statement.execute()
          steps += DatabaseImage.steps(of: statement)
        }
      } catch let error as DatabaseError {
        if !isCompiled, let missing = StandIns.Missing(error.message), standIns < StandIns.limit {
          StandIns.add(missing, to: database)
          standIns += 1
          number -= 1
          statements = try database.allStatements(sql: position.rest)
          continue
        }
        // Only the app can make it.
        if error.message?.hasPrefix("no such module: ") == true { continue }
        // Of a database in memory only the system's memory, and files for sorting, can lack; that it is full or that a value
        // is too long are limits of our own, and the schema's fault.
        let cause = ResultCodeCause(error.extendedResultCode)
        if cause.isEnvironmental, cause != .noSpace {
          throw PersistentStoreError(error, operation: "read the schema", path: nil)
        }
        let words =
          error.resultCode == .SQLITE_INTERRUPT
          ? "it takes too long" : error.message.map(PersistentStoreError.withoutValues) ?? "no reason given"
        throw PersistentStoreError(
          .schemaScriptRefused, operation: "read the schema", detail: "\(place) fails: \(words)",
          resultCode: error.extendedResultCode.rawValue)
      }
      guard steps <= Self.maximumSteps else { throw Self.refused("\(place): the schema takes too long to run") }
    }
  }

  /// Whether SQLite makes a table by itself: one of its own, or one behind a virtual table that is there already.
  private static func isSQLitesOwn(_ made: SchemaScanner.Made, _ database: Database) throws -> Bool {
    if made.name.lowercased().hasPrefix("sqlite_") { return true }
    guard !made.isVirtual, made.name.contains("_") else { return false }
    return try Bool.fetchOne(
      database,
      sql: """
        SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE)
          AND EXISTS (SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow' AND name = ?1 COLLATE NOCASE)
        """, arguments: [made.name]) == true
  }

  /// Drops the tables behind a virtual table that a listing has before it; SQLite makes them with it.
  private static func dropShadows(of name: String, _ database: Database) throws {
    for name in Set(ShadowTables.modules.flatMap { ShadowTables.names(of: name, module: $0) }) {
      let isThere = try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE)",
        arguments: [name])
      if isThere == true { try database.execute(sql: "DROP TABLE \(SQLText.quotedIdentifier(name))") }
    }
  }
}

/// The tables in which SQLite's own modules keep what their virtual tables hold; no row of them is a record.
package enum ShadowTables {
  /// The endings of their names, by the module, in lower case (sqlite.org/fts5.html, fts3.html and rtree.html).
  private static let endings: [String: [String]] = [
    "fts5": ["data", "idx", "content", "docsize", "config"],
    "fts4": ["content", "segments", "segdir", "docsize", "stat"],
    "fts3": ["content", "segments", "segdir", "docsize", "stat"],
    "rtree": ["node", "rowid", "parent"], "rtree_i32": ["node", "rowid", "parent"],
    "geopoly": ["node", "rowid", "parent"],
  ]

  /// The names, in lower case, of the tables behind a virtual table; none where its module is not known.
  package static func names(of table: String, module: String) -> [String] {
    endings[module.lowercased()]?.map { "\(table.lowercased())_\($0)" } ?? []
  }

  /// The name, in lower case, of the one that has a row for each row of the virtual table.
  package static func rows(of table: String, module: String) -> String? {
    names(of: table, module: module).first { $0.hasSuffix("_content") || $0.hasSuffix("_rowid") }
  }

  /// The names, in lower case, of those by which the virtual table can be made anew.
  package static func content(of table: String, module: String) -> [String] {
    names(of: table, module: module).filter { name in ["_content", "_rowid", "_node"].contains(where: name.hasSuffix) }
  }

  /// The modules that have any.
  package static var modules: some Collection<String> { endings.keys }
}

/// A database as the bytes of its file.
enum DatabaseImage {
  /// The bytes of the connection's main database, marked as one that is in WAL mode.
  ///
  /// The two bytes at offset 18 are the write and read version of SQLite's header; 2 means WAL, which a database in memory
  /// cannot be put into itself.
  static func bytes(of database: Database) throws -> [UInt8] {
    var size: Int64 = 0
    guard let connection = unsafe database.sqliteConnection,
      let image = unsafe sqlite3_serialize(connection, "main", &size, 0)
    else {
      throw DatabaseError(resultCode: .SQLITE_NOMEM, message: "the database could not be serialized")
    }
    defer { unsafe sqlite3_free(image) }
    var bytes = unsafe Array(UnsafeBufferPointer(start: image, count: Int(size)))
    guard bytes.count > 100 else {
      throw DatabaseError(resultCode: .SQLITE_ERROR, message: "the database is empty")
    }
    bytes[18] = 2
    bytes[19] = 2
    return bytes
  }

  /// Bounds what statements from elsewhere can do on the connection.
  ///
  /// No other database can be attached, no value grows above 16 MB, and a single statement ends after 20 million steps of
  /// SQLite's virtual machine.
  static func limit(_ database: Database) {
    guard let connection = unsafe database.sqliteConnection else { return }
    let limits: [(Int32, Int32)] = [
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LENGTH, 16 << 20), (SQLITE_LIMIT_SQL_LENGTH, 8 << 20),
      (SQLITE_LIMIT_EXPR_DEPTH, 200), (SQLITE_LIMIT_COMPOUND_SELECT, 100), (SQLITE_LIMIT_VDBE_OP, 1_000_000),
      (SQLITE_LIMIT_TRIGGER_DEPTH, 32), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    ]
    for (name, value) in limits { _ = unsafe sqlite3_limit(connection, name, value) }
    unsafe sqlite3_progress_handler(connection, 20_000_000, { _ in 1 }, nil)
  }

  /// The number of steps of SQLite's virtual machine that a statement has taken.
  static func steps(of statement: Statement) -> Int {
    unsafe Int(sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_VM_STEP, 1))
  }
}

/// What stands in for the collations and functions that only an app has, so that a schema which names them can be made.
///
/// A collation compares bytes; a function gives NULL and must not be asked for values.
package enum StandIns {
  /// What SQLite says is missing.
  package enum Missing: Sendable, Hashable {
    case collation(String)
    case function(String)

    /// Reads SQLite's words; nil where they are about something else.
    package init?(_ message: String?) {
      guard let parts = message?.split(separator: ": ", maxSplits: 1), parts.count == 2 else { return nil }
      switch parts[0] {
      case "no such collation sequence": self = .collation(String(parts[1]))
      case "no such function": self = .function(String(parts[1]))
      default: return nil
      }
    }
  }

  /// How many of a schema are stood in for at most.
  package static let limit = 256

  /// Adds one to a connection.
  package static func add(_ missing: Missing, to database: Database) {
    switch missing {
    case .collation(let name):
      database.add(
        collation: DatabaseCollation(name) { first, second in
          first.utf8.elementsEqual(second.utf8)
            ? .orderedSame : first.utf8.lexicographicallyPrecedes(second.utf8) ? .orderedAscending : .orderedDescending
        })
    case .function(let name): database.add(function: DatabaseFunction(name, pure: true) { _ in nil })
    }
  }
}
