internal import GRDB
package import Platform

/// SQLite's own reading of a schema and its indexes: whether an app could open the database.
///
/// Schema declarations do not run (see ``EvidenceConnection``); files stay unchanged.
package struct SchemaReading: Sendable {
  package struct Refusal: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable {
      case schema = "schema-refused"

      /// A table's implied index has no schema row, so SQLite can neither read nor write the table.
      case indexMissing = "schema-index-missing"
    }

    package var kind: Kind

    /// The entry SQLite names, or the unusable table.
    package var entry: String?

    package var code: Int
  }

  package enum Check: Sendable, Hashable {
    case sound

    case damaged

    /// The check would evaluate expressions or take too long.
    case unchecked
  }

  private let file: VirtualFile

  package init(_ content: some ByteSource) throws(FileError) {
    try FileError.requireDescriptors(to: "read the schema")
    file = try VirtualFile(content)
  }

  // MARK: The schema

  /// Returns SQLite's refusal of the schema, if any.
  ///
  /// - Parameter tables: ordinary tables, with whether they are `WITHOUT ROWID`.
  /// - Throws: an error of reading or of SQLite's environment.
  package func refusal(of tables: [String: Bool]) throws(FileError) -> Refusal? {
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
