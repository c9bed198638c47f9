import GRDB
import Platform
import SQLiteFormat
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite("The comparison of indexes with the rows of their tables")
struct IndexComparisonTests {
  private static let values: [String] = [
    "NULL", "0", "1", "5", "5.0", "5.5", "-0.0", "9007199254740993", "-9223372036854775808", "1e300", "''", "'a'",
    "'A'",
    "'a '", "'5'", "x''", "x'0061'", "hex(zeroblob(1500))", "zeroblob(3000)",
  ]

  private func fixture(_ pragma: String, seed: UInt64) throws -> StoreFixture {
    var random = SeededGenerator(seed: seed)
    let fixture = try StoreFixture(
      "PRAGMA page_size = 1024", pragma,
      """
      CREATE TABLE a (x INTEGER PRIMARY KEY, r REAL, n NUMERIC, t TEXT, b, u TEXT UNIQUE, v INT,
        g AS (x + 1) VIRTUAL, s AS (x * 2) STORED, UNIQUE (n, t))
      """,
      "CREATE INDEX a_all ON a (r DESC, n, t COLLATE NOCASE, b)", "CREATE INDEX a_x ON a (x DESC)",
      "CREATE INDEX a_s ON a (s)", "CREATE INDEX a_rtrim ON a (t COLLATE RTRIM, v)",
      "CREATE INDEX a_g ON a (g)", "CREATE INDEX a_some ON a (r) WHERE n > 1", "CREATE INDEX a_length ON a (length(t))",
      "CREATE TABLE w (k TEXT, l INT, PRIMARY KEY (l, k)) WITHOUT ROWID", "CREATE INDEX w_k ON w (k)",
      "CREATE TABLE p (k TEXT PRIMARY KEY DESC, q TEXT COLLATE NOCASE, UNIQUE (q, k))")
    for row in 0..<400 {
      let picked = (0..<5).map { _ in Self.values.randomElement(using: &random) ?? "NULL" }
      try fixture.run(
        """
        INSERT OR IGNORE INTO a (x, r, n, t, b, u, v) VALUES (\(row * 3), \(picked[0]), \(picked[1]), \(picked[2]),
          \(picked[3]), \(row % 7 == 0 ? picked[4] : "'u\(row)'"), \(row % 11));
        INSERT OR IGNORE INTO w VALUES ('k\(row)', \(row % 13)); INSERT INTO p VALUES ('\(row)', 'Q\(row % 5)');
        """)
    }
    try fixture.run("DELETE FROM a WHERE x % 4 = 0")
    try fixture.run("ALTER TABLE a ADD COLUMN late TEXT DEFAULT 'so'; CREATE INDEX a_late ON a (late, x)")
    try fixture.run("ALTER TABLE a ADD COLUMN none REAL; CREATE INDEX a_none ON a (none)")
    return fixture
  }

  @Test(
    "Sound stores are sound, whatever their values are stored as; what cannot be computed is named",
    arguments: ["PRAGMA encoding = 'UTF-8'", "PRAGMA encoding = 'UTF-16be'", "PRAGMA auto_vacuum = 1"])
  func sound(pragma: String) throws {
    let fixture = try fixture(pragma, seed: 1)
    let lines = try fixture.queue.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
    #expect(lines == ["ok"])
    let database = try fixture.files().open()
    let pages = try database.checkIntegrity()
    #expect(pages.isSound)
    let report = try database.compareIndexes(pages.schema)
    #expect(report.findings.items.map(\.description) == [])
    #expect(Set(report.uncompared) == ["a_g", "a_length", "w_k"])
    let all = try fixture.queue.read {
      try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master WHERE type = 'index'") ?? 0
    }
    #expect(all >= 14)
    #expect(report.compared == all - report.uncompared.count)
  }

  /// Each condition is made that of an index which was made for another one: SQLite says whether that differs.
  @Test(
    "A partial index with a simple condition is compared as SQLite compares it",
    arguments: [
      "n IS NOT NULL", "n IS NULL", "n NOTNULL AND v <> 3", "v = 5", "v > -2 AND n >= 5", "x <= 600", "late IS NULL",
      "b < 7", "r != 5", "v = true", "u IS NOT NULL",
    ])
  func partial(condition: String) throws {
    for made in [condition, "n > 1"] {
      let fixture = try fixture("PRAGMA encoding = 'UTF-8'", seed: 4)
      try fixture.run(
        """
        CREATE INDEX a_part ON a (t, r) WHERE \(made); PRAGMA writable_schema = 1;
        UPDATE sqlite_schema SET sql = 'CREATE INDEX a_part ON a (t, r) WHERE \(condition)' WHERE name = 'a_part'
        """)
      let lines = try DatabaseQueue(path: fixture.path.string).read {
        try String.fetchAll($0, sql: "PRAGMA integrity_check")
      }
      let database = try fixture.files().open()
      let report = try database.compareIndexes(try database.schema())
      #expect(!report.uncompared.contains("a_part"))
      #expect(report.isSound == (lines == ["ok"]), "\(made) as \(condition): \(lines)")
    }
  }

  @Test("An index that leads to the entries of another one of its table is damaged, whatever columns that has")
  func exchangedRoots() throws {
    let fixture = try StoreFixture(
      "CREATE TABLE c (k INTEGER PRIMARY KEY, o INT, m TEXT, n TEXT, p INT)", "CREATE INDEX c_o ON c (o)",
      "CREATE INDEX c_mnp ON c (m, n, p)",
      "WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < 50) "
        + "INSERT INTO c SELECT v, v % 7, 'm' || v % 3, 'n' || v, v FROM i",
      "PRAGMA writable_schema = 1",
      "UPDATE sqlite_master SET rootpage = (SELECT sum(rootpage) FROM sqlite_master WHERE name IN ('c_o', 'c_mnp')) - rootpage "
        + "WHERE name IN ('c_o', 'c_mnp')")
    let database = try fixture.files().open()
    let report = try database.compareIndexes(try database.schema())
    #expect(report.uncompared.isEmpty)
    #expect(report.findings.items.map(\.kind) == [.indexEntriesDiffer, .indexEntriesDiffer])
  }

  @Test("Only the tables that are asked for are compared")
  func chosen() throws {
    let fixture = try fixture("PRAGMA encoding = 'UTF-8'", seed: 2)
    let database = try fixture.files().open()
    let schema = try database.schema()
    let root = try #require(schema.table(named: "p")).rootPage
    let gathering = try Gathering(try fixture.files(), schema)
    _ = try database.checkIntegrity(countingBy: [:], visitor: gathering) { _, _ in true }
    let scans = gathering.rows.withLock { $0.scans(ofTables: [root]) }
    let totals = try scans.map { try $0.run(in: database) { true } }
    let report = gathering.rows.withLock { $0.report(totals, ofTables: [root]) }
    #expect(report.compared == 2 && report.uncompared.isEmpty && report.isSound)
    #expect(throws: (any Error).self) { try database.compareIndexes(schema) { false } }
  }

  @Test("Rows that share one long chain of pages cost no more than the file has bytes")
  func sharedChain() throws {
    let pages = 1800
    let fixture = try StoreFixture(
      "PRAGMA page_size = 1024", "CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB, c INT)", "CREATE INDEX i ON t (c)",
      "INSERT INTO t VALUES (0, zeroblob(1900000), 0)",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
        + "INSERT INTO t SELECT i, zeroblob(20000), i FROM n")
    var files = try fixture.files()
    let schema = try files.open().schema()
    let whole = try files.open()
    var chain: [UInt8]?
    var shared = 0
    for number in 2...whole.pageCount {
      guard let page = try whole.bTreePage(number), page.kind == .tableLeaf else { continue }
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index), cell.overflowPage != nil else { continue }
        let start = (Int(page.number) - 1) * 1024
        let pointer = (start + cell.localPayload.upperBound)..<(start + cell.localPayload.upperBound + 4)
        guard let chain else {
          chain = Array(files.main[pointer])
          continue
        }
        // It says that it is as long as the first, with as many bytes on its own page, and goes on where that does.
        let length = cell.localPayload.count + 1020 * pages
        let varint = [0x80 | UInt8(length >> 14), 0x80 | UInt8(length >> 7 & 0x7f), UInt8(length & 0x7f)]
        files.main.replaceSubrange((start + cell.offset)..<(start + cell.offset + 3), with: varint)
        files.main.replaceSubrange(pointer, with: chain)
        shared += 1
      }
    }
    #expect(shared == 100)
    let source = CountedBytes(files.main)
    let database = try SQLiteFormat.Database(main: source)
    let check = try IndexCheck(database, schema)
    let report = try database.checkIntegrity(countingBy: [:], visitor: check) { _, _ in true }
    #expect(!report.isSound)
    #expect(source.read < 8 * files.main.count)
  }

  /// Bytes that count how many of them were read.
  private final class CountedBytes: ByteSource {
    private let bytes: MemoryBytes
    private let sum = Atomic(0)

    init(_ bytes: [UInt8]) { self.bytes = MemoryBytes(bytes) }

    var count: Int64 { bytes.count }
    var read: Int { sum.load(ordering: .relaxed) }

    func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
      let got = try bytes.read(at: offset, length: length, into: &buffer)
      sum.add(got, ordering: .relaxed)
      return got
    }
  }

  /// In the larger store a second thread checks pages ahead of the walk.
  @Test(
    "What SQLite's own check finds after a bit was flipped is found", arguments: [UInt64(1), 2, 3, 4], [300, 8000])
  func flips(seed: UInt64, rows: Int) throws {
    var random = SeededGenerator(seed: seed)
    let fixture = try StoreFixture(
      "PRAGMA page_size = 1024", "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c REAL, d)",
      "CREATE INDEX i1 ON t (b)", "CREATE INDEX i2 ON t (c, d DESC)",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
      INSERT INTO t SELECT i * 3, 'b' || (i * 7919 % 101), i / 3.0, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN i ELSE 'd' END
      FROM n
      """)
    let files = try fixture.files()
    #expect(rows == 300 || files.main.count > 256 * 1024)
    var found = 0
    for _ in 0..<60 {
      var bytes = files.main
      let place = Int.random(in: 1024..<bytes.count, using: &random)
      bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
      let told = Comment(rawValue: "seed \(seed), byte \(place)")
      let isSound = try Self.isSound(bytes)
      let database = try StoreFixture.Files(main: bytes).open()
      let pages = try database.checkIntegrity()
      let isFound = try !pages.isSound || !database.compareIndexes(pages.schema).isSound
      #expect(isSound != isFound, told)
      if isFound { found += 1 }
    }
    #expect(found > 20)
  }

  /// SQLite's own opinion.
  private static func isSound(_ bytes: [UInt8]) throws -> Bool {
    let folder = try TemporaryFolder()
    let path = try folder.write(bytes, to: "Damaged.sqlite")
    var configuration = Configuration()
    configuration.readonly = true
    do {
      let queue = try DatabaseQueue(path: path.string, configuration: configuration)
      defer { try? queue.close() }
      return try queue.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"]
    } catch is DatabaseError {
      return false
    }
  }

  @Test("Entries that are exchanged are not in order")
  func order() throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 1024", "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)", "CREATE INDEX i ON t (b)",
      "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    var files = try fixture.files()
    let root = try #require(try files.open().schema().indexes.first).rootPage
    let start = (Int(root) - 1) * 1024 + 8
    let pointers = Array(files.main[start..<(start + 4)])
    files.main.replaceSubrange(start..<(start + 4), with: pointers[2...] + pointers[..<2])
    #expect(try !Self.isSound(files.main))
    let database = try files.open()
    let pages = try database.checkIntegrity()
    #expect(pages.isSound)
    let report = try database.compareIndexes(pages.schema)
    #expect(report.findings.contains(.indexOrder) && !report.isSound)
  }

  @Test(
    "Rows that are added up while every page is checked are those that are read for it", arguments: [false, true])
  func visited(isDamaged: Bool) throws {
    let fixture = try fixture("PRAGMA encoding = 'UTF-8'", seed: 5)
    var files = try fixture.files()
    let schema = try files.open().schema()
    if isDamaged {
      // The lowest bit of an integer among the entries of an index: the pages stay sound by themselves.
      let root = try #require(schema.indexes.first { $0.name == "a_s" }).rootPage
      let page = try #require(try files.open().bTreePage(root))
      var leaf = page
      while !leaf.kind.isLeaf {
        let child = try #require(leaf.children.first ?? nil)
        leaf = try #require(try files.open().bTreePage(child))
      }
      let cell = try #require(leaf.cell(at: leaf.cellCount / 2))
      files.main[(Int(leaf.number) - 1) * 1024 + cell.localPayload.upperBound - 1] ^= 1
    }
    let database = try files.open()
    let gathering = try Gathering(files, schema)
    let report = try database.checkIntegrity(countingBy: [:], visitor: gathering) { _, _ in true }
    #expect(report.isSound)
    let totals = try gathering.rows.withLock { $0.scans() }.map { try $0.run(in: try files.open()) { true } }
    let found = gathering.rows.withLock { $0.report(totals) }
    let read = try database.compareIndexes(schema)
    #expect(found.compared == read.compared && Set(found.uncompared) == Set(read.uncompared))
    #expect(found.isSound == !isDamaged && read.isSound == !isDamaged)
    // Each leaf of each table comes once, with all rows that SQLite counts.
    for table in ["a", "p"] {
      let root = try #require(schema.table(named: table)).rootPage
      let rows = try fixture.queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)") ?? 0 }
      let seen = gathering.seen.withLock { $0[root] ?? [] }
      #expect(seen.reduce(0) { $0 + $1.rows } == rows)
      #expect(Set(seen.map(\.page)).count == seen.count)
    }
  }

  /// What adds up rows, and notes the leaves of tables that it is shown.
  private final class Gathering: PageVisitor {
    let rows: Platform.Mutex<IndexedRows>
    let seen = Platform.Mutex<[UInt32: [(page: UInt32, rows: Int)]]>([:])

    init(_ files: StoreFixture.Files, _ schema: Schema) throws {
      rows = Platform.Mutex(try IndexedRows(DatabaseContent(try files.open()), schema))
    }

    func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FileError) {
      if page.kind == .tableLeaf { seen.withLock { $0[root, default: []].append((page.number, cells.count)) } }
      try rows.withLock { rows throws(FileError) in try rows.add(page, cells, ofTree: root) }
    }
  }
}

extension SQLiteFormat.Database {
  /// Compares all indexes, as an examination does.
  fileprivate func compareIndexes(_ schema: Schema, progress: () -> Bool = { true }) throws -> IndexReport {
    let check = try IndexCheck(self, schema)
    _ = try checkIntegrity(countingBy: [:], visitor: check) { _, _ in true }
    return try check.compare(progress: progress)
  }
}
