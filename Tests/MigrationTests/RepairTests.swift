import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that lack something of their own model: it is added, and nothing that is there is lost.
struct RepairTests {
  static let current = model(
    entity(
      "Vehicle", attribute("maker", optional: false), attribute("plate"), attribute("photo", .binary, external: true),
      toOne("owner", "Person", inverse: "vehicles"), toMany("tags", "Tag", inverse: "vehicles"), abstract: true),
    entity("Car", attribute("doors", .integer16, default: .integer(4)), parent: "Vehicle"),
    entity("Bike", attribute("hasSidecar", .boolean), parent: "Vehicle"),
    entity(
      "Person", attribute("email"), attribute("name", optional: false), toMany("vehicles", "Vehicle", inverse: "owner"),
      unique: [["email"]]),
    entity("Tag", attribute("label"), toMany("vehicles", "Vehicle", inverse: "tags")))

  /// The entities' numbers: Person 1, Tag 2, Vehicle 3, Bike 4, Car 5.
  static func scene(_ more: String...) throws -> MigrationScene {
    let join = try #require(try StoreLayout(current).joinTables.first)
    let pairs = join.relationship.entityName == "Tag" ? "(1, 2), (1, 7)" : "(2, 1), (7, 1)"
    let scene = try MigrationScene(
      current,
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZEMAIL, ZNAME) VALUES (1, 1, 2, 'a@example.org', 'Ann'),
      (2, 1, 1, NULL, 'Bob'), (9, 1, 1, 'c@example.org', 'Cid')
      """,
      """
      INSERT INTO ZVEHICLE (Z_PK, Z_ENT, Z_OPT, ZMAKER, ZPLATE, ZPHOTO, ZOWNER, ZDOORS, ZHASSIDECAR) VALUES
      (2, 5, 1, 'Fiat', 'X 1', x'0102', 1, 3, NULL), (5, 5, 4, 'Opel', NULL, NULL, NULL, 5, NULL),
      (7, 4, 1, 'Ural', 'X 3', NULL, 9, NULL, 1)
      """,
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZLABEL) VALUES (1, 2, 1, 'old')",
      "INSERT INTO \(join.name) (\(join.sourceColumn), \(join.destinationColumn)) VALUES \(pairs)")
    try change(scene, more)
    return scene
  }

  static func change(_ scene: MigrationScene, _ statements: [String]) throws {
    let store = try PersistentStore(opening: scene.store)
    try store.write { database in for statement in statements { try database.execute(sql: statement) } }
    try store.close()
  }

  /// What a store holds, table by table, as SQLite tells it; columns and tables that a drift takes away are left out.
  private static func contents(
    _ path: FilePath, without columns: Set<String> = [], tables left: Set<String> = []
  ) throws -> [String: [String]] {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { database in
      var result: [String: [String]] = [:]
      let tables = try String.fetchAll(
        database,
        sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('Z_PRIMARYKEY', 'Z_MODELCACHE')")
      for table in tables where !left.contains(table) {
        let names = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info('\(table)') ORDER BY name")
          .filter { !columns.contains("\(table).\($0)") }
        let list = names.map { "quote(\"\($0)\")" }.joined(separator: " || '|' || ")
        result[table] = try String.fetchAll(database, sql: "SELECT \(list) FROM \"\(table)\" ORDER BY 1")
      }
      return result
    }
  }

  /// The names of everything in a schema, and the columns of its tables.
  private static func objects(_ path: FilePath) throws -> Set<String> {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { database in
      Set(
        try String.fetchAll(
          database,
          sql: """
            SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite%' UNION ALL
            SELECT 'column ' || m.name || '.' || c.name || ' ' || c.type FROM sqlite_master AS m, pragma_table_info(m.name)
            AS c WHERE m.type = 'table'
            """))
    }
  }

  private static func single<Value: DatabaseValueConvertible>(_ sql: String, in path: FilePath) throws -> Value? {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { try Value.fetchOne($0, sql: sql) }
  }

  struct Drift: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let statements: [String]
    var columns: Set<String> = []
    var tables: Set<String> = []

    /// The kinds of what is added.
    let kinds: [RepairAccount.Kind]
  }

  static let joinName: String = (try? StoreLayout(current).joinTables.first?.name) ?? ""

  static let drifts = [
    Drift(
      testDescription: "one column", statements: ["ALTER TABLE ZVEHICLE DROP COLUMN ZPLATE"],
      columns: ["ZVEHICLE.ZPLATE"], kinds: [.column]),
    Drift(
      testDescription: "columns of several tables",
      statements: [
        "ALTER TABLE ZVEHICLE DROP COLUMN ZHASSIDECAR", "ALTER TABLE ZVEHICLE DROP COLUMN ZMAKER",
        "ALTER TABLE ZTAG DROP COLUMN ZLABEL",
      ], columns: ["ZVEHICLE.ZHASSIDECAR", "ZVEHICLE.ZMAKER", "ZTAG.ZLABEL"], kinds: [.column, .column, .column]),
    Drift(
      testDescription: "a column with a default", statements: ["ALTER TABLE ZVEHICLE DROP COLUMN ZDOORS"],
      columns: ["ZVEHICLE.ZDOORS"], kinds: [.column]),
    Drift(
      testDescription: "a reference and its index",
      statements: ["DROP INDEX ZVEHICLE_ZOWNER_INDEX", "ALTER TABLE ZVEHICLE DROP COLUMN ZOWNER"],
      columns: ["ZVEHICLE.ZOWNER"], kinds: [.column, .index]),
    Drift(testDescription: "a table", statements: ["DROP TABLE ZTAG"], tables: ["ZTAG"], kinds: [.table]),
    Drift(
      testDescription: "a join table", statements: ["DROP TABLE \(joinName)"], tables: [joinName],
      kinds: [.joinTable, .index]),
    Drift(
      testDescription: "a unique index", statements: ["DROP INDEX Z_Person_UNIQUE_email"], kinds: [.uniqueIndex]),
    Drift(
      testDescription: "a key row", statements: ["DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Person'"],
      kinds: [.primaryKeyRow]),
    Drift(
      testDescription: "the key row of a sub-entity", statements: ["DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'"],
      kinds: [.primaryKeyRow]),
    Drift(
      testDescription: "all key rows", statements: ["DELETE FROM Z_PRIMARYKEY"],
      kinds: Array(repeating: .primaryKeyRow, count: 5)),
    Drift(
      testDescription: "a low maximum", statements: ["UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_NAME = 'Person'"],
      kinds: [.highestKey]),
    Drift(
      testDescription: "a wrong number in Z_PRIMARYKEY alone",
      statements: ["UPDATE Z_PRIMARYKEY SET Z_ENT = 40 WHERE Z_NAME = 'Tag'"], kinds: [.primaryKeyRow]),
    Drift(
      testDescription: "a wrong parent", statements: ["UPDATE Z_PRIMARYKEY SET Z_SUPER = 1 WHERE Z_NAME = 'Car'"],
      kinds: [.primaryKeyRow]),
    Drift(
      testDescription: "the whole of Z_PRIMARYKEY", statements: ["DROP TABLE Z_PRIMARYKEY"],
      kinds: [.table] + Array(repeating: .primaryKeyRow, count: 5)),
  ]

  @Test(arguments: drifts)
  func whatIsMissingIsAddedAndNothingIsLost(drift: Drift) throws {
    let (scene, fresh) = (try Self.scene(), try Self.scene())
    try Self.change(scene, drift.statements)
    let before = try Self.contents(scene.store, without: drift.columns, tables: drift.tables)
    let metadata: String? = try Self.single("SELECT hex(Z_PLIST) || Z_UUID FROM Z_METADATA", in: scene.store)
    let untouched = try FolderContents(of: scene.folder.path)
    let migrator = Migrator(try bundle(Self.current), surroundings: .still())
    let plan = try migrator.planRepair(scene.store)
    #expect(try FolderContents(of: scene.folder.path) == untouched)
    let result = try migrator.repair(scene.store)
    #expect(result.repair == plan && result.steps.isEmpty)
    #expect(
      plan.changes.map(\.kind).sorted { $0.rawValue < $1.rawValue } == drift.kinds.sorted { $0.rawValue < $1.rawValue })
    // No row and no value is lost, and the original is kept as it was.
    #expect(try Self.contents(scene.store, without: drift.columns, tables: drift.tables) == before)
    let backup = try #require(result.backup)
    #expect(try Self.contents(backup) == before)
    // Everything of a fresh store is there.
    #expect(try Self.objects(scene.store).isSuperset(of: try Self.objects(fresh.store)))
    let check: String? = try Self.single("PRAGMA integrity_check", in: scene.store)
    #expect(check == "ok")
    #expect(try Self.single("SELECT hex(Z_PLIST) || Z_UUID FROM Z_METADATA", in: scene.store) == metadata)
    #expect(
      try scene.rows("SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1")
        == fresh.rows("SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1"))
    // Once is enough.
    let again = try migrator.repair(scene.store)
    #expect(again.isNothing && again.backup == nil)
  }

  @Test func aNewColumnHasWhatALightweightMigrationGives() throws {
    let scene = try Self.scene("ALTER TABLE ZVEHICLE DROP COLUMN ZDOORS", "ALTER TABLE ZVEHICLE DROP COLUMN ZMAKER")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(
      try scene.rows("SELECT Z_PK, ZDOORS, ZMAKER, ZPLATE FROM ZVEHICLE ORDER BY 1")
        == ["2|4|NULL|X 1", "5|4|NULL|NULL", "7|NULL|NULL|X 3"])
    // What is mandatory and has no default is told.
    let left = try #require(result.repair?.leftOut.first)
    #expect(left.kind == .missingValue && left.rows == 3 && left.examples == [2, 5, 7])
    #expect(result.repair?.changes.first { $0.name == "ZDOORS" }?.rows == 2)
  }

  @Test func aUniqueIndexWhoseRecordsCollideIsLeftOut() throws {
    let scene = try Self.scene(
      "DROP INDEX Z_Person_UNIQUE_email", "UPDATE ZPERSON SET ZEMAIL = 'a@example.org' WHERE Z_PK = 9",
      "ALTER TABLE ZTAG DROP COLUMN ZLABEL")
    let migrator = Migrator(try bundle(Self.current), surroundings: .still())
    let result = try migrator.repair(scene.store)
    #expect(result.repair?.changes.map(\.kind) == [.column])
    let left = try #require(result.repair?.leftOut.first)
    #expect(left.kind == .uniqueIndex && left.rows == 2 && left.examples == [1, 9])
    #expect(
      try scene.rows("SELECT Z_PK, ZEMAIL FROM ZPERSON ORDER BY 1") == ["1|a@example.org", "2|NULL", "9|a@example.org"])
    // Nothing else is missing: the store stays, and the same is told.
    let before = try FileSystem().contents(of: scene.store, limit: 1 << 24)
    #expect(try migrator.planRepair(scene.store).leftOut == result.repair?.leftOut)
    #expect(try migrator.repair(scene.store).isNothing)
    #expect(try FileSystem().contents(of: scene.store, limit: 1 << 24) == before)
  }

  /// Two vehicles have an owner and two pairs a tag; the table of these was missing, and is empty now.
  @Test func referencesThatLeadToNoRecordAreCounted() throws {
    for (table, kind, keys) in [
      ("ZPERSON", RepairAccount.Kind.danglingReference, [Int64(2), 7]), ("ZTAG", .danglingPair, []),
    ] {
      let scene = try Self.scene("DROP TABLE \(table)")
      let migrator = Migrator(try bundle(Self.current), surroundings: .still())
      let result = try migrator.repair(scene.store)
      #expect(result.repair?.changes.first?.kind == .table)
      let left = try #require(result.repair?.leftOut.first)
      #expect(left.kind == kind && left.rows == 2 && left.examples == keys, "\(left)")
      // The records that were in the table are told as lost, once.
      let lost = try #require(result.repair?.leftOut.last)
      #expect(result.repair?.leftOut.count == 2 && lost.kind == .lostRecords && lost.table == table)
      #expect(lost.text.contains("likely lost, \(table == "ZTAG" ? "one" : "9") at most"), "\(lost.text)")
      // Asked again, it still says what leads nowhere, though there is nothing to add.
      let again = try migrator.planRepair(scene.store)
      #expect(again.isNothing && again.leftOut == [left])
    }
  }

  @Test func anEmptyTableThatNoRecordEverHadIsNoLoss() throws {
    let scene = try Self.scene(
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_NAME = 'Tag'", "DELETE FROM \(Self.joinName)", "DROP TABLE ZTAG")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.first?.kind == .table)
    #expect(result.repair?.leftOut.contains { $0.kind == .lostRecords } == false)
  }

  /// The default of an attribute that must be unique is for one record: several would break the constraint.
  @Test(arguments: [1, 3])
  func aDefaultThatMustBeUniqueIsNotGivenTwice(count: Int) throws {
    let model = model(
      entity(
        "Note", attribute("code", optional: false, default: .string("none")), attribute("text"), unique: [["code"]]))
    let rows = (1...count).map { "(\($0), 1, 1, 'c\($0)', 't')" }.joined(separator: ", ")
    let scene = try MigrationScene(
      model, "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZCODE, ZTEXT) VALUES \(rows)", "DROP INDEX Z_Note_UNIQUE_code",
      "ALTER TABLE ZNOTE DROP COLUMN ZCODE")
    let result = try Migrator(try bundle(model), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.map(\.kind) == [.column, .uniqueIndex])
    #expect(result.repair?.leftOut.map(\.kind) == (count == 1 ? [] : [.missingValue]))
    #expect(
      try scene.rows("SELECT Z_PK, ZCODE FROM ZNOTE ORDER BY 1")
        == (1...count).map { "\($0)|\(count == 1 ? "none" : "NULL")" })
  }

  @Test func whatTheAppAddedStays() throws {
    let scene = try Self.scene(
      "CREATE TABLE own (k INTEGER PRIMARY KEY, v TEXT COLLATE NOCASE)", "INSERT INTO own VALUES (3, 'Ä'), (8, x'00')",
      "CREATE TABLE pairs (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID", "INSERT INTO pairs VALUES (1, 'x'), (1, 2.0)",
      "ALTER TABLE ZPERSON ADD COLUMN nickname TEXT NOT NULL DEFAULT 'none'", "CREATE INDEX fast ON ZPERSON (ZNAME)",
      "CREATE VIEW people AS SELECT ZNAME FROM ZPERSON",
      "CREATE TRIGGER noted AFTER UPDATE ON ZVEHICLE BEGIN INSERT INTO own (v) VALUES ('changed'); END",
      "ALTER TABLE ZVEHICLE DROP COLUMN ZDOORS")
    let before = try Self.contents(scene.store, without: ["ZVEHICLE.ZDOORS"])
    let objects = try Self.objects(scene.store)
    _ = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    // The trigger has not run while the doors were counted.
    #expect(try Self.contents(scene.store, without: ["ZVEHICLE.ZDOORS"]) == before)
    #expect(try Self.objects(scene.store).isSuperset(of: objects))
  }

  @Test func aColumnThatKeepsTheFrameworkFromInsertingIsTold() throws {
    let scene = try Self.scene(
      "CREATE TABLE made (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, own INTEGER NOT NULL)",
      "INSERT INTO made SELECT Z_PK, Z_ENT, Z_OPT, 1 FROM ZTAG", "DROP TABLE ZTAG", "ALTER TABLE made RENAME TO ZTAG")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.map(\.name) == ["ZLABEL"])
    #expect(result.repair?.leftOut.map(\.kind) == [.appColumn])
    #expect(try scene.rows("SELECT Z_PK, own, ZLABEL FROM ZTAG") == ["1|1|NULL"])
  }

  // MARK: Bookkeeping

  /// What is wrong with the tables that every Core Data store has.
  struct Shape: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let statements: [String]

    /// The codes of what is found, without those of rows.
    let codes: Set<String>
  }

  private static func keys(_ declaration: String, _ columns: String) -> [String] {
    [
      "CREATE TABLE kept AS SELECT * FROM Z_PRIMARYKEY", "DROP TABLE Z_PRIMARYKEY",
      "CREATE TABLE Z_PRIMARYKEY \(declaration)", "INSERT INTO Z_PRIMARYKEY (\(columns)) SELECT \(columns) FROM kept",
      "DROP TABLE kept",
    ]
  }

  static let shapes = [
    Shape(
      testDescription: "no parents", statements: ["ALTER TABLE Z_PRIMARYKEY DROP COLUMN Z_SUPER"],
      codes: ["missing-column"]),
    Shape(
      testDescription: "no highest keys", statements: ["ALTER TABLE Z_PRIMARYKEY DROP COLUMN Z_MAX"],
      codes: ["missing-column"]),
    Shape(
      testDescription: "no names", statements: ["ALTER TABLE Z_PRIMARYKEY DROP COLUMN Z_NAME"],
      codes: ["missing-column"]),
    Shape(
      testDescription: "no numbers",
      statements: keys("(Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)", "Z_NAME, Z_SUPER, Z_MAX"),
      codes: ["other-table"]),
    Shape(
      testDescription: "no primary key",
      statements: keys(
        "(Z_ENT INTEGER, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)", "Z_ENT, Z_NAME, Z_SUPER, Z_MAX")
        + ["INSERT INTO Z_PRIMARYKEY SELECT * FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag'"], codes: ["other-table"]),
    Shape(
      testDescription: "no rowids",
      statements: keys(
        "(Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER) WITHOUT ROWID",
        "Z_ENT, Z_NAME, Z_SUPER, Z_MAX"), codes: ["other-table"]),
    Shape(
      testDescription: "texts in the place of numbers",
      statements: keys(
        "(Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER TEXT, Z_MAX TEXT)", "Z_ENT, Z_NAME, Z_SUPER, Z_MAX"),
      codes: ["other-table"]),
    Shape(
      testDescription: "metadata without its key",
      statements: [
        "CREATE TABLE kept AS SELECT Z_UUID, Z_PLIST FROM Z_METADATA", "DROP TABLE Z_METADATA",
        "CREATE TABLE Z_METADATA (Z_UUID VARCHAR(255), Z_PLIST BLOB)", "INSERT INTO Z_METADATA SELECT * FROM kept",
        "DROP TABLE kept",
      ], codes: ["other-table"]),
    Shape(
      testDescription: "a model cache without its column",
      statements: [
        "DROP TABLE Z_MODELCACHE", "CREATE TABLE Z_MODELCACHE (own TEXT)", "INSERT INTO Z_MODELCACHE VALUES ('kept')",
      ], codes: ["missing-column"]),
  ]

  @Test(arguments: shapes)
  func theBookkeepingGetsItsShape(shape: Shape) throws {
    let history = [
      "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER)",
      "INSERT INTO ACHANGE VALUES (12, 16001, 1, 9)",
      "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (16001, 'CHANGE', 0, 12)",
    ]
    let (scene, whole) = (try Self.scene(), try Self.scene())
    for one in [scene, whole] { try Self.change(one, history) }
    try Self.change(scene, shape.statements)
    let before = try Self.contents(scene.store)
    let migrator = Migrator(try bundle(Self.current), surroundings: .still())
    let untouched = try FolderContents(of: scene.folder.path)
    let plan = try migrator.planRepair(scene.store)
    #expect(try FolderContents(of: scene.folder.path) == untouched)
    #expect(try migrator.repair(scene.store).repair == plan)
    let codes = plan.changes.map(\.kind).filter { $0 != .primaryKeyRow && $0 != .highestKey && $0 != .modelCache }
    #expect(codes == (shape.codes == ["other-table"] ? [.remadeTable] : [.column]))
    #expect(try Self.objects(scene.store).isSuperset(of: try Self.objects(whole.store)))
    let after = try Self.contents(scene.store)
    for (table, rows) in before where table != "Z_METADATA" { #expect(after[table] == rows, "\(table)") }
    let keys = "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1"
    #expect(try scene.rows(keys) == whole.rows(keys))
    let metadata = "SELECT Z_VERSION, Z_UUID, hex(Z_PLIST) FROM Z_METADATA"
    #expect(try scene.rows(metadata) == whole.rows(metadata))
    #expect(try Self.single("SELECT count(*) FROM Z_MODELCACHE WHERE Z_CONTENT IS NOT NULL", in: scene.store) == 1)
    #expect(try Self.single("PRAGMA integrity_check", in: scene.store) == "ok")
    #expect(try migrator.repair(scene.store).isNothing)
  }

  @Test func anEmptyJoinTableWithoutItsColumnsIsMadeAnew() throws {
    let join = Self.joinName
    let scene = try Self.scene("DROP TABLE \(join)", "CREATE TABLE \(join) (Z_2TAGS INTEGER)")
    let whole = try Self.scene()
    // Where the one column there is the model's the table holds nothing of the app's.
    let isModels = try Self.objects(whole.store).contains("column \(join).Z_2TAGS INTEGER")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.contains { $0.kind == .remadeTable } == isModels)
    #expect(try Self.objects(scene.store).isSuperset(of: try Self.objects(whole.store)))
    let pairs: Int? = try Self.single("SELECT count(*) FROM \(join)", in: scene.store)
    #expect(pairs == 0)
  }

  @Test func aConstraintOfTheAppsThatRefusesARowIsTheReason() throws {
    let scene = try Self.scene(
      "CREATE TABLE kept AS SELECT * FROM Z_PRIMARYKEY", "DROP TABLE Z_PRIMARYKEY",
      """
      CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR UNIQUE, Z_SUPER INTEGER,
      Z_MAX INTEGER CHECK (Z_MAX < 5))
      """, "INSERT INTO Z_PRIMARYKEY SELECT Z_ENT, Z_NAME, Z_SUPER, 0 FROM kept", "DROP TABLE kept")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) {
      try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    }
    #expect(error?.code == "repair-refused" && error?.detail.contains("CHECK") == true, "\(error?.detail ?? "")")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func aTableWithoutThePrimaryKeyOfTheModelIsTold() throws {
    let scene = try Self.scene(
      "CREATE TABLE made (Z_PK INTEGER, Z_ENT INTEGER, Z_OPT INTEGER)",
      "INSERT INTO made SELECT Z_PK, Z_ENT, Z_OPT FROM ZTAG",
      "DROP TABLE ZTAG", "ALTER TABLE made RENAME TO ZTAG")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.map(\.name) == ["ZLABEL"])
    #expect(result.repair?.leftOut.map(\.kind) == [.otherObject])
    #expect(try scene.rows("SELECT Z_PK, ZLABEL FROM ZTAG") == ["1|NULL"])
  }

  // MARK: Numbers

  @Test func recordsWithTheNumbersOfZPrimaryKeyGetTheModels() throws {
    let scene = try Self.scene(
      "UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 100, Z_SUPER = CASE Z_SUPER WHEN 0 THEN 0 ELSE Z_SUPER + 100 END",
      "UPDATE ZPERSON SET Z_ENT = Z_ENT + 100", "UPDATE ZTAG SET Z_ENT = Z_ENT + 100",
      "UPDATE ZVEHICLE SET Z_ENT = Z_ENT + 100")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.filter { $0.kind == .entityNumbers }.map(\.rows) == [3, 1, 3])
    #expect(
      try scene.rows("SELECT Z_PK, Z_ENT, ZMAKER FROM ZVEHICLE ORDER BY 1") == ["2|5|Fiat", "5|5|Opel", "7|4|Ural"])
    #expect(
      try scene.rows("SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1") == [
        "1|Person|0|9", "2|Tag|0|1", "3|Vehicle|0|7", "4|Bike|3|0", "5|Car|3|0",
      ])
  }

  @Test(arguments: [
    "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER, ZENTITYPK INTEGER)",
    "CREATE TABLE ANSCKEVENT (a)",
  ])
  func renumberingUnderHistoryOrMirroringIsRefused(table: String) throws {
    let scene = try Self.scene(
      table, "UPDATE Z_PRIMARYKEY SET Z_ENT = 102 WHERE Z_NAME = 'Tag'", "UPDATE ZTAG SET Z_ENT = 102")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) {
      try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    }
    #expect(error?.code == "repair-refused" && error?.detail.contains("ZTAG") == true, "\(error?.detail ?? "")")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  /// A table that holds one entity's records says itself what they are, whatever number they have.
  @Test(arguments: ["77", "1", "NULL", "'Tag'"])
  func recordsOfTheOnlyEntityOfATableGetItsNumber(number: String) throws {
    let scene = try Self.scene(
      "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER, ZENTITYPK INTEGER)",
      "INSERT INTO ACHANGE VALUES (1, 2, 1)",
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZLABEL) VALUES (4, 2, 1, 'four'), (6, 2, 1, 'six')",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 6 WHERE Z_NAME = 'Tag'",
      "UPDATE ZTAG SET Z_ENT = \(number) WHERE Z_PK = 4")
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.repair?.changes.map(\.kind) == [.entityNumbers] && result.repair?.changes.first?.rows == 1)
    #expect(
      try scene.rows("SELECT Z_PK, Z_ENT, ZLABEL FROM ZTAG ORDER BY 1") == ["1|2|old", "4|2|four", "6|2|six"])
    // The numbers of Z_PRIMARYKEY were right, and so is the history.
    #expect(try scene.rows("SELECT ZENTITY, ZENTITYPK FROM ACHANGE") == ["2|1"])
    #expect(try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store).isNothing)
  }

  /// An abstract entity has no records, so that the only other one of its table has them all.
  @Test func recordsOfTheOnlyConcreteEntityGetItsNumberWithTheColumn() throws {
    let model = model(
      entity("Vehicle", attribute("maker"), abstract: true),
      entity("Car", attribute("doors", .integer16), parent: "Vehicle"))
    let statements = ["DROP INDEX ZVEHICLE_Z_ENT_INDEX", "ALTER TABLE ZVEHICLE DROP COLUMN Z_ENT"]
    for isDropped in [false, true] {
      let scene = try MigrationScene(
        model, "INSERT INTO ZVEHICLE (Z_PK, Z_ENT, Z_OPT, ZMAKER) VALUES (1, 2, 1, 'Fiat'), (2, 2, 1, 'Opel')")
      try Self.change(scene, isDropped ? statements : ["UPDATE ZVEHICLE SET Z_ENT = 9 WHERE Z_PK = 2"])
      _ = try Migrator(try bundle(model), surroundings: .still()).repair(scene.store)
      #expect(try scene.rows("SELECT Z_PK, Z_ENT, ZMAKER FROM ZVEHICLE ORDER BY 1") == ["1|2|Fiat", "2|2|Opel"])
    }
  }

  @Test(arguments: ["77", "NULL"])
  func numbersThatNothingKnowsAreRefused(number: String) throws {
    let scene = try Self.scene("UPDATE ZVEHICLE SET Z_ENT = \(number) WHERE Z_PK = 5")
    let error = #expect(throws: MigrationError.self) {
      try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    }
    #expect(error?.code == "repair-refused")
  }

  // MARK: On the way to another version

  @Test func anOutdatedStoreIsRepairedBeforeItIsMigrated() throws {
    let scene = try Self.scene(
      "ALTER TABLE ZVEHICLE DROP COLUMN ZPLATE", "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Person'")
    var next = Self.current
    next = ManagedObjectModel(
      entities: next.entities.values.map { $0 } + [entity("Trailer", attribute("load", .integer32))])
    let versions = try bundle(Self.current, next)
    let result = try scene.migrate(versions)
    #expect(result.steps.map(\.step) == ["V1 → V2"])
    #expect(result.repair?.changes.map(\.kind) == [.column, .primaryKeyRow] && result.repair?.version == "V1")
    #expect(
      try scene.rows("SELECT Z_PK, ZMAKER, ZPLATE, ZDOORS FROM ZVEHICLE ORDER BY 1")
        == ["2|Fiat|NULL|3", "5|Opel|NULL|5", "7|Ural|NULL|NULL"])
    #expect(try scene.rows("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Person'") == ["9"])
    // One original, that of before both.
    let backups = RealMaterial.allFiles(below: scene.folder.appending("Backups")).filter {
      $0.string.hasSuffix(".sqlite")
    }
    #expect(backups == [result.backup].compactMap(\.self))
  }

  @Test func aDamagedStoreIsNotRepaired() throws {
    let scene = try Self.scene("ALTER TABLE ZTAG DROP COLUMN ZLABEL")
    var bytes = try FileSystem().contents(of: scene.store, limit: 1 << 24)
    let root: Int = try #require(
      try Self.single("SELECT rootpage FROM sqlite_master WHERE name = 'ZPERSON'", in: scene.store))
    for index in (root - 1) * 4096..<(root - 1) * 4096 + 64 { bytes[index] = 0xAA }
    try FileSystem().writeAtomically(bytes, to: scene.store, replacing: true)
    for suffix in ["-wal", "-shm"] { try FileSystem().unlink(scene.folder.appending("App.sqlite\(suffix)")) }
    let error = #expect(throws: MigrationError.self) {
      try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    }
    #expect(error?.kind == .sourceDamaged, "\(error?.detail ?? "")")
    #expect(try FileSystem().contents(of: scene.store, limit: 1 << 24) == bytes)
  }

  // MARK: Interrupted

  @Test(arguments: [Errno?.none, .noSpace, .ioError])
  func anyWriteOfARepairMayBeTheLast(errno: Errno?) throws {
    func make() throws -> MigrationScene {
      let scene = try Self.scene("ALTER TABLE ZVEHICLE DROP COLUMN ZDOORS", "DROP INDEX Z_Person_UNIQUE_email")
      try scene.folder.write("outside", to: ".App_SUPPORT/_EXTERNAL_DATA/file")
      return scene
    }
    func repair(_ scene: MigrationScene, _ surroundings: Surroundings = .still()) throws {
      _ = try Migrator(try bundle(Self.current), surroundings: surroundings).repair(scene.store)
    }
    let rehearsal = Trouble(.death, atStep: 0)
    let whole = try make()
    let original = try FileSystem().contents(of: whole.store, limit: 1 << 24)
    try repair(whole, .still(fileSystem: rehearsal.fileSystem))
    let bytes = try FileSystem().contents(of: whole.store, limit: 1 << 24)
    #expect(bytes != original && rehearsal.steps > 20)
    let isLong = environment("LAZARET_MUTATIONS") != nil
    let start = isLong ? 1 : [1, 2, 3][errno == nil ? 0 : errno == .noSpace ? 1 : 2]
    for step in stride(from: start, through: rehearsal.steps, by: isLong ? 1 : 3) {
      let scene = try make()
      let trouble = Trouble(errno.map { .failure($0) } ?? .death, atStep: step)
      do {
        try repair(scene, .still(fileSystem: trouble.fileSystem))
      } catch let error as MigrationError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      try repair(scene)
      #expect(try FileSystem().contents(of: scene.store, limit: 1 << 24) == bytes, "step \(step)")
      let external = scene.folder.appending(".App_SUPPORT/_EXTERNAL_DATA/file")
      #expect(try FileSystem().contents(of: external, limit: 100) == Array("outside".utf8), "step \(step)")
      let backups = RealMaterial.allFiles(below: scene.folder.appending("Backups")).filter {
        $0.string.hasSuffix(".sqlite")
      }
      #expect(try backups.map { try FileSystem().contents(of: $0, limit: 1 << 24) } == [original], "step \(step)")
    }
  }
}
