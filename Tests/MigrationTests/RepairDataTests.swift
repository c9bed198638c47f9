import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
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

  /// Tables that have lost their primary key, with a key and a pair that are there twice, and numbers of other entities beside
  /// references.
  @Test func rowsOfOneKeyAreToldAndSetAside() throws {
    let old = model(
      entity("Animal", attribute("n"), toMany("homes", "Home", inverse: "pet"), toMany("tags", "Tag", inverse: "all")),
      entity("Dog", parent: "Animal"), entity("Home", toOne("pet", "Animal", inverse: "homes")),
      entity("Tag", toMany("all", "Animal", inverse: "tags")))
    let new = model(
      entity(
        "Animal", attribute("n"), attribute("m"), toMany("homes", "Home", inverse: "pet"),
        toMany("tags", "Tag", inverse: "all")),
      entity("Dog", parent: "Animal"), entity("Home", toOne("pet", "Animal", inverse: "homes")),
      entity("Tag", toMany("all", "Animal", inverse: "tags")))
    let layout = try StoreLayout(old)
    let join = try #require(layout.joinTables.first)
    guard case .toOne(_, let found, _)? = layout.storage(of: "pet", in: "Home") else { return }
    let number = try #require(found)
    func loose(_ table: String) -> String {
      "CREATE TABLE loose AS SELECT * FROM \(table); DROP TABLE \(table); ALTER TABLE loose RENAME TO \(table);"
    }
    let scene = try MigrationScene(
      old, "INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 1, 1, 'a'), (2, 2, 1, 'b')",
      "INSERT INTO ZHOME (Z_PK, Z_ENT, Z_OPT, ZPET, \(number)) VALUES (1, 3, 1, 1, 1), (2, 3, 1, 2, 3), (3, 3, 1, 2, NULL)",
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1)", "INSERT INTO \(join.name) VALUES (1, 1)",
      loose("ZANIMAL") + loose(join.name), "INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (2, 2, 1, 'again')",
      "INSERT INTO \(join.name) VALUES (1, 1)")
    let versions = try bundle(old, new)
    let plan = try Migrator(versions, surroundings: .still()).plan(scene.store)
    #expect(plan.steps.first?.failures.map { "\($0.kind) \($0.rows ?? 0)" } == ["duplicate-key 2", "duplicate-key 2"])
    let error = try #require(throws: MigrationError.self) { try scene.migrate(versions) }
    #expect(error.kind == .dataViolation && error.detail.contains("ZANIMAL"), "\(error)")
    var options = Migrator.Options()
    options.repair = .data
    let result = try Migrator(versions, surroundings: .still()).repair(scene.store, options: options)
    let repair = try #require(result.repair)
    #expect(repair.setAsideRows == 2 && repair.changes.filter { $0.kind == .entityNumbers }.map(\.rows) == [2])
    #expect(try scene.rows("SELECT Z_PK, ZN FROM ZANIMAL ORDER BY 1") == ["1|a", "2|b"])
    #expect(try scene.rows("SELECT Z_PK, \(number) FROM ZHOME ORDER BY 1") == ["1|1", "2|2", "3|2"])
    #expect(try scene.rows("SELECT count(*) FROM \(join.name)") == ["1"])
    try scene.migrate(versions)
    #expect(try scene.rows("SELECT count(*) FROM pragma_table_info('ZANIMAL') WHERE pk = 1") == ["1"])
    #expect(try scene.rows("SELECT count(*) FROM pragma_table_info('\(join.name)') WHERE pk > 0") == ["2"])
  }

  @Test func aMissingJoinTableIsALossUnlessItsPairsLieBesideIt() throws {
    let model = model(
      entity("Cat", toMany("toys", "Toy", inverse: "cats")), entity("Toy", toMany("cats", "Cat", inverse: "toys")))
    let join = try #require(try StoreLayout(model).joinTables.first)
    let (other, column) = ("Z_3\(join.name.dropFirst(3))", "Z_3\(join.sourceColumn.dropFirst(3))")
    let filling = [
      "INSERT INTO ZCAT (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1)",
      "INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1)",
      "INSERT INTO \(join.name) VALUES (1, 2), (2, 2)",
    ].joined(separator: ";")
    let renaming = """
      ALTER TABLE \(join.name) RENAME TO \(other); ALTER TABLE \(other) RENAME COLUMN \(join.sourceColumn) TO \(column);
      DROP INDEX IF EXISTS \(join.name)_\(join.destinationColumn)_INDEX
      """
    for (change, pairs) in [("DROP TABLE \(join.name)", 0), (renaming, 2)] {
      let scene = try MigrationScene(model, filling, change)
      let repair = try #require(try Migrator(try bundle(model), surroundings: .still()).repair(scene.store).repair)
      #expect(repair.hasLostRecords == (pairs == 0), "\(repair.leftOut)")
      #expect(try scene.rows("SELECT count(*) FROM \(join.name)") == ["\(pairs)"])
      #expect(repair.changes.contains { $0.text.contains(other) } == (pairs > 0))
    }
    // Where there are no records there were no pairs.
    let empty = try MigrationScene(model, "DROP TABLE \(join.name)")
    let nothing = try #require(try Migrator(try bundle(model), surroundings: .still()).repair(empty.store).repair)
    #expect(!nothing.hasLostRecords)
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

  /// What a tampered file or store is, and on which of the two the statement runs.
  struct Tampering: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var isOfStore = false
    let statement: String
  }

  static let tamperings = [
    Tampering(
      testDescription: "what a value is now",
      statement: "UPDATE lazaret_values_changed SET \"after\" = 51 WHERE \"column\" = 'ZPOWER'"),
    Tampering(
      testDescription: "the class of what a value is now",
      statement: "UPDATE lazaret_values_changed SET \"after\" = '50' WHERE \"column\" = 'ZPOWER'"),
    Tampering(
      testDescription: "what a value was",
      statement: "UPDATE lazaret_values_changed SET \"before\" = 76 WHERE \"before\" = 77"),
    Tampering(
      testDescription: "a note that is missing", statement: "DELETE FROM lazaret_values_changed WHERE \"before\" = 77"),
    Tampering(
      testDescription: "a note of what did not change",
      statement: "INSERT INTO lazaret_values_changed VALUES ('ZPERSON', 'ZNAME', 1, 'Ann', 'Ann')"),
    Tampering(
      testDescription: "a value that was set aside", statement: "UPDATE lazaret_set_aside_ZPERSON SET ZNAME = 'Ann'"),
    Tampering(
      testDescription: "a row that was set aside and is there",
      statement:
        "INSERT INTO lazaret_set_aside_ZPERSON SELECT lazaret_reason, 1, 1, Z_ENT, Z_OPT, ZBOSS, ZEMAIL, ZNAME FROM lazaret_set_aside_ZPERSON"
    ),
    Tampering(
      testDescription: "another value than was noted", isOfStore: true,
      statement: "UPDATE ZENGINE SET ZPOWER = 51 WHERE Z_PK = 2"),
    Tampering(
      testDescription: "a value that was not noted", isOfStore: true,
      statement: "UPDATE ZPERSON SET ZNAME = 'Dora' WHERE Z_PK = 4"),
    Tampering(testDescription: "a row that is gone", isOfStore: true, statement: "DELETE FROM ZTAG"),
    Tampering(
      testDescription: "a rule that is broken", isOfStore: true,
      statement: "UPDATE ZCAR SET ZENGINE = NULL WHERE Z_PK = 1"),
  ]

  /// The checks believe neither the repair nor the file of what was set aside.
  @Test(arguments: tamperings)
  func theVerificationHoldsBothStoresAgainstWhatWasNoted(tampering: Tampering) throws {
    let scene = try scene()
    let (migrator, options) = try migrator()
    let result = try migrator.repair(scene.store, options: options)
    let (backup, aside) = (try #require(result.backup), try #require(result.setAside))
    let verification = RepairVerification(
      layout: try StoreLayout(Self.current), account: try #require(result.repair), aside: aside)
    try verification.check(scene.store, against: backup)
    let queue = try DatabaseQueue(path: (tampering.isOfStore ? scene.store : aside).string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: tampering.statement)
      #expect(database.changesCount > 0)
      try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
    let error = #expect(throws: MigrationError.self) { try verification.check(scene.store, against: backup) }
    #expect(error?.kind == .verificationFailed, "\(error?.detail ?? "")")
  }

  /// A column of dates takes 0.0 as the integer 0.
  @Test func whatIsNotedIsWhatTheRowHas() throws {
    let model = model(entity("Note", attribute("made", .date, optional: false, default: .date(0)), attribute("text")))
    let scene = try MigrationScene(
      model, "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZMADE, ZTEXT) VALUES (1, 1, 1, 7.5, 'a'), (2, 1, 1, NULL, 'b')")
    var options = Migrator.Options()
    options.repair = .data
    let result = try Migrator(try bundle(model), surroundings: .still()).repair(scene.store, options: options)
    let aside = try #require(result.setAside)
    #expect(
      try rows("SELECT typeof(ZMADE) || ZMADE FROM ZNOTE WHERE Z_PK = 2", scene.store)
        == rows("SELECT typeof(\"after\") || \"after\" FROM lazaret_values_changed", aside))
  }

  @Test("A store whose indexes are damaged is not said to lack nothing, and none of its references is cut")
  func damagedIndexes() throws {
    let names = "('ZCAR_ZENGINE_INDEX', 'own_index')"
    let scene = try MigrationScene(
      Self.current, "INSERT INTO ZENGINE (Z_PK, Z_ENT, Z_OPT, ZPOWER, ZCAR) VALUES (1, 2, 1, 70, 1)",
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZPLATE, ZENGINE) VALUES (1, 1, 1, 'A', 1), (2, 1, 1, 'B', NULL)",
      "CREATE INDEX own_index ON ZCAR (ZPLATE)", "PRAGMA writable_schema = 1",
      "UPDATE sqlite_master SET rootpage = (SELECT sum(rootpage) FROM sqlite_master WHERE name IN \(names)) - rootpage "
        + "WHERE name IN \(names)")
    let (migrator, options) = try migrator()
    let before = try FileSystem().contents(of: scene.store, limit: 1 << 24)
    let planned = #expect(throws: MigrationError.self) { try migrator.planRepair(scene.store, options: options) }
    #expect(planned?.kind == .sourceDamaged)
    let repaired = #expect(throws: MigrationError.self) { try migrator.repair(scene.store, options: options) }
    #expect(repaired?.kind == .sourceDamaged)
    #expect(try FileSystem().contents(of: scene.store, limit: 1 << 24) == before)
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
