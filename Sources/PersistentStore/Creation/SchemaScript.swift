internal import Foundation
package import GRDB
internal import GRDBSQLite
public import Platform

/// The schema of a plain SQLite store as the text of its `CREATE` statements, as in a `.sql` file.
///
/// The untrusted text runs in a private memory database: it cannot attach databases, load code, disable protections, or
/// exceed time and size limits.
public struct SchemaScript: Sendable, Hashable {
  /// The maximum length in bytes.
  public static let maximumLength = 4 << 20

  static let maximumStatements = 10_000

  /// The virtual machine steps for the script.
  static let maximumSteps = 50_000_000

  /// The statements as given.
  public let text: String

  /// Creates a script from text.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` if it is too long or contains a zero byte.
  public init(_ text: String) throws(PersistentStoreError) {
    guard text.utf8.count <= Self.maximumLength else {
      throw Self.refused("the schema is longer than \(Self.maximumLength >> 20) MB")
    }
    guard !text.utf8.contains(0) else { throw Self.refused("the schema contains a zero byte") }
    self.text = text
  }

  /// Creates a script from UTF-8 bytes.
  public init(bytes: [UInt8]) throws(PersistentStoreError) {
    guard let text = String(utf8: bytes) else { throw Self.refused("the schema is not UTF-8 text") }
    try self.init(text.hasPrefix("\u{FEFF}") ? String(text.unicodeScalars.dropFirst()) : text)
  }

  /// Returns whether a text starts like a schema, after comments.
  static func isLikely(_ text: String) -> Bool {
    var scanner = SchemaScanner(bytes: Array(text.utf8))
    scanner.skipSeparators()
    return ["CREATE", "PRAGMA", "BEGIN"].contains(scanner.words(1).first)
      && ["TABLE", "VIRTUAL", "FOREIGN_KEYS", "ENCODING", "TRANSACTION", ";", "INDEX", "UNIQUE", "VIEW", "TRIGGER"]
        .contains(scanner.words(2).last)
  }

  static func refused(_ detail: String) -> PersistentStoreError {
    PersistentStoreError(.schemaScriptRefused, operation: "read the schema", detail: detail)
  }
}

extension SchemaScript {
  /// Runs the script in a private database.
  ///
  /// Transactions are omitted, because an error discards the database. SQLite's own and shadow tables are skipped;
  /// stand-ins replace the app's collations and functions.
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
      // Some pragmas act at compilation, so the words are checked first.
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
        // Only the app can provide it.
        if error.message?.hasPrefix("no such module: ") == true { continue }
        // A memory database can lack only system memory and sort files; a full database or a long value hits our
        // limits, the schema's fault.
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

  /// Returns whether SQLite creates a table: its own, or an existing virtual table's shadow table.
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

  /// Drops shadow tables listed before their virtual table, which creates them.
  private static func dropShadows(of name: String, _ database: Database) throws {
    for name in Set(ShadowTables.modules.flatMap { ShadowTables.names(of: name, module: $0) }) {
      let isThere = try Bool.fetchOne(
        database, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE)",
        arguments: [name])
      if isThere == true { try database.execute(sql: "DROP TABLE \(SQLText.quotedIdentifier(name))") }
    }
  }
}

/// The shadow tables of SQLite's own modules; their rows are not records.
package enum ShadowTables {
  /// Lower-case name suffixes by module (sqlite.org/fts5.html, fts3.html and rtree.html).
  private static let endings: [String: [String]] = [
    "fts5": ["data", "idx", "content", "docsize", "config"],
    "fts4": ["content", "segments", "segdir", "docsize", "stat"],
    "fts3": ["content", "segments", "segdir", "docsize", "stat"],
    "rtree": ["node", "rowid", "parent"], "rtree_i32": ["node", "rowid", "parent"],
    "geopoly": ["node", "rowid", "parent"],
  ]

  /// Returns shadow table names in lower case; empty for unknown modules.
  package static func names(of table: String, module: String) -> [String] {
    endings[module.lowercased()]?.map { "\(table.lowercased())_\($0)" } ?? []
  }

  /// Returns the shadow table with one row per virtual row, in lower case.
  package static func rows(of table: String, module: String) -> String? {
    names(of: table, module: module).first { $0.hasSuffix("_content") || $0.hasSuffix("_rowid") }
  }

  /// Returns the shadow tables sufficient for a rebuild, in lower case.
  package static func content(of table: String, module: String) -> [String] {
    names(of: table, module: module).filter { name in ["_content", "_rowid", "_node"].contains(where: name.hasSuffix) }
  }

  package static var modules: some Collection<String> { endings.keys }
}

enum DatabaseImage {
  /// Returns the main database's bytes, marked as WAL mode.
  ///
  /// Bytes 18 and 19 are the header's write and read versions; 2 means WAL, which a memory database cannot enter
  /// itself.
  static func bytes(of database: Database) throws -> [UInt8] {
    var size: Int64 = 0
    guard let connection = unsafe database.sqliteConnection,
      let image = unsafe sqlite3_serialize(connection, "main", &size, 0)
    else { throw DatabaseError(resultCode: .SQLITE_NOMEM, message: "the database could not be serialized") }
    defer { unsafe sqlite3_free(image) }
    var bytes = unsafe Array(UnsafeBufferPointer(start: image, count: Int(size)))
    guard bytes.count > 100 else { throw DatabaseError(resultCode: .SQLITE_ERROR, message: "the database is empty") }
    bytes[18] = 2
    bytes[19] = 2
    return bytes
  }

  /// Limits untrusted statements: no attached databases, values up to 16 MB, 20 million virtual machine steps each.
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

  static func steps(of statement: Statement) -> Int {
    unsafe Int(sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_VM_STEP, 1))
  }
}

/// Stand-ins for an app's collations and functions, so that schemas naming them can be created.
///
/// A collation compares bytes; a function returns NULL and must not be used for values.
package enum StandIns {
  package enum Missing: Sendable, Hashable {
    case collation(String)
    case function(String)

    package init?(_ message: String?) {
      guard let parts = message?.split(separator: ": ", maxSplits: 1), parts.count == 2 else { return nil }
      switch parts[0] {
      case "no such collation sequence": self = .collation(String(parts[1]))
      case "no such function": self = .function(String(parts[1]))
      default: return nil
      }
    }
  }

  package static let limit = 256

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

struct SchemaScanner {
  private let bytes: [UInt8]
  private var offset = 0

  private(set) var line = 1

  init(bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { offset >= bytes.count }

  mutating func skipSeparators() {
    var next = offset
    while let end = separatorEnd(at: next) { next = end }
    move(to: next)
  }

  /// Skips a statement, possibly with its skipped leading comments, and returns whether it was found.
  mutating func advance(over statement: [UInt8]) -> Bool {
    guard !statement.isEmpty else { return false }
    var start = previousEnd
    while start <= offset {
      let end = start + statement.count
      if end <= bytes.count, bytes[start..<end].elementsEqual(statement) {
        move(to: end)
        previousEnd = offset
        return true
      }
      guard let next = separatorEnd(at: start) else { return false }
      start = next
    }
    return false
  }

  private var previousEnd = 0

  /// Returns upper-cased words and single signs, without comments.
  func words(_ count: Int) -> [String] {
    var words: [String] = []
    var next = offset
    while words.count < count, let byte = byte(at: next) {
      if let end = separatorEnd(at: next) {
        next = end
      } else if Self.isWord(byte) {
        let start = next
        while let byte = self.byte(at: next), Self.isWord(byte) { next += 1 }
        words.append(String(decoding: bytes[start..<next], as: UTF8.self).uppercased())
      } else {
        words.append(String(decoding: [byte], as: UTF8.self))
        next += 1
      }
    }
    return words
  }

  struct Made {
    var name: String
    var isVirtual: Bool
  }

  var made: Made? {
    var next = self
    func take(_ word: String) -> Bool {
      guard next.words(1) == [word] else { return false }
      _ = next.takeName()
      return true
    }
    guard take("CREATE") else { return nil }
    let isVirtual = take("VIRTUAL")
    guard take("TABLE") else { return nil }
    if take("IF") { for word in ["NOT", "EXISTS"] where !take(word) { return nil } }
    return next.takeName().map { Made(name: $0, isVirtual: isVirtual) }
  }

  mutating func skipStatement() {
    var next = offset
    while let byte = byte(at: next), byte != UInt8(ascii: ";") {
      next = separatorEnd(at: next) ?? quotedEnd(at: next) ?? next + 1
    }
    move(to: min(next + 1, bytes.count))
    previousEnd = offset
  }

  var rest: String { String(decoding: bytes[min(offset, bytes.count)...], as: UTF8.self) }

  private mutating func takeName() -> String? {
    skipSeparators()
    let start = offset
    if let end = quotedEnd(at: start) {
      move(to: end)
      return String(decoding: bytes[(start + 1)..<max(start + 1, end - 1)], as: UTF8.self)
    }
    var end = start
    while let byte = byte(at: end), Self.isWord(byte) || byte >= 0x80 || byte == UInt8(ascii: "$") { end += 1 }
    move(to: end)
    return end > start ? String(decoding: bytes[start..<end], as: UTF8.self) : nil
  }

  /// Returns the end of a quoted text here, if any.
  private func quotedEnd(at start: Int) -> Int? {
    guard let open = byte(at: start), [0x22, 0x27, 0x60, 0x5B].contains(open) else { return nil }
    let close = open == 0x5B ? 0x5D : open
    var end = start + 1
    while let byte = byte(at: end), byte != close { end += 1 }
    return min(end + 1, bytes.count)
  }

  /// Returns the end of white space, semicolon or comment here, if any.
  private func separatorEnd(at start: Int) -> Int? {
    guard let first = byte(at: start) else { return nil }
    if Self.isSpace(first) || first == UInt8(ascii: ";") { return start + 1 }
    guard let second = byte(at: start + 1) else { return nil }
    if first == UInt8(ascii: "-"), second == first {
      var end = start + 2
      while let byte = byte(at: end), byte != UInt8(ascii: "\n") { end += 1 }
      return end
    }
    if first == UInt8(ascii: "/"), second == UInt8(ascii: "*") {
      var end = start + 2
      while let byte = byte(at: end) {
        if byte == UInt8(ascii: "*"), self.byte(at: end + 1) == UInt8(ascii: "/") { return end + 2 }
        end += 1
      }
      return end
    }
    return nil
  }

  private mutating func move(to end: Int) {
    line += bytes[offset..<max(offset, end)].count { $0 == UInt8(ascii: "\n") }
    offset = max(offset, end)
  }

  private func byte(at index: Int) -> UInt8? { bytes.indices.contains(index) ? bytes[index] : nil }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D].contains(byte) }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}

enum SchemaStatementRule {
  case run

  /// Compiled but not run: irrelevant to an empty store.
  case ignore
  case refuse(String)

  static func verdict(on words: [String]) -> SchemaStatementRule {
    switch words.first {
    case "CREATE", "INSERT", "REPLACE", "UPDATE", "DELETE", "ALTER", "DROP", "ANALYZE", "REINDEX", "WITH": .run
    case "BEGIN", "COMMIT", "END": .ignore
    case "PRAGMA": verdict(onPragma: words)
    case nil: .refuse("is empty")
    default: .refuse("is not one that creates a schema")
    }
  }

  private static func verdict(onPragma words: [String]) -> SchemaStatementRule {
    // `PRAGMA main.user_version` starts with its database.
    let name = words.count > 3 && words[2] == "." ? words[3] : words.count > 1 ? words[1] : ""
    switch name {
    case "USER_VERSION", "APPLICATION_ID", "ENCODING", "AUTO_VACUUM": return .run
    case "FOREIGN_KEYS", "JOURNAL_MODE", "SYNCHRONOUS", "PAGE_SIZE", "CACHE_SIZE", "TEMP_STORE", "DEFER_FOREIGN_KEYS",
      "RECURSIVE_TRIGGERS", "LEGACY_ALTER_TABLE":
      return .ignore
    default: return .refuse("is a pragma that a schema may not have")
    }
  }
}
