import Backup
import GRDB
import Lazaret
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Taking what a damaged store has lost from backups: the newest, ours of any kind, and gzip files of others.
struct BackupSalvageTests {
  private static let records = 3_000

  /// A damaged store in quarantine, and two backups of it from when it was whole: a full one, and a delta.
  private struct BackedUp {
    let scene: SalvagingScene
    let stored: QuarantinedStore
    let place: FolderPlace
    let ids: [BackupIdentifier]

    init(seed: UInt64) throws {
      scene = try SalvagingScene("zero:40", seed: seed, records: BackupSalvageTests.records)
      place = try Backups(home: scene.scene.home).place(of: scene.scene.store())
      var ids: [BackupIdentifier] = []
      for (number, hour) in ["08", "09"].enumerated() {
        if number > 0 {
          let store = try PersistentStore(opening: scene.whole)
          try store.write { try $0.execute(sql: "UPDATE ZCAR SET Z_OPT = 5 WHERE Z_PK = 7") }
          try store.close()
        }
        let surroundings = Surroundings.still(at: "2026-11-20T\(hour):00:00Z", seed: seed)
        ids.append(try BackupCreator(surroundings: surroundings).create(scene.whole, in: place, BackupRequest()).id)
      }
      self.ids = ids
      stored = try Quarantines(home: scene.scene.home, surroundings: .still()).add(
        scene.scene.store(), reason: "a test", appVersion: "7.1")
    }

    func salvage(_ source: BackupSource?, trusts: Bool = false, seed: UInt64) throws -> QuarantineSalvage {
      try Quarantines(home: scene.scene.home, surroundings: .still(seed: seed)).salvage(
        stored.files.main, model: try scene.scene.appModel(),
        options: .init(backup: source, trustsBackup: trusts))
    }

    func file(_ id: BackupIdentifier, _ suffix: String) -> FilePath { place.path.appending("\(id)\(suffix)") }
  }

  private func taken(_ salvaged: QuarantineSalvage) -> Int64 {
    salvaged.report.entities.reduce(0) { $0 + $1.fromBackup }
  }

  @Test func theNewestAndEachOfOurFilesBringLostRecordsBack() throws {
    let backed = try BackedUp(seed: 71)
    let without = try backed.salvage(nil, seed: 72)
    #expect(taken(without) == 0 && without.result.lost > 0)
    let newest = try backed.salvage(.newest, seed: 73)
    #expect(taken(newest) > 0)
    #expect(newest.result.recovered > without.result.recovered)
    let delta = backed.file(backed.ids[1], ".delta.gz")
    try #require(try backed.scene.scene.system.status(of: delta) != nil)
    #expect(taken(try backed.salvage(.file(delta), seed: 74)) == taken(newest))
    let full = try backed.salvage(.file(backed.file(backed.ids[0], ".sqlite.gz")), seed: 75)
    #expect(taken(full) > 0)
    // A plain file, and one that others packed, in two members; the damage took the store's identifier, so it has to be said
    // that they are of it.
    #expect(taken(try backed.salvage(.file(backed.scene.whole), trusts: true, seed: 76)) == taken(newest))
    if ChildProcess.exists("gzip") {
      let packed = backed.scene.scene.folder.appending("Whole.gz")
      _ = try ChildProcess.run(
        "sh",
        [
          "-c",
          "(head -c 8192 '\(backed.scene.whole)' | gzip -1; tail -c +8193 '\(backed.scene.whole)' | gzip) > '\(packed)'",
        ])
      #expect(taken(try backed.salvage(.file(packed), trusts: true, seed: 77)) == taken(newest))
      let bytes = try backed.scene.scene.system.contents(of: packed, limit: 1 << 26)
      let cut = try backed.scene.scene.folder.write(Array(bytes.dropLast(100)), to: "Cut.gz")
      let error = #expect(throws: BackupError.self) { try backed.salvage(.file(cut), seed: 78) }
      #expect(error?.kind == .damaged)
    }
    try backed.scene.scene.expectQuarantined(backed.scene.before, in: try backed.scene.scene.quarantined())
  }

  @Test(arguments: ["id", "file", "sent file", "evidence"])
  func whatAnEncryptedOneUnpacksToHasNoName(source: String) throws {
    let scene = try SalvagingScene(seed: 91)
    let owner = AgeIdentity()
    let place = try Backups(home: scene.scene.home).place(of: scene.scene.store())
    var request = BackupRequest()
    request.encryption = BackupEncryption(to: [owner.recipient])
    request.isEvidence = source == "evidence"
    let id = try BackupCreator(surroundings: .still(at: "2026-11-20T08:00:00Z")).create(scene.whole, in: place, request)
      .id
    var chosen = BackupSource.backup(id)
    if source.hasSuffix("file") {
      let file = place.path.appending("\(id).sqlite.gz.age")
      let sent = scene.scene.folder.appending("sent.age")
      try scene.scene.system.duplicate(file, to: sent)
      chosen = .file(source == "file" ? file : sent)
    }
    let writes = NamedWrites()
    let backup = try UnpackedBackup(
      chosen, of: scene.scene.store(), home: scene.scene.home, trust: .anyStore, identities: [owner],
      surroundings: .still(seed: UInt64(9000 + 100 * source.count), fileSystem: writes.fileSystem))
    #expect(writes.names.isEmpty)
    // It is read when the folder of the moment is gone.
    #expect(try scene.scene.system.status(of: backup.donor.path.folder) == nil)
    let main = try #require(backup.donor.files?[.main])
    #expect(try main.bytes(at: 0, length: 15) == Array("SQLite format 3".utf8))
    let report = try Salvager().salvageRaw(
      scene.scene.store(), to: scene.scene.folder.appending("Raw.sqlite"), options: .init(donor: backup.donor))
    #expect(report.backup?.id == backup.id?.description)
  }

  @Test func aBackupOfWhichNothingSaysThatItIsOfTheStoreNeedsConsent() throws {
    let backed = try BackedUp(seed: 81)
    let other = backed.scene.scene.folder.appending("Other.sqlite")
    _ = try backed.scene.scene.system.copy(backed.scene.whole, to: other)
    for value in ["'00000000-0000-4000-8000-000000000000'", nil] {
      let store = try PersistentStore(opening: other)
      try store.write { database in
        if let value {
          try database.execute(sql: "UPDATE Z_METADATA SET Z_UUID = \(value)")
        } else {
          try database.execute(sql: "DELETE FROM Z_METADATA")
        }
      }
      try store.close()
      let error = #expect(throws: SalvageError.self) { try backed.salvage(.file(other), seed: 82) }
      #expect(error?.kind == .donor)
      #expect(error?.hint.contains("say so") == true)
      #expect(taken(try backed.salvage(.file(other), trusts: true, seed: 83)) > 0)
    }
  }
}
