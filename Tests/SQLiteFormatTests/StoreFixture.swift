import GRDB
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport

/// A database that SQLite makes for a test, and its files' bytes.
final class StoreFixture {
  /// The bytes of a database's files at one moment.
  struct Files {
    var main: [UInt8] = []
    var log: [UInt8]?
    var journal: [UInt8]?

    func open(pageSize: Int? = nil) throws -> SQLiteFormat.Database {
      try SQLiteFormat.Database(
        main: MemoryBytes(main), writeAheadLog: log.map { MemoryBytes($0) },
        rollbackJournal: journal.map { MemoryBytes($0) }, pageSize: pageSize)
    }
  }

  let folder: TemporaryFolder
  let path: FilePath
  let queue: DatabaseQueue

  /// Runs statements on a new database outside of any transaction.
  init(_ statements: String...) throws {
    folder = try TemporaryFolder()
    path = folder.appending("Store.sqlite")
    queue = try DatabaseQueue(path: path.string)
    for statement in statements { try run(statement) }
  }

  /// Opens a database that begins with the given bytes.
  init(bytes: [UInt8]) throws {
    folder = try TemporaryFolder()
    path = try folder.write(bytes, to: "Store.sqlite")
    queue = try DatabaseQueue(path: path.string)
  }

  func run(_ sql: String) throws {
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
  }

  /// The files as they are now, transactions that are under way included.
  func files() throws -> Files {
    func bytes(_ path: FilePath) throws -> [UInt8]? {
      guard try FileSystem().status(of: path) != nil else { return nil }
      return try FileSystem().contents(of: path, limit: 1 << 30)
    }
    return Files(
      main: try bytes(path) ?? [], log: try bytes(FilePath(path.string + "-wal")),
      journal: try bytes(FilePath(path.string + "-journal")))
  }

  /// All rows of all ordinary tables, as SQLite reads them.
  func content() throws -> [String: [[Value]]] {
    try queue.read { try SQLiteContent.of($0) }
  }

  /// One statement that inserts `count` rows of every storage class and of many lengths into `table(a, b, c, d)`.
  static func insert(_ count: Int, into table: String = "t", from first: Int = 1, longest: Int = 300) -> String {
    """
    INSERT INTO \(table)(a, b, c, d)
    WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + count - 1))
    SELECT
      CASE i % 8 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN -i * 1000 WHEN 3 THEN i * 10000000000 WHEN 4 THEN i / 3.0
        WHEN 5 THEN 'é' || i WHEN 6 THEN zeroblob(i % 50) ELSE 9223372036854775807 - i END,
      substr(hex(zeroblob(\(longest))) || i, 1 + (i * 7919) % \(longest)), i * 1.0, i % 5
    FROM n
    """
  }
}

/// What SQLite reads from a database.
enum SQLiteContent {
  /// The rows of all ordinary tables, text as the bytes that are stored.
  static func of(_ db: GRDB.Database) throws -> [String: [[Value]]] {
    var result: [String: [[Value]]] = [:]
    let tables = try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY rowid")
    let encoding = try String.fetchOne(db, sql: "PRAGMA encoding") ?? ""
    for table in tables {
      let columns = try Row.fetchAll(db, sql: "SELECT name FROM pragma_table_xinfo(\(literal(table))) WHERE hidden = 0")
      let list = columns.map { row -> String in
        let name = identifier(row["name"])
        return "typeof(\(name)), CASE typeof(\(name)) WHEN 'text' THEN CAST(\(name) AS BLOB) ELSE \(name) END"
      }
      let rows = try Row.fetchAll(
        db, sql: "SELECT \(list.joined(separator: ", ")) FROM \(identifier(table)) NOT INDEXED")
      result[table] = rows.map { row in
        stride(from: 0, to: row.count, by: 2).map { value(row[$0 + 1], type: row[$0], encoding: encoding) }
      }
    }
    return result
  }

  private static func value(_ value: DatabaseValue, type: String, encoding: String) -> Value {
    switch value.storage {
    case .null: return .null
    case .int64(let number): return .integer(number)
    case .double(let number): return .real(number)
    case .string(let text): return .text(EncodedText(text))
    case .blob(let data):
      guard type == "text" else { return .blob(Array(data)) }
      let code: TextEncoding =
        encoding == "UTF-16le" ? .utf16LittleEndian : encoding == "UTF-16be" ? .utf16BigEndian : .utf8
      return .text(EncodedText(bytes: Array(data), encoding: code))
    }
  }

  static func identifier(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
  static func literal(_ name: String) -> String { "'\(name.replacing("'", with: "''"))'" }
}

extension SQLiteFormat.Database {
  /// The rows of all ordinary tables, as this module reads them, in the same form.
  func content() throws -> [String: [[Value]]] {
    var result: [String: [[Value]]] = [:]
    for table in try schema().tables where table.rootPage > 0 {
      guard let definition = table.tableDefinition ?? Self.internalTables[table.name] else { continue }
      var cursor =
        try definition.isWithoutRowid ? entries(root: table.rootPage) : rows(root: table.rootPage)
      var rows: [[Value]] = []
      while let row = try cursor.next() {
        let values = definition.values(of: row)
        rows.append(values.indices.filter { definition.columns[$0].generation == nil }.map { values[$0] })
      }
      result[table.name] = rows
    }
    return result
  }

  private static let internalTables = ["sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)"]
    .compactMapValues { TableDefinition(sql: $0) }
}
