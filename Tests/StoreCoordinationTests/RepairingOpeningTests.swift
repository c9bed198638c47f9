import GRDB
import Lazaret
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that are sound and lack something of their own model, opened.
struct RepairingOpeningTests {
  /// A scene with a store of the current version, closed, and changed by SQL afterwards.
  private static func scene(_ statements: String...) throws -> MigratingScene {
    let scene = try MigratingScene()
    try scene.coordinator().open(scene.store).store.close()
    try change(scene.store, statements)
    return scene
  }

  private static func change(_ store: FilePath, _ statements: [String]) throws {
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      for statement in statements { try database.execute(sql: statement) }
      try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
  }

  private static func rows(_ sql: String, _ store: FilePath) throws -> [String] {
    let queue = try DatabaseQueue(path: store.string)
    defer { try? queue.close() }
    return try queue.read { try String.fetchAll($0, sql: sql) }
  }

  @Test func aRepairableStoreIsRepairedAndOpened() throws {
    let scene = try Self.scene("ALTER TABLE ZCAR DROP COLUMN ZWHEELS", "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'")
    let titles = try Self.rows("SELECT Z_PK || ZTITLE FROM ZCAR ORDER BY Z_PK", scene.store)
    let opening = try scene.coordinator().open(scene.store)
    #expect(opening.examination.verdict == .repairable)
    #expect(opening.events.map(\.kind) == [.backup, .repair])
    #expect(opening.events.last?.repair?.changes.map(\.kind) == [.column, .primaryKeyRow])
    #expect(opening.events.last?.words.contains("1 column, 1 row of Z_PRIMARYKEY") == true)
    #expect(opening.notice?.key == "lazaret.notice.repaired" && !opening.isWithLosses)
    try opening.store.close()
    #expect(try Self.rows("SELECT Z_PK || ZTITLE FROM ZCAR ORDER BY Z_PK", scene.store) == titles)
    #expect(try Self.rows("SELECT CAST(ZWHEELS AS TEXT) FROM ZCAR", scene.store) == ["4", "4", "4"])
    #expect(try Self.rows("SELECT CAST(Z_MAX AS TEXT) FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'", scene.store) == ["3"])
    // The original is kept as it was.
    let backup = try #require(opening.events.first?.path.path)
    #expect(try Self.rows("SELECT Z_PK || ZTITLE FROM ZCAR ORDER BY Z_PK", backup) == titles)
    #expect(try Self.rows("SELECT name FROM pragma_table_info('ZCAR') WHERE name = 'ZWHEELS'", backup).isEmpty)
    let again = try scene.coordinator().open(scene.store)
    #expect(again.examination.verdict == .compatible && again.events.isEmpty && again.notice == nil)
    try again.store.close()
  }

  @Test func aRepairThatLeavesReferencesWithoutARecordHasLosses() throws {
    let scene = try Self.scene(
      "INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 2, 1, 'x'), (2, 2, 1, 'y')",
      "UPDATE ZCAR SET ZOWNER = Z_PK WHERE Z_PK < 3", "DROP TABLE ZOWNER")
    let opening = try scene.coordinator().open(scene.store)
    #expect(opening.examination.verdict == .repairable && opening.isWithLosses)
    #expect(opening.events.last?.words.contains("2 references lead to no record") == true)
    #expect(opening.notice?.key == "lazaret.notice.repaired-with-losses")
    #expect(opening.notice?.message.contains("Some entries may be missing") == true)
    #expect(opening.notice?.message.contains("Nothing was removed") == false)
    try opening.store.close()
    // The records that refer to nothing, by SQLite alone.
    let dangling =
      "SELECT Z_PK || '' FROM ZCAR WHERE ZOWNER > 0 AND ZOWNER NOT IN (SELECT Z_PK FROM ZOWNER) ORDER BY Z_PK"
    #expect(try Self.rows(dangling, scene.store) == ["1", "2"])
  }

  @Test func thePolicyMayKeepIt() throws {
    let scene = try Self.scene("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'")
    var policy = OpeningPolicy()
    policy.whenRepairable = .keep
    let opening = try scene.coordinator(policy).open(scene.store)
    #expect(opening.examination.verdict == .repairable && opening.events.isEmpty && opening.notice == nil)
    try opening.store.close()
    #expect(try Self.rows("SELECT Z_NAME FROM Z_PRIMARYKEY", scene.store) == ["Owner"])
  }

  @Test func thePolicyMayRefuseIt() throws {
    let scene = try Self.scene("ALTER TABLE ZCAR DROP COLUMN ZWHEELS")
    var policy = OpeningPolicy()
    policy.whenRepairable = .refuse
    let before = try scene.parts(scene.store)
    let error = #expect(throws: LazaretError.self) { try scene.coordinator(policy).open(scene.store) }
    #expect(error?.code == "store-repairable")
    #expect(try scene.parts(scene.store) == before)
  }

  @Test func whatCannotBeRepairedWithoutGuessingIsAFailedMigration() throws {
    let scene = try Self.unrepairable()
    let before = try scene.parts(scene.store)
    let error = #expect(throws: LazaretError.self) { try scene.coordinator().open(scene.store) }
    #expect(error?.kind == .migrationFailed, "\(error?.description ?? "")")
    #expect(error?.code == "repair-refused" && error?.operation == "repair the store")
    #expect(try scene.parts(scene.store) == before)
  }

  /// A scene with a store whose table of wheels is missing, and a view has its name.
  private static func unrepairable() throws -> MigratingScene {
    try scene("ALTER TABLE ZCAR DROP COLUMN ZWHEELS", "DROP TABLE ZOWNER", "CREATE VIEW ZOWNER AS SELECT 1 AS Z_PK")
  }

  @Test func aRepairThatFailsIsToldAsOne() throws {
    let scene = try Self.unrepairable()
    var policy = OpeningPolicy()
    policy.whenMigrationFails = .emptyStore
    let opening = try scene.coordinator(policy).open(scene.store)
    let quarantine = try #require(opening.events.first { $0.kind == .quarantine })
    #expect(quarantine.reason?.code == "repair-failed")
    #expect(quarantine.reason?.words.hasPrefix("The repair of the store failed (repair-refused)") == true)
    #expect(opening.notice?.message.contains("could not be brought to this version") == false)
    try opening.store.close()
  }

  @Test func anOutdatedStoreIsRepairedAndMigratedInOneGo() throws {
    let scene = try MigratingScene()
    try Self.change(scene.store, ["DELETE FROM Z_PRIMARYKEY", "ALTER TABLE ZCAR DROP COLUMN ZPHOTO"])
    let names = try Self.rows("SELECT Z_PK || ZNAME FROM ZCAR ORDER BY Z_PK", scene.store)
    let opening = try scene.coordinator().open(scene.store)
    #expect(opening.examination.verdict == .outdated)
    #expect(opening.events.map(\.kind) == [.backup, .repair, .migration])
    #expect(opening.events[1].repair?.version == "V1")
    #expect(opening.events[2].migration?.steps.map(\.step) == ["V1 → V2", "V2 → V3", "V3 → V4"])
    try opening.store.close()
    #expect(try Self.rows("SELECT Z_PK || ZTITLE FROM ZCAR ORDER BY Z_PK", scene.store) == names)
    #expect(try Self.rows("SELECT CAST(Z_MAX AS TEXT) FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'", scene.store) == ["3"])
    #expect(try scene.backupFiles().count == 1)
  }

  /// Kills at every write of an opening that repairs: the old store or the new one, and the next opening ends it.
  @Test func aKillAtAnyWriteLosesNothing() throws {
    func make() throws -> MigratingScene { try Self.scene("ALTER TABLE ZCAR DROP COLUMN ZWHEELS") }
    let whole = try make()
    let titles = try Self.rows("SELECT Z_PK || ZTITLE FROM ZCAR ORDER BY Z_PK", whole.store)
    let rehearsal = Trouble(.death, atStep: 0)
    try whole.coordinator(OpeningPolicy(), rehearsal.fileSystem).open(whole.store).store.close()
    #expect(rehearsal.steps > 20)
    for step in stride(from: 1, through: rehearsal.steps, by: environment("LAZARET_MUTATIONS") != nil ? 1 : 4) {
      let scene = try make()
      let trouble = Trouble(.death, atStep: step)
      do {
        try scene.coordinator(OpeningPolicy(), trouble.fileSystem).open(scene.store).store.close()
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      try scene.coordinator().open(scene.store).store.close()
      #expect(try Self.rows("SELECT Z_PK || ZTITLE FROM ZCAR ORDER BY Z_PK", scene.store) == titles, "step \(step)")
      #expect(try Self.rows("SELECT CAST(ZWHEELS AS TEXT) FROM ZCAR", scene.store) == ["4", "4", "4"], "step \(step)")
    }
  }
}
