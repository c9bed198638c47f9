import Foundation
import GRDB
import Lazaret
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

/// Damage that a quick look does not see: it is met later, and then followed up.
struct FollowedUpDamageTests {
  /// The leaves of a table, by the page reader.
  private static func leaves(of table: String, in store: FilePath, _ system: FileSystem) throws -> [UInt32] {
    let database = try SQLiteFormat.Database(main: try system.open(store))
    let root = try #require(try database.schema().table(named: table)?.rootPage)
    return try #require(try database.bTreePage(root)).children.compactMap(\.self)
  }

  /// Fills a leaf deep inside a table with zeros, and the time of the change with a long past.
  private static func zeroLeaf(of table: String, in store: FilePath, _ system: FileSystem) throws {
    let leaf = try #require(try leaves(of: table, in: store, system).dropFirst(2).first)
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: store.string))
    try handle.seek(toOffset: UInt64(leaf - 1) * 4096)
    try handle.write(contentsOf: Data(count: 4096))
    try handle.close()
  }

  /// A sound store of the current version with more records than fit on some pages.
  private static func scene(records: Int = 2_000) throws -> Scene {
    let scene = try Scene()
    try scene.makeStore()
    try scene.addCars(records, last: "PRAGMA wal_checkpoint(TRUNCATE)")
    return scene
  }

  private func policy() -> OpeningPolicy { OpeningPolicy(recoveryKitInterval: nil) }

  private func coordinator(_ scene: Scene, appVersion: String = "7.1") throws -> StoreCoordinator {
    StoreCoordinator(
      model: try scene.appModel(), policy: policy(), home: scene.home, appVersion: appVersion, surroundings: .still())
  }

  @Test func aCountThatMeetsDamageIsFollowedUp() throws {
    let scene = try Self.scene()
    try Self.zeroLeaf(of: "ZCAR", in: scene.store(), scene.system)
    let model = try scene.appModel()
    let glance = try Examiner().examine(scene.store(), model: model, options: .init(countsRecords: false))
    #expect(glance.verdict == .compatible && glance.health.depth == .quick)
    let counting = try Examiner().examine(scene.store(), model: model)
    #expect(counting.verdict == .damaged && counting.health.depth == .full)
    #expect(counting.health.integrity?.isSound == false)
    #expect(counting.entities.first { $0.name == "Car" }?.rows == nil)
    let whole = try Examiner().examine(scene.store(), model: model, options: .init(depth: .full))
    #expect(whole.verdict == .damaged && whole.reason == counting.reason)
  }

  @Test func aFullLookCountsAsTheQuickOneDoes() throws {
    let scene = try Self.scene()
    let model = try scene.appModel()
    let quick = try Examiner().examine(scene.store(), model: model)
    let full = try Examiner().examine(scene.store(), model: model, options: .init(depth: .full))
    #expect(full.verdict == .compatible && full.entities == quick.entities)
    #expect(full.entities.first { $0.name == "Car" }?.rows == 2_000)
    let none = try Examiner().examine(scene.store(), model: model, options: .init(depth: .full, countsRecords: false))
    #expect(none.entities.map(\.rows) == full.entities.map { _ in nil })
  }

  @Test func thePassInTheBackgroundTellsTheAppAndTheNextOpening() throws {
    let scene = try Self.scene()
    try Self.zeroLeaf(of: "ZCAR", in: scene.store(), scene.system)
    let told = Mutex<[FoundDamage]>([])
    let observer = OpeningObserver(foundDamage: { damage in told.withLock { $0.append(damage) } })
    let opening = try coordinator(scene).open(scene.store(), observer: observer)
    #expect(opening.events.isEmpty)
    guard case .damaged(let damage) = opening.backgroundPass?.wait().check else {
      Issue.record("the damage was not found")
      return
    }
    #expect(told.withLock { $0 } == [damage])
    #expect(damage.flaws > 0 && !damage.kinds.isEmpty)
    try opening.store.close()
    let next = try coordinator(scene).open(scene.store())
    #expect(next.examination.verdict == .damaged)
    #expect(next.events.map(\.kind) == [.quarantine, .salvage])
    try next.store.close()
    // What was found was of the store that lies in quarantine now.
    let last = try coordinator(scene).open(scene.store())
    #expect(last.examination.verdict == .compatible && last.events.isEmpty)
    guard case .sound = last.backgroundPass?.wait().check else {
      Issue.record("the salvaged store was not looked at for the first time, or is not sound")
      return
    }
    try last.store.close()
  }

  @Test func everyPageIsLookedAtFirstThenOnceAWeekAndAfterAnUpdate() throws {
    let scene = try Self.scene()
    func check(_ appVersion: String) throws -> String {
      let opening = try coordinator(scene, appVersion: appVersion).open(scene.store())
      defer { #expect(throws: Never.self) { try opening.store.close() } }
      switch opening.backgroundPass?.wait().check {
      case .sound: return "sound"
      case .notDue: return "not due"
      default: return "something else"
      }
    }
    #expect(try check("7.1") == "sound")
    #expect(try check("7.1") == "not due")
    #expect(try check("7.2") == "sound")
    #expect(try check("7.2") == "not due")
    // A log with something in it is what a process that was killed leaves.
    let queue = try DatabaseQueue(path: scene.store().string)
    try queue.write { try $0.execute(sql: "UPDATE ZCAR SET Z_OPT = 2 WHERE Z_PK = 1") }
    let log = try scene.system.contents(of: scene.store("App.sqlite-wal"), limit: 1 << 24)
    let main = try scene.system.contents(of: scene.store(), limit: 1 << 24)
    try queue.close()
    try scene.folder.write(main, to: "Stores/App.sqlite")
    try scene.folder.write(log, to: "Stores/App.sqlite-wal")
    #expect(try check("7.2") == "sound")
    #expect(try check("7.2") == "not due")
    let path = scene.home.appending("Recovery/App/checked.json")
    let text = String(decoding: try scene.system.contents(of: path, limit: 4096), as: UTF8.self)
    #expect(text.contains("2026-11-21"))
    try scene.system.writeAtomically(
      Array(text.replacingOccurrences(of: "2026-11-21", with: "2026-11-14").utf8), to: path, replacing: true)
    #expect(try check("7.2") == "sound")
    try scene.system.writeAtomically(
      Array(text.replacingOccurrences(of: "2026-11-21", with: "2026-11-15").utf8), to: path, replacing: true)
    #expect(try check("7.2") == "not due")
  }

  @Test func anOutdatedStoreWithADamagedLeafIsSalvaged() throws {
    let scene = try MigratingScene(rows: 3_000)
    try Self.zeroLeaf(of: "ZCAR", in: scene.store, scene.system)
    let opening = try scene.coordinator().open(scene.store)
    #expect(opening.examination.verdict == .damaged)
    #expect(opening.examination.reason.code == "pages-damaged")
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage])
    let left = try opening.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") ?? 0 }
    #expect(left > 2_500 && left < 3_000)
    try opening.store.close()
  }

  @Test func anOutdatedStoreWithADamagedLeafStaysWhereThePolicyRefuses() throws {
    let scene = try MigratingScene(rows: 3_000)
    try Self.zeroLeaf(of: "ZCAR", in: scene.store, scene.system)
    let before = try scene.parts(scene.store)
    let error = #expect(throws: LazaretError.self) {
      try scene.coordinator(OpeningPolicy(whenDamaged: .refuse)).open(scene.store)
    }
    #expect(error?.kind == .damaged && error?.examination?.verdict == .damaged)
    #expect(try scene.parts(scene.store) == before)
  }
}
