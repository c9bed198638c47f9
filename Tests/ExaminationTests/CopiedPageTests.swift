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
