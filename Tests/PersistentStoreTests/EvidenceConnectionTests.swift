import Foundation
import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Connections to evidence")
struct EvidenceConnectionTests {
  private static let endless =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
  private static let long = "hex(zeroblob(140000000))"

  private let folder: TemporaryFolder
  private let path: FilePath

  init() throws {
    folder = try TemporaryFolder()
    path = folder.appending("App.sqlite")
  }

  /// Makes the file with a connection of GRDB's own.
  private func make(_ body: (Database) throws -> Void) throws {
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction(body)
    try queue.close()
  }

  /// Gives something of the schema another statement, which SQLite only parses.
  private func redeclare(_ database: Database, _ name: String, _ sql: String) throws {
    try database.execute(sql: "PRAGMA writable_schema = ON")
    try database.execute(sql: "UPDATE sqlite_master SET sql = ? WHERE name = ?", arguments: [sql, name])
    try database.execute(sql: "PRAGMA writable_schema = RESET")
  }

  // MARK: Functions

  @Test("printf gives what SQLite's own gives")
  func formats() throws {
    let calls = [
      "'%d|%5d|%-5d|%05d|%+d|% d|%,d', 1, 2, 3, 4, 5, 6, 1234567", "'%*d|%-*d', 7, 1, 9, 2",
      "'%s|%.3s|%10s|%-10s|', 'abcdef', 'abcdef', 'x', 'y'",
      "'%.*s', 2, 'abcdef'", "'%.999999999s', 'short'", "'%f|%.3f|%10.2f|%e|%g|%G', 1.5, 2.25, 3.125, 1e10, 1e-5, 1e20",
      "'%x|%X|%#x|%o', 255, 255, 255, 8",
      "'%c|%.5c|%!.3s', 'ab', 'x', 'äöü'", "'%q|%Q|%w|%z', 'it''s', 'it''s', 'a\"b', 'z'", "'%%|%5%|%d', 3", "'%p', 10",
      "'100%', 1", "'%y', 1", "''", "NULL, 1", "12", "x'2564', 7",
      "'%d'", "'%s', NULL", "'%lld %ld', 1, 2",
    ]
    try make { try $0.execute(sql: "CREATE TABLE t (a)") }
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    let plain = try DatabaseQueue()
    for name in ["printf", "format"] {
      for call in calls {
        let sql = "SELECT \(name)(\(call)), typeof(\(name)(\(call)))"
        let (own, theirs) = (
          try queue.read { try Row.fetchOne($0, sql: sql) }, try plain.read { try Row.fetchOne($0, sql: sql) }
        )
        #expect(own == theirs && own != nil, "\(call)")
      }
    }
    try queue.close()
  }

  @Test(
    "A format that asks for more than a value may hold is refused before it is carried out", .timeLimit(.minutes(1)))
  func wideFormats() throws {
    let star = "'" + String(repeating: "%.*c", count: 40) + "'" + String(repeating: ", 2000000000, 'x'", count: 40)
    let calls = [
      "'%.2000000000c', 'x'", "'%2000000000d', 1", "'%.2000000000d', 1", "'%*d', -2000000000, 1", star,
      "'%s%%%.*c', 'a', 2000000000, 'x'", "'%99999999999999999999.99999999999999999999c', 'x'",
      "replace(hex(zeroblob(1000)), '0', '%.900000c'), 'x'",
    ]
    try make { try $0.execute(sql: "CREATE TABLE t (a)") }
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    for call in calls {
      for _ in 0..<20 {
        let error = #expect(throws: DatabaseError.self) {
          try queue.read { try Row.fetchOne($0, sql: "SELECT length(printf(\(call)))") }
        }
        #expect(error?.resultCode == .SQLITE_TOOBIG, "\(call): \(String(describing: error))")
      }
    }
    try queue.close()
  }

  @Test(
    "No call of a function of SQLite's takes long with values as long as those of a schema's expressions may be",
    .timeLimit(.minutes(2)))
  func allFunctions() throws {
    try make { try $0.execute(sql: "CREATE TABLE t (a)") }
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    let (text, other) = ("substr(hex(zeroblob(32000)), 1, 60000)", "substr(hex(zeroblob(16000)), 1, 30000) || '1'")
    let (object, nested) = (
      "'{\"a\":[' || substr(replace(hex(zeroblob(7000)), '0', '0,'), 1, 27999) || ']}'",
      "replace(hex(zeroblob(900)), '0', '[') || replace(hex(zeroblob(900)), '0', ']')"
    )
    let (like, date) = (
      "replace(hex(zeroblob(90)), '0', '%_')",
      "'9999-12-31', '+9999 years', '-999999 months', '999999999 days', 'weekday 6'"
    )
    let shapes = [
      text, "zeroblob(60000)", "\(text), \(other)", "\(other), \(text)", "\(like), \(text)", "\(text), \(other), 'x'",
      "'x', \(text), \(other)",
      "\(text), '0', \(other)", object, "\(object), '$.a[20]'", "\(object), '$.a', \(nested)", "\(object), \(object)",
      nested, "\(nested), '$[0][0]'", "-9223372036854775808",
      "9223372036854775807, -9223372036854775808", date, "'%J %s %f', \(date)", "replace(\(text), '0', '%J'), 'now'",
      "replace(\(text), '0', '%*c'), 2000000000, 'x'",
      "replace(\(text), '0', '%.9999c'), 'x'", "2000000000", "'a', 'b', 'c', 'd', 'e', 'f'",
    ]
    let names = try queue.read { try String.fetchAll($0, sql: "SELECT DISTINCT name FROM pragma_function_list") }
    #expect(names.count > 60 && names.contains("printf"))
    for name in names {
      for shape in shapes {
        let limit = StatementLimit(time: .seconds(20), valueLength: 64 << 10)
        do {
          try queue.inDatabase { database in
            try limit.apply(to: database) { _ = try Row.fetchAll(database, sql: "SELECT \"\(name)\"(\(shape))") }
          }
        } catch is DatabaseError {
          // Too long, of another number of arguments, or not for values like these.
        }
        #expect(limit.excess == nil, "\(name)(\(shape))")
      }
    }
    try queue.close()
  }

  // MARK: The schema does nothing

  @Test("Triggers do not fire, views cannot be read, checks are not evaluated, and nothing is written into the schema")
  func schema() throws {
    try make { database in
      try database.execute(
        sql: """
          CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT CHECK (length(\(Self.long)) > 0)); CREATE TABLE fired (a);
          CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO fired VALUES (1); END;
          CREATE VIEW v AS \(Self.endless)
          """)
    }
    let queue = try EvidenceConnection.open(path, .copy, label: "test")
    try queue.writeWithoutTransaction { database throws in
      try database.execute(sql: "INSERT INTO t VALUES (1, 'one')")
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM t") == 1)
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM fired") == 0)
      #expect(throws: DatabaseError.self) { try Row.fetchAll(database, sql: "SELECT * FROM v") }
      try database.execute(sql: "PRAGMA writable_schema = ON")
      #expect(throws: DatabaseError.self) {
        try database.execute(sql: "UPDATE sqlite_master SET sql = 'CREATE TABLE t (x)' WHERE name = 't'")
      }
    }
    try queue.close()
  }

  @Test("A file that does not change is only read, and nothing is made beside it")
  func unchanging() throws {
    try make { database in
      try database.execute(sql: "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    }
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT a FROM t") } == 1)
    #expect(throws: DatabaseError.self) { try queue.write { try $0.execute(sql: "INSERT INTO t VALUES (2)") } }
    for suffix in ["-wal", "-shm", "-journal"] {
      #expect(try FileSystem().status(of: path.sibling(suffix: suffix)) == nil)
    }
    try queue.close()
  }

  @Test("No more files are attached than were named, and their addresses hold any name")
  func attaching() throws {
    try make { try $0.execute(sql: "CREATE TABLE t (a); INSERT INTO t VALUES (7)") }
    let other = folder.appending("a?b#c%20 d.sqlite")
    try FileSystem().rename(path, to: other)
    let queue = try EvidenceConnection.open(attaching: [other], label: "test")
    try queue.writeWithoutTransaction { database throws in
      try database.execute(
        sql: "ATTACH DATABASE ? AS one", arguments: [EvidenceConnection.address(other, .unchanging)])
      #expect(try Int.fetchOne(database, sql: "SELECT a FROM one.t") == 7)
      #expect(throws: DatabaseError.self) { try database.execute(sql: "ATTACH DATABASE ':memory:' AS two") }
    }
    try queue.close()
  }

  // MARK: Lengths

  @Test("Every value of the file is read, and one that is computed far beyond the file is not")
  func lengths() throws {
    try make { database in
      try database.execute(sql: "CREATE TABLE t (a); INSERT INTO t VALUES (randomblob(3000000))")
    }
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    try queue.read { database throws in
      let value = try DatabaseValue.fetchOne(database, sql: "SELECT a FROM t ORDER BY a")
      guard case .blob(let bytes)? = value?.storage else {
        Issue.record("no bytes")
        return
      }
      #expect(bytes.count == 3_000_000)
      // Its digits are twice as many.
      #expect(try Int.fetchOne(database, sql: "SELECT length(hex(a)) FROM t") == 6_000_000)
      let error = #expect(throws: DatabaseError.self) {
        try Int.fetchOne(database, sql: "SELECT length(\(Self.long))")
      }
      #expect(error?.resultCode == .SQLITE_TOOBIG)
    }
    try queue.close()
  }

  @Test(
    "The limit of a value is above all that files of any size hold",
    arguments: [0, 4096, 1 << 20, 1 << 29, 1 << 40] as [Int64])
  func longest(bytes: Int64) {
    let limit = Int64(EvidenceConnection.longestValue(in: bytes))
    // SQLite itself has no values of 2 GB.
    #expect(limit >= min(bytes, Int64(Int32.max)))
    #expect(limit <= max(2 * bytes + (1 << 20), 1 << 20))
  }

  // MARK: Checks

  @Test("A check leaves out tables whose expressions it would evaluate, names them, and finds damage in the others")
  func integrity() throws {
    try make { database in
      try database.execute(
        sql: """
          CREATE TABLE sound (a, b); CREATE INDEX i ON sound (a); INSERT INTO sound VALUES (1, 2), (3, 4);
          CREATE TABLE checked (a CHECK (length(\(Self.long)) > 0));
          CREATE TABLE computed (a, g AS (length(\(Self.long))) NOT NULL);
          CREATE TABLE partial (a); CREATE INDEX p ON partial (a) WHERE a > 1;
          CREATE TABLE indexed (a); CREATE INDEX e ON indexed (length(a)); INSERT INTO indexed VALUES ('x')
          """)
      try redeclare(database, "e", "CREATE INDEX e ON indexed (length(\(Self.long)) + a)")
    }
    #expect(try evidenceLines().lines == ["ok"])
    #expect(try evidenceLines().unchecked == ["computed", "indexed", "partial"])
    try make { try redeclare($0, "i", "CREATE INDEX i ON sound (b)") }
    #expect(try evidenceLines().lines != ["ok"])
  }

  private func evidenceLines() throws -> IntegrityCheck.EvidenceLines {
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    defer { try? queue.close() }
    return try queue.read { try IntegrityCheck.evidenceLines(of: $0) }
  }

  @Test("Columns count as stored only where a table has their values in the file")
  func storedColumns() throws {
    try make { database in
      try database.execute(
        sql: """
          CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR, Z_PLIST BLOB AS (zeroblob(9)));
          CREATE VIEW Z_MODELCACHE AS SELECT zeroblob(9) AS Z_CONTENT
          """)
    }
    let queue = try EvidenceConnection.open(path, .unchanging, label: "test")
    try queue.read { database throws in
      #expect(try database.hasStored(["Z_UUID"], in: "Z_METADATA"))
      #expect(try database.hasStored(["z_uuid"], in: "z_metadata"))
      #expect(try !database.hasStored(["Z_UUID", "Z_PLIST"], in: "Z_METADATA"))
      #expect(try !database.hasStored(["Z_CONTENT"], in: "Z_MODELCACHE"))
      #expect(try !database.hasStored(["Z_CONTENT"], in: "NONE"))
    }
    try queue.close()
  }

  @Test("Values that are many and long at a time end a statement by their memory")
  func memory() throws {
    try DatabaseQueue().write { database throws in
      let values = (0..<1000).map { "hex(zeroblob(\(500_000 + $0)))" }.joined(separator: ", ")
      let limit = StatementLimit(time: .seconds(300), valueLength: 2 << 20)
      let error = #expect(throws: DatabaseError.self) {
        try limit.apply(to: database) { _ = try Row.fetchOne(database, sql: "SELECT \(values)") }
      }
      #expect(error?.resultCode == .SQLITE_INTERRUPT)
      #expect(limit.isExceeded)
    }
  }
}
