import Backup
import Foundation
import LazaretTesting
import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Backups of large values in files")
struct ExternalDataTests {
  static let source = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
      <entity name="Photo" syncable="YES">
        <attribute name="title" optional="YES" attributeType="String"/>
        <attribute name="image" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
      </entity>
    </model>
    """

  @Test("The last backup with a value stays behind those that lack it")
  func lostValue() throws {
    let folder = try TemporaryFolder()
    let model = try ManagedObjectModel(source: Array(Self.source.utf8))
    let store = folder.appending("App.sqlite")
    try StoreGenerator(model, options: .init(.edge, seed: 3, records: 30)).write(to: store)
    let files = try FileSystem().descendants(of: StoreFileSet(main: store).path(of: .externalData)).files
    let lost = try #require(files.first)
    let bytes = try FileSystem().contents(of: lost.path, limit: 1 << 28)
    let place = FolderPlace(folder.appending("Backups/App"))
    func create(_ time: String) throws -> StoredBackup {
      var request = BackupRequest()
      request.isFull = true
      return try BackupCreator(surroundings: .still(at: time), temporary: folder.path).create(store, in: place, request)
    }
    let first = try create("2026-11-21T10:11:12Z")
    #expect(!first.warnings.contains { $0.code == .largeValueMissing })
    try FileSystem().unlink(lost.path)
    for time in ["2026-11-21T10:12:12Z", "2026-11-21T10:13:12Z"] {
      #expect(try create(time).warnings.map(\.code) == [.largeValueMissing])
    }
    let prover = BackupProver(surroundings: .still(), temporary: folder.path)
    for backup in try BackupCatalog(of: place).backups {
      #expect(try prover.prove(backup.id, in: place).result == .proven)
    }
    let pruner = BackupPruner(of: place, surroundings: .still(at: "2026-11-21T11:00:00Z"))
    let report = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0, verifies: true))
    #expect(report.plan.dropped.map(\.snapshot.identifier) == ["b-2026-11-21-10-12-12"])
    let extraction = try BackupExtraction(first.id, in: BackupCatalog(of: place), fileSystem: FileSystem())
    #expect(try extraction.writeExternalData(into: folder.appending("Restored")).isWhole)
    let restored = folder.appending("Restored").appending(lost.relative)
    #expect(try FileSystem().contents(of: restored, limit: 1 << 28) == bytes)
  }

  @Test("Values behind a link in place of their folder are missing")
  func linkedFolder() throws {
    let folder = try TemporaryFolder()
    let model = try ManagedObjectModel(source: Array(Self.source.utf8))
    let store = folder.appending("App.sqlite")
    try StoreGenerator(model, options: .init(.edge, seed: 3, records: 30)).write(to: store)
    let external = StoreFileSet(main: store).path(of: .externalData)
    let names = try FileSystem().descendants(of: external).files.compactMap { $0.relative.last?.string }
    try FileSystem().rename(external, to: folder.appending("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: external.string, withDestinationPath: folder.appending("elsewhere").string)
    let backup = try BackupCreator(surroundings: .still(), temporary: folder.path).create(
      store, in: FolderPlace(folder.appending("Backups/App")))
    let data = try #require(backup.manifest?.externalData)
    #expect(data.items.isEmpty && !data.missing.isEmpty)
    #expect(Set(data.missing).isSubset(of: names))
  }

  @Test("They come along, are left out of a delta that need not have them, and come back the same")
  func roundTrip() throws {
    let folder = try TemporaryFolder()
    let model = try ManagedObjectModel(source: Array(Self.source.utf8))
    let store = folder.appending("App.sqlite")
    try StoreGenerator(model, options: .init(.edge, seed: 3, records: 30)).write(to: store)
    let external = StoreFileSet(main: store).path(of: .externalData)
    let files = try FileSystem().descendants(of: external).files
    try #require(!files.isEmpty)
    let place = FolderPlace(folder.appending("Backups/App"))
    func create(_ time: String) throws -> StoredBackup {
      try BackupCreator(surroundings: .still(at: time), temporary: folder.path).create(store, in: place)
    }
    let first = try create("2026-11-21T10:11:12Z")
    #expect(first.isProvenGood)
    #expect(first.manifest?.externalData?.items.count == files.count)
    #expect(first.manifest?.externalData?.missing == [])
    #expect(first.manifest?.store.kind == "core-data")
    #expect(first.manifest?.entities?.first?.rows == 30)
    // A second one, with one more file and one less.
    let values = external.appending("_EXTERNAL_DATA")
    try FileSystem().unlink(files[0].path)
    let new = Array(repeating: UInt8(7), count: 3 << 20)
    try folder.write(new, to: "extra")
    try FileSystem().rename(folder.appending("extra"), to: values.appending("00000000-0000-0000-0000-000000000001"))
    let second = try create("2026-11-21T10:12:12Z")
    let data = try #require(second.manifest?.externalData)
    #expect(second.manifest?.kind == .delta)
    #expect(data.items.count == files.count)
    #expect(data.items.filter { $0.backup == nil }.map(\.bytes) == [3 << 20])
    #expect(data.missing.count == 1)
    let extraction = try BackupExtraction(second.id, in: BackupCatalog(of: place), fileSystem: FileSystem())
    #expect(try extraction.writeExternalData(into: folder.appending("Restored")).isWhole)
    for file in try FileSystem().descendants(of: external).files {
      let restored = folder.appending("Restored").appending(file.relative)
      let bytes = try FileSystem().contents(of: restored, limit: 1 << 28)
      #expect(try bytes == FileSystem().contents(of: file.path, limit: 1 << 28))
    }
    #expect(
      try BackupProver(surroundings: .still(), temporary: folder.path).prove(second.id, in: place).result == .proven)
    // Any tar opens the archive.
    let listing = try ChildProcess.run("tar", ["tzf", folder.appending("Backups/App/\(second.id).tar.gz").string])
    // And unpacks them beside the store, by what everybody has.
    let place2 = folder.appending("ByHand")
    try FileSystem().makeDirectory(place2)
    let script =
      "gunzip < '\(folder.appending("Backups/App/\(first.id).sqlite.gz"))' > App.sqlite && "
      + "tar xzf '\(folder.appending("Backups/App/\(first.id).tar.gz"))' && "
      + "tar xzf '\(folder.appending("Backups/App/\(second.id).tar.gz"))'"
    let unpacking = try ChildProcess.run("sh", ["-c", "cd '\(place2)' && \(script)"])
    #expect(unpacking.status == 0, "\(unpacking.errors)")
    let byHand = StoreFileSet(main: place2.appending("App.sqlite")).path(of: .externalData)
    for file in try FileSystem().descendants(of: external).files {
      let bytes = try FileSystem().contents(of: byHand.appending(file.relative), limit: 1 << 28)
      #expect(try bytes == FileSystem().contents(of: file.path, limit: 1 << 28))
    }
    #expect(listing.output == ".App_SUPPORT/_EXTERNAL_DATA/00000000-0000-0000-0000-000000000001\n", "\(listing.errors)")
  }
}
