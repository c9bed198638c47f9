package import GRDB

/// SQLite's own check of a database or a table, with trouble of reading told from damage.
///
/// `PRAGMA integrity_check` gives an error of reading as a line of text among the others, where every other statement
/// fails with its code.
package enum IntegrityCheck {
  /// The lines that SQLite gives, `ok` alone for a sound database.
  ///
  /// - Parameters:
  ///   - table: the table to be checked with its indexes; the whole database if nil.
  ///   - limit: the most lines.
  /// - Throws: `DatabaseError` of the environment where a page could not be read.
  package static func lines(of database: Database, table: String? = nil, limit: Int = 100) throws -> [String] {
    let first = try ask(database, table, limit)
    guard first != sound else { return first }
    // Damage is there at a second look too, whatever its lines say.
    try database.execute(sql: "PRAGMA shrink_memory")
    guard try ask(database, table, limit) != sound else { throw DatabaseError(resultCode: .SQLITE_IOERR) }
    return first
  }

  /// What SQLite found in a store that is evidence, as far as it can look without evaluating what the schema declares.
  package struct EvidenceLines: Sendable {
    /// The lines that SQLite gives, `ok` alone where it found nothing.
    package var lines: [String]

    /// The tables that were not checked, because the check would evaluate expressions of theirs; where there are any, the
    /// list of free pages was not checked either.
    package var unchecked: [String]
  }

  /// Checks a database of an ``EvidenceConnection``.
  ///
  /// - Parameter limit: the most lines.
  /// - Throws: `DatabaseError` as ``lines(of:table:limit:)``; `SQLITE_INTERRUPT` where it takes longer than a store of that
  ///   size should.
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

  /// How many tables one statement checks: beyond them it would have more operations than a statement may.
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

  /// The result code that a line quotes: `unable to get the page. error code=522`.
  package static func resultCode(in line: String) -> ResultCode? {
    let words = line.split { $0 == " " || $0 == "=" }
    guard let place = words.lastIndex(of: "code"), place > 0, words[place - 1] == "error", place + 1 < words.count,
      let code = Int32(words[place + 1])
    else { return nil }
    return ResultCode(rawValue: code)
  }
}

extension Database {
  /// Whether an ordinary table has columns of these names whose values are in the file, so that reading them evaluates no
  /// expression of the schema.
  package func hasStored(_ columns: [String], in table: String) throws -> Bool {
    // What is generated, stored or not, is in no `table_info`; a view is no table.
    let names = try String.fetchAll(
      self,
      sql: """
        SELECT upper(c.name) FROM pragma_table_list(?1) AS l, pragma_table_info(?1) AS c
        WHERE l.schema = 'main' AND l.type = 'table'
        """, arguments: [table])
    return Set(columns.map { $0.uppercased() }).isSubset(of: names)
  }
}

/// The tables of a schema that SQLite cannot check without evaluating an expression that the schema has.
package enum ForeignExpressions {
  /// The names of ordinary tables with computed columns, or with an index that is partial or has an expression.
  ///
  /// Nothing is evaluated to find them. Checks and defaults do not count: evidence is never written to, and its checks are
  /// off.
  package static func tables(of database: Database) throws -> Set<String> {
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
