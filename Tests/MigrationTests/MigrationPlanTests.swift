import GRDB
import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// What a plan says before anything is done.
struct MigrationPlanTests {
  static let first = model(
    entity("Car", attribute("brand"), attribute("color"), attribute("doors", .integer32)), entity("Bike"))
  static let second = model(
    entity("Car", attribute("maker", id: "brand"), attribute("paint", id: "color"), attribute("doors", .integer16)),
    entity("Bike"))
  static let third = model(
    entity(
      "Car", attribute("maker", optional: false, id: "brand"), attribute("doors", .integer16)))

  static func make() throws -> MigrationScene {
    try MigrationScene(
      first,
      """
      INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND, ZCOLOR, ZDOORS) VALUES
        (1, 2, 1, 'Fiat', 'red', 3), (2, 2, 1, NULL, 'blue', 70000), (3, 2, 1, NULL, NULL, NULL)
      """,
      "INSERT INTO ZBIKE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
  }

  static func plan(
    _ scene: MigrationScene, _ models: ManagedObjectModel..., via: [String] = []
  ) throws -> MigrationPlan {
    var options = Migrator.Options()
    options.via = via
    return try Migrator(try bundle(models), surroundings: .still()).plan(scene.store, options: options)
  }

  /// Numbers at the edge of what 64 bits hold, and of what a floating-point number keeps.
  @Test func numbersThatAreRoundedAreCounted() throws {
    func thing(_ type: AttributeType) -> ManagedObjectModel { model(entity("T", attribute("a", type))) }
    let values = [
      "-9223372036854775807 - 1", "9223372036854775807", "1 << 62", "(1 << 53) + 1", "(1 << 24) + 1", "0", "NULL",
    ]
    let rows = values.enumerated().map { "(\($0 + 1), 1, 1, \($1))" }.joined(separator: ", ")
    let scene = try MigrationScene(
      thing(.integer64), "INSERT INTO ZT (Z_PK, Z_ENT, Z_OPT, ZA) VALUES \(rows)")
    for (type, altered) in [(AttributeType.double, [Int64(2), 4]), (.float, [2, 4, 5])] {
      let plan = try Self.plan(scene, thing(.integer64), thing(type))
      #expect(plan.steps.first?.losses.map(\.examples) == [altered])
    }
  }

  @Test func everyStepIsCountedInTheStoreAsItIs() throws {
    let scene = try Self.make()
    let plan = try Self.plan(scene, Self.first, Self.second, Self.third, via: ["V2"])
    #expect(plan.from == "V1" && plan.to == "V3" && plan.rows == 4)
    #expect(plan.steps.map(\.name) == ["V1 → V2", "V2 → V3"])
    // The number that the narrower type has no place for.
    #expect(
      plan.steps[0].losses.map { "\($0.kind) \($0.entity).\($0.property ?? "") \($0.rows ?? -1)" }
        == ["value-out-of-range Car.doors 1"])
    #expect(plan.steps[0].losses.first?.examples == [2])
    // Under the names that the properties have by then, with the values that they have now.
    #expect(
      plan.steps[1].losses.map { "\($0.kind) \($0.entity).\($0.property ?? "") \($0.rows ?? -1)" }
        == ["removed-attribute Car.paint 2", "removed-entity Bike. 1"])
    #expect(
      plan.steps[1].failures.map { "\($0.kind) \($0.entity).\($0.property ?? "") \($0.rows ?? -1)" }
        == ["missing-attribute-value Car.maker 2"])
    #expect(plan.steps[1].failures.first?.examples == [2, 3])
    #expect(!plan.isPossible)
    #expect(
      plan.steps[1].entities.map { "\($0.source ?? "") \($0.way.rawValue) \($0.rows ?? -1)" }.contains("Bike removed 1")
    )
  }

  @Test func whatIsAddedOnTheWayIsNoLoss() throws {
    let scene = try Self.make()
    let between = model(
      entity(
        "Car", attribute("brand"), attribute("color"), attribute("doors", .integer32),
        attribute("seats", .integer16, default: .integer(4))), entity("Bike"))
    let plan = try Self.plan(scene, Self.first, between, Self.first, between, via: ["V2", "V3"])
    #expect(plan.losses.isEmpty && plan.isPossible)
  }

  @Test func duplicatesAreFailures() throws {
    let scene = try Self.make()
    let unique = model(
      entity(
        "Car", attribute("brand"), attribute("tint", id: "color"), attribute("doors", .integer32), unique: [["doors"]]),
      entity("Bike"))
    #expect(try Self.plan(scene, Self.first, unique).failures.isEmpty)
    let twice = try MigrationScene(
      Self.first,
      "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZDOORS) VALUES (1, 2, 1, 5), (2, 2, 1, 5), (3, 2, 1, NULL), (4, 2, 1, NULL)"
    )
    let failures = try Self.plan(twice, Self.first, unique).failures
    #expect(failures.map(\.kind) == ["duplicate-values"])
    #expect(failures.first?.rows == 2 && failures.first?.examples == [1, 2])
  }

  @Test func refusalsAreToldAndNotThrown() throws {
    let scene = try Self.make()
    let other = model(
      entity("Car", attribute("brand", .date), attribute("color"), attribute("doors", .integer32)), entity("Bike"))
    let plan = try Self.plan(scene, Self.first, other)
    #expect(plan.steps.isEmpty && !plan.isPossible)
    #expect(
      plan.refusals.map { "\($0.step ?? "") \($0.kind) \($0.entity).\($0.property ?? "") \($0.coreDataCode)" }
        == ["V1 → V2 incompatible-types Car.brand 134190"])
  }

  @Test func aStoreOfTheWantedVersionNeedsNothing() throws {
    let plan = try Self.plan(try Self.make(), Self.second, Self.first)
    #expect(!plan.isNeeded && plan.isPossible && plan.neededBytes == 0 && plan.from == "V2")
  }

  @Test func whatIsNoStoreIsAnError() throws {
    let folder = try TemporaryFolder()
    let migrator = Migrator(try bundle([Self.first, Self.second]), surroundings: .still())
    let error = #expect(throws: MigrationError.self) { try migrator.plan(folder.appending("None.sqlite")) }
    #expect(error?.code == "file-not-found")
    #expect(throws: MigrationError.self) { try migrator.plan(try folder.write("text", to: "Text.sqlite")) }
  }

  @Test(arguments: [false, true])
  func nothingIsTouched(hasLog: Bool) throws {
    let scene = try Self.make()
    if hasLog { try scene.leaveInLog("UPDATE ZCAR SET ZCOLOR = NULL") }
    let before = try FolderContents(of: scene.folder.path)
    let plan = try Self.plan(scene, Self.first, Self.second, Self.third, via: ["V2"])
    #expect(try FolderContents(of: scene.folder.path) == before)
    // What lies in the log alone counts.
    #expect(plan.losses.contains { $0.property == "paint" } == !hasLog)
  }

  @Test func aStoreThatIsBeingWrittenToIsLocked() throws {
    let scene = try Self.make()
    let writer = try DatabaseQueue(path: scene.store.string)
    try writer.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
      let error = #expect(throws: MigrationError.self) { try Self.plan(scene, Self.first, Self.second) }
      #expect(error?.code == "locked" && error?.isEnvironmental == true)
      try database.execute(sql: "ROLLBACK")
    }
    try writer.close()
  }
}
