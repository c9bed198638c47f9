import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import StoreFiles
import SystemPackage
import TestSupport
import Testing

/// Records and references that break the model's rules, put right on request; what is taken out is set aside.
struct RepairDataTests {
  private static let current = model(
    entity(
      "Car", attribute("plate"), toOne("engine", "Engine", inverse: "car"), toMany("tags", "Tag", inverse: "cars")),
    entity(
      "Engine", attribute("power", .integer32, optional: false, default: .integer(50)),
      toOne("car", "Car", inverse: "engine")),
    entity(
      "Person", attribute("email"), attribute("name", optional: false), toOne("boss", "Person", inverse: "staff"),
      toMany("staff", "Person", inverse: "boss"), unique: [["email"]]),
    entity("Tag", toMany("cars", "Car", inverse: "tags")))

  /// Cars 1 and 2, engines 1 to 3, persons 1 to 4, tag 1; Car 1, Engine 2, Person 3, Tag 4 are the numbers.
  private func scene() throws -> MigrationScene {
    let join = try #require(try StoreLayout(Self.current).joinTables.first)
    let isTag = join.relationship.entityName == "Tag"
    return try MigrationScene(
      Self.current,
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZPLATE, ZENGINE) VALUES (1, 1, 1, 'A', 1), (2, 1, 1, 'B', 2)",
      "INSERT INTO ZENGINE (Z_PK, Z_ENT, Z_OPT, ZPOWER, ZCAR) VALUES (1, 2, 1, 70, NULL), (2, 2, 1, NULL, 2), (3, 2, 1, 90, 2)",
      "DROP INDEX Z_Person_UNIQUE_email",
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZEMAIL, ZNAME, ZBOSS) VALUES (1, 3, 1, 'x', 'Ann', NULL),
      (2, 3, 1, 'x', 'Ann again', 1), (3, 3, 1, NULL, 'Cid', 2), (4, 3, 1, NULL, 'Dan', 77)
      """,
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1)",
      "INSERT INTO \(join.name) (\(join.sourceColumn), \(join.destinationColumn)) VALUES "
        + (isTag ? "(1, 1), (1, 9), (8, 2)" : "(1, 1), (9, 1), (2, 8)"))
  }

  private func migrator() throws -> (Migrator, Migrator.Options) {
    var options = Migrator.Options()
    options.repair = .data
    return (Migrator(try bundle(Self.current), surroundings: .still()), options)
  }

  private func rows(_ sql: String, _ path: FilePath) throws -> [String] {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { try String.fetchAll($0, sql: sql) }
  }

  @Test func whatBreaksTheRulesIsPutRightAndNothingIsThrownAway() throws {
    let scene = try scene()
    let (migrator, options) = try migrator()
    let before = try FileSystem().contents(of: scene.store, limit: 1 << 24)
    let plan = try migrator.planRepair(scene.store, options: options)
    #expect(try FileSystem().contents(of: scene.store, limit: 1 << 24) == before)
    let result = try migrator.repair(scene.store, options: options)
    #expect(result.repair == plan)
    // The second of two with one address is set aside, and who was led by it leads nowhere; so did person 4.
    #expect(
      try rows("SELECT Z_PK || ZNAME || ifnull(ZBOSS, '-') FROM ZPERSON ORDER BY 1", scene.store)
        == ["1Ann-", "3Cid-", "4Dan-"])
    // Engine 1 leads back to car 1; engine 3 led to a car that leads to engine 2.
    #expect(
      try rows("SELECT Z_PK || '|' || ZPOWER || '|' || ifnull(ZCAR, '-') FROM ZENGINE ORDER BY 1", scene.store)
        == ["1|70|1", "2|50|2", "3|90|-"])
    #expect(try rows("SELECT Z_PK || ZPLATE || ZENGINE FROM ZCAR ORDER BY 1", scene.store) == ["1A1", "2B2"])
    let join = try #require(try StoreLayout(Self.current).joinTables.first)
    #expect(try rows("SELECT CAST(count(*) AS TEXT) FROM \(join.name)", scene.store) == ["1"])
    #expect(try rows("SELECT name FROM sqlite_master WHERE name = 'Z_Person_UNIQUE_email'", scene.store).count == 1)
    #expect(try rows("PRAGMA integrity_check", scene.store) == ["ok"])
    // Everything that was taken out lies beside the original, and that is as it was.
    let aside = try #require(result.setAside)
    #expect(aside.string == (result.backup?.string ?? "") + "-set-aside")
    #expect(
      try rows("SELECT lazaret_key || ZEMAIL || ZNAME || ZBOSS FROM lazaret_set_aside_ZPERSON", aside) == [
        "2xAnn again1"
      ])
    #expect(try rows("SELECT CAST(count(*) AS TEXT) FROM \"lazaret_set_aside_\(join.name)\"", aside) == ["2"])
    #expect(
      try rows(
        """
        SELECT "table" || '.' || "column" || ' ' || "row" || ': ' || ifnull("before", '-') || ' ' || ifnull("after", '-')
        FROM lazaret_values_changed ORDER BY 1
        """, aside)
        == [
          "ZENGINE.ZCAR 1: - 1", "ZENGINE.ZCAR 3: 2 -", "ZENGINE.ZPOWER 2: - 50", "ZPERSON.ZBOSS 3: 2 -",
          "ZPERSON.ZBOSS 4: 77 -",
        ])
    #expect(plan.setAsideRows == 3 && plan.changedValues == 5)
    let backup = try #require(result.backup)
    #expect(try FileSystem().contents(of: backup, limit: 1 << 24) == before)
    // Once is enough.
    #expect(try migrator.repair(scene.store, options: options).isNothing)
  }

  @Test func withoutBeingAskedNoRecordIsTouched() throws {
    let scene = try scene()
    let before = try tableContents(scene.store)
    let result = try Migrator(try bundle(Self.current), surroundings: .still()).repair(scene.store)
    #expect(result.isNothing && result.setAside == nil)
    #expect(try tableContents(scene.store) == before)
  }

  @Test func aMandatoryValueWithoutADefaultIsTold() throws {
    let scene = try scene()
    try RepairTests.change(scene, ["UPDATE ZPERSON SET ZNAME = NULL WHERE Z_PK = 3"])
    let (migrator, options) = try migrator()
    let left = try #require(try migrator.repair(scene.store, options: options).repair?.leftOut.first)
    #expect(left.kind == .missingValue && left.rows == 1 && left.examples == [3])
    #expect(try rows("SELECT CAST(Z_PK AS TEXT) FROM ZPERSON ORDER BY 1", scene.store) == ["1", "3", "4"])
  }
}
