import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import TestSupport
import Testing

/// What becomes of the records in a migration by an inferred mapping.
struct RebuildTests {
  @Test func attributesAreCopiedRenamedConvertedAndGivenDefaults() throws {
    let old = model(
      entity(
        "Car", attribute("brand"), attribute("doors", .integer16), attribute("photo", .binary), attribute("gone"),
        attribute("note")))
    let new = model(
      entity(
        "Car", attribute("maker", id: "brand"), attribute("doors", .double),
        attribute("photo", .binary, external: true),
        attribute("wheels", .integer32, optional: false, default: .integer(4)),
        attribute("note", optional: false, default: .string("it's none"))))
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND, ZDOORS, ZPHOTO, ZGONE, ZNOTE) VALUES (1, 1, 3, 'Fiat', 5, x'00ff', 'x', NULL), (7, 1, 1, NULL, NULL, NULL, NULL, 'n')"
    )
    let result = try scene.migrate(try bundle(old, new))
    #expect(
      try scene.rows("SELECT Z_PK, Z_ENT, Z_OPT, ZMAKER, ZDOORS, ZPHOTO, ZWHEELS, ZNOTE FROM ZCAR") == [
        "1|1|3|Fiat|5.0|x1 0 ff|4|it's none", "7|1|1|NULL|NULL|NULL|4|n",
      ])
    #expect(try scene.rows("SELECT Z_MAX FROM Z_PRIMARYKEY") == ["7"])
    #expect(try scene.rows("SELECT Z_UUID FROM Z_METADATA") == ["11111111-2222-4333-8444-555555555555"])
    let backup = try #require(result.backup)
    #expect(try MigrationScene.rows("SELECT count(*) FROM ZCAR WHERE ZGONE = 'x'", in: backup) == ["1"])
    #expect(
      try FolderContents(of: scene.folder.path, ignoring: ["Backups"]).description.split(separator: "\n").count == 1)
  }

  @Test func removedEntityRenumbersTheRestAndTakesReferencesWithIt() throws {
    let old = model(
      entity("Animal", attribute("name"), toOne("owner", "Person", inverse: "animals")),
      entity("Cat", parent: "Animal"), entity("Dog", parent: "Animal"),
      entity(
        "Person", toMany("animals", "Animal", inverse: "owner", ordered: true), toOne("best", "Animal"),
        toMany("clubs", "Club", inverse: "members")),
      entity("Club", attribute("title"), toMany("members", "Person", inverse: "clubs", ordered: true)))
    let new = model(
      entity("Animal", attribute("name"), toOne("owner", "Person", inverse: "animals")),
      entity("Dog", parent: "Animal"),
      entity(
        "Person", toMany("animals", "Animal", inverse: "owner", ordered: true), toOne("best", "Animal"),
        toMany("clubs", "Society", inverse: "members")),
      entity("Society", attribute("title"), toMany("members", "Person", inverse: "clubs", ordered: true), id: "Club"),
      entity("Aardvark"))
    let layout = try StoreLayout(old)
    let join = try #require(layout.joinTables.first)
    let order = try #require(join.columns.last)
    let numbers = Dictionary(uniqueKeysWithValues: layout.entities.map { ($0.name, $0.number) })
    let best = layout.storage(of: "best", in: "Person")
    guard case .toOne(_, let bestEntity?, _) = best,
      case .toManyByJoinTable(_, let club, let member, _) = layout.storage(of: "members", in: "Club")
    else {
      Issue.record("the layout is not what this test is about")
      return
    }
    let (cat, dog, person, clubNumber) = (
      numbers["Cat"] ?? 0, numbers["Dog"] ?? 0, numbers["Person"] ?? 0, numbers["Club"] ?? 0
    )
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZNAME, ZOWNER, Z_FOK_OWNER) VALUES (1, \(cat), 1, 'Tom', 1, 10), (2, \(dog), 1, 'Rex', 1, 20), (3, \(dog), 1, 'Bo', 2, 5)",
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZBEST, \(bestEntity)) VALUES (1, \(person), 1, 1, \(cat)), (2, \(person), 1, 3, \(dog))",
      "INSERT INTO ZCLUB (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (9, \(clubNumber), 1, 'Chess')",
      "INSERT INTO \(join.name) (\(club), \(member), \(order)) VALUES (9, 1, 100), (9, 2, 50)")
    let versions = try bundle(old, new)
    let result = try scene.migrate(versions)
    #expect(result.steps.first?.removedRows == ["Cat": 1])
    let store = try PersistentStore(opening: scene.store, model: new)
    let people = try store.records(of: "Person")
    #expect(people.map(\.primaryKey) == [1, 2])
    #expect(people[0].toOne["best"] == nil)
    #expect(people[1].toOne["best"] == RecordReference(entityName: "Dog", primaryKey: 3))
    #expect(try store.destinationKeys(of: "animals", entity: "Person", primaryKey: 1) == [2])
    #expect(try store.destinationKeys(of: "members", entity: "Society", primaryKey: 9) == [2, 1])
    #expect(try store.records(of: "Animal").map(\.entityName) == ["Dog", "Dog"])
    #expect(try store.records(of: "Society").first?.values["title"] == .string("Chess"))
    try store.close()
  }

  @Test func cardinalityGrowsAndInversesAppear() throws {
    let old = model(
      entity("A", toOne("b", "B", inverse: "as"), toMany("cs", "C")),
      entity("B", toMany("as", "A", inverse: "b")), entity("C"))
    let new = model(
      entity("A", toMany("b", "B", inverse: "as"), toMany("cs", "C", inverse: "a")),
      entity("B", toMany("as", "A", inverse: "b")), entity("C", toOne("a", "A", inverse: "cs")))
    let scene = try MigrationScene(
      old, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZB) VALUES (1, 1, 1, 5), (2, 1, 1, 5), (3, 1, 1, NULL)",
      "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (5, 2, 1)",
      "INSERT INTO ZC (Z_PK, Z_ENT, Z_OPT, Z1CS) VALUES (1, 3, 1, 3), (2, 3, 1, NULL)")
    try scene.migrate(try bundle(old, new))
    let store = try PersistentStore(opening: scene.store, model: new)
    #expect(try store.destinationKeys(of: "as", entity: "B", primaryKey: 5) == [1, 2])
    #expect(try store.destinationKeys(of: "b", entity: "A", primaryKey: 1) == [5])
    #expect(try store.destinationKeys(of: "b", entity: "A", primaryKey: 3) == [])
    #expect(try store.destinationKeys(of: "cs", entity: "A", primaryKey: 3) == [1])
    #expect(try store.records(of: "C").map { $0.toOne["a"]?.primaryKey } == [3, nil])
    try store.close()
  }

  @Test func missingMandatoryValuesAreNamedAndNothingIsTouched() throws {
    let old = model(entity("Car", attribute("brand")))
    let new = model(entity("Car", attribute("brand", optional: false)))
    let scene = try MigrationScene(
      old, "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND) VALUES (1, 1, 1, 'Fiat'), (4, 1, 1, NULL), (6, 1, 1, NULL)")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    #expect(error?.kind == .dataViolation)
    #expect(error?.entityName == "Car" && error?.propertyName == "brand")
    #expect(error?.detail.contains("2 records") == true && error?.detail.contains("(4, 6)") == true)
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func duplicatesAreNamed() throws {
    let old = model(entity("Car", attribute("plate")))
    let new = model(entity("Car", attribute("plate"), unique: [["plate"]]))
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZPLATE) VALUES (1, 1, 1, 'secret'), (2, 1, 1, 'b'), (3, 1, 1, 'secret')")
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    #expect(error?.kind == .constraintViolation)
    #expect(error?.detail.contains("(1, 3)") == true && error?.description.contains("secret") == false)
  }

  @Test func historyIsRenumberedAndForeignTablesStay() throws {
    let old = model(entity("Car", attribute("brand")), entity("Gone"), entity("Zoo"))
    let new = model(entity("Bike"), entity("Car", attribute("brand")), entity("Zoo"))
    let scene = try MigrationScene(
      old, "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND) VALUES (1, 1, 1, 'Fiat')",
      "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZCOLUMNS BLOB)",
      "CREATE INDEX ACHANGE_ZENTITY ON ACHANGE (ZENTITY)",
      "INSERT INTO ACHANGE VALUES (1, 16001, 1, 1, x'80'), (2, 16001, 2, 1, NULL), (3, 16001, 3, 1, NULL)",
      "INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 3)",
      "CREATE TABLE mine (a PRIMARY KEY, b) WITHOUT ROWID", "INSERT INTO mine VALUES ('k', 1.5)",
      "CREATE INDEX mine_b ON mine (b)", "CREATE INDEX fast ON ZCAR (ZBRAND)")
    let result = try scene.migrate(try bundle(old, new))
    #expect(try scene.rows("SELECT Z_PK, ZENTITY, ZCOLUMNS FROM ACHANGE") == ["1|2|x80", "3|3|NULL"])
    #expect(result.steps.first?.removedChanges == 1)
    #expect(try scene.rows("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 16001") == ["3"])
    #expect(try scene.rows("SELECT * FROM mine") == ["k|1.5"])
    #expect(
      try scene.rows("SELECT name FROM sqlite_master WHERE name IN ('fast', 'mine_b', 'ACHANGE_ZENTITY') ORDER BY 1")
        == ["ACHANGE_ZENTITY", "fast", "mine_b"])
  }

  @Test func mirroredStoresAreNotRenumbered() throws {
    let old = model(entity("Car", attribute("brand")))
    let new = model(entity("Bike"), entity("Car", attribute("brand")))
    let scene = try MigrationScene(
      old, "CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY, ZENTITYID INTEGER)")
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    #expect(error?.detail.contains("CloudKit") == true)
  }

  /// The mirroring would take the records of the new entity for those of the old one.
  @Test func aMirroredNumberIsGivenToNoOtherEntity() throws {
    let first = model(entity("Bbb", attribute("x")), entity("Ccc", attribute("y")))
    let fewer = model(entity("Bbb", attribute("x")))
    let new = model(entity("Bbb", attribute("x")), entity("Ddd", attribute("q")))
    for (old, numbers, isRefused) in [(first, "1", true), (fewer, "1", false), (fewer, "1), (2, 2", true)] {
      let scene = try MigrationScene(
        old, "CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY, ZENTITYID INTEGER)",
        "INSERT INTO ANSCKRECORDMETADATA VALUES (1, \(numbers))")
      let versions = try bundle(old, new)
      let plan = try Migrator(versions, surroundings: .still()).plan(scene.store)
      #expect(plan.isPossible == !isRefused)
      guard isRefused else {
        try scene.migrate(versions)
        continue
      }
      let error = try #require(throws: MigrationError.self) { try scene.migrate(versions) }
      #expect(error.kind == .dataViolation && error.detail.contains("Ddd would get number 2"), "\(error)")
    }
  }
}
