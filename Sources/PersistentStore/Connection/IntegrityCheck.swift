package import GRDB

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

package enum ForeignExpressions {
  /// Returns ordinary tables with generated columns or partial or expression indexes, found without evaluation.
  ///
  /// Checks and defaults do not count: evidence is read-only with checks off.
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
