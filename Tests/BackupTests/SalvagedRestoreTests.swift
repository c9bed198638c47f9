import Backup
import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// What is salvaged of damaged backups: a store with metadata, and an account of its records, held against the store that was backed up.
struct SalvagedRestoreTests {
  /// A store of several blocks with two backups, the later one a delta, or with another full one after it.
  private struct Scene {
    let restore: RestoreScene
    let store: FilePath
    var place: FolderPlace { FolderPlace(restore.folder.appending("Backups/Ships")) }

    init() throws {
      restore = try RestoreScene()
      store = try restore.store("Ships.sqlite", seed: 4, records: 12_000)
    }

    func back(up minute: Int, isFull: Bool = false) throws -> StoredBackup {
      var request = BackupRequest()
      request.isFull = isFull
      return try BackupCreator(
        surroundings: .still(at: "2026-11-21T10:0\(minute):12Z"), temporary: restore.folder.path
      ).create(store, in: place, request)
    }

    /// Damages the first block of a full backup: that of the schema, the metadata and the model.
    func damage(_ backup: StoredBackup) throws {
      let file = try #require(backup.manifest?.file(.database))
      #expect(try #require(file.members).count > 1)
      var bytes = try restore.bytes(restore.folder.appending("Backups/Ships/\(file.name)"))
      bytes[try #require(file.members?.first) / 2] ^= 1
      try restore.folder.write(bytes, to: "Backups/Ships/\(file.name)")
    }

    func salvage(_ backup: StoredBackup, model: SalvageModel? = nil) throws -> (FilePath, RestoreReport) {
      let path = restore.folder.appending("Restored.sqlite")
      let report = try restore.restorer().restore(backup.id, to: path, options: .init(salvages: true, model: model))
      return (path, report)
    }
  }

  private static func single(_ sql: String, in path: FilePath) throws -> String? {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { try String.fetchOne($0, sql: sql) }
  }

  /// The records of every table of entities, by table.
  private static func counts(_ path: FilePath) throws -> [String: Int64] {
    var result: [String: Int64] = [:]
    for table in ["ZSHIP", "ZPERSON", "ZPORT", "ZFLAG"] {
      result[table] = try single("SELECT count(*) || '' FROM \(table)", in: path).flatMap { Int64($0) }
    }
    return result
  }

  private func check(_ scene: Scene, _ path: FilePath, _ report: RestoreReport, from origin: String) throws {
    #expect(!report.isComplete && !report.isContentRight && !report.lacksMetadata)
    let salvage = try #require(report.salvage)
    #expect(!salvage.isComplete)
    #expect(salvage.remarks.contains { $0.hasSuffix("it is from \(origin)") }, "\(salvage.remarks)")
    // The metadata, as SQLite reads them.
    #expect(
      try Self.single("SELECT Z_UUID FROM Z_METADATA", in: path)
        == Self.single("SELECT Z_UUID FROM Z_METADATA", in: scene.store))
    let there = try Self.single("SELECT hex(Z_PLIST) FROM Z_METADATA", in: path)
      .flatMap { [UInt8](hexadecimal: $0[...]) }
    let metadata = try StoreMetadata(uuid: "", propertyList: try #require(there))
    #expect(metadata.versionHashes == RestoreScene.model.versionHashes())
    // What is told as recovered is there, and with what is lost it is what there was.
    let (before, after) = (try Self.counts(scene.store), try Self.counts(path))
    for (table, count) in after {
      let entities = salvage.records.filter { $0.table == table }
      #expect(entities.reduce(0) { $0 + $1.recovered } == count, "\(table)")
      #expect(try #require(before[table]) >= count)
    }
    #expect(salvage.count.recovered > 0 && salvage.count.lost > 0)
  }

  @Test func theManifestGivesTheMetadata() throws {
    let scene = try Scene()
    let full = try scene.back(up: 0)
    try scene.restore.change(scene.store, "UPDATE ZSHIP SET Z_OPT = Z_OPT + 1 WHERE Z_PK < 4")
    let delta = try scene.back(up: 1)
    #expect(delta.manifest?.kind == .delta)
    try scene.damage(full)
    let (path, report) = try scene.salvage(delta)
    try check(scene, path, report, from: "the manifest of backup \(delta.id)")
  }

  @Test func theModelThatIsGivenMakesAWholeStore() throws {
    let scene = try Scene()
    let full = try scene.back(up: 0)
    try scene.damage(full)
    let bundle = try #require(
      ModelBundle(name: "Ships", versions: [ModelVersion(name: "V1", model: RestoreScene.model, isCurrent: true)]))
    let (path, report) = try scene.salvage(full, model: .coreData(bundle))
    try check(scene, path, report, from: "the manifest of backup \(full.id)")
    let store = try PersistentStore(opening: path, model: RestoreScene.model)
    try store.close()
  }

  @Test func anotherBackupGivesMetadataAndModel() throws {
    let scene = try Scene()
    let full = try scene.back(up: 0)
    let other = try scene.back(up: 1, isFull: true)
    #expect(other.manifest?.kind == .full)
    try scene.damage(full)
    let (path, report) = try scene.salvage(full)
    try check(scene, path, report, from: "backup \(other.id)")
    #expect(
      try Self.single("SELECT hex(Z_PLIST) FROM Z_METADATA", in: path)
        == Self.single("SELECT hex(Z_PLIST) FROM Z_METADATA", in: scene.store))
    #expect(try Self.single("SELECT count(*) || '' FROM Z_MODELCACHE", in: path) == "1")
    #expect(try Self.single("SELECT count(*) || '' FROM Z_PRIMARYKEY", in: path) == "5")
  }

  /// Where no block is left, a salvage is neither advised nor said to have been of the wrong file.
  @Test func aSalvageOfNothingIsNotAdvised() throws {
    let scene = try BackupScene(rows: 100)
    let backup = try scene.back(up: 0)
    let name = "\(backup.id).sqlite.gz"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    let members = try #require(backup.manifest?.file(.database)?.members)
    #expect(members.count == 1)
    bytes[members[0] / 2] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    for salvages in [false, true] {
      let error = try #require(throws: BackupError.self) {
        try BackupRestorer(of: scene.place, surroundings: .still()).restore(
          backup.id, to: scene.folder.appending("No.sqlite"), options: .init(salvages: salvages))
      }
      #expect(error.kind == .damaged && !error.hint.contains("what is left"), "\(error)")
    }
  }
}
