import Damage
import Foundation
import GRDB
import LazaretTesting
import PersistentStore
import RecoveryKit
import Salvage
import StoreFiles
import SystemPackage
import TestSupport
import Testing

@Suite("Salvage with a recovery kit")
struct KitTests {
  /// The rowids of each entity in a result, by the entity numbers of the undamaged store.
  private static func keys(of path: FilePath, truth: FilePath) throws -> [String: KeyRanges] {
    let queue = try DatabaseQueue(path: path.string)
    let keys = try queue.writeWithoutTransaction { database in
      try database.execute(sql: "ATTACH DATABASE ? AS truth", arguments: [truth.string])
      var result: [String: KeyRanges] = [:]
      for (entity, table) in [
        ("Ship", "ZSHIP"), ("Ferry", "ZSHIP"), ("Person", "ZPERSON"), ("Port", "ZPORT"), ("Flag", "ZFLAG"),
      ] {
        result[entity] = KeyRanges(
          try Int64.fetchAll(
            database,
            sql: """
              SELECT Z_PK FROM main.\(table)
              WHERE Z_ENT = (SELECT Z_ENT FROM truth.Z_PRIMARYKEY WHERE Z_NAME = ?)
              """, arguments: [entity]))
      }
      return result
    }
    try queue.close()
    return keys
  }

  @Test(
    "With a kit of the undamaged store the lost keys are exactly those that are lost",
    arguments: [
      "zero:8", "rand:8", "trunc:15", "header", "page1", "page1:stale", "roots", "interior", "swap:6", "torn:8",
      "stale:5", "cell-pointers:10",
    ], [UInt64(1), 2])
  func exactLosses(kind: String, seed: UInt64) throws {
    let scene = try RebuildScene(seed: 13, records: 500)
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    let copy = try RealMaterial.copy(scene.store, into: scene.folder, as: "Truth.sqlite")
    let truth = try Self.keys(of: copy, truth: copy)
    let damaged = try scene.damaged(kind, seed: seed)
    let out = scene.folder.appending("Raw.sqlite")
    let report = try Salvager().salvageRaw(
      damaged, to: out, model: .coreData(scene.bundle), options: .init(kit: .file(kit)))
    let use = try #require(report.kit, "\(report.remarks)")
    #expect(use.isCurrent, "\(kind), seed \(seed)")
    let found = try Self.keys(of: out, truth: copy)
    // Rows that go straight into a new store are there too.
    let rebuilt = try Salvager().salvage(
      damaged, to: scene.folder.appending("Rebuilt.sqlite"), model: .coreData(scene.bundle),
      options: .init(migrates: false, kit: .file(kit)))
    for (entity, keys) in truth {
      let account = try #require(report.entities.first { $0.name == entity })
      let lost = keys.subtracting(found[entity] ?? KeyRanges())
      #expect(account.lostKeys == lost, "\(entity), \(kind), seed \(seed)")
      #expect(account.lost == lost.count)
      let own = try #require(rebuilt.entities.first { $0.name == entity })
      #expect(own.lostKeys == lost, "rebuilt: \(entity), \(kind), seed \(seed)")
      #expect(account.isLostExact)
      #expect((found[entity] ?? KeyRanges()).subtracting(keys).isEmpty, "\(entity), \(kind), seed \(seed)")
    }
  }

  @Test("Every bit that flipped inside of a value is seen, and only its row is doubted", arguments: [UInt64(1), 2, 3])
  func flippedBits(seed: UInt64) throws {
    let scene = try SalvageScene(seed: seed, books: 400)
    let place = try TemporaryFolder()
    let store = try place.write(scene.main, to: "Store.sqlite")
    let kit = try RecoveryKit(of: store)
    let kitPath = place.appending("Store.kit")
    try FileSystem().writeAtomically(try kit.bytes(), to: kitPath, replacing: false)
    let undamaged = try Salvager().salvageRaw(
      store, to: place.appending("Same.sqlite"), options: .init(kit: .file(kitPath)))
    #expect(undamaged.isComplete)
    #expect(undamaged.kit?.isCurrent == true)
    #expect((undamaged.kit?.pagesConfirmed ?? 0) > 10)
    // The letter of a title is turned into another one: valid text, and no trace without the kit.
    var damaged = scene.main
    let table = try #require(kit.table(named: "ZBOOK"))
    var hits = 0
    var random = SeededGenerator(seed: seed)
    for page in table.leaves.shuffled(using: &random).prefix(5) {
      let start = (Int(page) - 1) * SalvageScene.pageSize
      let range = (start + 2000)..<(start + 4096)
      let word = Array("people".utf8)
      guard let at = range.first(where: { damaged[$0..<min($0 + 6, damaged.count)].elementsEqual(word) }) else {
        continue
      }
      damaged[at] ^= 1
      hits += 1
    }
    #expect(hits > 2)
    let hit = try place.write(damaged, to: "Hit.sqlite")
    let without = try Salvager().salvageRaw(hit, to: place.appending("Without.sqlite"))
    #expect(without.isComplete)
    let report = try Salvager().salvageRaw(hit, to: place.appending("With.sqlite"), options: .init(kit: .file(kitPath)))
    #expect(!report.isComplete)
    #expect(report.kit?.pagesWithFlippedBit == hits)
    #expect(report.kit?.isCurrent == true)
    #expect(report.doubtful == Int64(hits))
    #expect(report.lost == 0)
  }

  @Test("A kit that is older than the last change neither calls deleted rows lost nor changed ones doubtful")
  func older() throws {
    let scene = try RebuildScene(seed: 21, records: 500)
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    try scene.change(
      "UPDATE ZPERSON SET ZBORN = coalesce(ZBORN, 0) + 12345.678 WHERE Z_PK % 3 = 0",
      "DELETE FROM ZFLAG WHERE Z_PK % 5 = 0")
    let whole = try Salvager().salvageRaw(
      scene.store, to: scene.folder.appending("Whole.sqlite"), model: .coreData(scene.bundle),
      options: .init(kit: .file(kit)))
    #expect(whole.kit?.isCurrent == false)
    #expect(whole.lost == 0)
    #expect(whole.doubtful == 0)
    #expect(whole.isComplete)
    let report = try Salvager().salvageRaw(
      scene.damaged("zero:10", seed: 2), to: scene.folder.appending("Raw.sqlite"), model: .coreData(scene.bundle),
      options: .init(kit: .file(kit)))
    for entity in report.entities where entity.lost > 0 { #expect(!entity.lostKeys.isEmpty || !entity.isLostExact) }
  }

  @Test("Another store's kit and a damaged one are left out, with a remark")
  func foreign() throws {
    let scene = try RebuildScene(seed: 3, records: 100)
    let other = try RebuildScene(seed: 4, records: 100)
    let foreign = scene.folder.appending("Foreign.kit")
    var kit = try RecoveryKit(of: other.store)
    kit.storeUUID = "00000000-0000-4000-8000-000000000000"
    try FileSystem().writeAtomically(try kit.bytes(), to: foreign, replacing: false)
    let broken = try scene.folder.write(Array("nothing".utf8), to: "Broken.kit")
    for (path, words) in [(foreign, "another store's"), (broken, "was not used")] {
      let out = scene.folder.appending("Out-\(path.stem ?? "").sqlite")
      let report = try Salvager().salvageRaw(
        scene.store, to: out, model: .coreData(scene.bundle), options: .init(kit: .file(path)))
      #expect(report.kit == nil)
      #expect(report.remarks.contains { $0.contains(words) }, "\(report.remarks)")
      #expect(report.lost == 0)
    }
  }

  @Test("Where nothing else tells the version of the store, its kit does")
  func version() throws {
    let scene = try RebuildScene(seed: 8, records: 200)
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    try scene.change("DELETE FROM Z_METADATA", "DELETE FROM Z_MODELCACHE")
    let report = try Salvager().salvage(
      scene.store, to: scene.folder.appending("Out.sqlite"), model: .coreData(scene.bundle),
      options: .init(migrates: false, kit: .file(kit)))
    // With the identifier gone, the sums of pages tell whose kit it is.
    #expect(report.kit != nil, "\(report.remarks)")
    #expect(report.rebuild?.basis == .recoveryKit)
    #expect(report.rebuild?.version == "V1")
  }
}
