internal import Compatibility
internal import GRDB
public import StoreFiles

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
