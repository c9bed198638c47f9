import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Steps that only add and rename: no record is written anew, and the outcome is that of a rebuild.
struct InPlaceTests {
  /// Migrates two copies of a store, one in place and one by a rebuild, and compares what is in them.
  @discardableResult
  static func expectSameAsRebuild(
    _ scene: MigrationScene, _ versions: ModelBundle, _ location: SourceLocation = #_sourceLocation
  ) throws -> Migrator.Result {
    var options = Migrator.Options()
    options.alwaysRebuilds = true
    options.output = scene.folder.appending("Rebuilt.sqlite")
    let rebuilt = try scene.migrate(versions, options: options)
    let result = try scene.migrate(versions)
    #expect(result.steps.allSatisfy { $0.way == .inPlace }, sourceLocation: location)
    #expect(rebuilt.steps.allSatisfy { $0.way == .rebuild }, sourceLocation: location)
    #expect(result.steps.map(\.entities) == rebuilt.steps.map(\.entities), sourceLocation: location)
    #expect(try tableContents(scene.store) == tableContents(rebuilt.store), sourceLocation: location)
    let last = try #require(versions.versions.last).model
    let store = try PersistentStore(opening: scene.store, model: last)
    let differences = try store.read { try SQLSchema(StoreLayout(last)).differences(to: SQLSchema($0)) }
    // The app's own indexes stay.
    let serious = differences.filter { if case .unexpectedIndex = $0 { false } else { true } }
    #expect(serious.isEmpty, sourceLocation: location)
    try store.close()
    return result
  }

  @Test func namesAndAdditions() throws {
    let old = model(
      entity("Car", attribute("brand"), attribute("a"), attribute("b"), toOne("owner", "Person", inverse: "cars")),
      entity(
        "Person", attribute("name"), toMany("cars", "Car", inverse: "owner"),
        toMany("clubs", "Team", inverse: "members")),
      entity("Team", toMany("members", "Person", inverse: "clubs")))
    let new = model(
      entity(
        "Car", attribute("maker", id: "brand"), attribute("b", id: "a"), attribute("a", id: "b"),
        attribute("doors", .integer16), toOne("holder", "Person", inverse: "cars", id: "owner"),
        toOne("garage", "Zoo", inverse: "cars")),
      entity(
        "Person", attribute("name"), toMany("cars", "Car", inverse: "holder"),
        toMany("societies", "Society", inverse: "members", id: "clubs")),
      entity("Society", toMany("members", "Person", inverse: "societies"), id: "Team"),
      entity("Zoo", toMany("cars", "Car", inverse: "garage")))
    let join = try #require(try StoreLayout(old).joinTables.first)
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND, ZA, ZB, ZOWNER) VALUES (1, 1, 3, 'Fiat', 'x', 'y', 1), (5, 1, 1, NULL, 'v', NULL, NULL)",
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 2, 1, 'Ann')",
      "INSERT INTO ZTEAM (Z_PK, Z_ENT, Z_OPT) VALUES (4, 3, 1)",
      "INSERT INTO \(join.name) (\(join.sourceColumn), \(join.destinationColumn)) VALUES (\(join.relationship.entityName == "Person" ? "1, 4" : "4, 1"))",
      "CREATE VIEW brands AS SELECT Z_PK FROM ZCAR", "CREATE INDEX fast ON ZCAR (ZBRAND)")
    let result = try Self.expectSameAsRebuild(scene, try bundle(old, new))
    #expect(
      try scene.rows("SELECT ZMAKER, ZA, ZB, ZDOORS, ZHOLDER, ZGARAGE FROM ZCAR") == [
        "Fiat|y|x|NULL|1|NULL", "NULL|NULL|v|NULL|NULL|NULL",
      ])
    #expect(
      try scene.rows("SELECT Z_ENT, Z_NAME, Z_MAX FROM Z_PRIMARYKEY") == [
        "1|Car|5", "2|Person|1", "3|Society|4", "4|Zoo|0",
      ])
    #expect(try scene.rows("SELECT count(*) FROM brands") == ["2"])
    #expect(try scene.rows("SELECT sql FROM sqlite_master WHERE name = 'fast'").first?.contains("ZMAKER") == true)
    #expect(result.steps.first?.leftBehind == [])
    let original = try FileSystem().contents(of: #require(result.backup), limit: 1 << 20)
    #expect(!original.isEmpty)
  }

  @Test func defaultsFillFewRecordsInPlaceAndManyByARebuild() throws {
    let old = model(entity("Big", attribute("x")), entity("Small", attribute("note")))
    let new = model(
      entity("Big", attribute("x"), attribute("y")),
      entity(
        "Small", attribute("note", optional: false, default: .string("none")),
        attribute("size", .integer32, optional: false, default: .integer(7))))
    let scene = try MigrationScene(
      old, "INSERT INTO ZSMALL (Z_PK, Z_ENT, Z_OPT, ZNOTE) VALUES (1, 2, 1, NULL), (2, 2, 1, 'n')")
    try Self.expectSameAsRebuild(scene, try bundle(old, new))
    #expect(try scene.rows("SELECT ZNOTE, ZSIZE FROM ZSMALL") == ["none|7", "n|7"])
    let many = try MigrationScene(
      old,
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) INSERT INTO ZSMALL (Z_PK, Z_ENT, Z_OPT) SELECT i, 2, 1 FROM n"
    )
    #expect(try many.migrate(try bundle(old, new)).steps.map(\.way) == [.rebuild])
    #expect(try many.rows("SELECT count(*), sum(ZSIZE) FROM ZSMALL WHERE ZNOTE = 'none'") == ["1200|8400"])
  }

  @Test func hierarchiesKeepTheirTable() throws {
    let old = model(
      entity("Animal", attribute("name"), toOne("friend", "Animal")),
      entity("Cat", attribute("lives", .integer16), parent: "Animal"),
      entity("Dog", parent: "Animal"))
    let added = model(
      entity("Animal", attribute("name"), toOne("friend", "Animal")),
      entity(
        "Cat", attribute("lives", .integer16), attribute("fur", optional: false, default: .string("short")),
        parent: "Animal"),
      entity("Hound", attribute("tricks", .integer32), id: "Dog", parent: "Animal"))
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZNAME, ZLIVES, ZFRIEND, Z1_FRIEND) VALUES (1, 2, 1, 'Tom', 9, 2, 3), (2, 3, 1, 'Rex', NULL, NULL, NULL)"
    )
    try Self.expectSameAsRebuild(scene, try bundle(old, added))
    #expect(try scene.rows("SELECT Z_ENT, ZFUR, ZTRICKS FROM ZANIMAL") == ["2|short|NULL", "3|NULL|NULL"])
    // What the sub-entity alone had cannot stay in the column when the parent gives it to all.
    let pulled = model(
      entity("Animal", attribute("name"), attribute("lives", .integer16), toOne("friend", "Animal")),
      entity("Cat", parent: "Animal"), entity("Dog", parent: "Animal"))
    let other = try MigrationScene(
      old, "INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZLIVES) VALUES (1, 2, 1, 9), (2, 3, 1, NULL)")
    try other.migrate(try bundle(old, pulled))
    #expect(try other.rows("SELECT Z_PK, ZLIVES FROM ZANIMAL") == ["1|9", "2|NULL"])
  }

  @Test(arguments: [
    (model(entity("Car", attribute("brand"))), "a property goes"),
    (model(entity("Bike"), entity("Car", attribute("brand"), attribute("gone"))), "numbers change"),
    (model(entity("Car", attribute("brand"), attribute("gone", .integer16))), "refused"),
    (
      model(entity("Car", attribute("brand"), attribute("gone", external: false)), entity("Car2", parent: "Car")),
      "new child"
    ),
  ]) func whatRewritesRecordsIsARebuild(_ new: ManagedObjectModel, _ comment: String) throws {
    let old = model(entity("Car", attribute("brand"), attribute("gone")))
    let scene = try MigrationScene(old, "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND) VALUES (1, 1, 1, 'Fiat')")
    switch comment {
    case "refused":
      #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    case "new child": #expect(try scene.migrate(try bundle(old, new)).steps.map(\.way) == [.inPlace])
    default: #expect(try scene.migrate(try bundle(old, new)).steps.map(\.way) == [.rebuild], "\(comment)")
    }
  }

  @Test func consecutiveStepsShareACopy() throws {
    let first = model(entity("Car", attribute("a")))
    let second = model(entity("Car", attribute("a"), attribute("b")))
    let third = model(entity("Car", attribute("a"), attribute("c", id: "b")))
    let fourth = model(entity("Car", attribute("c", id: "b")))
    let fifth = model(entity("Car", attribute("c", id: "b"), attribute("d")))
    let scene = try MigrationScene(first, "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 1, 1, 'x')")
    let names = SharedList()
    let fileSystem = FileSystem { operation throws(Errno) in
      if operation.kind == .rename { names.append(operation.path.lastComponent?.string ?? "") }
    }
    var options = Migrator.Options()
    options.via = ["V2", "V3", "V4"]
    let result = try scene.migrate(
      try bundle(first, second, third, fourth, fifth), .still(fileSystem: fileSystem), options: options)
    #expect(result.steps.map(\.way) == [.inPlace, .inPlace, .rebuild, .inPlace])
    #expect(names.values.filter { $0.hasPrefix("step-") } == ["step-2.sqlite", "step-3.sqlite", "step-4.sqlite"])
    #expect(try scene.rows("SELECT * FROM ZCAR").count == 1)
  }

  @Test func duplicatesAreNamedAndNothingIsTouched() throws {
    let old = model(entity("Car", attribute("plate")))
    let new = model(entity("Car", attribute("plate"), attribute("x"), unique: [["plate"]]))
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZPLATE) VALUES (1, 1, 1, 'secret'), (2, 1, 1, 'b'), (3, 1, 1, 'secret')")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    #expect(error?.kind == .constraintViolation)
    #expect(error?.entityName == "Car" && error?.propertyName == "plate")
    #expect(error?.detail.contains("2 records") == true && error?.detail.contains("(1, 3)") == true)
    #expect(error?.description.contains("secret") == false)
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func damageInWhatStaysIsFound() throws {
    let old = model(entity("Car", attribute("a")), entity("Other", attribute("b")))
    let new = model(entity("Car", attribute("a"), attribute("x")), entity("Other", attribute("b")))
    let scene = try MigrationScene(
      old,
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO ZOTHER (Z_PK, Z_ENT, Z_OPT, ZB) SELECT i, 2, 1, hex(zeroblob(50)) FROM n"
    )
    let root = try #require(
      try scene.rows("SELECT rootpage FROM sqlite_master WHERE name = 'ZOTHER'").first.flatMap { Int($0) })
    var bytes = try FileSystem().contents(of: scene.store, limit: 1 << 20)
    let page = (root - 1) * 4096
    // The last child of the root is a page that belongs to something else.
    bytes.replaceSubrange((page + 8)..<(page + 12), with: [0, 0, 0, 1])
    try FileSystem().unlink(scene.store)
    let file = try FileSystem().create(scene.store)
    try file.write(bytes)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    #expect(error?.isEnvironmental == false)
    #expect(try FileSystem().contents(of: scene.store, limit: 1 << 20) == bytes)
  }

  @Test func fullTextAndSpatialIndexesOfTheAppStay() throws {
    let old = model(entity("Car", attribute("brand")), entity("Gone"))
    let renamed = model(entity("Car", attribute("maker", id: "brand")), entity("Gone"))
    let removed = model(entity("Car", attribute("brand")))
    for (new, way) in [(renamed, MigrationWay.inPlace), (removed, .rebuild)] {
      let scene = try MigrationScene(
        old, "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND) VALUES (1, 1, 1, 'Fiat')",
        "CREATE VIRTUAL TABLE words USING fts5(text, other)",
        "INSERT INTO words (rowid, text, other) VALUES (9, 'fast red car', 'x'), (4, 'slow', 'y')",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)", "INSERT INTO notes VALUES (3, 'about boats')",
        "CREATE VIRTUAL TABLE found USING fts5(body, content='notes', content_rowid='id')",
        "INSERT INTO found (found) VALUES ('rebuild')",
        "CREATE VIRTUAL TABLE places USING rtree(id, minx, maxx)", "INSERT INTO places VALUES (5, 1, 2)")
      let result = try scene.migrate(try bundle(old, new))
      #expect(result.steps.map(\.way) == [way])
      #expect(try scene.rows("SELECT rowid, other FROM words WHERE words MATCH 'red'") == ["9|x"])
      #expect(try scene.rows("SELECT rowid FROM found WHERE found MATCH 'boats'") == ["3"])
      #expect(try scene.rows("SELECT id FROM places WHERE minx < 1.5 AND maxx > 1.5") == ["5"])
    }
    let without = try MigrationScene(old, "CREATE VIRTUAL TABLE words USING fts5(text, content='')")
    let error = #expect(throws: MigrationError.self) { try without.migrate(try bundle(old, removed)) }
    #expect(error?.kind == .dataViolation && error?.detail.contains("words") == true)
    #expect(try without.migrate(try bundle(old, renamed)).steps.map(\.way) == [.inPlace])
  }
}
