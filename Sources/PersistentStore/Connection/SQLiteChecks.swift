package import GRDB
internal import Platform

/// SQLite's integrity check, with read errors separated from damage.
///
/// `PRAGMA integrity_check` lists a read error as a text line; other statements fail with its code.
package enum IntegrityCheck {
  /// Returns SQLite's lines, only `ok` for a sound database.
  ///
  /// - Parameter table: the table to check with its indexes; nil for the whole database.
  /// - Throws: an environmental `DatabaseError` if a page is unreadable.
  package static func lines(of database: Database, table: String? = nil, limit: Int = 100) throws -> [String] {
    let first = try ask(database, table, limit)
    guard first != sound else { return first }
    // Unlike a read error, damage persists in a second check.
    try database.execute(sql: "PRAGMA shrink_memory")
    guard try ask(database, table, limit) != sound else { throw DatabaseError(resultCode: .SQLITE_IOERR) }
    return first
  }

  /// An evidence check without evaluating schema expressions.
  package struct EvidenceLines: Sendable {
    package var lines: [String]

    /// Tables whose check would evaluate expressions; if any, the freelist is unchecked too.
    package var unchecked: [String]
  }

  /// Checks an ``EvidenceConnection``.
  ///
  /// - Throws: `DatabaseError` as ``lines(of:table:limit:)``; `SQLITE_INTERRUPT` beyond the time limit.
  package static func evidenceLines(of database: Database, limit: Int = 100) throws -> EvidenceLines {
    let pages = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let time = StatementLimit(time: .seconds(30) + .milliseconds(min(pages, 1 << 30)))
    return try time.apply(to: database) {
      let foreign = try ForeignExpressions.tables(of: database)
      let tables = try String.fetchAll(
        database,
        sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') ORDER BY name")
      guard !foreign.isEmpty || tables.count > mostTables else {
        return EvidenceLines(lines: try lines(of: database, limit: limit), unchecked: [])
      }
      var found: [String] = []
      for table in tables where !foreign.contains(table) && found.count < limit {
        found += try lines(of: database, table: table, limit: limit - found.count).filter { !sound.contains($0) }
      }
      return EvidenceLines(lines: found.isEmpty ? sound : found, unchecked: foreign.sorted())
    }
  }

  /// More tables would exceed a statement's operation limit.
  private static let mostTables = 2000

  private static let sound = ["ok"]

  private static func ask(_ database: Database, _ table: String?, _ limit: Int) throws -> [String] {
    let lines =
      if let table {
        try String.fetchAll(
          database, sql: "SELECT integrity_check FROM pragma_integrity_check(?) LIMIT \(limit)", arguments: [table])
      } else {
        try String.fetchAll(database, sql: "PRAGMA integrity_check(\(limit))")
      }
    for code in lines.compactMap(resultCode(in:)) where ResultCodeCause(code).isEnvironmental {
      throw DatabaseError(resultCode: code)
    }
    return lines
  }

  /// Returns the code in `unable to get the page. error code=522`.
  package static func resultCode(in line: String) -> ResultCode? {
    let words = line.split { $0 == " " || $0 == "=" }
    guard let place = words.lastIndex(of: "code"), place > 0, words[place - 1] == "error", place + 1 < words.count,
      let code = Int32(words[place + 1])
    else { return nil }
    return ResultCode(rawValue: code)
  }
}

extension Database {
  /// Returns whether reading these columns evaluates no schema expression.
  package func hasStored(_ columns: [String], in table: String) throws -> Bool {
    // `table_info` omits generated columns; a view is not a table.
    let names = try String.fetchAll(
      self,
      sql: """
        SELECT upper(c.name) FROM pragma_table_list(?1) AS l, pragma_table_info(?1) AS c
        WHERE l.schema = 'main' AND l.type = 'table'
        """, arguments: [table])
    return Set(columns.map { $0.uppercased() }).isSubset(of: names)
  }
}

enum ForeignExpressions {
  /// Returns ordinary tables with generated columns or partial or expression indexes, found without evaluation.
  ///
  /// Checks and defaults do not count: evidence is read-only with checks off.
  static func tables(of database: Database) throws -> Set<String> {
    try Set(
      String.fetchAll(
        database,
        sql: """
          SELECT l.name FROM pragma_table_list AS l, pragma_table_xinfo(l.name) AS c
          WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND c.hidden = 2
          UNION SELECT l.name FROM pragma_table_list AS l, pragma_index_list(l.name) AS i
          WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND i.partial
          UNION SELECT l.name FROM pragma_table_list AS l, pragma_index_list(l.name) AS i, pragma_index_info(i.name) AS c
          WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND c.cid = -2
          """))
  }
}

/// SQLite's own reading of a schema and its indexes: whether an app could open the database.
///
/// Schema declarations do not run (see ``EvidenceConnection``); files stay unchanged.
struct SchemaReading: Sendable {
  struct Refusal: Sendable, Hashable {
    enum Kind: String, Sendable, Hashable {
      case schema = "schema-refused"

      /// A table's implied index has no schema row, so SQLite can neither read nor write the table.
      case indexMissing = "schema-index-missing"
    }

    var kind: Kind

    /// The entry SQLite names, or the unusable table.
    var entry: String?

    var code: Int
  }

  enum Check: Sendable, Hashable {
    case sound

    case damaged

    /// The check would evaluate expressions or take too long.
    case unchecked
  }

  private let file: VirtualFile

  init(_ content: some ByteSource) throws(FileError) {
    try FileError.requireDescriptors(to: "read the schema")
    file = try VirtualFile(content)
  }

  // MARK: The schema

  /// Returns SQLite's refusal of the schema, if any.
  ///
  /// - Parameter tables: ordinary tables, with whether they are `WITHOUT ROWID`.
  /// - Throws: an error of reading or of SQLite's environment.
  func refusal(of tables: [String: Bool]) throws(FileError) -> Refusal? {
    do {
      let queue = try EvidenceConnection.open(file, label: "Lazaret.SchemaReading")
      let missing = try queue.read { database in
        try EvidenceConnection.limit(for: file).apply(to: database) {
          _ = try Int.fetchOne(database, sql: "SELECT 1 FROM sqlite_schema LIMIT 1")
          return try Self.missingIndex(of: tables, in: database)
        }
      }
      try queue.close()
      return missing.map { Refusal(kind: .indexMissing, entry: $0, code: 11) }
    } catch {
      guard let error = try content(error, "read the schema") else { return nil }
      return Refusal(kind: .schema, entry: Self.entry(in: error.message), code: Int(error.resultCode.rawValue))
    }
  }

  private static func missingIndex(of tables: [String: Bool], in database: Database) throws -> String? {
    let there = try Set(String.fetchAll(database, sql: "SELECT lower(name) FROM sqlite_schema WHERE type = 'index'"))
    let statement = try database.makeStatement(sql: "SELECT lower(name), origin FROM pragma_index_list(?)")
    for (table, isWithoutRowid) in tables.sorted(by: { $0.key < $1.key }) {
      let indexes = try Row.fetchAll(statement, arguments: [table])
      for index in indexes {
        // A `WITHOUT ROWID` table is its own primary key index.
        if isWithoutRowid, index[1] as String? == "pk" { continue }
        if let name = index[0] as String?, !there.contains(name) { return table }
      }
    }
    return nil
  }

  /// Returns the name in `malformed database schema (name)`.
  private static func entry(in message: String?) -> String? {
    let start = "malformed database schema ("
    guard let message, message.hasPrefix(start) else { return nil }
    // The rest may quote the statement.
    return String(message.dropFirst(start.count).prefix { $0 != ")" })
  }

  // MARK: Indexes

  /// Has SQLite compare index entries with rows.
  ///
  /// - Parameter isCancelled: polled; once true, remaining tables are `unchecked`.
  /// - Throws: an error of reading or of SQLite's environment.
  func checkIndexes(
    of tables: [String], isCancelled: @escaping () -> Bool = { false }
  ) throws(FileError) -> [String: Check] {
    var found = Dictionary(tables.map { ($0, Check.unchecked) }) { first, _ in first }
    do {
      let queue = try EvidenceConnection.open(file, label: "Lazaret.SchemaReading", cacheKilobytes: 8000)
      let limit = EvidenceConnection.limit(for: file, isCancelled: isCancelled)
      let foreign = try queue.read { database in
        try limit.apply(to: database) { try ForeignExpressions.tables(of: database) }
      }
      for table in tables where !foreign.contains(where: { $0.lowercased() == table.lowercased() }) {
        do {
          found[table] = try queue.read { database in
            try limit.apply(to: database) { Self.check(try IntegrityCheck.lines(of: database, table: table)) }
          }
        } catch let error as DatabaseError {
          // The app's collations are unknown here; a page that does not fit the tree is damage.
          guard let error = try content(error, "check the indexes") else { return found }
          if [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode) { found[table] = .damaged }
        }
      }
      try queue.close()
    } catch {
      _ = try content(error, "check the indexes")
    }
    return found
  }

  /// Disallowed values concern the rows, not the indexes.
  private static func check(_ lines: [String]) -> Check {
    let others = lines.filter { !$0.hasPrefix("NULL value in ") && $0 != "ok" }
    if !others.isEmpty { return .damaged }
    return lines.count < 100 ? .sound : .unchecked
  }

  // MARK: Errors

  private func content(_ error: any Error, _ operation: String) throws(FileError) -> DatabaseError? {
    if let failure = file.failure { throw failure }
    guard let found = error as? DatabaseError else {
      throw error as? FileError ?? FileError(.other, operation: operation, path: nil)
    }
    let cause = ResultCodeCause(found.extendedResultCode)
    if let kind = cause.fileErrorKind { throw FileError(kind, operation: operation, path: nil) }
    return cause == .interrupted ? nil : found
  }
}
