import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

/// What keeps a migration from deleting what it should not.
struct MigrationGuardTests {
  static let old = model(entity("Car", attribute("brand"), attribute("doors", .integer16)))
  static let new = model(entity("Car", attribute("maker", id: "brand"), attribute("doors", .integer16)))
  static let rebuilt = model(entity("Car", attribute("brand")), entity("Bike"))

  static func make(_ model: ManagedObjectModel = old) throws -> MigrationScene {
    try MigrationScene(
      model,
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND) SELECT i, 1, 1, 'brand ' || i FROM n
      """)
  }

  @Test func aNewerStoreIsLeftAlone() throws {
    let newer = model(entity("Car", attribute("brand"), attribute("doors", .integer16), attribute("seats", .integer16)))
    let scene = try Self.make(newer)
    let before = try FolderContents(of: scene.folder.path)
    for versions in [try bundle(Self.old), try bundle(Self.rebuilt, Self.old)] {
      let error = #expect(throws: MigrationError.self) { try scene.migrate(versions) }
      #expect(error?.code == "newer-model" && error?.isEnvironmental == true)
      #expect(error?.detail.contains("Car.seats") == true)
    }
    #expect(try FolderContents(of: scene.folder.path) == before)
    // A caller that names the version has decided, and is told what that loses.
    var options = Migrator.Options()
    options.version = "V1"
    let result = try scene.migrate(try bundle(Self.old, newer), options: options)
    #expect(result.steps.map(\.step) == ["V2 → V1"])
    #expect(try scene.rows("SELECT count(*), count(ZBRAND) FROM ZCAR") == ["300|300"])
  }

  @Test func anotherAppsStoreIsLeftAlone() throws {
    let scene = try Self.make()
    let other = try bundle(model(entity("Note", attribute("text"))))
    let error = #expect(throws: MigrationError.self) { try scene.migrate(other) }
    #expect(error?.code == "other-model")
    #expect(throws: MigrationError.self) { try Migrator(other, surroundings: .still()).plan(scene.store) }
    #expect(try scene.rows("SELECT count(*) FROM ZCAR") == ["300"])
  }

  @Test func noDetourThatLosesSomethingGoesRoundARefusal() throws {
    // The store's own model is of no version; the way to the current one is refused, and an older version has no brand.
    let stores = model(entity("Car", attribute("brand"), attribute("doors", .integer32)))
    let without = model(entity("Car", attribute("doors", .integer16)))
    let current = model(entity("Car", attribute("brand", .date), attribute("doors", .integer16)))
    let scene = try Self.make(stores)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(without, current)) }
    #expect(error?.kind == .notInferable)
    #expect(try scene.rows("SELECT count(ZBRAND) FROM ZCAR") == ["300"])
  }

  @Test(arguments: [false, true])
  func aDamagedPageStopsEveryKindOfStep(isRebuild: Bool) throws {
    let scene = try Self.make()
    // A leaf that claims fewer cells than it has: SQLite reads on without a word.
    let system = FileSystem()
    var bytes = try system.contents(of: scene.store, limit: 1 << 24)
    let leaf = try #require(
      stride(from: 4096, to: bytes.count, by: 4096).first {
        bytes[$0] == 13 && bytes[$0 + 4] > 0 || bytes[$0] == 13 && bytes[$0 + 3] > 0
      })
    bytes[leaf + 4] /= 2
    try system.writeAtomically(bytes, to: scene.store, replacing: true)
    let before = try FolderContents(of: scene.folder.path)
    let versions = isRebuild ? try bundle(Self.old, Self.rebuilt) : try bundle(Self.old, Self.new)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(versions) }
    #expect(error?.code == "store-damaged", "\(error?.description ?? "")")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func anotherRequestBeginsAnew() throws {
    func mapped(_ brand: String) -> MappingModel {
      MappingModel(
        name: brand, origin: .code, source: Self.old, destination: Self.new,
        entityMappings: [
          EntityMapping(
            name: "Car", kind: .custom, source: "Car", destination: "Car",
            propertyMappings: [
              PropertyMapping("maker", .expression(.sql("'\(brand)'"))), PropertyMapping("doors", .copy("doors")),
            ])
        ])
    }
    let last = model(entity("Car", attribute("maker", id: "brand")))
    let scene = try Self.make()
    var options = Migrator.Options()
    options.mappings = [mapped("wrong")]
    options.progress = { _, number, _ in number == 1 }
    #expect(throws: MigrationError.self) { try scene.migrate(try bundle(Self.old, Self.new, last), options: options) }
    options.mappings = [mapped("right")]
    options.progress = { _, _, _ in true }
    let result = try scene.migrate(try bundle(Self.old, Self.new, last), options: options)
    #expect(result.resumedSteps == 0)
    #expect(try scene.rows("SELECT DISTINCT ZMAKER FROM ZCAR") == ["right"])
  }

  @Test func whatTheAppAddedIsKeptOrTold() throws {
    let scene = try Self.make()
    let store = try PersistentStore(opening: scene.store)
    try store.write { database in
      try database.execute(
        sql: """
          ALTER TABLE ZCAR ADD COLUMN MYEXTRA TEXT; UPDATE ZCAR SET MYEXTRA = 'x' WHERE Z_PK <= 7;
          CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('a'), ('b'), ('c'); DELETE FROM notes WHERE rowid = 1;
          PRAGMA user_version = 77; PRAGMA application_id = 1234
          """)
    }
    try store.close()
    let versions = try bundle(Self.old, Self.rebuilt)
    let plan = try Migrator(versions, surroundings: .still()).plan(scene.store)
    let result = try scene.migrate(versions)
    for losses in [plan.losses, result.steps[0].losses] {
      #expect(losses.contains { $0.kind == "column-of-the-app" && $0.property == "MYEXTRA" && $0.rows == 7 })
    }
    #expect(try scene.rows("SELECT rowid, text FROM notes") == ["2|b", "3|c"])
    #expect(try scene.rows("PRAGMA user_version") + scene.rows("PRAGMA application_id") == ["77", "1234"])
  }

  @Test func theEncodingStays() throws {
    let scene = try Self.make()
    // The same store in UTF-16: made anew, table by table.
    let other = scene.folder.appending("Wide.sqlite")
    let queue = try DatabaseQueue(path: other.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA encoding = 'UTF-16le'")
      let source = try DatabaseQueue(path: scene.store.string)
      try source.read { old in
        let statements = try String.fetchAll(
          old, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, rowid")
        for statement in statements { try database.execute(sql: statement) }
        for table in try String.fetchAll(old, sql: "SELECT name FROM sqlite_master WHERE type = 'table'") {
          for row in try Row.fetchAll(old, sql: "SELECT * FROM \"\(table)\"") {
            let marks = row.map { _ in "?" }.joined(separator: ", ")
            try database.execute(
              sql: "INSERT INTO \"\(table)\" VALUES (\(marks))", arguments: StatementArguments(row.databaseValues))
          }
        }
      }
      try source.close()
    }
    try queue.close()
    let result = try Migrator(try bundle(Self.old, Self.rebuilt), surroundings: .still()).migrate(other)
    #expect(result.steps.map(\.way) == [.rebuild])
    #expect(try MigrationScene.rows("PRAGMA encoding", in: other) == ["UTF-16le"])
    #expect(try MigrationScene.rows("SELECT ZBRAND FROM ZCAR WHERE Z_PK = 17", in: other) == ["brand 17"])
  }

  @Test func aMandatoryReferenceMustLeadSomewhere() throws {
    let before = model(
      entity("Car", toOne("owner", "Person", inverse: "cars")),
      entity("Person", toMany("cars", "Car", inverse: "owner")))
    let after = model(
      entity("Car", toOne("owner", "Person", inverse: "cars", optional: false)),
      entity("Person", toMany("cars", "Car", inverse: "owner")))
    let scene = try MigrationScene(
      before, "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1)",
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZOWNER) VALUES (1, 1, 1, 1), (2, 1, 1, 99)")
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(before, after)) }
    #expect(error?.kind == .dataViolation && error?.detail.contains("(2)") == true, "\(error?.detail ?? "")")
  }

  @Test func aCopyIsMadeEvenWhereNothingHasToBeMigrated() throws {
    let scene = try Self.make()
    var options = Migrator.Options()
    options.output = scene.folder.appending("Copy.sqlite")
    let result = try scene.migrate(try bundle(Self.new, Self.old), options: options)
    #expect(result.steps.isEmpty && result.store.lastComponent?.string == "Copy.sqlite")
    #expect(try MigrationScene.rows("SELECT count(*) FROM ZCAR", in: result.store) == ["300"])
    #expect(try scene.rows("SELECT count(*) FROM ZCAR") == ["300"])
  }
}
