import Foundation
import GRDB
import LazaretTesting
import Platform
import Salvage
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
    for journal in [StoreGenerator.Journal.none, .rollback] { try checkLosses(kind, seed, journal) }
  }

  /// The counter in the header says that nothing was written since, but only with a rollback journal: a log may be lost.
  private func checkLosses(_ kind: String, _ seed: UInt64, _ journal: StoreGenerator.Journal) throws {
    let scene = try RebuildScene(seed: 13, records: 500, journal: journal)
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    let copy = try RealMaterial.copy(scene.store, into: scene.folder, as: "Truth.sqlite")
    let truth = try Self.keys(of: copy, truth: copy)
    let damaged = try scene.damaged(kind, seed: seed)
    let out = scene.folder.appending("Raw.sqlite")
    let report = try Salvager().salvageRaw(
      damaged, to: out, model: .coreData(scene.bundle), options: .init(kit: .file(kit)))
    let use = try #require(report.kit, "\(report.remarks)")
    if journal == .none || ["header", "page1"].contains(kind) {
      #expect(!use.isCurrent && use.writtenSince == nil, "\(kind), seed \(seed), \(journal)")
    } else if kind != "page1:stale" {
      #expect(use.isCurrent && use.writtenSince == false, "\(kind), seed \(seed), \(journal)")
    }
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
      #expect(account.isLostExact || !use.isCurrent)
      // With a log that may be lost, only an index of the store's own makes a number exact.
      #expect(
        !account.isLostExact || lost.isEmpty || use.isCurrent || account.lostBasis == .index,
        "\(entity), \(kind), seed \(seed), \(journal)")
      #expect((found[entity] ?? KeyRanges()).subtracting(keys).isEmpty, "\(entity), \(kind), seed \(seed)")
    }
  }

  @Test("A whole index counts exactly where a kit that may be behind only estimates", arguments: [UInt64(1), 2, 3])
  func indexFirst(seed: UInt64) throws {
    let place = try TemporaryFolder()
    let store = place.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      // With a write-ahead log nothing tells that none is lost.
      try database.execute(
        sql: """
          PRAGMA journal_mode = WAL;
          CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT, note TEXT);
          CREATE INDEX cars_name ON cars (name);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
          INSERT INTO cars SELECT i, 'name ' || (i * 7919 % 2003), printf('%.60c', 'x') FROM n
          """)
    }
    try queue.close()
    let kit = try RecoveryKit(of: store)
    let kitPath = place.appending("Store.kit")
    try FileSystem().writeAtomically(try kit.bytes(), to: kitPath, replacing: false)
    var bytes = try [UInt8](Data(contentsOf: URL(filePath: store.string)))
    let table = try #require(kit.table(named: "cars"))
    var random = SeededGenerator(seed: seed)
    let leaf = try #require(table.leaves.filter { $0 > 2 }.shuffled(using: &random).first)
    let size = Int(bytes[16]) << 8 | Int(bytes[17])
    let start = (Int(leaf) - 1) * size
    bytes.replaceSubrange(start..<(start + size), with: [UInt8](repeating: 0, count: size))
    let damaged = try place.write(bytes, to: "Damaged.sqlite")
    let report = try Salvager().salvageRaw(
      damaged, to: place.appending("Raw.sqlite"), options: .init(kit: .file(kitPath)))
    #expect(report.kit?.isCurrent == false)
    let account = try #require(report.entities.first { $0.name == "cars" })
    let found = try DatabaseQueue(path: place.appending("Raw.sqlite").string).read {
      try Int64.fetchOne($0, sql: "SELECT count(*) FROM cars") ?? 0
    }
    #expect(account.lost > 0 && account.lost == 2000 - found)
    #expect(account.isLostExact && account.lostBasis == .index)
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
    #expect(undamaged.kit?.isCurrent == false && undamaged.kit?.writtenSince == nil)
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
    #expect(report.kit?.isCurrent == false && report.kit?.writtenSince == nil)
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

  @Test(
    "A kit says that nothing was written since only where the log that it noted is there, to its end",
    arguments: ["same", "grown", "cut", "lost"])
  func log(fate: String) throws {
    let folder = try TemporaryFolder()
    let live = folder.appending("Live.sqlite")
    let queue = try DatabaseQueue(path: live.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
      try database.execute(sql: "CREATE TABLE NOTES (N INTEGER PRIMARY KEY, SAID TEXT)")
      try database.execute(
        sql: """
          WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)
          INSERT INTO NOTES SELECT n, printf('what was said as number %d', n) FROM c
          """)
      try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
      for key in 1...20 { try database.execute(sql: "UPDATE NOTES SET SAID = 'another' WHERE N = \(key * 90)") }
    }
    /// The files as they are now, as after a kill.
    func copy(_ name: String) throws -> FilePath {
      let path = folder.appending(name)
      for part in [StoreFileSet.Part.main, .wal] {
        let source = StoreFileSet(main: live).path(of: part)
        _ = try FileSystem().copy(source, to: StoreFileSet(main: path).path(of: part))
      }
      return path
    }
    let kit = folder.appending("Store.kit")
    let noted = try copy("Noted.sqlite")
    try FileSystem().writeAtomically(try RecoveryKit(of: noted).bytes(), to: kit, replacing: false)
    if fate != "same" {
      try queue.writeWithoutTransaction { try $0.execute(sql: "UPDATE NOTES SET SAID = 'changed' WHERE N > 1000") }
    }
    let store = try copy("Store.sqlite")
    try queue.close()
    let log = StoreFileSet(main: store).path(of: .wal)
    let bytes = try FileSystem().contents(of: log, limit: 1 << 26)
    let then = try FileSystem().contents(of: StoreFileSet(main: noted).path(of: .wal), limit: 1 << 26)
    switch fate {
    // The frames behind the noted ones are no longer what their sums say.
    case "cut":
      try FileSystem().writeAtomically(
        Array(bytes.prefix(then.count)) + bytes.dropFirst(then.count).map { $0 ^ 0x5A }, to: log, replacing: true)
    case "lost": try FileSystem().unlink(log)
    default: break
    }
    let report = try Salvager().salvageRaw(
      store, to: folder.appending("Out.sqlite"), options: .init(kit: .file(kit)))
    let use = try #require(report.kit, "\(report.remarks)")
    let expected: [String: Bool] = ["same": false, "grown": true]
    #expect(use.writtenSince == expected[fate])
    #expect(use.isCurrent == (fate == "same"))
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
