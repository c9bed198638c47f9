import GRDB
import PersistentStore
import SystemPackage
import TestSupport
import Testing

@Suite("Verdicts: pages of one table in the place of another's")
struct CopiedPageTests {
  /// The verdict on a store with a page over the root of a table.
  private func look(
    _ specimen: Specimen, _ from: String, over table: String, _ model: AppModel? = nil
  ) throws -> Examination {
    let start = try (Int(specimen.root(of: from)) - 1) * Specimen.pageSize
    let page = Array(try require(specimen.main)[start..<(start + Specimen.pageSize)])
    let over = try (Int(specimen.root(of: table)) - 1) * Specimen.pageSize
    let folder = try TemporaryFolder()
    let path = try specimen.overwriting(over, with: page).place(in: folder)
    return try examiner().look(path, model, .full)
  }

  @Test("Bookkeeping over the only page of an entity is damage", arguments: ["Z_METADATA", "Z_PRIMARYKEY"])
  func bookkeeping(_ from: String) throws {
    for model in [nil, Models.bundle()] {
      let examination = try look(Specimen.sound(cars: 5), from, over: "ZCAR", model)
      #expect(examination.verdict == .damaged, "\(examination.reason.words)")
      #expect(examination.health.notes.contains { $0.code == "page-copied" })
    }
  }

  @Test("A page of one entity over that of another is damage")
  func entities() throws {
    let specimen = try Specimen.sound(cars: 5).running(
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZAGE) VALUES (1, 2, 1, 40), (2, 2, 1, 50)",
      "PRAGMA wal_checkpoint(TRUNCATE)")
    for (from, over) in [("ZCAR", "ZPERSON"), ("ZPERSON", "ZCAR")] {
      let examination = try look(specimen, from, over: over)
      #expect(examination.verdict == .damaged, "\(from): \(examination.reason.words)")
      #expect(examination.health.notes.contains { $0.code == "page-copied" }, "\(from)")
    }
  }

  private static let pairs = [
    "CREATE TABLE one (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
    "CREATE TABLE two (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO one SELECT i, i FROM n",
  ]

  @Test("Rows that no index of their table has are damage")
  func indexes() throws {
    let specimen = try Specimen.plain(
      Self.pairs[0], Self.pairs[1], Self.pairs[2], "INSERT INTO two SELECT a * 2, b FROM one")
    let examination = try look(specimen, "two", over: "one")
    #expect(examination.verdict == .damaged, "\(examination.reason.words)")
    #expect(examination.reason.code == "indexes-damaged")
  }

  @Test("Tables that exchanged their roots are damage where a text column would have numbers")
  func roots() throws {
    let specimen = try Specimen.plain(
      "CREATE TABLE chat (id INTEGER PRIMARY KEY, name TEXT, last TEXT)",
      "CREATE TABLE draft (id INTEGER PRIMARY KEY, chat INT, body TEXT, sent TEXT)",
      "INSERT INTO chat VALUES (1, 'one', '2026'), (2, 'two', '2026')",
      "INSERT INTO draft VALUES (1, 2, 'text', '2025'), (2, 1, 'text', '2025')", "PRAGMA writable_schema = ON",
      "UPDATE sqlite_master SET rootpage = 5 - rootpage")
    let folder = try TemporaryFolder()
    let path = try specimen.place(in: folder)
    let examination = try examiner().look(path, nil, .full)
    #expect(examination.verdict == .damaged, "\(examination.reason.words)")
    #expect(examination.health.notes.contains { $0.code == "page-copied" })
    // SQLite reads a number in a text column, which it never stores.
    let numbers = try DatabaseQueue(path: path.string).read { db in
      try Int.fetchOne(db, sql: "SELECT count(*) FROM chat WHERE typeof(name) = 'integer'")
    }
    #expect(numbers == 2)
  }

  @Test("Every value that SQLite stores is sound, and so are rows older than their columns")
  func values() throws {
    let specimen = try Specimen.plain(
      "CREATE TABLE loose (a, b, c, d, e, f, g, h)",
      "CREATE TABLE v (k TEXT PRIMARY KEY, r REAL, n NUMERIC, d DATETIME, i INT, x, g TEXT AS (r) STORED, w AS (k))",
      "INSERT INTO v (k, r, n, d, i, x) VALUES (1, 1, '2.5', '2026-01-01', 'word', 7)",
      "INSERT INTO v (k, r, n, d, i, x) VALUES (x'00', 'word', x'00', 1, 1.5, 'x')",
      "ALTER TABLE v ADD COLUMN late TEXT NOT NULL DEFAULT 5",
      "CREATE TABLE pairs (b INT, a TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID", "INSERT INTO pairs VALUES (1, 2)",
      "CREATE TABLE strictly (id INTEGER PRIMARY KEY, a TEXT, x ANY) STRICT",
      "INSERT INTO strictly VALUES (1, 2, 3), (2, 'text', x'00')")
    let folder = try TemporaryFolder()
    let examination = try examiner().look(try specimen.place(in: folder), nil, .full)
    #expect(examination.verdict == .compatible, "\(examination.reason.words)")
  }

  @Test("Two tables of a sound store can have the same rows")
  func sound() throws {
    let specimen = try Specimen.plain(
      Self.pairs[0], Self.pairs[1], Self.pairs[2], "INSERT INTO two SELECT * FROM one",
      "CREATE TABLE texts (a TEXT); INSERT INTO texts SELECT 'text ' || a FROM one",
      "CREATE TABLE copy (a BLOB); INSERT INTO copy SELECT a FROM texts")
    let folder = try TemporaryFolder()
    let examination = try examiner().look(try specimen.place(in: folder), nil, .full)
    #expect(examination.verdict == .compatible, "\(examination.reason.words)")
  }
}
