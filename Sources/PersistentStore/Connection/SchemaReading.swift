internal import GRDB
package import Platform

/// What SQLite says of a database when it reads its schema, and of its indexes when it checks them: its own word on whether
/// an app could open it.
///
/// Nothing runs that the schema declares (see ``EvidenceConnection``), and nothing is written.
package struct SchemaReading: Sendable {
  /// Why SQLite uses a database not at all, or one of its tables not.
  package struct Refusal: Sendable, Hashable {
    /// What kind of refusal it is.
    package enum Kind: String, Sendable, Hashable {
      /// SQLite refuses every statement, since it cannot read the schema.
      case schema = "schema-refused"

      /// An index that a table's statement asks for has no row in the schema, so that SQLite cannot read or write the table.
      case indexMissing = "schema-index-missing"
    }

    /// What kind of refusal it is.
    package var kind: Kind

    /// The entry of the schema that SQLite names, or the table that cannot be used; nil where it names none.
    package var entry: String?

    /// SQLite's result code.
    package var code: Int
  }

  /// What came of checking the indexes of a table.
  package enum Check: Sendable, Hashable {
    case sound

    case damaged

    /// It cannot check them without evaluating what the schema declares, or not in a time that is enough for a store of
    /// that size.
    case unchecked
  }

  private let file: VirtualFile

  /// A reading of a database's pages as one file.
  package init(_ content: some ByteSource) throws(FileError) {
    try FileError.requireDescriptors(to: "read the schema")
    file = try VirtualFile(content)
  }

  // MARK: The schema

  /// Has SQLite read the schema; nil where it does.
  ///
  /// - Parameter tables: the ordinary tables, by name, with whether each is one without rowids.
  /// - Throws: what reading the bytes, or SQLite's own surroundings, failed with.
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

  /// The table whose statement asks for an index that has no row in the schema; nil where none does.
  private static func missingIndex(of tables: [String: Bool], in database: Database) throws -> String? {
    let there = try Set(String.fetchAll(database, sql: "SELECT lower(name) FROM sqlite_schema WHERE type = 'index'"))
    let statement = try database.makeStatement(sql: "SELECT lower(name), origin FROM pragma_index_list(?)")
    for (table, isWithoutRowid) in tables.sorted(by: { $0.key < $1.key }) {
      let indexes = try Row.fetchAll(statement, arguments: [table])
      for index in indexes {
        // The primary key of a table without rowids is the table itself.
        if isWithoutRowid, index[1] as String? == "pk" { continue }
        if let name = index[0] as String?, !there.contains(name) { return table }
      }
    }
    return nil
  }

  /// The name in `malformed database schema (name)`.
  private static func entry(in message: String?) -> String? {
    let start = "malformed database schema ("
    guard let message, message.hasPrefix(start) else { return nil }
    // What SQLite says behind the name may quote the statement.
    return String(message.dropFirst(start.count).prefix { $0 != ")" })
  }

  // MARK: Indexes

  /// Has SQLite compare the entries of indexes with the rows of their tables.
  ///
  /// - Parameters:
  ///   - tables: the tables, by name.
  ///   - isCancelled: asked now and then whether the work is to end; the rest is `unchecked` then.
  /// - Throws: what reading the bytes, or SQLite's own surroundings, failed with.
  package func checkIndexes(
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
          // A collation of the app's own is unknown here; a page that is no page of the tree is damage.
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

  /// What the lines of a check say of the indexes: a value that a column does not allow is a matter of the rows.
  private static func check(_ lines: [String]) -> Check {
    let others = lines.filter { !$0.hasPrefix("NULL value in ") && $0 != "ok" }
    if !others.isEmpty { return .damaged }
    return lines.count < 100 ? .sound : .unchecked
  }

  // MARK: Errors

  /// The error of SQLite that the content has caused; nil where a limit of time ended the work.
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
