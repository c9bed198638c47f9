import Foundation
import GRDB
import Inspector
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Queries in SQL")
struct StoreQueryTests {
  /// What SQLite itself gives for a query, each value as text.
  static func oracle(_ path: FilePath, _ sql: String) throws -> [[String]] {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { database in
      try Row.fetchAll(database, sql: sql).map { row in
        row.databaseValues.map { value in
          switch value.storage {
          case .null: ""
          case .int64(let number): String(number)
          case .double(let number): "\(number)"
          case .string(let text): text
          case .blob(let data): "\(data.count) bytes"
          }
        }
      }
    }
  }

  static func texts(_ result: QueryResult) -> [[String]] {
    result.rows.map { $0.map { $0.form == .bytes ? "\($0.byteCount ?? 0) bytes" : $0.text } }
  }

  @Test(
    "Entities and properties have the names of the model, tables and columns their own",
    arguments: [
      ("SELECT name, tons FROM Ship ORDER BY Z_PK", "SELECT ZNAME, ZTONS FROM ZSHIP ORDER BY Z_PK"),
      ("select NAME from ferry order by 1", "SELECT ZNAME FROM ZSHIP WHERE Z_PK IN (4, 5) ORDER BY 1"),
      (
        "SELECT p.name, s.name FROM Person p JOIN Ship s ON s.Z_PK = p.ship ORDER BY p.Z_PK",
        "SELECT p.ZNAME, s.ZNAME FROM ZPERSON p JOIN ZSHIP s ON s.Z_PK = p.ZSHIP ORDER BY p.Z_PK"
      ),
      ("SELECT * FROM extra", "SELECT * FROM extra"), ("SELECT * FROM ZSHIP", "SELECT * FROM ZSHIP"),
      ("SELECT name FROM sqlite_master ORDER BY 1", "SELECT name FROM sqlite_master ORDER BY 1"),
      (
        """
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5)
        SELECT sum(x), (SELECT count(*) FROM n) FROM n
        """,
        "SELECT 15, 5"
      ),
      ("WITH c(x) AS (SELECT 1 UNION SELECT 2) SELECT count(*) FROM c", "SELECT 2"),
      ("VALUES (1, 'a'), (NULL, 2.5)", "VALUES (1, 'a'), (NULL, 2.5)"),
      ("SELECT json_extract('[3, \"x\"]', '$[1]')", "SELECT 'x'"),
      ("SELECT upper(name) FROM Ship WHERE name LIKE 'a%'", "SELECT upper(ZNAME) FROM ZSHIP WHERE ZNAME LIKE 'a%'"),
      (
        "SELECT count(*) AS n, max(tons) FROM Ship GROUP BY isFast ORDER BY isFast",
        "SELECT count(*) AS n, max(ZTONS) FROM ZSHIP GROUP BY ZISFAST ORDER BY ZISFAST"
      ),
      ("SELECT a.id, b.id FROM extra a NATURAL JOIN extra b;", "SELECT id, id FROM extra"),
      ("SELECT 1 -- with a comment", "SELECT 1"),
    ])
  func rows(query: String, asSQLite: String) throws {
    let fleet = try Fleet()
    defer { withExtendedLifetime(fleet) {} }
    let result = try fleet.browse().run(StoreQuery(query))
    let expected = try Self.oracle(fleet.path, asSQLite)
    #expect(Self.texts(result) == expected, "\(query)")
    #expect(!result.hasMore)
    #expect(try FileSystem().entries(of: fleet.folder.path).map(\.string) == ["Fleet.sqlite"])
  }

  @Test("Dates and UUIDs of Core Data are shown by functions, and trim with a list does what SQLite's does")
  func functions() throws {
    let fleet = try Fleet()
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    let shown = try browsed.run(
      StoreQuery("SELECT core_data_date(launched), uuid_text(id), core_data_date(name) FROM Ship WHERE Z_PK = 1"))
    #expect(Self.texts(shown) == [["2001-01-02T00:00:00Z", "00112233-4455-6677-8899-AABBCCDDEEFF", ""]])
    for call in [
      "trim('xxyaxbyx', 'xy')", "ltrim('xxya x', 'xy')", "rtrim('axyx', 'xy')", "trim('xyxy', 'yx')", "trim('', 'x')",
      "trim('äöä', 'ä')", "trim(NULL, 'x')", "trim('x', NULL)", "trim(1771, 1)", "trim('  a ')", "rtrim('abc', '')",
    ] {
      let expected = try Self.oracle(fleet.path, "SELECT \(call)")
      #expect(try Self.texts(browsed.run(StoreQuery("SELECT \(call)"))) == expected, "\(call)")
    }
  }

  @Test(
    "Whatever does more than read is refused",
    arguments: [
      "INSERT INTO extra VALUES (9, 9)", "UPDATE extra SET note = 1", "DELETE FROM extra", "DROP TABLE extra",
      "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE TEMP VIEW x AS SELECT 1",
      "CREATE INDEX i ON extra (note)",
      "ALTER TABLE extra RENAME TO other", "ATTACH ':memory:' AS x", "ATTACH 'other.sqlite' AS x", "DETACH main",
      "VACUUM", "VACUUM INTO 'other.sqlite'", "ANALYZE", "REINDEX", "BEGIN", "SAVEPOINT x", "COMMIT",
      "PRAGMA user_version",
      "PRAGMA writable_schema = 1", "PRAGMA hard_heap_limit = 0", "SELECT * FROM pragma_table_info('extra')",
      "SELECT count(*) FROM pragma_function_list", "SELECT value FROM json_each('[1]')", "SELECT * FROM dbstat",
      "SELECT count(*) FROM dbstat",
      "SELECT * FROM sqlite_temp_master", "SELECT load_extension('x')", "SELECT fts3_tokenizer('simple')",
      "SELECT randomblob(5)", "SELECT zeroblob(5)", "SELECT json_patch('{}', '{}')", "SELECT writefile('x', 'y')",
      "SELECT sqlite_compileoption_get(1)", "SELECT last_insert_rowid()",
      "WITH x AS (SELECT 1) INSERT INTO extra SELECT 5, 5", "INSERT INTO extra VALUES (8, 8) RETURNING id",
      "EXPLAIN DELETE FROM extra", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE extra", "", "-- nothing", ";",
      "SELECT", "SELECT * FROM nowhere", "SELECT colour FROM Ship", "SELECT ?", "SELECT :name",
    ])
  func refused(sql: String) throws {
    let fleet = try Fleet()
    defer { withExtendedLifetime(fleet) {} }
    let before = try FolderContents(of: fleet.folder.path)
    let browsed = try fleet.browse()
    let error = #expect(throws: PersistentStoreError.self) { try browsed.run(StoreQuery(sql)) }
    #expect(error?.kind == .queryRejected, "\(sql): \(String(describing: error))")
    #expect(throws: PersistentStoreError.self) { _ = try browsed.stream(StoreQuery(sql)) }
    #expect(try FolderContents(of: fleet.folder.path) == before)
    // The next query works all the same.
    #expect(try Self.texts(browsed.run(StoreQuery("SELECT count(*) FROM extra"))) == [["3"]])
  }

  @Test("SQLite's own words say what is wrong, and what was refused is named")
  func words() throws {
    let fleet = try Fleet()
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    func detail(_ sql: String) -> String {
      do {
        _ = try browsed.run(StoreQuery(sql))
        return ""
      } catch {
        return error.detail
      }
    }
    #expect(detail("SELECT nme FROM Ship").contains("no such column: nme"))
    #expect(detail("SELEC 1").contains("near \"SELEC\": syntax error"))
    #expect(detail("SELECT 1, 2 UNION SELECT 3").contains("same number of result columns"))
    #expect(detail("ATTACH 'x' AS y").contains("ATTACH"))
    #expect(detail("PRAGMA page_size").contains("PRAGMA"))
    #expect(detail("SELECT load_extension('x')").contains("load_extension"))
  }

  @Test(
    "What a store declares never runs: views, virtual tables and computed columns cannot be read, not even by a join")
  func declarations() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Hostile.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g TEXT AS (hex(zeroblob(500))), s TEXT AS (upper(a)) STORED);
          INSERT INTO t (id, a) VALUES (1, 'x'), (2, 'y');
          CREATE TABLE plain (id INTEGER PRIMARY KEY, a TEXT);
          INSERT INTO plain VALUES (1, 'x');
          CREATE VIEW v AS SELECT hex(zeroblob(500)) AS h FROM t;
          CREATE VIRTUAL TABLE f USING fts4(body);
          INSERT INTO f VALUES ('words');
          """)
    }
    try queue.close()
    defer { withExtendedLifetime(folder) {} }
    let browsed = try BrowsedStore(path, model: nil)
    for sql in [
      "SELECT g FROM t", "SELECT * FROM t", "SELECT t.g FROM t WHERE id = 1", "SELECT 1 FROM t WHERE g > 1",
      "SELECT 1 FROM t AS a JOIN t AS b USING (g)", "SELECT count(*) FROM t AS a NATURAL JOIN t AS b",
      "SELECT (SELECT g FROM t LIMIT 1)", "SELECT max(\"g\") FROM t", "SELECT id FROM t ORDER BY [g]",
      "SELECT 1 FROM plain NATURAL JOIN t", "SELECT * FROM v", "SELECT count(*) FROM v", "SELECT * FROM f",
      "SELECT count(*) FROM f", "SELECT 1 FROM plain WHERE a IN (SELECT g FROM t)", "SELECT 1 FROM plain WHERE a IN v",
      "SELECT body FROM f WHERE f MATCH 'words'",
    ] {
      let error = #expect(throws: PersistentStoreError.self, "\(sql)") { try browsed.run(StoreQuery(sql)) }
      #expect(error?.kind == .queryRejected, "\(sql): \(String(describing: error))")
    }
    #expect(try Self.texts(browsed.run(StoreQuery("SELECT id, a, s FROM t"))) == [["1", "x", "X"], ["2", "y", "Y"]])
    #expect(try Self.texts(browsed.run(StoreQuery("SELECT count(*) FROM t"))) == [["2"]])
    #expect(try Self.texts(browsed.run(StoreQuery("SELECT t.a FROM plain AS p JOIN t ON t.id = p.id"))) == [["x"]])
    let source = try #require(try browsed.querySources().first { $0.name == "t" })
    #expect(source.columns.filter(\.isComputed).map(\.name) == ["g"])
    #expect(source.selection == "SELECT id, a, s FROM t")
    #expect(try browsed.run(StoreQuery(source.selection)).rows.count == 2)
    #expect(try browsed.querySources().map(\.name).contains("v") == false)
  }

  @Test("Names with capitals that are not ASCII are compared as SQLite compares them")
  func otherCapitals() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Umlauts.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE "ÄPFEL" (id INTEGER PRIMARY KEY, "Ö" TEXT, "É" TEXT AS (hex(zeroblob(4))) VIRTUAL);
          INSERT INTO "ÄPFEL" (id, "Ö") VALUES (7, 'x');
          """)
    }
    try queue.close()
    defer { withExtendedLifetime(folder) {} }
    let browsed = try BrowsedStore(path, model: nil)
    for sql in ["SELECT * FROM \"ÄPFEL\"", "SELECT \"É\" FROM \"ÄPFEL\"", "SELECT count(\"É\") FROM \"ÄPFEL\""] {
      let error = #expect(throws: PersistentStoreError.self, "\(sql)") { try browsed.run(StoreQuery(sql)) }
      #expect(error?.kind == .queryRejected, "\(sql)")
    }
    let query = "SELECT id, \"Ö\", rowid, oid FROM \"ÄPFEL\""
    #expect(try Self.texts(browsed.run(StoreQuery(query))) == [["7", "x", "7", "7"]])
  }

  /// SQLite looks at the time between the rounds of a query alone; these have none.
  @Test("A query without any round ends in time, however much stands in it")
  func straight() throws {
    let fleet = try Fleet()
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    let likes = Array(repeating: "v LIKE p", count: 60).joined(separator: ", ")
    let finds = Array(repeating: "instr(v, p)", count: 60).joined(separator: ", ")
    // A name that stands for a call is another call each time.
    let copies = (1..<10).map { "SELECT c\($0 - 1) + c\($0 - 1) AS c\($0) FROM (" }.reversed().joined()
    for sql in [
      "SELECT \(likes) FROM (SELECT printf('%.*c', 4100000, 'a') v, '%' || printf('%.*c', 196, 'a') || 'b' p LIMIT 1)",
      "SELECT \(finds) FROM (SELECT printf('%.*c', 250000, 'a') v, printf('%.*c', 120000, 'a') || 'b' p LIMIT 1)",
      copies
        + "SELECT (v LIKE p) AS c0 FROM (SELECT printf('%.*c', 4100000, 'a') v, '%' || printf('%.*c', 196, 'a') || 'b' p)"
        + String(repeating: ")", count: 9),
    ] {
      let start = ContinuousClock.now
      // SQLite makes an empty text where printf would make one that is too long; other values end the query.
      do { _ = try browsed.run(StoreQuery(sql)) } catch {
        #expect(error.kind == .queryRejected || error.kind == .timeLimit)
      }
      #expect(ContinuousClock.now - start < .seconds(15), "\(sql.prefix(100))")
    }
    // Short values are compared as often as anyone likes.
    let short = try browsed.run(StoreQuery("SELECT \(likes) FROM (SELECT 'abc' v, 'a%' p)"))
    #expect(Self.texts(short) == [Array(repeating: "1", count: 60)])
  }

  @Test("A query that would not end, ends")
  func time() throws {
    let fleet = try Fleet()
    defer { withExtendedLifetime(fleet) {} }
    var limits = BrowsedStore.Limits()
    limits.query = .milliseconds(300)
    let browsed = try fleet.browse(limits: limits)
    for sql in [
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c ORDER BY -x",
      "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c",
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT instr(group_concat(x), 'y') FROM c",
    ] {
      let start = ContinuousClock.now
      let error = #expect(throws: PersistentStoreError.self) { try browsed.run(StoreQuery(sql)) }
      #expect(error?.kind == .timeLimit || error?.kind == .queryRejected, "\(sql)")
      #expect(ContinuousClock.now - start < .seconds(20), "\(sql)")
    }
    #expect(throws: PersistentStoreError.self) { try StoreQuery(String(repeating: "x", count: StoreQuery.longest + 1)) }
  }

  /// Adds a table with so many texts of 600 characters, all different, and none in its place.
  private static func addTexts(_ count: Int, to fleet: Fleet) throws {
    let queue = try DatabaseQueue(path: fleet.path.string)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE long (id INTEGER PRIMARY KEY, text);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
          INSERT INTO long SELECT i, printf('%0600d', i * 7919 % 1000003) FROM n
          """)
    }
    try queue.close()
  }

  @Test("What a query sorts and gathers is in files, whose bytes have a limit, and the answer is SQLite's own")
  func files() throws {
    let fleet = try Fleet()
    try Self.addTexts(20_000, to: fleet)
    let queries = [
      "SELECT text, count(*) FROM long GROUP BY 1 ORDER BY 2, 1 DESC LIMIT 20",
      "SELECT count(*) FROM (SELECT DISTINCT text FROM long)",
      "SELECT max(a.text), count(*) FROM (SELECT text FROM long UNION SELECT text || 'x' FROM long) AS a",
    ]
    var limits = BrowsedStore.Limits()
    limits.query = .seconds(60)
    limits.queryFiles = 200 << 20
    let browsed = try fleet.browse(limits: limits)
    for sql in queries {
      let (shown, all) = (try Self.texts(browsed.run(StoreQuery(sql))), try Self.oracle(fleet.path, sql))
      #expect(shown.count == all.count, "\(sql)")
      for (row, other) in zip(shown, all) {
        #expect(zip(row, other).allSatisfy { $1.hasPrefix($0) && ($0 == $1 || $0.count == 200) }, "\(sql)")
      }
    }
    // Less than they need; and what ended has given back what it had.
    limits.queryFiles = 8 << 20
    let bounded = try fleet.browse(limits: limits)
    for _ in 0..<3 {
      for sql in queries {
        let error = #expect(throws: PersistentStoreError.self) { try bounded.run(StoreQuery(sql)) }
        #expect(error?.kind == .timeLimit, "\(sql)")
      }
      #expect(try bounded.run(StoreQuery("SELECT text FROM long WHERE id < 2000 ORDER BY text")).rows.count == 100)
    }
    withExtendedLifetime(fleet) {}
  }

  #if os(Linux)
    @Test("A query that sorts 60 MB takes less memory than that")
    func memory() async throws {
      // The figure is that of a process, so that it has one of its own here.
      await #expect(processExitsWith: .success) {
        let fleet = try Fleet()
        try StoreQueryTests.addTexts(100_000, to: fleet)
        var limits = BrowsedStore.Limits()
        limits.query = .seconds(60)
        let browsed = try fleet.browse(limits: limits)
        func most() throws -> Int {
          let lines = try String(contentsOfFile: "/proc/self/status", encoding: .utf8).split(separator: "\n")
          let line = lines.first { $0.hasPrefix("VmHWM:") } ?? ""
          return Int(line.filter(\.isNumber)) ?? 0
        }
        _ = try browsed.run(StoreQuery("SELECT * FROM long"))
        let before = try most()
        for sql in ["SELECT * FROM long ORDER BY text", "SELECT text, count(*) FROM long GROUP BY 1 ORDER BY 2"] {
          guard try browsed.run(StoreQuery(sql)).rows.count == 100 else { exit(3) }
        }
        let more = try most() - before
        guard before > 0, more < 30_000 else { exit(4) }
        withExtendedLifetime(fleet) {}
      }
    }
  #endif

  @Test("Memory that other connections take while a query runs does not end it")
  func othersMemory() async throws {
    // SQLite counts the memory of a process together, so that this has one of its own.
    await #expect(processExitsWith: .success) {
      let fleet = try Fleet()
      var limits = BrowsedStore.Limits()
      limits.query = .seconds(60)
      let browsed = try fleet.browse(limits: limits)
      let other = try DatabaseQueue()
      let sql = """
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT count(*) FROM n
        """
      async let taken: Void = Task.detached {
        try await Task.sleep(for: .milliseconds(100))
        try await other.write { try $0.execute(sql: "CREATE TABLE large AS SELECT zeroblob(70 << 20) AS bytes") }
      }.value
      guard StoreQueryTests.texts(try browsed.run(StoreQuery(sql))) == [["1000000"]] else { exit(3) }
      try await taken
      withExtendedLifetime(fleet) {}
    }
  }

  @Test("A query that doubles itself while it is compiled ends, and says so")
  func compiling() async throws {
    // The limit holds for the process, so that it has one of its own here.
    await #expect(processExitsWith: .success) {
      let fleet = try Fleet()
      let browsed = try fleet.browse()
      let names = (1..<60).map { "x\($0) AS (SELECT a.c FROM x\($0 - 1) a, x\($0 - 1) b)" }.joined(separator: ", ")
      let chain = "WITH x0 AS (SELECT 1 c), \(names) SELECT * FROM x59"
      let flat =
        "SELECT id" + String(repeating: " FROM (SELECT id+id+id+id+id+id+id+id AS id", count: 8) + " FROM extra"
        + String(repeating: ")", count: 8)
      for sql in [chain, flat] {
        let start = ContinuousClock.now
        do {
          _ = try browsed.run(StoreQuery(sql))
          exit(3)
        } catch {
          let kind = (error as? PersistentStoreError)?.kind
          guard kind == .badQuery, ContinuousClock.now - start < .seconds(20) else { exit(4) }
        }
      }
      guard try browsed.run(StoreQuery("SELECT 1")).rows.count == 1 else { exit(5) }
      withExtendedLifetime(fleet) {}
    }
  }

  @Test("Rows are shown page by page, each once; a long text is cut and says so")
  func paging() throws {
    let fleet = try Fleet(records: 137)
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    var query = try StoreQuery("SELECT Z_PK FROM Person ORDER BY Z_PK")
    var keys: [String] = []
    var isOver = false
    while !isOver, keys.count < 1000 {
      query.offset = keys.count
      query.size = 10
      let result = try browsed.run(query)
      #expect(result.rows.count <= 10)
      keys += Self.texts(result).flatMap(\.self)
      isOver = !result.hasMore
    }
    #expect(keys == (1...137).map(String.init))
    let digits = "0123456789012345678901234567890123456789"
    let long = try browsed.run(StoreQuery("SELECT replace('xxxxxxxxxx', 'x', '\(digits)')"))
    #expect(long.rows[0][0].isCut)
    #expect(long.rows[0][0].byteCount == 400)
    var wrong = try StoreQuery("SELECT 1")
    #expect(throws: PersistentStoreError.self) { try wrong.show(size: "0", offset: nil) }
    #expect(throws: PersistentStoreError.self) { try wrong.show(size: nil, offset: "-1") }
  }

  @Test("A stream has every row, its columns names that are all different, and ends where it would be too large")
  func streams() throws {
    let fleet = try Fleet(records: 700)
    defer { withExtendedLifetime(fleet) {} }
    let stream = try fleet.browse().stream(StoreQuery("SELECT Z_PK, name, name, Z_PK AS name_2 FROM Person"))
    #expect(Set(stream.columns.map(\.name)).count == 4)
    #expect(stream.columns.map(\.name).prefix(2) == ["Z_PK", "name"])
    var keys: [String] = []
    while let batch = try stream.next() { keys += batch.map { $0.values[0].text } }
    #expect(keys.count == 700)
    #expect(Set(keys).count == 700)
    var limits = BrowsedStore.Limits()
    limits.queryExportRows = 600
    let short = try fleet.browse(limits: limits).stream(StoreQuery("SELECT Z_PK FROM Person"))
    #expect(throws: PersistentStoreError.self) { while try short.next() != nil {} }
  }
}
