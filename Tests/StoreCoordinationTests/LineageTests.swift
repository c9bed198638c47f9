import Backup
import GRDB
import Lazaret
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Evidence counts for its own generation of a store, and a better result of a salvage is never replaced.
struct LineageTests {
  private static let records = 3_000

  /// A store that was damaged, of which there are a kit and a backup from before, and that an opening has salvaged.
  private struct Rescued {
    let scene: SalvagingScene
    let before: BackupIdentifier
    let stored: QuarantinedStore
    let first: Receipt.Salvage.Result

    init(seed: UInt64) throws {
      scene = try SalvagingScene("zero:40", seed: seed, records: LineageTests.records)
      let home = scene.scene.home
      let earlier = Surroundings.still(at: "2026-11-20T08:00:00Z", seed: seed)
      let kit = try RecoveryKit(of: scene.whole, surroundings: earlier)
      try KitFolder(for: scene.scene.store(), home: home).add(kit)
      before = try BackupCreator(surroundings: earlier).create(
        scene.whole, in: try Backups(home: home).place(of: scene.scene.store()), BackupRequest()
      ).id
      try scene.coordinator().open(scene.scene.store()).store.close()
      stored = try #require(try Quarantines(home: home).stores().first)
      first = try #require(stored.receipt?.salvage?.result)
    }

    func quarantines(at time: String, seed: UInt64) -> Quarantines {
      Quarantines(home: scene.scene.home, surroundings: .still(at: time, seed: seed))
    }

    func salvage(
      _ source: BackupSource? = nil, trusts: Bool = false, at time: String, seed: UInt64
    ) throws -> QuarantineSalvage {
      try quarantines(at: time, seed: seed).salvage(
        stored.files.main, model: try scene.scene.appModel(),
        options: .init(backup: source, trustsBackup: trusts))
    }

    /// The app works with the salvaged store: a kit and a backup of it are made.
    func work() throws -> StoredBackup {
      let later = Surroundings.still(at: "2026-11-22T08:00:00Z", seed: 500)
      let opening = try scene.scene.coordinator(home: scene.scene.home, surroundings: later, notesKits: true)
        .open(scene.scene.store())
      try opening.store.write { try $0.execute(sql: "DELETE FROM ZCAR WHERE Z_PK % 2 = 0") }
      _ = opening.backgroundPass?.wait()
      try opening.store.close()
      return try Backups(home: scene.scene.home, surroundings: later).create(scene.scene.store())
    }

    func receipt() throws -> Receipt {
      try #require(
        try Quarantines(home: scene.scene.home).stores().first { $0.id == stored.id }?.receipt)
    }

    /// The cars in a file, counted by SQLite.
    func cars(_ path: FilePath) throws -> Int64 {
      let copy = scene.scene.folder.appending("Counted.sqlite")
      if try scene.scene.system.status(of: copy) != nil { try scene.scene.system.unlink(copy) }
      _ = try scene.scene.system.copy(path, to: copy)
      let queue = try DatabaseQueue(path: copy.string)
      let count = try queue.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") ?? -1 }
      try queue.close()
      return count
    }
  }

  @Test("A second salvage, after the app has worked, tells the same losses and uses nothing from after the event")
  func theSameLosses() throws {
    let rescued = try Rescued(seed: 71)
    #expect(rescued.first.lost > 0)
    #expect(rescued.first.evidence?.kit == "2026-11-20-08-00-00")
    let later = try rescued.work()
    let own = try #require(rescued.stored.receipt?.lineage)
    #expect(later.manifest?.lineage?.parent == rescued.stored.id)
    #expect(later.manifest?.lineage?.generation == rescued.stored.receipt?.successor?.generation)
    #expect(later.manifest?.lineage?.generation != own.generation)
    let kits = try KitFolder(for: rescued.scene.scene.store(), home: rescued.scene.scene.home).kits()
    #expect(kits.map(\.date.rfc3339) == ["2026-11-22T08:00:00Z", "2026-11-20T08:00:00Z"])

    let again = try rescued.salvage(at: "2026-11-23T08:00:00Z", seed: 600)
    #expect(again.result.entities == rescued.first.entities)
    #expect(again.result.lost == rescued.first.lost)
    #expect(again.result.evidence?.kit == "2026-11-20-08-00-00")
    #expect(again.report.kit?.date == "2026-11-20T08:00:00Z")
    #expect(again.report.remarks.contains { $0.contains("2026-11-22T08:00:00Z") && $0.contains("was not used") })
    #expect(again.comparison?.entities.isEmpty == true && again.comparison?.evidence.isEmpty == true)
    try rescued.scene.scene.expectQuarantined(
      rescued.scene.before, in: try rescued.scene.scene.quarantined().filter { $0.id == rescued.stored.id })
  }

  @Test("A backup from after the event is refused by name, unless the caller vouches for it")
  func laterBackups() throws {
    let rescued = try Rescued(seed: 72)
    let later = try rescued.work()
    let error = #expect(throws: BackupError.self) {
      try rescued.salvage(.backup(later.id), at: "2026-11-23T08:00:00Z", seed: 601)
    }
    #expect(error?.kind == .otherGeneration)
    #expect(error?.hint.contains("name it and say so") == true)
    // The live store is the salvaged one.
    let live = #expect(throws: BackupError.self) {
      try rescued.salvage(.file(rescued.scene.scene.store()), at: "2026-11-23T08:00:00Z", seed: 602)
    }
    #expect(live?.kind == .otherGeneration)
    // Refusals have changed nothing.
    #expect(try rescued.receipt().salvage?.result == rescued.first)
    let newest = try rescued.salvage(.newest, at: "2026-11-23T08:00:00Z", seed: 603)
    #expect(newest.report.backup?.id == rescued.before.description)
    let vouched = try rescued.salvage(.backup(later.id), trusts: true, at: "2026-11-24T08:00:00Z", seed: 604)
    #expect(vouched.report.backup?.id == later.id.description)
    // Its kit still says nothing of the store as it was.
    #expect(vouched.report.kit?.date != later.manifest?.date)
  }

  @Test("A better result becomes the current one, both stay, and a worse one after it does not take its place")
  func theBetterResultStays() throws {
    let rescued = try Rescued(seed: 73)
    _ = try rescued.work()
    let better = try rescued.salvage(.backup(rescued.before), at: "2026-11-23T08:00:00Z", seed: 605)
    #expect(better.isCurrent)
    #expect(better.result.recovered > rescued.first.recovered && better.result.lost < rescued.first.lost)
    #expect(better.report.backup?.id == rescued.before.description)
    let comparison = try #require(better.comparison)
    #expect(comparison.evidence.contains { $0.contains(rescued.before.description) })
    let car = try #require(comparison.entities.first { $0.table == "ZCAR" })
    #expect(car.earlier == rescued.first.entities.first { $0.table == "ZCAR" })
    #expect(car.later == better.result.entities.first { $0.table == "ZCAR" })
    var salvage = try #require(try rescued.receipt().salvage)
    #expect(salvage.result == better.result && salvage.others == [rescued.first])
    let earlier = rescued.scene.scene.incompatible.pushing(try #require(rescued.first.name.path))
    #expect(try rescued.cars(earlier) < rescued.cars(better.store))

    let worse = try rescued.salvage(at: "2026-11-24T08:00:00Z", seed: 606)
    #expect(!worse.isCurrent)
    #expect(worse.result.entities == rescued.first.entities)
    salvage = try #require(try rescued.receipt().salvage)
    #expect(salvage.result == better.result)
    // It says what the first one said, and takes that one's place.
    #expect(salvage.others == [worse.result])
    let report = try SalvageReport.read(worse.reportPath)
    #expect(report.remarks.contains { $0.contains(rescued.before.description) })

    let quarantines = rescued.quarantines(at: "2026-11-25T08:00:00Z", seed: 607)
    _ = try quarantines.install(rescued.stored.files.main, model: try rescued.scene.scene.appModel())
    #expect(try rescued.cars(rescued.scene.scene.store()) == rescued.cars(better.store))
    _ = try quarantines.discard(rescued.stored.files.main)
    let names = try rescued.scene.scene.system.entries(of: rescued.scene.scene.incompatible).map(\.string)
    #expect(!names.contains { $0.hasPrefix(rescued.stored.id + ".") || $0.hasPrefix(".\(rescued.stored.id).") })
  }

  @Test("Where the kit is gone, the result that it told more for stays, and the difference is named")
  func withoutTheKit() throws {
    let rescued = try Rescued(seed: 74)
    try rescued.scene.scene.system.removeTree(rescued.scene.scene.home.appending("Recovery"))
    let without = try rescued.salvage(at: "2026-11-23T08:00:00Z", seed: 608)
    #expect(!without.isCurrent && without.report.kit == nil)
    #expect(without.comparison?.evidence.contains { $0.contains("2026-11-20-08-00-00") } == true)
    let salvage = try #require(try rescued.receipt().salvage)
    #expect(salvage.result == rescued.first && salvage.others == [without.result])
    #expect(salvage.state == .installed)
  }

  @Test("A store that is put back is of its own generation again, and what follows it of another")
  func releasing() throws {
    let rescued = try Rescued(seed: 75)
    let place = rescued.scene.scene.store()
    let own = try #require(rescued.stored.receipt?.lineage)
    let released = try rescued.quarantines(at: "2026-11-23T08:00:00Z", seed: 700)
      .release(rescued.stored.files.main, replacing: true)
    let salvaged = try #require(released.quarantined?.receipt)
    #expect(salvaged.lineage == rescued.stored.receipt?.successor)
    #expect(salvaged.lineage?.parent == rescued.stored.id)
    #expect(try EvidenceScope(of: place).lineage == own)
    let again = try rescued.quarantines(at: "2026-11-24T08:00:00Z", seed: 800).add(place)
    #expect(again.receipt?.lineage == own)
    let generations = Set([own.generation, salvaged.lineage?.generation, again.receipt?.successor?.generation])
    #expect(generations.count == 3)
    #expect(try EvidenceScope(of: place).lineage == again.receipt?.successor)
  }

  @Test("A restored backup has the evidence of its generation up to its own date")
  func restoring() throws {
    let rescued = try Rescued(seed: 76)
    let place = rescued.scene.scene.store()
    let backup = try rescued.work()
    let later = Surroundings.still(at: "2026-11-25T08:00:00Z", seed: 900)
    _ = try Backups(home: rescued.scene.scene.home, surroundings: later).restore(over: place, backup.id)
    let scope = try EvidenceScope(of: place)
    let generation = try #require(backup.manifest?.lineage?.generation)
    #expect(scope.lineage?.restored?.generation == generation)
    #expect(scope.lineage?.generation != generation)
    #expect(backup.exclusion(from: scope) == nil)
    let between = try #require(Timestamp("2026-11-24T08:00:00Z"))
    #expect(scope.exclusion(generation: generation, date: between) == .otherGeneration)
    #expect(scope.exclusion(generation: nil, date: rescued.before.date) == .otherGeneration)
  }

  @Test("Receipts without a generation are gone by their dates")
  func olderReceipts() throws {
    let rescued = try Rescued(seed: 77)
    let later = try rescued.work()
    let text = String(
      decoding: try rescued.scene.scene.system.contents(of: rescued.stored.receiptPath, limit: 1 << 20), as: UTF8.self)
    var receipt = try rescued.receipt()
    receipt.lineage = nil
    receipt.successor = nil
    receipt.order = nil
    try rescued.scene.scene.folder.write(
      String(decoding: try receipt.json(), as: UTF8.self), to: "Stores/Incompatible/\(receipt.id).json")
    #expect(text.contains("\"successor\""))
    let error = #expect(throws: BackupError.self) {
      try rescued.salvage(.backup(later.id), at: "2026-11-23T08:00:00Z", seed: 610)
    }
    #expect(error?.kind == .otherGeneration)
    let again = try rescued.salvage(.newest, at: "2026-11-23T08:00:00Z", seed: 611)
    #expect(again.report.backup?.id == rescued.before.description)
    #expect(again.report.kit?.date == "2026-11-20T08:00:00Z")
  }
}
