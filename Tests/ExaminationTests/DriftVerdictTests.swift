import ManagedObjectModel
import PersistentStore
import SQLiteFormat
import TestSupport
import Testing

/// Stores with sound pages that lack something of the model that their metadata names.
struct DriftVerdictTests {
  /// Something that is taken from a sound store by SQL, and the codes of what is missing then.
  struct Loss: Sendable, CustomTestStringConvertible {
    var name: String
    var codes: [String]
    var statement: String
    var testDescription: String { name }
  }

  static let losses = [
    Loss(name: "a column", codes: ["missing-column"], statement: "ALTER TABLE ZCAR DROP COLUMN ZDOORS"),
    Loss(name: "a table", codes: ["missing-table"], statement: "DROP TABLE ZPERSON"),
    Loss(
      name: "a row of Z_PRIMARYKEY", codes: ["missing-key-row"],
      statement: "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'"),
    Loss(
      name: "the highest key", codes: ["low-key-maximum"],
      statement: "UPDATE Z_PRIMARYKEY SET Z_MAX = 11 WHERE Z_NAME = 'Car'"),
    Loss(
      name: "a parent", codes: ["wrong-key-row"],
      statement: "UPDATE Z_PRIMARYKEY SET Z_SUPER = 1 WHERE Z_NAME = 'Person'"),
    Loss(
      name: "the name of an entity", codes: ["wrong-key-row"],
      statement: "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Boat' WHERE Z_NAME = 'Person'"),
    Loss(
      name: "a number in Z_PRIMARYKEY", codes: ["other-entity-number"],
      statement: "UPDATE Z_PRIMARYKEY SET Z_ENT = 9 WHERE Z_NAME = 'Person'"),
    Loss(
      name: "the numbers of the last rows", codes: ["other-entity-number"],
      statement: "UPDATE ZCAR SET Z_ENT = 7 WHERE Z_PK > 9"),
    Loss(
      name: "the primary key of Z_PRIMARYKEY", codes: ["other-table"],
      statement: """
        CREATE TABLE kept AS SELECT * FROM Z_PRIMARYKEY; DROP TABLE Z_PRIMARYKEY;
        CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
        INSERT INTO Z_PRIMARYKEY SELECT * FROM kept; DROP TABLE kept
        """),
    Loss(
      name: "the rowids of Z_PRIMARYKEY", codes: ["other-table"],
      statement: """
        CREATE TABLE kept AS SELECT * FROM Z_PRIMARYKEY; DROP TABLE Z_PRIMARYKEY;
        CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER) WITHOUT ROWID;
        INSERT INTO Z_PRIMARYKEY SELECT * FROM kept; DROP TABLE kept
        """),
    Loss(
      name: "the number of the last row", codes: ["other-entity-number"],
      statement: "UPDATE ZCAR SET Z_ENT = NULL WHERE Z_PK = 12"),
  ]

  @Test(
    "A column that Z_PRIMARYKEY lacks is named, and what its rows lack for it",
    arguments: ["Z_NAME", "Z_SUPER", "Z_MAX"])
  func keyColumn(_ column: String) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound().running(
      "ALTER TABLE Z_PRIMARYKEY DROP COLUMN \(column)", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    let examination = try examiner().look(path, Models.bundle(), .quick, counting: false)
    #expect(examination.verdict == .repairable)
    #expect(examination.drift?.differences.first?.objectName == "Z_PRIMARYKEY.\(column)")
    let others = examination.drift.map { Set($0.differences.dropFirst().map(\.code)) }
    #expect(others?.subtracting(["wrong-key-row", "low-key-maximum"]) == [])
  }

  @Test("Metadata without the store's identifier are damaged")
  func identifier() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound().running(
      "ALTER TABLE Z_METADATA DROP COLUMN Z_UUID", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    let examination = try examiner().look(path, Models.bundle(), .quick, counting: false)
    #expect(examination.verdict == .damaged && examination.reason.code == "metadata-damaged")
  }

  /// A store of 3,000 records, every second one a car, the others taxis, on which statements ran.
  private static func carsAndTaxis(then statements: [String] = []) throws -> Specimen {
    let model = ManagedObjectModel(
      entities: [
        Models.entity("Car", ["name": .string]), Entity(name: "Taxi", parentName: "Car", properties: []),
      ])
    let rows = "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < 3000) "
    return try Specimen.store(model, cars: 0, cached: model).running(
      "\(rows) INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT n, 1 + n % 2, 1, 'car ' || n FROM k",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 3000 WHERE Z_NAME = 'Car'", statements.joined(separator: ";"),
      "PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// The index that Core Data keeps of entity numbers has the least and the greatest at its ends.
  @Test(
    "A number that only a row in the middle has is found without counting where it is indexed",
    arguments: ["0", "9", "NULL"])
  func middleOfAHierarchy(_ number: String) throws {
    let folder = try TemporaryFolder()
    let path = try Self.carsAndTaxis().place(in: folder)
    let whole = try examiner().look(path, nil, .quick, counting: false)
    #expect(whole.verdict == .compatible)
    let wrong = try Specimen(of: path).running(
      "UPDATE ZCAR SET Z_ENT = \(number) WHERE Z_PK = 1500", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder, as: "Wrong.sqlite")
    let seen = try examiner().look(wrong, nil, .quick, counting: false)
    #expect(seen.verdict == .repairable)
    #expect(seen.drift?.differences.map(\.code) == ["other-entity-number"])
  }

  @Test("What a damaged index says of entity numbers is not said of the rows", arguments: [false, true])
  func damagedIndex(counting: Bool) throws {
    let folder = try TemporaryFolder()
    // The index of entity numbers and one of names lead to each other's entries.
    let names = "('own_index', 'ZCAR_Z_ENT_INDEX')"
    let path = try Self.carsAndTaxis(then: ["CREATE INDEX own_index ON ZCAR(ZNAME)"]).running(
      "PRAGMA writable_schema = 1",
      "UPDATE sqlite_master SET rootpage = (SELECT sum(rootpage) FROM sqlite_master WHERE name IN \(names)) - rootpage "
        + "WHERE name IN \(names)", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    let seen = try examiner().look(path, nil, .quick, counting: counting)
    #expect(seen.verdict == .damaged, "\(seen.reason.words)")
    #expect(seen.drift?.differences.map(\.code) == [])
  }

  @Test("Nothing needs to be done is said without reservation only where all was looked at")
  func reservation() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound().place(in: folder)
    let quick = try examiner().look(path, Models.bundle(), .quick, counting: false)
    #expect(quick.verdict == .compatible && quick.reason.hint.contains("not every page and record was looked at"))
    let full = try examiner().look(path, Models.bundle(), .full, counting: true)
    // What the records refer to was not looked at.
    #expect(full.verdict == .compatible && full.reason.hint.contains("what they refer to was not looked at"))
    var checked = full
    checked.tellCleanRecords()
    #expect(checked.reason.hint == "Nothing needs to be done.")
    // Every page was looked at, and that is not taken back where the records are not counted.
    let uncounted = try examiner().look(path, Models.bundle(), .full, counting: false)
    #expect(uncounted.health.integrity?.isSound == true)
    #expect(uncounted.reason.hint.contains("the records were not counted"))
    #expect(!uncounted.reason.hint.contains("some of its pages"))
  }

  @Test("What is missing is named, and nothing else", arguments: losses)
  func named(_ loss: Loss) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound().running(loss.statement, "PRAGMA wal_checkpoint(TRUNCATE)").place(in: folder)
    for model in [Models.bundle(), nil] {
      for depth in Examination.Depth.allCases {
        let examination = try examiner().look(path, model, depth, counting: false)
        #expect(examination.verdict == .repairable)
        #expect(examination.reason.code == "repairable")
        #expect(examination.drift?.differences.map(\.code) == loss.codes)
        #expect(examination.health.integrity?.isSound == true)
        #expect(!examination.reason.words.contains(Specimen.secret))
      }
    }
  }

  @Test("A number that only a row in the middle has is found by counting")
  func middle() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound().running(
      "UPDATE ZCAR SET Z_ENT = 7 WHERE Z_PK = 6", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    #expect(try examiner().look(path, Models.bundle(), .quick, counting: false).verdict == .compatible)
    let counted = try examiner().look(path, Models.bundle(), .quick, counting: true)
    #expect(counted.verdict == .repairable)
    #expect(counted.drift?.differences.map(\.code) == ["other-entity-number"])
  }

  /// Half of the 3,000 rows are of either entity; the statements say what their numbers become.
  @Test(
    "Records are counted by the numbers of the store, and those of no entity are told",
    arguments: [
      (["SELECT 1"], ["1500", "1500"], 0),
      (
        [
          "UPDATE ZCAR SET Z_ENT = Z_ENT + 9", "UPDATE Z_PRIMARYKEY SET Z_ENT = 11 WHERE Z_NAME = 'Taxi'",
          "UPDATE Z_PRIMARYKEY SET Z_ENT = 10 WHERE Z_NAME = 'Car'",
        ], ["1500", "1500"], 0
      ),
      // Here the bookkeeping alone is wrong.
      (["UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 9"], ["1500", "1500"], 0),
      (["UPDATE ZCAR SET Z_ENT = 77 WHERE Z_PK <= 100"], ["1450", "1450"], 100),
      (["UPDATE ZCAR SET Z_ENT = NULL WHERE Z_PK <= 10"], ["1495", "1495"], 10),
      // Both of them have the numbers 1 and 2, the other way round: there is no telling which record is a taxi.
      (
        ["UPDATE Z_PRIMARYKEY SET Z_NAME = CASE Z_NAME WHEN 'Car' THEN 'Taxi' ELSE 'Car' END"],
        ["not counted", "not counted"], 0
      ),
    ])
  func countedByNumber(_ statements: [String], _ counts: [String], _ others: Int) throws {
    let folder = try TemporaryFolder()
    let path = try Self.carsAndTaxis(then: statements).place(in: folder)
    for depth in Examination.Depth.allCases {
      let examination = try examiner().look(path, nil, depth)
      #expect(examination.counts == ["Car in ZCAR: \(counts[0])", "Taxi in ZCAR: \(counts[1])"])
      #expect(examination.rowsOfNoEntity == (others > 0 ? ["ZCAR": others] : [:]))
      let notes = examination.health.notes.filter { $0.code == "rows-of-no-entity" }
      #expect(notes.count == (others > 0 ? 1 : 0))
      #expect(notes.allSatisfy { $0.words.contains("\(others) rows of table ZCAR") })
    }
  }

  /// Core Data reads such a table without looking at the number.
  @Test("In a table of one entity every row is counted for it, whatever its number", arguments: [true, false])
  func countedByTable(_ isOfStore: Bool) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound().running(
      "UPDATE ZCAR SET Z_ENT = 9 WHERE Z_PK < \(isOfStore ? 99 : 4)",
      isOfStore ? "UPDATE Z_PRIMARYKEY SET Z_ENT = 9 WHERE Z_NAME = 'Car'" : "SELECT 1",
      "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    let examination = try examiner().look(path, Models.bundle(), .full)
    #expect(examination.verdict == .repairable)
    #expect(examination.counts == ["Car in ZCAR: 12", "Person in ZPERSON: 0"])
    #expect(examination.rowsOfNoEntity.isEmpty)
  }

  @Test("An outdated store stays outdated, and what it lacks is told beside")
  func outdated() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.store(Models.second, cached: nil).running(
      "ALTER TABLE ZCAR DROP COLUMN ZDOORS", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    let examination = try examiner().look(path, Models.bundle(), .quick, counting: false)
    #expect(examination.verdict == .outdated)
    #expect(examination.drift?.differences.map(\.code) == ["missing-column"])
  }

  @Test("A damaged store stays damaged")
  func damaged() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 400).losingLeaf(of: "ZCAR").running(
      "DROP TABLE ZPERSON", "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    #expect(try examiner().look(path, Models.bundle(), .quick, counting: false).verdict == .damaged)
  }

  @Test("More than the model has is no drift, but a column that refuses NULL is told")
  func surplus() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 0).running(
      "CREATE TABLE own(a)", "CREATE INDEX own_index ON ZCAR(ZNAME)",
      "ALTER TABLE ZPERSON ADD COLUMN ZOWN VARCHAR NOT NULL DEFAULT (lower('A'))",
      "DROP TABLE ZCAR",
      "CREATE TABLE ZCAR (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZDOORS INTEGER, ZNAME VARCHAR, ZX INT NOT NULL)",
      "PRAGMA wal_checkpoint(TRUNCATE)"
    ).place(in: folder)
    let examination = try examiner().look(path, Models.bundle(), .quick, counting: false)
    #expect(examination.verdict == .compatible)
    #expect(examination.drift?.remarks.map(\.code) == ["mandatory-column"])
  }
}
