import Foundation
import GRDB
import Lazaret
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Every way that an opening can go.
struct OpeningTests {
  @Test func aMissingStoreIsCreated() throws {
    let scene = try Scene()
    let opening = try scene.coordinator().open(scene.store())
    #expect(opening.examination.verdict == .missing)
    #expect(opening.events.map(\.kind) == [.create])
    #expect(opening.notice == nil)
    #expect(opening.store.path == scene.store())
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    #expect(try scene.names() == ["App.sqlite"])
  }

  @Test func aCompatibleStoreIsOpenedAndNothingElse() throws {
    let scene = try Scene()
    try scene.makeStore()
    let before = try scene.parts(scene.store())
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(opening.examination.verdict == .compatible)
    #expect(opening.events.isEmpty)
    #expect(opening.notice == nil)
    try opening.store.close()
    #expect(try scene.parts(scene.store()) == before)
    #expect(try scene.names() == ["App.sqlite"])
    #expect(try scene.system.status(of: scene.home) == nil)
  }

  @Test func aLogThatDoesNotEndWithACommitIsKeptBeforeTheStoreIsOpened() throws {
    let scene = try Scene()
    try scene.makeStore()
    let log = StoreFileSet(main: scene.store()).path(of: .wal)
    let queue = try DatabaseQueue(path: scene.store().string)
    let (main, bytes) = try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: "PRAGMA wal_autocheckpoint = 0; CREATE TABLE extra (a); INSERT INTO extra VALUES (zeroblob(20000))")
      return (
        try scene.system.contents(of: scene.store(), limit: 1 << 24), try scene.system.contents(of: log, limit: 1 << 24)
      )
    }
    try queue.close()
    let cut = Array(bytes.dropLast(3000))
    for round in 1...2 {
      try scene.folder.write(main, to: "Stores/App.sqlite")
      try scene.folder.write(cut, to: "Stores/App.sqlite-wal")
      let opening = try scene.coordinator(home: scene.home).open(scene.store())
      #expect(opening.examination.verdict == .compatible)
      #expect(opening.events.map(\.kind) == [.backup], "round \(round)")
      #expect(opening.isWithLosses && opening.notice == nil)
      let kept = try #require(opening.events.first?.path.path)
      #expect(try scene.system.contents(of: kept, limit: 1 << 24) == cut)
      #expect(try scene.system.entries(of: kept.removingLastComponent()).count == 1, "what is kept is not copied again")
      try opening.store.close()
    }
    let again = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(again.events.isEmpty && !again.isWithLosses)
    try again.store.close()
  }

  @Test func aPartOfAStoreIsNotOpenedAsOne() throws {
    let scene = try Scene()
    try scene.makeStore()
    try scene.folder.write([1, 2, 3], to: "Stores/App.sqlite-wal")
    let before = try FolderContents(of: scene.folder.path)
    #expect(throws: (any Error).self) { try scene.coordinator().open(scene.store("App.sqlite-wal")) }
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func anOutdatedStoreIsMigrated() throws {
    let scene = try Scene()
    try scene.makeStore(version: "V1")
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(opening.examination.verdict == .outdated)
    #expect(opening.examination.modelVersion == "V1")
    #expect(opening.events.map(\.kind) == [.backup, .migration])
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    #expect(try scene.names() == ["App.sqlite"])
  }

  @Test func aStoreOfANewerModelStaysWhereItIs() throws {
    let scene = try Scene()
    try scene.makeStore(version: "V3")
    let before = try FolderContents(of: scene.folder.path)
    let error = try #require(throws: LazaretError.self) { try scene.coordinator().open(scene.store()) }
    #expect(error.kind == .unavailable)
    #expect(error.isEnvironmental)
    #expect(error.code == "newer-version")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func aDamagedStoreOfANewerModelStaysWhereItIs() throws {
    let scene = try Scene()
    try scene.makeStore(version: "V3")
    try scene.addCars(2_000, last: "PRAGMA wal_checkpoint(TRUNCATE)")
    // Somewhere in the table, far from schema and metadata.
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: scene.store().string))
    try handle.seek(toOffset: handle.seekToEnd() / 2 / 4096 * 4096)
    try handle.write(contentsOf: Data(count: 4096))
    try handle.close()
    let before = try FolderContents(of: scene.folder.path)
    let examination = try Examiner().examine(scene.store(), model: scene.appModel(), options: .init(depth: .full))
    #expect(examination.verdict == .damaged)
    #expect(examination.reason.hint.contains("Update the app"))
    for round in 1...2 {
      let policy = OpeningPolicy(whenDamaged: .emptyStore, depth: .full)
      let error = try #require(throws: LazaretError.self) { try scene.coordinator(policy).open(scene.store()) }
      #expect(error.kind == .unavailable && error.isEnvironmental, "round \(round)")
      #expect(error.code == "newer-version", "round \(round)")
      #expect(error.detail.contains("V3"), "round \(round): \(error.detail)")
      #expect(try FolderContents(of: scene.folder.path) == before, "round \(round)")
    }
  }

  @Test(arguments: [OpeningPolicy.Remedy.salvage, .salvageLater, .emptyStore])
  func aDamagedStoreIsQuarantinedAndReplaced(remedy: OpeningPolicy.Remedy) throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    let opening = try scene.coordinator(OpeningPolicy(whenDamaged: remedy), home: scene.home).open(scene.store())
    #expect(opening.examination.verdict == .damaged)
    // There is nothing in it that could be salvaged, and the event says so.
    #expect(
      opening.events.map(\.kind) == (remedy == .salvage ? [.quarantine, .salvage, .create] : [.quarantine, .create]))
    let states: [OpeningPolicy.Remedy: Receipt.Salvage.State] = [.salvage: .failed, .salvageLater: .pending]
    #expect(opening.salvage?.state == states[remedy])
    #expect(opening.salvage?.failure?.code == (remedy == .salvage ? "nothing-to-salvage" : nil))
    #expect(opening.isWithLosses)
    let event = try #require(opening.events.first)
    #expect(event.id == "2026-11-21-10-11-12")
    #expect(event.path.path == scene.incompatible.appending("2026-11-21-10-11-12.sqlite"))
    #expect(event.receipt?.path == scene.incompatible.appending("2026-11-21-10-11-12.json"))
    #expect(event.reason?.code == "not-sqlite")
    let notice = try #require(opening.notice)
    #expect(notice.key == (remedy == .salvageLater ? "lazaret.notice.salvage-later" : "lazaret.notice.damaged"))
    #expect(notice.actions.count == (remedy == .salvageLater ? 4 : 3))
    #expect(!notice.message.isEmpty)
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    try scene.expectQuarantined(before, in: try scene.quarantined())
    #expect(try scene.names() == ["App.sqlite", "Incompatible"])
    // The home's catalogue knows it too.
    #expect(try Quarantines(home: scene.home).stores().map(\.id) == ["2026-11-21-10-11-12"])
  }

  @Test func openingTwiceQuarantinesOnce() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    try scene.coordinator().open(scene.store()).store.close()
    let second = try scene.coordinator().open(scene.store())
    #expect(second.events.isEmpty)
    #expect(second.notice == nil)
    try second.store.close()
    #expect(try scene.quarantined().count == 1)
  }

  @Test func twoDamagedStoresInOneSecondAreBothKept() throws {
    let scene = try Scene()
    for text in ["first", "second", "third"] {
      try scene.makeDamagedStore(text: text)
      try scene.coordinator().open(scene.store()).store.close()
    }
    let ids = try scene.quarantined().map(\.id)
    #expect(ids == ["2026-11-21-10-11-12-3", "2026-11-21-10-11-12-2", "2026-11-21-10-11-12"])
  }

  @Test func refusingLeavesEverythingAsItIs() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try FolderContents(of: scene.folder.path)
    let policy = OpeningPolicy(whenDamaged: .refuse, whenIncompatible: .refuse)
    let error = try #require(throws: LazaretError.self) { try scene.coordinator(policy).open(scene.store()) }
    #expect(error.kind == .damaged)
    #expect(error.code == "store-damaged")
    #expect(!error.isEnvironmental)
    #expect(try FolderContents(of: scene.folder.path) == before)
    try scene.folder.write(try plainDatabase("CREATE TABLE boats (id INTEGER)"), to: "Stores/Other.sqlite")
    let other = try FolderContents(of: scene.folder.path)
    let refusal = try #require(throws: LazaretError.self) {
      try scene.coordinator(policy).open(scene.store("Other.sqlite"))
    }
    #expect(refusal.kind == .foreignStore)
    #expect(try FolderContents(of: scene.folder.path) == other)
  }

  @Test func anIncompatibleStoreIsQuarantinedAndReplaced() throws {
    let scene = try Scene()
    try scene.folder.write(try plainDatabase("CREATE TABLE boats (id INTEGER)"), to: "Stores/App.sqlite")
    let before = try scene.parts(scene.store())
    // The policy for damage is another one.
    var policy = OpeningPolicy(whenDamaged: .refuse)
    policy.whenForeign = .replace
    let opening = try scene.coordinator(policy).open(scene.store())
    #expect(opening.examination.verdict == .incompatible)
    // Nothing of it is of this model, so that there is nothing to salvage by it.
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage, .create])
    #expect(opening.salvage?.failure?.code == "model-fits-nothing")
    #expect(opening.notice?.message.contains("does not fit this version of the app") == true)
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    try scene.expectQuarantined(before, in: try scene.quarantined())
  }

  @Test func damageDeepInATableIsFoundByAFullLook() throws {
    let scene = try Scene()
    try scene.makeStore()
    var bytes = try scene.system.contents(of: scene.store(), limit: 1 << 24)
    // A page that no root is on and no quick look reads: the last one, made impossible.
    bytes += [UInt8](repeating: 0xAB, count: 4096)
    bytes.replaceSubrange(28..<32, with: [0, 0, 0, UInt8(bytes.count / 4096)])
    try scene.folder.write(bytes, to: "Stores/App.sqlite")
    let quick = try scene.coordinator().open(scene.store())
    #expect(quick.events.isEmpty)
    try quick.store.close()
    let before = try scene.parts(scene.store())
    let full = try scene.coordinator(OpeningPolicy(depth: .full)).open(scene.store())
    #expect(full.events.map(\.kind) == [.quarantine, .salvage])
    #expect(full.salvage?.state == .installed)
    try full.store.close()
    try scene.expectQuarantined(before, in: try scene.quarantined())
  }

  @Test func damageThatOnlySQLiteSeesIsDamageToo() throws {
    let scene = try Scene()
    try scene.makeStoreThatOnlySQLiteRefuses()
    let before = try scene.parts(scene.store())
    let coordinator = try scene.coordinator(model: try AppModel.load(scene.schema))
    try #require(try coordinator.examine(scene.store()).verdict == .damaged)
    let opening = try coordinator.open(scene.store())
    #expect(opening.examination.reason.code == "schema-refused")
    #expect(opening.events.map(\.kind).first == .quarantine)
    #expect(opening.salvage?.state == .installed, "\(opening.events)")
    #expect(opening.events.first?.reason?.code == "schema-refused")
    #expect(opening.notice?.key.hasPrefix("lazaret.notice.salvaged") == true)
    try opening.store.close()
    try scene.expectQuarantined(before, in: try scene.quarantined())
    #expect(try coordinator.examine(scene.store()).verdict == .compatible)
  }

  // MARK: Plain SQLite

  @Test func aPlainStoreIsCreatedOpenedAndReplaced() throws {
    let scene = try Scene()
    let coordinator = try scene.coordinator(model: try AppModel.load(scene.schema))
    let created = try coordinator.open(scene.store())
    #expect(created.events.map(\.kind) == [.create])
    #expect(created.store.kind == .sqlite)
    try created.store.write { try $0.execute(sql: "INSERT INTO cars (name) VALUES ('Ada')") }
    try created.store.close()
    let again = try coordinator.open(scene.store())
    #expect(again.events.isEmpty)
    #expect(try again.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM cars") } == 1)
    try again.store.close()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    let replaced = try coordinator.open(scene.store())
    #expect(replaced.events.map(\.kind) == [.quarantine, .salvage, .create])
    try replaced.store.close()
    try scene.expectQuarantined(before, in: try scene.quarantined())
  }

  // MARK: Leftovers

  @Test(arguments: ["-wal", "-shm", "-journal", "external data", "all"])
  func leftoversAreQuarantinedBeforeAStoreIsCreated(part: String) throws {
    let scene = try Scene()
    switch part {
    case "all": try scene.makeCompanions()
    case "external data": try scene.folder.write("a large value", to: "Stores/.App_SUPPORT/_EXTERNAL_DATA/0A1B")
    default: try scene.folder.write("left over", to: "Stores/App.sqlite\(part)")
    }
    let before = try scene.parts(scene.store())
    let opening = try scene.coordinator().open(scene.store())
    #expect(opening.events.map(\.kind) == [.quarantine, .create])
    #expect(opening.events.first?.reason?.code == "no-store-but-leftovers")
    #expect(opening.notice?.key == "lazaret.notice.leftovers")
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    try scene.expectQuarantined(before, in: try scene.quarantined())
  }

  // MARK: Events and notices

  @Test func aStoreThatWasQuarantinedOnRequestIsTold() throws {
    let scene = try Scene()
    try scene.makeStore()
    let stored = try Quarantines(home: scene.home, surroundings: .still()).add(scene.store(), reason: "support asked")
    let opening = try scene.coordinator().open(scene.store())
    #expect(opening.events.map(\.kind) == [.recovery, .create])
    #expect(opening.events.first?.id == stored.id)
    #expect(opening.notice?.key == "lazaret.notice.set-aside")
    try opening.store.close()
    let second = try scene.coordinator().open(scene.store())
    #expect(second.events.isEmpty)
    try second.store.close()
  }

  @Test func theNewStoreIsAsPrivateAsTheOldOne() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    _ = try ChildProcess.run("chmod", ["600", scene.store().string])
    try scene.coordinator().open(scene.store()).store.close()
    #expect(try scene.system.status(of: scene.store())?.permissions.rawValue == 0o600)
  }

  @Test func aCatalogueThatCannotBeWrittenIsMetBeforeAnythingIsMoved() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    try scene.folder.write("in the way", to: "Home")
    let before = try FolderContents(of: scene.stores)
    #expect(throws: FileError.self) { try scene.coordinator(home: scene.home).open(scene.store()) }
    #expect(try FolderContents(of: scene.stores) == before)
  }

  // MARK: Progress and cancellation

  @Test func progressTellsThePhasesInTheirOrder() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let seen = Mutex<[OpeningProgress]>([])
    let observer = OpeningObserver { progress in
      seen.withLock { $0.append(progress) }
    } isCancelled: {
      false
    }
    try scene.coordinator().open(scene.store(), observer: observer).store.close()
    let progress = seen.withLock { $0 }
    var phases: [OpeningProgress.Phase] = []
    for step in progress where phases.last != step.phase { phases.append(step.phase) }
    #expect(phases == [.examining, .creating, .quarantining, .creating, .opening])
    #expect(progress.allSatisfy { $0.completed <= $0.total || $0.total == 0 })
  }

  @Test func cancellingAtAnyMomentLeavesTheStoreAsItWas() throws {
    let count = Mutex(0)
    func observer(endingAt step: Int) -> OpeningObserver {
      count.withLock { $0 = 0 }
      return OpeningObserver { _ in
      } isCancelled: {
        count.withLock { count in
          count += 1
          return count == step
        }
      }
    }
    let rehearsal = try Scene()
    try rehearsal.makeDamagedStore()
    try rehearsal.coordinator(OpeningPolicy(whenDamaged: .emptyStore)).open(
      rehearsal.store(), observer: observer(endingAt: 0)
    ).store.close()
    let steps = count.withLock { $0 }
    #expect(steps >= 3)
    for step in 1...steps {
      let scene = try Scene()
      try scene.makeDamagedStore()
      let before = try scene.parts(scene.store())
      let error = #expect(throws: LazaretError.self, "step \(step)") {
        try scene.coordinator(OpeningPolicy(whenDamaged: .emptyStore)).open(
          scene.store(), observer: observer(endingAt: step))
      }
      #expect(error?.kind == .cancelled)
      #expect(try scene.parts(scene.store()) == before, "step \(step)")
      #expect(try scene.quarantined().isEmpty, "step \(step)")
      let left = try scene.names().filter { $0.hasPrefix(".") && $0 != ".App_SUPPORT" }
      #expect(left.isEmpty, "step \(step): \(left)")
    }
  }

  @Test func aCancelledTaskEndsTheOpening() async throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let coordinator = try scene.coordinator()
    let store = scene.store()
    let task = Task {
      // A task is cancelled at any moment; this one before it begins.
      while !Task.isCancelled { await Task.yield() }
      _ = try coordinator.open(store)
    }
    task.cancel()
    await #expect(throws: LazaretError.self) { try await task.value }
    #expect(try scene.quarantined().isEmpty)
  }

  /// The bytes of a plain database with one table.
  private func plainDatabase(_ sql: String) throws -> [UInt8] { try StoreCreation.bytes(of: SchemaScript(sql)) }
}
