import Foundation
import GRDB
import Lazaret
import LazaretSupport
import Logging
import Platform
import TestSupport
import Testing

/// The library as an app uses it.
struct RecoverableStoreTests {
  @Test func aMissingStoreIsCreatedAndNothingHasItOpen() async throws {
    let scene = try AppScene()
    let opening = try await scene.store().open()
    #expect(opening.condition.verdict == .missing)
    #expect(opening.events.map(\.kind) == [.create])
    #expect(opening.notice == nil)
    #expect(!opening.isWithLosses)
    #expect(opening.url.path == scene.place.path)
    let queue = try DatabaseQueue(path: scene.place.path)
    // An exclusive lock is only to be had where no other connection is.
    try await queue.writeWithoutTransaction { try $0.execute(sql: "BEGIN EXCLUSIVE; COMMIT") }
    try queue.close()
  }

  @Test func anOlderStoreIsMigratedWithItsRecords() async throws {
    let scene = try AppScene()
    try await scene.make("V1", cars: 3)
    let store = try scene.store(home: scene.home)
    let plan = try await store.planMigration()
    #expect(plan.isNeeded && plan.isPossible && plan.refusals.isEmpty)
    #expect(plan.steps == ["V1 → V2"])
    let opening = try await store.open()
    #expect(opening.condition.verdict == .outdated)
    #expect(opening.condition.modelVersion == "V1")
    #expect(opening.events.map(\.kind) == [.backup, .migration])
    #expect(opening.events.allSatisfy { abs($0.date?.timeIntervalSinceNow ?? 1e9) < 3600 })
    #expect(try scene.names() == ["Car 1", "Car 2", "Car 3"])
    let condition = try await store.examine()
    #expect(condition.verdict == .compatible)
    #expect(condition.entities.first { $0.name == "Car" }?.records == 3)
    let again = try await store.migrate()
    #expect(again.steps.isEmpty && again.original == nil)
  }

  @Test func aDamagedStoreIsSalvagedAndTheUserIsTold() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2000)
    try scene.damage()
    let store = try scene.store(home: scene.home)
    let phases = Mutex<Set<StoreProgress.Phase>>([])
    var full = store
    full.policy.depth = .full
    let opening = try await full.open { progress in _ = phases.withLock { $0.insert(progress.phase) } }
    #expect(opening.condition.verdict == .damaged)
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage])
    #expect(opening.notice?.actions.first?.key == "lazaret.action.continue")
    #expect(phases.withLock { $0.isSuperset(of: [.examining, .quarantining, .salvaging]) })
    let salvage = try #require(opening.salvage)
    // Every record that is in the place now is one that was there.
    let names = try scene.names()
    #expect(Set(names).isSubset(of: Set((1...2000).map { "Car \($0)" })))
    #expect(salvage.recovered == Int64(names.count))
    #expect(salvage.recovered + salvage.lost >= 2000 || !salvage.isLostExact)
    #expect(salvage.entities.contains { $0.name == "Car" && $0.recovered == Int64(names.count) })
    let entries = try await store.quarantine.all()
    #expect(entries.map(\.url.path) == [try #require(opening.quarantined).path])
    #expect(entries.map(\.salvageState) == [.installed])
  }

  @Test func whatWaitsIsToldFromWhatCanBeInstalled() async throws {
    let scene = try AppScene()
    try await scene.make("V2", cars: 5)
    let older = try scene.store(scene.url("V1.xcdatamodel"), home: scene.home)
    let entry = try await older.quarantine.add()
    #expect(!entry.isInstallable && entry.waiting == nil)
    let salvage = try await older.quarantine.salvage(entry)
    #expect(salvage.failure != nil)
    let waiting = try #require(try await older.quarantine.all().first)
    #expect(waiting.salvageState == .salvaged && !waiting.isInstallable && waiting.waiting == .newerApp)
    await #expect(throws: StoreError.self) { try await older.quarantine.install(waiting) }
    let newer = try scene.store(home: scene.home)
    try await newer.quarantine.salvage(waiting)
    let ready = try #require(try await newer.quarantine.all().first)
    #expect(ready.salvageState == .salvaged && ready.isInstallable && ready.waiting == nil)
    try await newer.quarantine.install(ready)
    #expect(try scene.names().count == 5)
  }

  @Test func aStoreIsSalvagedToAnotherPlaceAndLeftAsItIs() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2000)
    try scene.damage()
    let before = try Data(contentsOf: scene.place)
    let output = scene.url("Rescued.sqlite")
    let salvage = try await scene.store().salvage(to: output)
    #expect(try Data(contentsOf: scene.place) == before)
    #expect(salvage.url?.path == output.path)
    #expect(try scene.names(output).count == Int(salvage.recovered))
    #expect(FileManager.default.fileExists(atPath: try #require(salvage.report).path))
    await #expect(throws: StoreError.self) { try await scene.store().salvage(to: output) }
  }

  @Test func aTaskThatIsCancelledEndsTheWorkAndLeavesTheStore() async throws {
    let scene = try AppScene()
    try await scene.make("V1", cars: 100)
    let before = try FolderContents(of: scene.folder.path)
    let store = try scene.store()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await store.open()
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try FolderContents(of: scene.folder.path) == before)
    // From within, once it has begun.
    let later = Mutex<Task<RecoverableStore.Opening, any Error>?>(nil)
    let second = Task {
      try await store.open { _ in later.withLock { $0?.cancel() } }
    }
    later.withLock { $0 = second }
    do {
      _ = try await second.value
    } catch {
      #expect(error is CancellationError)
      #expect(try await store.examine().verdict == .outdated)
    }
  }

  @Test func errorsSayWhatAnAppDecidesBy() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2000)
    try scene.damage()
    var store = try scene.store()
    store.policy = .refusing
    store.policy.depth = .full
    let before = try FolderContents(of: scene.folder.path)
    let error = try await #require(throws: StoreError.self) { try await store.open() }
    #expect(error.kind == .damaged)
    #expect(error.code == "store-damaged")
    #expect(!error.isEnvironmental)
    #expect(error.url?.path == scene.place.path)
    #expect(error.localizedDescription == error.description)
    #expect(try FolderContents(of: scene.folder.path) == before)
    let folder = RecoverableStore(at: scene.url("Stores"), model: store.model)
    let unavailable = try await #require(throws: StoreError.self) { try await folder.open() }
    #expect(unavailable.kind == .unavailable && unavailable.isEnvironmental)
    #expect(throws: StoreError.self) { try StoreModel(contentsOf: scene.place.appendingPathExtension("none")) }
  }

  @Test func modelsTellTheirVersions() throws {
    let scene = try AppScene()
    let model = try StoreModel(contentsOf: scene.model)
    #expect(model.versions.map(\.name) == ["V1", "V2"])
    #expect(model.currentVersion == "V2")
    #expect(model.versions.map(\.isCurrent) == [false, true])
    #expect(Set(model.versions.map(\.checksum)).count == 2)
  }

  @Test func whatAStoreLacksIsAddedToIt() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2)
    try scene.write { try $0.execute(sql: "DELETE FROM Z_PRIMARYKEY") }
    let store = try scene.store()
    #expect(try await store.examine().verdict == .repairable)
    let before = try Data(contentsOf: scene.place)
    let rehearsal = try await store.repair(dryRun: true)
    #expect(!rehearsal.isDone && !rehearsal.changes.isEmpty)
    #expect(try Data(contentsOf: scene.place) == before)
    let repair = try await store.repair()
    #expect(repair.isDone && repair.changes == rehearsal.changes)
    #expect(try Data(contentsOf: try #require(repair.original)) == before)
    #expect(try await store.examine().verdict == .compatible)
    #expect(try scene.names() == ["Car 1", "Car 2"])
  }
}

/// Backups, quarantine and support bundles as an app uses them.
struct StoreFacilityTests {
  @Test func aBackupIsTakenProvenAndRestored() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 3)
    let store = try scene.store(home: scene.home)
    let backup = try await store.backups.create(tags: ["nightly"])
    #expect(backup.isWhole && !backup.isApart && !backup.isEncrypted)
    #expect(backup.records["Car"] == 3)
    #expect(try await store.backups.prove(backup).isProven)
    try scene.write { try $0.execute(sql: "DELETE FROM ZCAR WHERE Z_PK > 1") }
    let preview = try await store.backups.preview()
    #expect(preview.entities.first { $0.name == "Car" }?.added == 2)
    #expect(preview.isHarmless)
    let restored = try await store.backups.restore()
    #expect(restored.backup == backup.id)
    #expect(restored.isComplete && restored.quarantined != nil && restored.damage == nil)
    #expect(try scene.names() == ["Car 1", "Car 2", "Car 3"])
    let all = try await store.backups.all()
    #expect(all.contains { $0.id == backup.id && $0.tags == ["nightly"] && $0.isProvenGood })
    let copy = scene.url("Copy.sqlite")
    try await store.backups.restore(backup, to: copy)
    #expect(try scene.names(copy) == ["Car 1", "Car 2", "Car 3"])
  }

  @Test func whatIsRestoredOfADamagedStoreIsSaidNotToBeSound() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 400)
    try scene.damage()
    let store = try scene.store(home: scene.home)
    let backup = try await store.backups.create()
    #expect(backup.isApart)
    let restored = try await store.backups.restore(backup)
    #expect(restored.damage?.isEmpty == false)
    #expect(restored.quarantined != nil)
    #expect(try await store.examine().verdict == .damaged)
  }

  @Test func aQuarantinedStoreIsPutBack() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2)
    let store = try scene.store(home: scene.home)
    let entry = try await store.quarantine.add(reason: "To be looked at.")
    #expect(entry.words == "To be looked at.")
    #expect(entry.original?.lastPathComponent == "App.sqlite")
    #expect(try await store.examine().verdict == .missing)
    #expect(try await store.quarantine.release(entry) == nil)
    #expect(try scene.names() == ["Car 1", "Car 2"])
    #expect(try await store.quarantine.all().isEmpty)
  }

  @Test func aBundleIsWrittenAsItWasShown() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2)
    let store = try scene.store(home: scene.home)
    let prepared = try await store.support.prepare(.facts, app: "com.example.Garage")
    #expect(prepared.consent.key == "lazaret.notice.send-report.facts")
    #expect(!prepared.files.isEmpty)
    let bundle = try await store.support.write(prepared, to: scene.url("Stores"))
    let written = try Data(contentsOf: try #require(bundle.url))
    #expect(Int64(written.count) == bundle.bytes)
    #expect(!bundle.isEncrypted)
    // Nothing of a record is in the facts, packed as they are.
    #expect(written.range(of: Data("Car 1".utf8)) == nil)
    await #expect(throws: StoreError.self) {
      try await store.support.write(prepared, to: scene.url("Stores"), encryptedFor: ["age1nonsense"])
    }
  }
}
