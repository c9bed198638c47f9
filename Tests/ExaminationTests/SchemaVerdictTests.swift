import GRDB
import PersistentStore
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Verdicts: schemas that SQLite refuses, and indexes that only SQLite compares")
struct SchemaVerdictTests {
  /// A change of a statement in the schema, which SQLite then refuses.
  struct Change: Sendable, CustomTestStringConvertible {
    var old: String
    var new: String
    var code = "schema-refused"

    var testDescription: String { "\(old) → \(new)" }
  }

  private static let plain = [
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT)", "CREATE TABLE hit (at INTEGER)",
    "CREATE INDEX person_name ON person (name)", "CREATE VIEW names AS SELECT name FROM person",
    "CREATE TRIGGER noted AFTER INSERT ON hit BEGIN DELETE FROM person WHERE id = 1; END",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO person SELECT i, 'name ' || i FROM n",
  ]

  static let changes = [
    Change(old: "CREATE TABLE hit", new: "CREATE TABLX hit"),
    Change(old: "CREATE TABLE person (", new: "CREATE TABLE person ["),
    Change(old: "INDEX person_name ON", new: "INDEX person_name OO"),
    Change(old: "INDEX person_name ON", new: "INDEX persoN_naMf ON"),
    Change(old: "CREATE VIEW", new: "CREATF VIEW"),
    Change(old: "INSERT ON hit", new: "INSERT ON hiz"),
    Change(old: "INTEGER PRIMARY", new: "INTEGEX PRIMARY", code: "schema-index-missing"),
  ]

  @Test("A store is damaged whose schema SQLite refuses", arguments: changes)
  func refused(_ change: Change) throws {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.appending("Store.sqlite").string)
    try queue.writeWithoutTransaction { database in
      for statement in Self.plain { try database.execute(sql: statement) }
    }
    try queue.close()
    let sound = try Specimen(of: folder.appending("Store.sqlite"))
    #expect(try verdict(sound, .full).verdict == .compatible)
    let changed = try sound.replacing(change.old, by: change.new)
    // The judge is SQLite itself.
    let path = try changed.place(in: folder, as: "Changed.sqlite")
    let error = #expect(throws: DatabaseError.self) {
      let queue = try DatabaseQueue(path: path.string)
      let lines = try queue.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
      if lines != ["ok"] { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
    }
    #expect(error?.resultCode == .SQLITE_CORRUPT)
    for depth in Examination.Depth.allCases {
      let examination = try verdict(changed, depth)
      #expect(examination.verdict == .damaged, "\(examination.reason.words)")
      #expect(examination.reason.code == change.code, "\(examination.reason.words)")
      #expect(!examination.reason.hint.contains("lazaret repair"))
      #expect(examination.health.notes.contains { $0.code == change.code && $0.severity == .damage })
      VerdictCase.checkWords(examination)
    }
  }

  @Test("Nothing is said to be missing from a Core Data store whose schema SQLite refuses")
  func coreData() throws {
    let sound = try Specimen.sound()
    let changed = try sound.replacing("CREATE TABLE ZCAR (", by: "CREATE TABLE ZCAR [")
    for depth in Examination.Depth.allCases {
      let examination = try verdict(changed, depth, Models.bundle())
      #expect(examination.verdict == .damaged && examination.reason.code == "schema-refused")
      #expect(examination.reason.words.contains("ZCAR"), "\(examination.reason.words)")
      #expect(examination.drift == nil)
      #expect(!examination.reason.words.contains("column"))
    }
  }

  @Test("A schema that only the log has is looked at")
  func log() throws {
    let examination = try verdict(
      try Specimen.sound().running(
        "PRAGMA wal_autocheckpoint = 0", "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = replace(sql, 'CREATE TABLE ZCAR', 'CREATE TABLX ZCAR') WHERE name = 'ZCAR'"),
      .quick, Models.bundle())
    #expect(examination.verdict == .damaged && examination.reason.code == "schema-refused")
  }

  // MARK: Indexes

  private static let rows =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO t SELECT i, 'a' || i, i % 7 FROM n"

  @Test(
    "Indexes with each other's entries are damage",
    arguments: ["CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)", "CREATE TABLE t (k PRIMARY KEY, a, b) WITHOUT ROWID"])
  func swapped(table: String) throws {
    let sound = try Specimen.plain(
      table, "CREATE INDEX one ON t (a)", "CREATE INDEX two ON t (b, a)", Self.rows)
    let whole = try verdict(sound, .full)
    #expect(whole.verdict == .compatible, "\(whole.reason.words)")
    #expect(!whole.health.notes.contains { $0.code == Health.indexesUncompared })
    let roots = try (sound.root(of: "one"), sound.root(of: "two"))
    let swapped = try sound.running(
      "PRAGMA writable_schema = 1",
      "UPDATE sqlite_schema SET rootpage = CASE name WHEN 'one' THEN \(roots.1) ELSE \(roots.0) END WHERE type = 'index' AND name IN ('one', 'two')"
    )
    let folder = try TemporaryFolder()
    let path = try swapped.place(in: folder)
    let lines = try DatabaseQueue(path: path.string).read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
    try #require(lines != ["ok"])
    let examination = try verdict(swapped, .full)
    #expect(examination.verdict == .damaged && examination.reason.code == "indexes-damaged")
  }

  @Test("It is said of indexes that nothing compares, such as those of expressions")
  func uncompared() throws {
    let examination = try verdict(
      try Specimen.plain(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)", "CREATE INDEX lower_a ON t (lower(a))", Self.rows),
      .full, try Models.schema("CREATE TABLE t (k INTEGER PRIMARY KEY, a, b); CREATE INDEX lower_a ON t (lower(a));"))
    #expect(examination.verdict == .compatible, "\(examination.reason.words)")
    let note = examination.health.notes.first { $0.code == Health.indexesUncompared }
    #expect(note?.severity == .note && note?.words.contains("lower_a") == true)
    #expect(examination.reason.words.hasSuffix("Not checked: index lower_a."), "\(examination.reason.words)")
  }

  @Test("What was not held against rows is named where nothing wrong was found")
  func unchecked() throws {
    let examination = try verdict(
      try Specimen.plain(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)", Self.rows, "CREATE INDEX lower_a ON t (lower(a))",
        "CREATE VIRTUAL TABLE doc USING fts5(title)", "CREATE VIRTUAL TABLE place USING rtree(id, a, b)"), .full)
    #expect(examination.verdict == .compatible && examination.verdictWord == "sound")
    #expect(
      examination.reason.words.hasSuffix("Not checked: full-text index doc, R-tree place, index lower_a."),
      "\(examination.reason.words)")
    #expect(!examination.reason.words.contains("Nothing wrong"))
    #expect(examination.unchecked.map(\.kind) == [.fullText, .rTree, .index])
  }

  @Test("An index by a function that only the app has cannot be checked, and is no damage")
  func functionOfTheApp() throws {
    let examination = try verdict(
      try Specimen.plain(
        "CREATE TABLE t (k TEXT, e BLOB)", "CREATE INDEX near ON t (k)", "PRAGMA writable_schema = 1",
        "DELETE FROM sqlite_schema WHERE name = 'near'"
      ).running(
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) INSERT INTO t SELECT i, i FROM n",
        "PRAGMA writable_schema = 1",
        "INSERT INTO sqlite_schema VALUES ('index', 'near', 't', 3, 'CREATE INDEX near ON t (vector_of(e))')"), .full)
    #expect(examination.verdict == .compatible, "\(examination.reason.words)")
    #expect(examination.unchecked.map(\.words) == ["index near"])
    let note = examination.health.notes.first { $0.code == Health.indexesUncompared }
    #expect(note?.words.contains("vector_of") == true, "\(examination.health.notes.map(\.words))")
  }

  @Test("An index that alone is damaged is named")
  func indexAlone() throws {
    let examination = try verdict(
      try Specimen.plain(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)", Self.rows, "CREATE INDEX part ON t (a) WHERE k <> 1",
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX part ON t (a) WHERE k IS NOT NULL' WHERE name = 'part'"), .full)
    #expect(examination.verdict == .damaged && examination.reason.code == "indexes-damaged")
    #expect(
      examination.reason.words.contains("an index disagrees with its table (part)"), "\(examination.reason.words)")
  }

  // MARK: Looking

  private func verdict(
    _ specimen: Specimen, _ depth: Examination.Depth, _ model: AppModel? = nil
  ) throws -> Examination {
    let folder = try TemporaryFolder()
    let path = try specimen.place(in: folder)
    let before = try FolderContents(of: folder.path)
    let examination = try examiner().look(path, model, depth)
    #expect(try FolderContents(of: folder.path) == before)
    return examination
  }
}

extension Specimen {
  /// The same with bytes of the main file exchanged for others of the same number; they are there once.
  fileprivate func replacing(_ old: String, by new: String) throws -> Specimen {
    let (old, new) = (Array(old.utf8), Array(new.utf8))
    try #require(old.count == new.count)
    return try with { bytes in
      let places = bytes.indices.dropLast(old.count - 1).filter {
        bytes[$0] == old[0] && Array(bytes[$0..<($0 + old.count)]) == old
      }
      try #require(places.count == 1)
      bytes.replaceSubrange(places[0]..<(places[0] + old.count), with: new)
    }
  }
}
