import Backup
import Foundation
import GRDB
import Lazaret
import Logging
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Stores of earlier versions, opened.
struct MigratingOpeningTests {
  @Test func anOutdatedStoreIsMigratedStepByStep() throws {
    let scene = try MigratingScene()
    let before = try scene.parts(scene.store)
    let seen = Platform.Mutex<[String]>([])
    let observer = OpeningObserver { progress in
      let words = "\(progress.phase.rawValue) \(progress.step ?? "-") \(progress.completed) of \(progress.total)"
      seen.withLock { $0.append(words) }
    }
    let opening = try scene.coordinator().open(scene.store, observer: observer)
    #expect(opening.examination.verdict == .outdated)
    #expect(opening.notice == nil)
    #expect(opening.events.map(\.kind) == [.backup, .migration])
    #expect(opening.events[0].path.path == scene.backups.appending("b-2026-11-21-10-11-12.sqlite"))
    let migration = try #require(opening.events[1].migration)
    #expect(migration.steps.map(\.step) == ["V1 → V2", "V2 → V3", "V3 → V4"])
    #expect(migration.steps.map(\.rows) == [3, 3, 3])
    #expect(migration.metrics?.from == "V1" && migration.metrics?.to == "V4")
    #expect(migration.metrics?.rows == 3)
    // The colour for which V4 has no place is a default that V2 has put in: no loss.
    #expect(opening.losses.isEmpty)
    #expect(opening.events[1].words.contains("V1 → V4 in 3 steps"))
    try opening.store.close()
    try scene.expectMigrated(before)
    #expect(
      seen.withLock { $0 } == [
        "examining - 0 of 0", "migrating V1 → V2 0 of 3", "migrating V2 → V3 1 of 3", "migrating V3 → V4 2 of 3",
        "opening - 0 of 0",
      ])
    // One line of metrics, and nothing to report.
    let lines = String(
      decoding: try scene.system.contents(of: scene.home.appending("migrations.jsonl"), limit: 1 << 20), as: UTF8.self
    ).split(separator: "\n")
    #expect(lines.count == 1)
    let metrics = try JSONDecoder().decode(MigrationMetrics.self, from: Data(lines.joined().utf8))
    #expect(metrics.steps == 3 && metrics.bytesBefore > 0 && metrics.bytesAfter > 0)
    #expect(try scene.system.status(of: scene.home.appending("Reports")) == nil)
    // Once is enough.
    let again = try scene.coordinator().open(scene.store)
    #expect(again.events.isEmpty && again.examination.verdict == .compatible)
    try again.store.close()
  }

  @Test func whatTheUserLosesIsCounted() throws {
    let scene = try MigratingScene()
    // Two of three colours are the user's.
    let model = try scene.bundle().versions[1].model
    var options = Migrator.Options()
    options.version = "V2"
    _ = try Migrator(try scene.bundle(), surroundings: .still()).migrate(scene.store, options: options)
    let store = try PersistentStore(opening: scene.store, model: model)
    try store.write { try $0.execute(sql: "UPDATE ZCAR SET ZCOLOR = NULL WHERE Z_PK = 2") }
    try store.close()
    let opening = try scene.coordinator().open(scene.store)
    try opening.store.close()
    #expect(
      opening.losses.map { "\($0.kind) \($0.entity).\($0.property ?? "") \($0.rows ?? -1)" }
        == ["removed-attribute Car.color 2"])
    #expect(opening.events.last?.words.contains("2 values") == true)
    #expect(opening.notice == nil)
  }

  @Test func aCancelledMigrationGoesOnLater() throws {
    let whole = try MigratingScene()
    try whole.coordinator().open(whole.store).store.close()
    let scene = try MigratingScene()
    let before = try scene.parts(scene.store)
    let isCancelled = Atomic<Bool>(false)
    let observer = OpeningObserver(
      progress: { if $0.completed == 2 { isCancelled.store(true, ordering: .relaxed) } },
      isCancelled: { isCancelled.load(ordering: .relaxed) })
    let error = try #require(throws: LazaretError.self) {
      try scene.coordinator().open(scene.store, observer: observer)
    }
    #expect(error.kind == .cancelled)
    #expect(try scene.parts(scene.store) == before)
    #expect(try scene.system.status(of: scene.home) == nil)
    let opening = try scene.coordinator().open(scene.store)
    #expect(opening.events.last?.migration?.resumedSteps == 2)
    try opening.store.close()
    try scene.expectMigrated(before)
    #expect(try scene.parts(scene.store) == whole.parts(whole.store))
  }

  // MARK: Failures

  /// A model whose second version the records do not fit, and one that nothing leads to.
  private static func failing(_ type: String = "String", optional: Bool = false) throws -> MigratingScene {
    let scene = try MigratingScene()
    let car = "<entity name='Car'><attribute name='%' optional='YES' attributeType='String'/></entity>"
    try scene.write(car.replacing("%", with: "name"), to: "Strict.xcdatamodeld/V1")
    try scene.write(
      "<entity name='Car'><attribute name='name' \(optional ? "optional='YES'" : "") attributeType='\(type)'/></entity>",
      to: "Strict.xcdatamodeld/V2")
    try scene.makeStore(rows: 5, model: "Strict.xcdatamodeld")
    let store = try PersistentStore(opening: scene.store)
    try store.write { try $0.execute(sql: "UPDATE ZCAR SET ZNAME = NULL WHERE Z_PK IN (2, 4)") }
    try store.close()
    return scene
  }

  private static func reports(_ scene: MigratingScene) throws -> [FilePath] {
    let folder = scene.home.appending("Reports")
    return try scene.system.entries(of: folder).map { folder.appending($0) }
  }

  @Test func recordsThatDoNotFitLeaveTheStoreAsItWas() throws {
    let scene = try Self.failing()
    let before = try FolderContents(of: scene.stores)
    for round in 1...2 {
      let error = try #require(throws: LazaretError.self) {
        try scene.coordinator(model: "Strict.xcdatamodeld").open(scene.store)
      }
      #expect(error.kind == .migrationFailed)
      #expect(error.code == "migration-data-violation")
      #expect(!error.isEnvironmental)
      #expect(error.migrationError?.entityName == "Car" && error.migrationError?.propertyName == "name")
      let report = try #require(error.migrationError?.reportPath)
      #expect(error.hint.contains("migration.json"))
      #expect(try Self.reports(scene).count == round)
      let text = String(decoding: try scene.system.contents(of: report, limit: 1 << 20), as: UTF8.self)
      let decoded = try JSONDecoder().decode(MigrationReport.self, from: Data(text.utf8))
      #expect(decoded.format == "lazaret-migration-report" && decoded.version == 1)
      #expect(decoded.from == "V1" && decoded.to == "V2" && decoded.modelVersions == ["V1", "V2"])
      #expect(decoded.steps.map(\.state) == [.begun])
      #expect(decoded.failure.code == "migration-data-violation" && decoded.failure.coreDataCode == 134110)
      #expect(decoded.failure.entity == "Car" && decoded.failure.property == "name")
      #expect(decoded.failure.detail.contains("(2, 4)"))
      #expect(decoded.versions.app == "7.1" && !decoded.versions.sqlite.isEmpty)
      #expect(decoded.files.first?.part == .main && (decoded.files.first?.bytes ?? 0) > 0)
      #expect((decoded.neededBytes ?? 0) > 0)
      #expect(!text.contains(MigratingScene.secret) && !text.contains(scene.folder.path.string), "\(text)")
    }
    #expect(try FolderContents(of: scene.stores) == before)
    #expect(try scene.system.status(of: scene.home.appending("migrations.jsonl")) == nil)
  }

  @Test(arguments: [OpeningPolicy.Remedy.salvage, .emptyStore])
  func thePolicyMayReplaceAStoreThatCannotBeMigrated(remedy: OpeningPolicy.Remedy) throws {
    let scene = try Self.failing()
    let before = try scene.parts(scene.store)
    let attempts = Platform.Mutex(0)
    let observer = OpeningObserver { if $0.phase == .migrating { attempts.withLock { $0 += 1 } } }
    let policy = OpeningPolicy(
      whenDamaged: .refuse, whenIncompatible: .refuse, whenMigrationFails: remedy, migrationRetries: 2)
    let opening = try scene.coordinator(policy, model: "Strict.xcdatamodeld").open(scene.store, observer: observer)
    #expect(attempts.withLock { $0 } == 3)
    #expect(opening.examination.verdict == .outdated)
    #expect(
      opening.events.map(\.kind) == (remedy == .salvage ? [.quarantine, .salvage, .create] : [.quarantine, .create]))
    // What was salvaged is of the earlier version too, and stays in quarantine.
    #expect(opening.salvage?.failure?.code == (remedy == .salvage ? Receipt.Salvage.notMigratedCode : nil))
    #expect(((opening.salvage?.recovered ?? 0) > 0) == (remedy == .salvage))
    #expect(opening.events.first?.reason?.code == "migration-failed")
    #expect(opening.events.first?.reason?.words.contains("migration-data-violation") == true)
    #expect(opening.notice?.key == "lazaret.notice.migration")
    let report = try #require(opening.notice?.report?.path)
    #expect(opening.events.first?.report?.path == report)
    #expect(try Self.reports(scene).contains(report))
    try opening.store.close()
    let stored = try #require(try Quarantines(home: scene.home).stores().first)
    #expect(try scene.parts(stored.files.main) == before)
    #expect(try MigratingScene.rows("SELECT count(*) FROM ZCAR", in: scene.store) == ["0"])
  }

  @Test func whereNothingCanBeInferredTheStoreStays() throws {
    let scene = try Self.failing("Binary", optional: true)
    let before = try FolderContents(of: scene.stores)
    // It is the app's mistake and not the store's: no rule but the one for failed migrations replaces it.
    for policy in [OpeningPolicy(), OpeningPolicy(whenIncompatible: .emptyStore)] {
      let error = try #require(throws: LazaretError.self) {
        try scene.coordinator(policy, model: "Strict.xcdatamodeld").open(scene.store)
      }
      #expect(error.kind == .migrationFailed && error.code == "mapping-not-inferable")
      #expect(error.migrationError?.kind == .notInferable)
      #expect(error.examination?.verdict == .outdated)
      #expect(try FolderContents(of: scene.stores) == before)
    }
    let policy = OpeningPolicy(whenMigrationFails: .emptyStore)
    let opening = try scene.coordinator(policy, model: "Strict.xcdatamodeld").open(scene.store)
    #expect(opening.events.first?.reason?.code == "migration-failed")
    #expect(opening.events.first?.reason?.words.contains("name") == true)
    #expect(opening.notice?.key == "lazaret.notice.migration")
    try opening.store.close()
  }

  @Test func oneStepIsTakenWhereItCanBeInferred() throws {
    let scene = try MigratingScene()
    let before = try scene.parts(scene.store)
    let opening = try scene.coordinator(via: []).open(scene.store)
    #expect(opening.events.last?.migration?.steps.map(\.step) == ["V1 → V4"])
    #expect(opening.losses.isEmpty && opening.notice == nil)
    try opening.store.close()
    try scene.expectMigrated(before)
  }

  // MARK: Losses

  /// A model of two versions and a store of the first with three records of each of its entities.
  private static func losing(_ first: String, _ second: String) throws -> MigratingScene {
    let scene = try MigratingScene()
    try scene.write(first, to: "Losing.xcdatamodeld/V1")
    try scene.write(second, to: "Losing.xcdatamodeld/V2")
    try scene.makeStore(rows: 0, model: "Losing.xcdatamodeld")
    let store = try PersistentStore(opening: scene.store)
    try store.write { database in
      for table in try String.fetchAll(
        database,
        sql:
          "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'Z%' AND sql LIKE '%ZNAME%' AND sql LIKE '%Z_OPT%'"
      ) {
        try database.execute(
          sql: """
            INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT, ZNAME)
            SELECT i, (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE 'Z' || upper(Z_NAME) = '\(table)'), 1, 'x'
            FROM (SELECT 1 AS i UNION SELECT 2 UNION SELECT 3)
            """)
        try database.execute(
          sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE 'Z' || upper(Z_NAME) = '\(table)'")
      }
    }
    try store.close()
    return scene
  }

  private static let name = "<attribute name='name' optional='YES' attributeType='String'/>"
  private static let more = "<attribute name='more' optional='YES' attributeType='String'/>"

  @Test(arguments: [
    // One name, two identifiers: of an attribute, of an entity.
    [
      "<entity name='Car'><attribute name='name' optional='YES' attributeType='String' elementID='x'/></entity>",
      "<entity name='Car'><attribute name='name' optional='YES' attributeType='String' elementID='y'/>\(more)</entity>",
    ],
    ["<entity name='Car'>\(name)</entity>", "<entity name='Car' elementID='speed'>\(name)\(more)</entity>"],
    // The new Car is the old Bike, and the old Car's records would go.
    [
      "<entity name='Bike'>\(name)</entity><entity name='Car'>\(name)</entity>",
      "<entity name='Car' elementID='Bike'>\(name)</entity>",
    ],
  ])
  func whatTheVersionStillHasIsNotDeleted(versions: [String]) throws {
    let scene = try Self.losing(versions[0], versions[1])
    let before = try FolderContents(of: scene.stores)
    // No rule replaces the store for it.
    let harsh = OpeningPolicy(
      whenDamaged: .emptyStore, whenIncompatible: .emptyStore, whenMigrationFails: .emptyStore, migrationRetries: 3)
    for policy in [OpeningPolicy(), harsh] {
      let error = try #require(throws: LazaretError.self) {
        try scene.coordinator(policy, model: "Losing.xcdatamodeld").open(scene.store)
      }
      #expect(error.kind == .migrationFailed && error.code == "migration-would-lose" && !error.isEnvironmental)
      #expect(try FolderContents(of: scene.stores) == before)
      #expect(try Quarantines(home: scene.home).stores().isEmpty)
    }
    let accepting = OpeningPolicy(whenMigrationLoses: .migrate)
    let opening = try scene.coordinator(accepting, model: "Losing.xcdatamodeld").open(scene.store)
    #expect(!opening.losses.isEmpty && opening.isWithLosses)
    try opening.store.close()
  }

  @Test func recordsWithoutAPlaceAreCountedAndTheirOriginalIsKept() throws {
    let scene = try Self.losing(
      "<entity name='Bike'>\(Self.name)</entity><entity name='Car'>\(Self.name)</entity>",
      "<entity name='Car'>\(Self.name)</entity>")
    let opening = try scene.coordinator(model: "Losing.xcdatamodeld").open(scene.store)
    try opening.store.close()
    #expect(opening.notice?.key == "lazaret.notice.migrated-without")
    #expect(opening.notice?.message.contains("no place for some of your entries") == true)
    #expect(opening.events.last?.migration?.removedRows == ["Bike": 3])
    let backups = Backups(home: scene.home)
    let kept = try #require(try backups.catalog(of: scene.store).backups.first)
    #expect(kept.onlyHere?.entities.map { "\($0.name) \($0.rows)" } == ["Bike 3"])
    #expect(try backups.release(kept.id, in: backups.place(of: scene.store)) != nil)
    #expect(try backups.catalog(of: scene.store).backups.first?.onlyHere == nil)
  }

  @Test func onlyTheLastTwentyReportsAreKept() throws {
    let scene = try Self.failing()
    for _ in 1...23 {
      _ = try? scene.coordinator(model: "Strict.xcdatamodeld").open(scene.store)
    }
    #expect(try Self.reports(scene).count == 20)
  }

  // MARK: A result that does not open

  private enum NoStore: String, FailureKind {
    case test

    var usualOperation: String { "open" }

    var usualHint: String { "None." }
  }

  @Test func theOriginalComesBackWhereTheResultDoesNotOpen() throws {
    // At every write of it too: the next process has the old store or the new one.
    let rehearsal = Trouble(.death, atStep: 0)
    var step = 0
    while step <= rehearsal.steps {
      let scene = try MigratingScene()
      let before = try scene.parts(scene.store)
      let trouble = step == 0 ? rehearsal : Trouble(.death, atStep: step)
      var migrator = Migrator(try scene.bundle(), surroundings: .still(fileSystem: trouble.fileSystem))
      migrator.checkOpening = { _ in throw Failure<NoStore>(.test, detail: "it is only a test") }
      var options = Migrator.Options()
      options.home = scene.home
      let error = #expect(throws: MigrationError.self, "step \(step)") {
        try migrator.migrate(scene.store, options: options)
      }
      if step == 0 {
        #expect(error?.kind == .verificationFailed)
        #expect(try scene.parts(scene.store) == before)
        #expect(try scene.backupFiles().isEmpty)
        #expect(try scene.system.entries(of: scene.stores).map(\.string).sorted() == [".App_SUPPORT", "App.sqlite"])
      }
      let opening = try scene.coordinator().open(scene.store)
      try opening.store.close()
      try scene.expectMigrated(before, "step \(step)")
      step += environment("LAZARET_MUTATIONS") == nil ? 9 : 1
    }
    #expect(rehearsal.steps > 20)
  }

  @Test func aBackupCanBeTakenBack() throws {
    let scene = try MigratingScene()
    let before = try scene.parts(scene.store)
    let migrator = Migrator(try scene.bundle(), surroundings: .still())
    let result = try migrator.migrate(scene.store)
    let backup = try #require(result.backup)
    try migrator.takeBack(scene.store, from: backup)
    #expect(try scene.parts(scene.store) == before)
    #expect(try scene.system.status(of: backup) == nil)
    #expect(
      try scene.system.entries(of: scene.stores).map(\.string).sorted() == [".App_SUPPORT", "App.sqlite", "Backups"])
  }

  // MARK: The log

  /// Keeps what it is told.
  private struct Memory: LogHandler {
    let lines: LockedLines
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { lines.add("\(event.level) \(event.message) \(event.metadata ?? [:])") }
  }

  private final class LockedLines: Sendable {
    private let lines = Platform.Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  @Test func theLogTellsMappingsAndStatementsAndNoValue() throws {
    let scene = try MigratingScene()
    let lines = LockedLines()
    let logger = Logger(label: "test") { _ in Memory(lines: lines, logLevel: .trace) }
    try scene.coordinator(logger: logger).open(scene.store).store.close()
    let log = lines.all
    func count(_ text: String) -> Int { log.filter { $0.contains(text) }.count }
    #expect(count("entity mapping") >= 4)
    #expect(count("property mapping") >= 6)
    #expect(count("debug SQL") > 30)
    #expect(count("INSERT INTO") > 3)
    #expect(count("step finished") == 3)
    #expect(count("notice migrated") == 1)
    #expect(!log.contains { $0.contains(MigratingScene.secret) })
    // At the usual level no statement is looked at.
    let quiet = LockedLines()
    let other = try MigratingScene()
    try other.coordinator(logger: Logger(label: "test") { _ in Memory(lines: quiet, logLevel: .info) })
      .open(other.store).store.close()
    #expect(!quiet.all.contains { $0.contains("SQL") })
  }

  @Test func literalsAreMasked() {
    #expect(SQLMask.masked("SELECT 'it''s', x'0102', \"it's\" FROM t") == "SELECT '…', x'…', \"it's\" FROM t")
    #expect(SQLMask.masked("SELECT 'open") == "SELECT '…'")
    #expect(SQLMask.masked(String(repeating: "a", count: 5_000)).count < 4_010)
  }
}
