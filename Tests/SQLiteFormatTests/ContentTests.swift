import GRDB
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Content is what SQLite reads")
struct ContentTests {
  static let pageSizes = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]

  @Test("Every page size, with overflow pages, free pages and both kinds of table", arguments: pageSizes)
  func everyPageSize(size: Int) throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = \(size)", "CREATE TABLE t(k INTEGER PRIMARY KEY, a, b TEXT, c REAL, d)",
      "CREATE TABLE w(b TEXT, a, d, c REAL, PRIMARY KEY (a, b)) WITHOUT ROWID", "CREATE INDEX i ON t(b, d DESC)",
      "CREATE TABLE gone(a, b, c, d)", StoreFixture.insert(400), StoreFixture.insert(3, into: "gone", longest: 70_000),
      "INSERT OR IGNORE INTO w(a, b, c, d) SELECT ifnull(a, k), b, c, d FROM t",
      StoreFixture.insert(3, from: 1000, longest: 150_000), "DELETE FROM t WHERE k % 7 = 0", "DROP TABLE gone")
    try expectSame(fixture)
    let database = try fixture.files().open()
    #expect(database.pageSize == size)
    #expect(try database.freelist().count == database.header.map { Int($0.freelistCount) })
    #expect(try database.freelist().count > 0)
  }

  @Test("Every encoding", arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func encodings(name: String) throws {
    let fixture = try StoreFixture(
      "PRAGMA encoding = '\(name)'", "CREATE TABLE \"tä𝄞\"(a, b, c, d DEFAULT 'ü')",
      StoreFixture.insert(100, into: "\"tä𝄞\""), "ALTER TABLE \"tä𝄞\" ADD COLUMN late DEFAULT 'später'")
    try expectSame(fixture)
  }

  @Test("Both kinds of auto-vacuum", arguments: [1, 2])
  func autoVacuum(mode: Int) throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 512", "PRAGMA auto_vacuum = \(mode)", "CREATE TABLE t(a, b, c, d)", StoreFixture.insert(600),
      "CREATE INDEX i ON t(b)", "DELETE FROM t WHERE rowid % 3 = 0", "PRAGMA incremental_vacuum(5)")
    try expectSame(fixture)
    let database = try fixture.files().open()
    #expect(database.pageCount > 104, "there is more than one pointer-map page")
    #expect(try database.pointerMapEntry(for: 3)?.kind == .root)
  }

  @Test("Reserved bytes at the end of each page")
  func reservedBytes() throws {
    // An empty database of one page that reserves 40 bytes; SQLite keeps to it.
    var page = [UInt8](repeating: 0, count: 1024)
    page.replaceSubrange(0..<16, with: DatabaseHeader.magic)
    page.replaceSubrange(16..<24, with: [4, 0, 1, 1, 40, 64, 32, 32])
    page[27] = 1
    page[31] = 1
    page[47] = 4
    page[59] = 1
    page[95] = 1
    page[100] = 13
    page.replaceSubrange(105..<107, with: [UInt8((1024 - 40) >> 8), UInt8((1024 - 40) & 0xff)])
    let fixture = try StoreFixture(bytes: page)
    try fixture.run("CREATE TABLE t(a, b, c, d)")
    try fixture.run(StoreFixture.insert(300, longest: 3000))
    try fixture.run("CREATE INDEX i ON t(b)")
    #expect(try fixture.files().open().usableSize == 984)
    try expectSame(fixture)
  }

  @Test("Columns: rowid aliases, generated ones, late ones, integers in REAL columns, keys of every sort")
  func columns() throws {
    let fixture = try StoreFixture(
      """
      CREATE TABLE alias(x TEXT, "Id" INTEGER PRIMARY KEY, y REAL);
      CREATE TABLE noalias(id INTEGER PRIMARY KEY DESC, y);
      CREATE TABLE inttype(id INT PRIMARY KEY, y);
      CREATE TABLE aliaskey(y, [my id] INTEGER, PRIMARY KEY([my id] DESC));
      CREATE TABLE generated(a INT, b INT AS (a + 1), c INT GENERATED ALWAYS AS (a * 2) STORED, d TEXT);
      CREATE TABLE strict_one(a INT, b ANY) STRICT;
      CREATE TABLE wide(z, y, x, w, PRIMARY KEY(w, y, w)) WITHOUT ROWID;
      CREATE TABLE twice(b, a TEXT COLLATE NOCASE, PRIMARY KEY(a, a COLLATE binary, b, a, a COLLATE "nocase")) WITHOUT ROWID;
      CREATE TABLE late(a);
      INSERT INTO alias VALUES ('a', 5, 3), ('b', -9, 2.5), ('c', 9223372036854775807, NULL);
      INSERT INTO noalias VALUES (7, 'x'), (8, 'y'); INSERT INTO inttype VALUES (70, 'x');
      INSERT INTO aliaskey VALUES ('q', 44); INSERT INTO generated(a, d) VALUES (1, 'one'), (2, 'two');
      INSERT INTO strict_one VALUES (1, 2.0), (2, x'00'); INSERT INTO wide VALUES (1, 2, 3, 4), (5, 6, 7, 8);
      INSERT INTO twice VALUES (1, 'one'), (2, 'ONE'), (3, 'two');
      INSERT INTO late VALUES (1);
      ALTER TABLE late ADD COLUMN b INTEGER DEFAULT -5; ALTER TABLE late ADD COLUMN c REAL DEFAULT 7;
      ALTER TABLE late ADD COLUMN d BLOB DEFAULT x'0aFF'; ALTER TABLE late ADD COLUMN e DEFAULT 1.5e3;
      ALTER TABLE late ADD COLUMN f DEFAULT TRUE; ALTER TABLE late ADD COLUMN g TEXT DEFAULT 'it''s';
      ALTER TABLE late ADD COLUMN h; ALTER TABLE late ADD COLUMN i INTEGER DEFAULT '12';
      ALTER TABLE late ADD COLUMN j TEXT DEFAULT 12; ALTER TABLE late ADD COLUMN k NUMERIC DEFAULT '1.5';
      ALTER TABLE late ADD COLUMN l INT DEFAULT 'twelve'; ALTER TABLE late ADD COLUMN m REAL DEFAULT '-7';
      INSERT INTO late(a) VALUES (2);
      """)
    try expectSame(fixture)
    let schema = try fixture.files().open().schema()
    #expect(schema.table(named: "ALIAS")?.tableDefinition?.rowidAlias == 1)
    #expect(schema.table(named: "noalias")?.tableDefinition?.rowidAlias == nil)
    #expect(schema.table(named: "inttype")?.tableDefinition?.rowidAlias == nil)
    #expect(schema.table(named: "aliaskey")?.tableDefinition?.rowidAlias == 1)
    #expect(schema.table(named: "strict_one")?.tableDefinition?.isStrict == true)
    #expect(schema.table(named: "wide")?.tableDefinition?.storedColumns == [3, 1, 0, 2])
    #expect(schema.table(named: "twice")?.tableDefinition?.storedColumns == [1, 1, 0])
  }

  @Test("Rows are found by rowid, counted by headers and by a column")
  func lookups() throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d)", "CREATE INDEX i ON t(b)",
      StoreFixture.insert(700, longest: 100), "DELETE FROM t WHERE rowid % 5 = 0")
    let database = try fixture.files().open()
    let schema = try database.schema()
    let root = try #require(schema.table(named: "t")?.rootPage)
    let count = try fixture.queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
    #expect(try database.countRows(root: root).count == count)
    let index = try #require(schema.indexes.first?.rootPage)
    #expect(try database.countRows(root: index).count == count)
    let groups = try database.countRows(root: root, byIntegerIn: 3)
    #expect(groups.counts == [1: 140, 2: 140, 3: 140, 4: 140])
    #expect(groups.findings.isEmpty)
    let checked = try database.checkIntegrity(countingBy: [root: 3])
    #expect(checked.isSound && checked.trees.first { $0.root == root }?.counts == groups.counts)
    var cursor = try database.rows(root: root)
    while let row = try cursor.next() {
      let looked = try database.row(row.rowid, root: root)
      let found = try #require(looked)
      #expect(found.record.payload == row.record.payload && found.page == row.page && found.cell == row.cell)
    }
    #expect(try database.row(5, root: root) == nil)
    #expect(try database.row(.max, root: root) == nil)
    #expect(try database.row(.min, root: root) == nil)
  }

  @Test("Rows that hold no integer in the column are counted together, by the check of the pages as by the count")
  func countsOfMixedColumns() throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 512", "CREATE TABLE t(a, b)", "CREATE TABLE u(a)",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
      INSERT INTO t SELECT i, CASE i % 4 WHEN 0 THEN 'four' WHEN 1 THEN NULL WHEN 2 THEN -70000 ELSE i / 300 END FROM n
      """)
    let database = try fixture.files().open()
    let schema = try database.schema()
    let root = try #require(schema.table(named: "t")?.rootPage)
    let other = try #require(schema.table(named: "u")?.rootPage)
    let rows = try fixture.queue.read {
      try Row.fetchAll(
        $0, sql: "SELECT CASE typeof(b) WHEN 'integer' THEN b END AS n, count(*) AS c FROM t GROUP BY n")
    }
    let expected = Dictionary(uniqueKeysWithValues: rows.map { ($0["n"] as Int64?, $0["c"] as Int) })
    #expect(expected[nil] == 450 && expected.count > 4)
    #expect(try database.countRows(root: root, byIntegerIn: 1).counts == expected)
    let report = try database.checkIntegrity(countingBy: [root: 1, other: 0])
    #expect(report.trees.first { $0.root == root }?.counts == expected)
    #expect(report.trees.first { $0.root == other }?.counts == [:])
    #expect(report.trees.first?.counts == nil)
  }

  @Test("A scan of all tables reads every row and column once")
  func scan() throws {
    let fixture = try StoreFixture(
      "CREATE TABLE t(a, b, c, d)", "CREATE TABLE u(a, b, c, d)", StoreFixture.insert(1000),
      StoreFixture.insert(50, into: "u"))
    let result = try fixture.files().open().scanTables()
    // The schema's own rows are not among them.
    #expect(result.rows == 1050)
    #expect(result.columns == 4200)
    #expect(result.badCells == 0)
    #expect(try fixture.files().open().scanTables() == result)
    var files = try fixture.files()
    let place = try #require(files.main.lastIndex(of: UInt8(ascii: "1")))
    files.main[place] = UInt8(ascii: "2")
    #expect(try files.open().scanTables().checksum != result.checksum)
  }

  private func expectSame(_ fixture: StoreFixture) throws {
    let database = try fixture.files().open()
    #expect(database.findings.isEmpty)
    let expected = try fixture.content()
    let found = try database.content()
    #expect(found.keys.sorted() == expected.keys.sorted())
    for (table, rows) in expected { #expect(found[table] == rows, "\(table)") }
    let report = try database.checkIntegrity()
    #expect(report.findings.items.map(\.description) == [])
    #expect(report.ownership.count(of: .none) == 0)
  }
}
