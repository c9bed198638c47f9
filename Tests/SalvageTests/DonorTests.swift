import Damage
import GRDB
import LazaretTesting
import PersistentStore
import RecoveryKit
import Salvage
import StoreFiles
import SystemPackage
import TestSupport
import Testing

@Suite("Lost rows from a backup")
struct DonorTests {
  private let date = Timestamp(secondsSince1970: 1_790_000_000)

  @Test(
    "Rows that are lost come back and are marked, and those that were deleted since do not", arguments: [true, false])
  func comeBack(hasKit: Bool) throws {
    let scene = try RebuildScene(seed: 31, records: 500)
    let backup = try RealMaterial.copy(scene.store, into: scene.folder, as: "Backup.sqlite")
    try scene.change("DELETE FROM ZPERSON WHERE Z_PK % 4 = 0")
    let kit = scene.folder.appending("App.kit")
    try FileSystem().writeAtomically(try RecoveryKit(of: scene.store).bytes(), to: kit, replacing: false)
    let damaged = try scene.damaged("zero:12", seed: 5)
    func salvage(_ donor: SalvageDonor?, _ name: String) throws -> (SalvageReport, FilePath) {
      let out = scene.folder.appending(name)
      let report = try Salvager().salvageRaw(
        damaged, to: out, model: .coreData(scene.bundle),
        options: .init(kit: hasKit ? .file(kit) : .none, donor: donor))
      return (report, out)
    }
    let (without, _) = try salvage(nil, "Without.sqlite")
    let (report, out) = try salvage(SalvageDonor(path: backup, date: date), "With.sqlite")
    let taken = report.entities.reduce(0) { $0 + $1.fromBackup }
    #expect(taken > 0)
    #expect(report.recovered == without.recovered + taken)
    #expect(!report.isComplete)
    let person = try #require(report.entities.first { $0.name == "Person" })
    let queue = try DatabaseQueue(path: out.string)
    try queue.read { database in
      let reasons = try String.fetchAll(
        database, sql: "SELECT DISTINCT reason FROM lazaret_provenance WHERE source = 'backup'")
      #expect(reasons.allSatisfy { $0.contains("2026-09-21") }, "\(reasons)")
      let wrong =
        try Int.fetchOne(
          database, sql: "SELECT count(*) FROM ZPERSON WHERE Z_PK % 4 = 0") ?? 0
      if hasKit { #expect(wrong == 0) } else { #expect(Int64(wrong) <= person.fromBackup) }
    }
    try queue.close()
    if hasKit {
      for name in ["Ship", "Ferry", "Person", "Port", "Flag"] {
        let entity = try #require(report.entities.first { $0.name == name })
        #expect(entity.lost == 0, "\(name)")
      }
    } else {
      #expect(report.doubtful >= taken)
    }
    // A store made of it opens, and has the records.
    let result = try Salvager().salvage(
      damaged, to: scene.folder.appending("Store.sqlite"), model: .coreData(scene.bundle),
      options: .init(
        migrates: false, kit: hasKit ? .file(kit) : .none, donor: SalvageDonor(path: backup, date: date)))
    #expect(result.entities.reduce(0) { $0 + $1.fromBackup } == taken)
  }

  @Test("Another store, and a damaged backup, are refused")
  func refused() throws {
    let scene = try RebuildScene(seed: 32, records: 100)
    let damaged = try scene.damaged("zero:10", seed: 5)
    let other = try RealMaterial.copy(scene.store, into: scene.folder, as: "Other.sqlite")
    let queue = try DatabaseQueue(path: other.string)
    try queue.write { try $0.execute(sql: "UPDATE Z_METADATA SET Z_UUID = '00000000-0000-4000-8000-000000000000'") }
    try queue.close()
    let text = try scene.folder.write(Array("nothing".utf8), to: "Text.sqlite")
    for path in [other, text] {
      let error = #expect(throws: SalvageError.self) {
        try Salvager().salvageRaw(
          damaged, to: scene.folder.appending("Out.sqlite"), model: .coreData(scene.bundle),
          options: .init(donor: SalvageDonor(path: path, date: date)))
      }
      #expect(error?.kind == .donor)
    }
  }
}
