import Backup
import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Manifests that lie twice")
struct ManifestTests {
  private func prover(_ scene: BackupScene) -> BackupProver {
    BackupProver(surroundings: .still(), temporary: scene.folder.path)
  }

  /// A full backup and a delta of it.
  private func chain() throws -> (scene: BackupScene, full: StoredBackup, delta: StoredBackup) {
    let scene = try BackupScene(rows: 20_000)
    let full = try scene.back(up: 0)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let delta = try scene.back(up: 1)
    #expect(full.manifest?.kind == .full && delta.manifest?.kind == .delta)
    return (scene, full, delta)
  }

  private func restored(_ scene: BackupScene, _ id: BackupIdentifier, _ name: String) throws -> String {
    let path = scene.folder.appending(name)
    _ = try BackupRestorer(of: scene.place, surroundings: .still()).restore(id, to: path)
    return try BackupScene.summary(of: path)
  }

  /// What a tool that knows nothing of this software takes for the digest of a manifest.
  private func foreignDigest(_ path: FilePath) throws -> (told: String, found: String) {
    let script = """
      sed -n -E 's/.*,"digest":"([0-9a-f]{64})"\\}$/\\1/p' '\(path.string)'
      sed -E 's/,"digest":"[0-9a-f]{64}"\\}$/}/' '\(path.string)' | sha256sum | cut -d ' ' -f 1
      """
    let lines = try ChildProcess.run("sh", ["-c", script]).output.split(separator: "\n").map(String.init)
    return (lines.first ?? "", lines.last ?? "?")
  }

  @Test("A manifest ends with its own digest, and gunzip makes the database alone of the file with its copy")
  func form() throws {
    let (scene, full, delta) = try chain()
    for backup in [full, delta] {
      let digest = try foreignDigest(scene.placePath.appending("\(backup.id).json"))
      #expect(digest.told == digest.found && digest.told.count == 64)
      let carrier = try #require(backup.manifest?.carrier)
      #expect(carrier.role == (backup.manifest?.kind == .full ? .database : .delta))
      let bytes = try scene.bytes(scene.placePath.appending(carrier.name))
      let manifest = try scene.bytes(scene.placePath.appending("\(backup.id).json"))
      #expect(bytes.count == Int(carrier.bytes) + ManifestCopy.length(of: manifest.count))
      #expect(FileDigest(of: Array(bytes[..<Int(carrier.bytes)])).hexadecimal == carrier.sha256)
    }
    let gunzip = try ChildProcess.run(
      "sh", ["-c", "gunzip < '\(scene.placePath.appending("\(full.id).sqlite.gz").string)' | sha256sum"])
    #expect(gunzip.status == 0 && gunzip.errors.isEmpty)
    #expect(gunzip.output.hasPrefix(try #require(full.manifest?.database?.sha256)))
  }

  @Test(
    "A copy of many parts is read, wherever one bit of its headers is flipped",
    arguments: [1, 49_152, 49_153, 300_000])
  func copies(count: Int) throws {
    let folder = try TemporaryFolder()
    let place = FolderPlace(folder.path)
    let text = "{\"a\":\"" + String(repeating: "x", count: count) + "\"}\n"
    let manifest = DigestedText.adding(to: Array(text.utf8))
    let members = ManifestCopy.members(of: manifest)
    #expect(members.count == ManifestCopy.length(of: manifest.count))
    let blocks = (0..<5000).map { UInt8(truncatingIfNeeded: $0 * 7) }
    func read(_ bytes: [UInt8]) throws -> [UInt8]? {
      try place.replace("copy.gz", with: bytes, in: .kept)
      return try ManifestCopy.read("copy.gz", size: Int64(bytes.count), in: place, .kept)
    }
    #expect(try read(blocks + members) == manifest)
    #expect(try read(members) == manifest)
    #expect(try read(blocks + members + Array("something behind it".utf8)) == manifest)
    #expect(try read(blocks + members.dropLast(manifest.count / 2 + 20)) == nil)
    #expect(try read(blocks) == nil)
    if manifest.count > 100_000 {
      for offset in 0..<28 {
        var bytes = blocks + members
        bytes[blocks.count + offset] ^= 4
        #expect(try read(bytes) == manifest, "offset \(offset)")
      }
    }
    // Nothing comes out of it for others.
    try folder.write(members, to: "members.gz")
    let gunzip = try ChildProcess.run("sh", ["-c", "gunzip < '\(folder.appending("members.gz").string)' | wc -c"])
    #expect(gunzip.output.filter { !$0.isWhitespace } == "0" && gunzip.errors.isEmpty)
  }

  @Test("A manifest that is lost, or of which a bit is flipped, costs nothing, and is made anew of its copy")
  func lostManifest() throws {
    let (scene, full, delta) = try chain()
    let wanted = try BackupScene.summary(of: scene.store)
    for (number, backup) in [full, delta, full, delta].enumerated() {
      let name = "\(backup.id).json"
      let path = scene.placePath.appending(name)
      let whole = try scene.bytes(path)
      if number < 2 {
        try FileSystem().unlink(path)
      } else {
        var bytes = whole
        bytes[bytes.count / 3] ^= 2
        try scene.folder.write(bytes, to: "Backups/App/\(name)")
      }
      let found = try BackupCatalog(of: scene.place).backup(backup.id)
      #expect(found.isWhole && found.manifestSource == .copy && found.isProvenGood)
      #expect(found.manifest == backup.manifest && found.warnings.map(\.file) == [name])
      #expect(try restored(scene, delta.id, "Restored\(number).sqlite") == wanted)
      let proof = try prover(scene).prove(backup.id, in: scene.place)
      #expect(proof.result == .proven && proof.warnings?.map(\.code) == ["manifest-made-anew"])
      #expect(try scene.bytes(path) == whole)
      #expect(try prover(scene).prove(backup.id, in: scene.place).warnings == nil)
    }
  }

  @Test("A manifest that was edited is refused, in whatever way")
  func edited() throws {
    let (scene, full, _) = try chain()
    let name = "\(full.id).json"
    let text = String(decoding: try scene.bytes(scene.placePath.appending(name)), as: UTF8.self)
    let edits = [
      text.replacing("\"reason\":\"manual\"", with: "\"reason\":\"scheduled\""),
      // The digest removed, and the mark of a copy too.
      text.replacing(#/,"digest":"[0-9a-f]{64}"/#, with: ""),
      text.replacing(#/,"digest":"[0-9a-f]{64}"/#, with: "").replacing("\"carriesManifest\":true,", with: ""),
      text.replacing("\"digest\"", with: "\"digess\""),
    ]
    for (number, edit) in edits.enumerated() {
      #expect(edit != text)
      try scene.folder.write(edit, to: "Backups/App/\(name)")
      let found = try BackupCatalog(of: scene.place).backup(full.id)
      #expect(found.manifestSource == .copy && found.manifest?.reason == .manual, "edit \(number)")
      #expect(found.warnings.map(\.code) == [.manifestChanged], "edit \(number)")
    }
    // Without a copy to go by nothing of what it says counts.
    let file = try #require(full.manifest?.carrier)
    let bytes = try scene.bytes(scene.placePath.appending(file.name))
    try scene.folder.write(Array(bytes[..<Int(file.bytes)]), to: "Backups/App/\(file.name)")
    try scene.folder.write(edits[0], to: "Backups/App/\(name)")
    let found = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(found.manifestSource == .rebuilt && found.isUnverified && !found.isProvenGood)
  }

  @Test("Without both manifests a full backup is read from its blocks, its delta restores, and it is written anew")
  func rebuilt() throws {
    let (scene, full, delta) = try chain()
    let wanted = try BackupScene.summary(of: scene.store)
    let file = try #require(full.manifest?.carrier)
    // A bit of the manifest, and one of its copy.
    for (name, place) in [("\(full.id).json", 100), (file.name, Int(file.bytes) + 200)] {
      var bytes = try scene.bytes(scene.placePath.appending(name))
      bytes[place] ^= 1
      try scene.folder.write(bytes, to: "Backups/App/\(name)")
    }
    let found = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(found.isWhole && found.manifestSource == .rebuilt && found.isUnverified && !found.isProvenGood)
    #expect(found.manifest?.file(.database)?.members == file.members)
    #expect(found.manifest?.database?.bytes == full.manifest?.database?.bytes)
    #expect(try restored(scene, delta.id, "Delta.sqlite") == wanted)
    #expect(try restored(scene, full.id, "Full.sqlite").hasPrefix("ok 20000 0 "))
    // A new backup does not build on it, and the newest to restore is another one.
    #expect(try BackupRestorer(of: scene.place, surroundings: .still()).choice().backup.id == delta.id)
    #expect(try prover(scene).prove(full.id, in: scene.place).result == .proven)
    let again = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(again.manifestSource == .own && again.manifest?.rebuilt == true && !again.isUnverified)
    #expect(again.manifest?.database == full.manifest?.database && again.isProvenGood)
    #expect(again.manifest?.entities == full.manifest?.entities)
    #expect(try restored(scene, delta.id, "Again.sqlite") == wanted)
  }

  @Test("Without both manifests a damaged or lost block costs itself", arguments: ["flipped", "header", "cut out"])
  func rebuiltDamaged(kind: String) throws {
    let scene = try BackupScene(rows: 40_000)
    let full = try scene.back(up: 0)
    _ = try scene.extract(full.id, to: "Whole.sqlite")
    let whole = try scene.bytes(scene.folder.appending("Whole.sqlite"))
    let file = try #require(full.manifest?.carrier)
    let members = try #require(file.members)
    #expect(members.count > 3)
    var bytes = Array(try scene.bytes(scene.placePath.appending(file.name))[..<Int(file.bytes)])
    let start = members[0]
    switch kind {
    case "flipped": bytes[start + members[1] / 2] ^= 1
    case "header": bytes[start + 14] ^= 1
    default: bytes.removeSubrange(start..<(start + members[1]))
    }
    try scene.folder.write(bytes, to: "Backups/App/\(file.name)")
    try FileSystem().unlink(scene.placePath.appending("\(full.id).json"))
    let result = try scene.extract(full.id, to: "Restored.sqlite", isTolerant: true)
    #expect(result.lostBlocks == [1])
    let restored = try scene.bytes(scene.folder.appending("Restored.sqlite"))
    #expect(restored.count == whole.count)
    for block in 0..<members.count where block != 1 {
      let range = (block << 20)..<min(whole.count, (block + 1) << 20)
      #expect(restored[range] == whole[range], "block \(block)")
    }
  }

  @Test("Evidence that has lost both manifests comes back as it was, and is never pruned nor taken for the newest")
  func rebuiltEvidence() throws {
    let scene = try BackupScene(rows: 4000)
    let good = try scene.back(up: 0)
    var bytes = try scene.bytes(scene.store)
    bytes.replaceSubrange(4096 * 5..<4096 * 6, with: [UInt8](repeating: 0, count: 4096))
    try scene.folder.write(bytes, to: "Stores/App.sqlite")
    let evidence = try scene.back(up: 1)
    #expect(evidence.isApart && evidence.manifest?.kind == .evidence)
    let file = try #require(evidence.manifest?.carrier)
    #expect(file.role == .evidenceMain)
    let packed = try scene.bytes(scene.placePath.appending(file.name))
    try scene.folder.write(Array(packed[..<Int(file.bytes)]), to: "Backups/App/\(file.name)")
    try FileSystem().unlink(scene.placePath.appending("\(evidence.id).json"))
    let found = try BackupCatalog(of: scene.place).backup(evidence.id)
    #expect(found.manifestSource == .rebuilt && found.isUnverified && !found.isProvenGood)
    #expect(try BackupRestorer(of: scene.place, surroundings: .still()).choice().backup.id == good.id)
    for _ in 0..<2 {
      let report = try BackupPruner(of: scene.place, surroundings: .still(at: "2026-11-22T10:00:00Z"))
        .prune(RetentionPolicy(last: .number(1)))
      #expect(Set(report.plan.kept.map(\.id)) == [good.id, evidence.id])
      #expect(try prover(scene).prove(evidence.id, in: scene.place).result == .failed)
    }
    _ = try scene.extract(evidence.id, to: "Evidence.sqlite")
    #expect(try scene.bytes(scene.folder.appending("Evidence.sqlite")) == bytes)
  }

  @Test("A manifest of an earlier version is accepted, counts as unverified until it is verified, and is held to that")
  func earlier() throws {
    let (scene, full, _) = try chain()
    // As an earlier version wrote it: without digests and copies.
    let name = "\(full.id).json"
    var manifest = try #require(full.manifest)
    let file = try #require(manifest.carrier)
    manifest.files = manifest.files.map { file in
      var file = file
      file.carriesManifest = nil
      return file
    }
    func undigested(_ manifest: BackupManifest) throws -> String {
      String(decoding: try manifest.json(), as: UTF8.self).replacing(#/,"digest":"[0-9a-f]{64}"/#, with: "")
    }
    let bytes = try scene.bytes(scene.placePath.appending(file.name))
    try scene.folder.write(Array(bytes[..<Int(file.bytes)]), to: "Backups/App/\(file.name)")
    try scene.folder.write(try undigested(manifest), to: "Backups/App/\(name)")
    try FileSystem().unlink(scene.placePath.appending("\(full.id).proof.json"))
    let found = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(found.isWhole && found.manifestSource == .earlier && found.isUnverified && found.warnings.isEmpty)
    var quick = BackupProver.Options()
    quick.depth = .files
    #expect(try prover(scene).prove(full.id, in: scene.place, quick).result == .proven)
    #expect(try BackupCatalog(of: scene.place).backup(full.id).isUnverified)
    #expect(try prover(scene).prove(full.id, in: scene.place).result == .proven)
    let verified = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(!verified.isUnverified && verified.isProvenGood)
    // From now on it cannot be changed any more.
    manifest.reason = .scheduled
    try scene.folder.write(try undigested(manifest), to: "Backups/App/\(name)")
    let edited = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(edited.manifest?.reason != .scheduled && edited.warnings.map(\.code) == [.manifestChanged])
  }

  @Test("Large values are found again by the archive's own headers where both manifests are lost")
  func values() throws {
    let scene = try BackupScene(rows: 100)
    let names = ["A5C1", "B7D2", String(repeating: "long", count: 40)]
    for (number, name) in names.enumerated() {
      try scene.folder.write(
        [UInt8](repeating: UInt8(number + 1), count: 100_000 * (number + 1)),
        to: "Stores/.App_SUPPORT/_EXTERNAL_DATA/\(name)")
    }
    let full = try scene.back(up: 0)
    #expect(full.manifest?.externalData?.items.count == 3)
    let file = try #require(full.manifest?.carrier)
    let bytes = try scene.bytes(scene.placePath.appending(file.name))
    try scene.folder.write(Array(bytes[..<Int(file.bytes)]), to: "Backups/App/\(file.name)")
    try FileSystem().unlink(scene.placePath.appending("\(full.id).json"))
    try FileSystem().makeDirectory(scene.folder.appending("Restored"))
    let report = try BackupRestorer(of: scene.place, surroundings: .still()).restore(
      full.id, to: scene.folder.appending("Restored/App.sqlite"))
    #expect(report.values == 3 && report.isComplete)
    for (number, name) in names.enumerated() {
      let path = scene.folder.appending("Restored/.App_SUPPORT/_EXTERNAL_DATA/\(name)")
      #expect(try scene.bytes(path) == [UInt8](repeating: UInt8(number + 1), count: 100_000 * (number + 1)))
    }
    #expect(try prover(scene).prove(full.id, in: scene.place).result == .proven)
    let again = try BackupCatalog(of: scene.place).backup(full.id)
    #expect(again.manifestSource == .own && again.manifest?.externalData == full.manifest?.externalData)
  }

  @Test("A backup that is on its way to the trash, or is being written, is not listed")
  func onItsWay() throws {
    let (scene, full, _) = try chain()
    let name = "\(full.id).json"
    let path = scene.placePath.appending(name)
    let bytes = try scene.bytes(path)
    for elsewhere in [".trash/\(name)", ".\(name).unfinished"] {
      try FileSystem().unlink(path)
      try scene.folder.write(bytes, to: "Backups/App/\(elsewhere)")
      #expect(try !BackupCatalog(of: scene.place).backups.contains { $0.id == full.id }, "\(elsewhere)")
      try FileSystem().unlink(scene.placePath.pushing(FilePath(elsewhere)))
      try scene.folder.write(bytes, to: "Backups/App/\(name)")
    }
    #expect(try BackupCatalog(of: scene.place).backup(full.id).isWhole)
  }
}
