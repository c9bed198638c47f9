import Backup
import Foundation
import LazaretTesting
import Platform
import SystemPackage
import TestSupport
import Testing

/// What reads a backup leaves no file with its content, even if it is killed: none has a name.
struct UnnamedContentTests {
  private let owner = AgeIdentity()

  /// A store of which a person has a large value in a file of its own.
  private func store(_ scene: RestoreScene) throws -> FilePath {
    let store = try scene.store("Ships.sqlite", seed: 5, records: 60, profile: .sparse)
    let name = "0F0E0D0C-0B0A-4908-8706-050403020100"
    try scene.folder.write([UInt8](repeating: 7, count: 5000), to: ".Ships_SUPPORT/_EXTERNAL_DATA/\(name)")
    try scene.change(
      store,
      "UPDATE ZPERSON SET ZPHOTO = x'02\(Array(name.utf8).hexadecimal)00' WHERE Z_PK = (SELECT min(Z_PK) FROM ZPERSON)")
    return store
  }

  private func restorer(_ scene: RestoreScene, _ writes: NamedWrites) -> BackupRestorer {
    BackupRestorer(
      of: FolderPlace(scene.backups.place.path, in: writes.fileSystem).unlocked(with: [owner]),
      surroundings: .still(fileSystem: writes.fileSystem))
  }

  private func back(
    up scene: RestoreScene, _ store: FilePath, _ change: (inout BackupRequest) -> Void
  ) throws -> BackupIdentifier {
    var request = BackupRequest()
    change(&request)
    return try BackupCreator(surroundings: .still(), temporary: scene.folder.path)
      .create(store, in: scene.backups.place, request).id
  }

  @Test(arguments: [true, false], [true, false])
  func aPreviewGivesItNoName(isEncrypted: Bool, isEvidence: Bool) throws {
    let scene = try RestoreScene()
    let store = try store(scene)
    let id = try back(up: scene, store) {
      if isEncrypted { $0.encryption = BackupEncryption(to: [owner.recipient]) }
      $0.isEvidence = isEvidence
    }
    let writes = NamedWrites()
    let preview = try restorer(scene, writes).preview(
      id, over: scene.folder.appending("New.sqlite"), temporary: scene.folder.path)
    #expect(preview.present == .missing && preview.values.added == 1 && preview.remarks.isEmpty)
    #expect(preview.entities.reduce(0) { $0 + $1.added } > 6)
    #expect(writes.names.isEmpty)
  }

  @Test(arguments: [true, false]) func takingRecordsOutGivesItNoName(isEvidence: Bool) throws {
    let scene = try RestoreScene()
    let store = try store(scene)
    // Evidence is read as a whole, other backups by blocks.
    let id = try back(up: scene, store) {
      $0.encryption = BackupEncryption(to: [owner.recipient])
      $0.isEvidence = isEvidence
    }
    let writes = NamedWrites()
    let report = try restorer(scene, writes).extract(
      EntitySelection(entities: ["Person"]), from: id, to: scene.folder.appending("Persons.sqlite"),
      temporary: scene.folder.path)
    #expect(report.values == 1 && report.isComplete)
    #expect(writes.names.isEmpty)
  }

  @Test func onlyWhatIsSalvagedHasAName() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 4, records: 12_000)
    let bytes = try scene.bytes(store)
    try scene.backups.add(1, bytes)
    try #require(bytes.count > MadeBackups.blockLength)
    try scene.backups.damage(1, .database, at: bytes.count * 3 / 4)
    let writes = NamedWrites()
    let (id, path) = (MadeBackups.id(1), scene.folder.appending("New.sqlite"))
    let error = #expect(throws: BackupError.self) {
      try restorer(scene, writes).preview(id, over: path, temporary: scene.folder.path)
    }
    #expect(error?.kind == .damaged && writes.names.isEmpty)
    let preview = try restorer(scene, writes).preview(
      id, over: path, options: .init(salvages: true), temporary: scene.folder.path)
    #expect(preview.remarks.first?.hasPrefix("the backup is damaged") == true)
    #expect(writes.names.contains("Store.sqlite"))
  }
}
