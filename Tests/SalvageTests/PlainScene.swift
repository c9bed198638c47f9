import GRDB
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport

/// A plain database made by statements, what it holds, and what a salvage makes of its bytes when they are changed.
struct PlainScene {
  typealias Rows = Set<[DatabaseValue]>

  let folder: TemporaryFolder
  var main: [UInt8]

  /// The length of the hole behind `main`.
  var hole: Int64 = 0
  var log: [UInt8]?
  var logIndex: [UInt8]?
  var journal: [UInt8]?
  let truth: [String: Rows]
  let schema: String

  /// Makes a database.
  ///
  /// - Parameters:
  ///   - pragmas: what is set before the first table is made.
  ///   - schema: the statements that make the tables; also the model, where one is given to the salvage.
  ///   - reservedBytes: the bytes at the end of each page that are not used.
  ///   - fill: puts rows in, in one transaction.
  init(
    pragmas: String = "", schema: String, reservedBytes: UInt8 = 0, fill: (GRDB.Database) throws -> Void
  ) throws {
    folder = try TemporaryFolder()
    self.schema = schema
    let path = folder.appending("Plain.sqlite")
    if reservedBytes > 0 { try Self.reserve(reservedBytes, in: path) }
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "\(pragmas); PRAGMA secure_delete = 0; \(schema); BEGIN")
      try fill(db)
      try db.execute(sql: "COMMIT")
    }
    truth = try queue.read { db in try Self.tables(db) }
    try queue.close()
    main = try FileSystem().contents(of: path, limit: 1 << 28)
  }

  /// Makes an empty database that reserves bytes at the end of each page.
  private static func reserve(_ count: UInt8, in path: FilePath) throws {
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 1") }
    try queue.close()
    var bytes = try FileSystem().contents(of: path, limit: 1 << 20)
    bytes[20] = count
    let content = bytes.count - Int(count)
    (bytes[105], bytes[106]) = (UInt8(content >> 8), UInt8(content & 0xff))
    try FileSystem().writeAtomically(bytes, to: path, replacing: true)
  }

  /// The rows of every table, the rowid first.
  static func tables(_ db: GRDB.Database) throws -> [String: Rows] {
    let names = try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    var result: [String: Rows] = [:]
    for name in names {
      let hasRowid = try Bool.fetchOne(
        db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE name = ?", arguments: [name])
      let key = hasRowid == true ? "rowid" : "NULL"
      result[name] = Set(try Row.fetchAll(db, sql: "SELECT \(key), * FROM \"\(name)\"").map { row in row.map { $0.1 } })
    }
    return result
  }

  struct Result {
    let report: SalvageReport

    /// The rows of all tables of the result, also those that are kept apart.
    let rows: [String: Rows]

    /// Those of them that are told to be parts of rows.
    let parts: ToldParts
  }

  func salvage(withModel: Bool = true, deleted: Bool = false) throws -> Result {
    let place = try TemporaryFolder()
    let path = try place.write(main, to: "Store.sqlite")
    if hole > 0 {
      let file = try FileDescriptor.open(path, .writeOnly)
      try file.closeAfter { try file.resize(to: Int64(main.count) + hole) }
    }
    if let log { try place.write(log, to: "Store.sqlite-wal") }
    if let logIndex { try place.write(logIndex, to: "Store.sqlite-shm") }
    if let journal { try place.write(journal, to: "Store.sqlite-journal") }
    let results = try TemporaryFolder()
    let output = results.appending("Out.sqlite")
    let report = try Salvager().salvageRaw(
      path, to: output, model: withModel ? .sqlite(try SchemaScript(schema)) : nil,
      options: .init(findsDeleted: deleted))
    let queue = try DatabaseQueue(path: output.string)
    let (rows, parts) = try queue.read { db in (try Self.tables(db), try ToldParts(db)) }
    try queue.close()
    return Result(report: report, rows: rows, parts: parts)
  }

  func changing(_ change: (inout PlainScene) -> Void) -> PlainScene {
    var copy = self
    change(&copy)
    return copy
  }

  /// Rows of the result's tables that were never in the store, and are not told to be parts of such rows.
  func falseRows(_ result: Result) -> Int {
    truth.reduce(0) { $0 + result.parts.falseRows($1.key, result.rows[$1.key] ?? [], truth: $1.value) }
  }

  /// Rows of the store that are not in the result's tables.
  func missingRows(_ result: Result) -> Int {
    truth.reduce(0) { $0 + $1.value.subtracting(result.rows[$1.key] ?? []).count }
  }

  var pageSize: Int {
    let stored = Int(main[16]) << 8 | Int(main[17])
    return stored == 1 ? 65536 : stored
  }

  /// The bytes of a page.
  func range(of page: UInt32) -> Range<Int> {
    let start = (Int(page) - 1) * pageSize
    return start..<min(main.count, start + pageSize)
  }

  func overwriting(_ pages: [UInt32], seed: UInt64 = 1) -> PlainScene {
    var random = SeededGenerator(seed: seed)
    return changing { scene in
      for page in pages {
        for index in range(of: page) { scene.main[index] = UInt8.random(in: 0...255, using: &random) }
      }
    }
  }

  func swapping(_ first: UInt32, _ second: UInt32) -> PlainScene {
    changing { scene in
      scene.main.replaceSubrange(range(of: first), with: main[range(of: second)])
      scene.main.replaceSubrange(range(of: second), with: main[range(of: first)])
    }
  }

  /// The pages of the whole tree of a table, the root first.
  func innerPages(of table: String) throws -> [UInt32] {
    let database = try SQLiteFormat.Database(main: MemoryBytes(main))
    guard let root = try database.schema().tables.first(where: { $0.name == table })?.rootPage else { return [] }
    var result: [UInt32] = []
    var waiting = [root]
    while let page = waiting.popLast() {
      guard let node = try database.bTreePage(page), !node.kind.isLeaf else { continue }
      result.append(page)
      waiting += node.children.compactMap(\.self)
    }
    return result
  }
}
