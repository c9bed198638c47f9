import Backup
import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// Backups that are encrypted with age: what the command `age` says of them, what is known without a key, what damage costs.
struct EncryptionTests {
  private let owner = AgeIdentity()
  private let other = AgeIdentity()

  private func keyFile(_ scene: BackupScene) -> FilePath { scene.folder.appending("BackupKeys/App.key") }

  private func back(
    up minute: Int, _ scene: BackupScene, isDelta: Bool = true, _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> StoredBackup {
    try scene.back(up: minute) {
      $0.encryption = BackupEncryption(
        to: [owner.recipient, other.recipient], deltaKeyFile: isDelta ? keyFile(scene) : nil)
      change(&$0)
    }
  }

  private func place(_ scene: BackupScene, _ identity: AgeIdentity? = nil) -> FolderPlace {
    scene.place.unlocked(with: identity.map { [$0] } ?? [])
  }

  private func extract(
    _ id: BackupIdentifier, _ scene: BackupScene, to name: String, isTolerant: Bool = false
  ) throws -> BackupExtraction.Result {
    let extraction = try BackupExtraction(
      id, in: try BackupCatalog(of: place(scene, owner)), isTolerant: isTolerant, fileSystem: FileSystem())
    return try extraction.writeDatabase(to: scene.folder.appending(name))
  }

  private func prove(
    _ scene: BackupScene, _ id: BackupIdentifier, _ identity: AgeIdentity? = nil
  ) throws -> BackupProof {
    try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(id, in: place(scene, identity))
  }

  @Test func bothKeysOpenItAndNeitherNamesNorCountsLieOutside() throws {
    let scene = try BackupScene(rows: 20_000)
    let backup = try back(up: 0, scene)
    #expect(backup.isProvenGood && backup.manifest?.entities?.isEmpty == false)
    for identity in [owner, other] {
      let seen = try BackupCatalog(of: place(scene, identity)).backup(backup.id)
      #expect(seen.isProvenGood && seen.manifest == backup.manifest)
    }
    #expect(try extract(backup.id, scene, to: "Restored.sqlite").isWhole)
    #expect(
      try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == BackupScene.summary(of: scene.store))
    let label = try BackupCatalog(of: place(scene)).backup(backup.id)
    #expect(label.isProvenGood && label.manifest?.isLocked == true && label.manifest?.version == 2)
    #expect(label.manifest?.entities == nil && label.manifest?.database == nil)
    for object in label.objects {
      let bytes = try scene.bytes(scene.placePath.appending(object.name))
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(!text.contains("CREATE TABLE") && !text.contains("Stores/App"), "\(object.name)")
      if !object.name.hasSuffix(".age") { #expect(!text.contains("cars"), "\(object.name)") }
      #expect(object.name.hasSuffix(".age") == text.hasPrefix("age-encryption.org/v1"), "\(object.name)")
    }
    // Every digest outside is of a file as it lies there.
    for file in label.manifest?.files ?? [] {
      let bytes = try scene.bytes(scene.placePath.appending(file.name))
      #expect(file.sha256 == FileDigest(of: bytes).hexadecimal && file.bytes == Int64(bytes.count))
    }
  }

  @Test(.enabled(if: ChildProcess.exists("age")))
  func anyAgeOpensTheFile() throws {
    let scene = try BackupScene(rows: 4000)
    let backup = try back(up: 0, scene)
    try scene.folder.write("\(other.secretText)\n", to: "other.key")
    let file = scene.placePath.appending("\(backup.id).sqlite.gz.age").string
    let script = "age -d -i other.key '\(file)' | gunzip > Foreign.sqlite"
    #expect(try ChildProcess.run("sh", ["-c", script], in: scene.folder.path).status == 0)
    #expect(
      try BackupScene.summary(of: scene.folder.appending("Foreign.sqlite")) == BackupScene.summary(of: scene.store))
  }

  @Test func withoutAKeyItIsVerifiedByDigestsAndNotRestored() throws {
    let scene = try BackupScene(rows: 4000)
    let backup = try back(up: 0, scene)
    for identity in [nil, AgeIdentity()] {
      let proof = try prove(scene, backup.id, identity)
      #expect(proof.result == .proven && proof.depth == .files)
      let error = #expect(throws: BackupError.self) {
        _ = try BackupExtraction(
          backup.id, in: try BackupCatalog(of: place(scene, identity)), fileSystem: FileSystem())
      }
      #expect(error?.kind == .locked && error?.hint.contains("secret key") == true)
    }
    let name = "\(backup.id).sqlite.gz.age"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    bytes[bytes.count / 2] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let proof = try prove(scene, backup.id)
    #expect(proof.result == .failed && proof.problems.map(\.file) == [name])
  }

  @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6, 7, 8])
  func aFlippedBitCostsOneBlockAtMostAndIsNamed(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let scene = try BackupScene(rows: 40_000)
    let backup = try back(up: 0, scene)
    let file = try #require(backup.manifest?.file(.database))
    _ = try extract(backup.id, scene, to: "Whole.sqlite")
    let name = "\(file.name).age"
    let whole = try scene.bytes(scene.placePath.appending(name))
    var bytes = whole
    // The first bits are of the header, which the manifest outside has a copy of.
    let place = seed <= 2 ? Int.random(in: 0..<300, using: &random) : Int.random(in: 0..<bytes.count, using: &random)
    bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let result = try extract(backup.id, scene, to: "Restored.sqlite")
    #expect(result.lostBlocks.count <= (seed <= 2 ? 0 : 1), "seed \(seed), byte \(place)")
    let (before, after) = (
      try scene.bytes(scene.folder.appending("Whole.sqlite")),
      try scene.bytes(scene.folder.appending("Restored.sqlite"))
    )
    #expect(before.count == after.count)
    for block in 0..<(file.members?.count ?? 0) where !result.lostBlocks.contains(block) {
      let range = (block << 20)..<min(before.count, (block + 1) << 20)
      #expect(before[range] == after[range])
    }
    let proof = try prove(scene, backup.id, owner)
    #expect(proof.result == .failed)
    #expect(proof.problems.contains { $0.file == file.name || $0.file == name }, "seed \(seed), byte \(place)")
  }

  @Test func aByteAtTheBorderOfTwoBlocksCostsOneOfThem() throws {
    let scene = try BackupScene(rows: 40_000)
    let backup = try back(up: 0, scene)
    let file = try #require(backup.manifest?.file(.database))
    let border = try #require(file.members?.first)
    let path = scene.placePath.appending("\(file.name).age")
    let sealed = try scene.bytes(path)
    let prologue = try #require(try AgeContent.prologueLength(beginning: sealed))
    // The last byte of the content of the first block, and the chunk that has it has the beginning of the second one too.
    let place = prologue + (border - 1) / (64 << 10) * 16 + border - 1
    for offset in [place - 40, place + 40] {
      var bytes = sealed
      bytes[offset] ^= 0x10
      try scene.folder.write(bytes, to: "Backups/App/\(file.name).age")
      let name = "Restored\(offset).sqlite"
      #expect(try extract(backup.id, scene, to: name).lostBlocks == [offset < place ? 0 : 1])
    }
  }

  @Test func deltasNeedNoSecretKeyAndTheirKeyOpensNoContent() throws {
    let scene = try BackupScene(rows: 20_000)
    let first = try back(up: 0, scene)
    let firstKey = try #require(
      try AgeIdentity.identities(in: String(decoding: scene.bytes(keyFile(scene)), as: UTF8.self)).first)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let second = try back(up: 1, scene)
    #expect(second.manifest?.kind == .delta && second.manifest?.parent == first.id)
    try scene.run("UPDATE cars SET flags = 2 WHERE id = 9")
    let third = try back(up: 2, scene)
    #expect(third.manifest?.parent == second.id)
    #expect(try prove(scene, third.id, owner).result == .proven)
    #expect(try extract(third.id, scene, to: "Restored.sqlite").isWhole)
    #expect(
      try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == BackupScene.summary(of: scene.store))
    // The key of the first is forgotten, and never opened more than its manifest and the hashes of its pages.
    let kept = try AgeIdentity.identities(in: String(decoding: scene.bytes(keyFile(scene)), as: UTF8.self))
    #expect(kept.count == 1 && kept.first?.recipient != firstKey.recipient)
    for name in try FileSystem().entries(of: scene.placePath).map(\.string) where name.hasSuffix(".age") {
      let bytes = try scene.bytes(scene.placePath.appending(name))
      let isOpen = (try? AgeContent(beginning: bytes, with: [firstKey])) != nil
      let isAbout = name.hasPrefix("\(first.id).manifest") || name.hasPrefix("\(first.id).pages")
      #expect(isOpen == isAbout, "\(name)")
    }
    // Without the key the next one is whole.
    try FileSystem().unlink(keyFile(scene))
    #expect(try back(up: 3, scene).manifest?.kind == .full)
  }

  @Test func aBackupThatWouldNotBeEncryptedIsRefusedAfterOneThatIs() throws {
    let scene = try BackupScene(rows: 100)
    let first = try back(up: 0, scene)
    let before = try FileSystem().entries(of: scene.placePath).count
    let error = #expect(throws: BackupError.self) { try scene.back(up: 1) }
    #expect(error?.kind == .encryptionMissing)
    #expect(try FileSystem().entries(of: scene.placePath).count == before)
    let plain = try scene.back(up: 1) { $0.allowsPlain = true }
    #expect(plain.isProvenGood && plain.manifest?.kind == .full && plain.id > first.id)
  }

  @Test func aLostManifestOutsideIsNoLossToTheHolderOfAKey() throws {
    let scene = try BackupScene(rows: 4000)
    let backup = try back(up: 0, scene) { $0.compression = .gzip }
    try FileSystem().unlink(scene.placePath.appending("\(backup.id).json"))
    #expect(try extract(backup.id, scene, to: "First.sqlite").isWhole)
    // The copy behind the blocks is encrypted with them.
    try FileSystem().unlink(scene.placePath.appending("\(backup.id).manifest.age"))
    #expect(try BackupCatalog(of: place(scene)).backup(backup.id).isWhole == false)
    let copied = try BackupCatalog(of: place(scene, owner)).backup(backup.id)
    #expect(copied.isWhole && copied.manifestSource == .copy)
    #expect(try extract(backup.id, scene, to: "Second.sqlite").isWhole)
    // And nothing of it is written outside.
    #expect(try prove(scene, backup.id, owner).result == .proven)
    #expect(try FileSystem().status(of: scene.placePath.appending("\(backup.id).json")) == nil)
  }

  @Test func aLostLabelCondemnsNoBackup() throws {
    let scene = try BackupScene(rows: 20_000)
    var ids: [BackupIdentifier] = []
    for minute in 0..<3 {
      ids.append(try back(up: minute, scene).id)
      try scene.run("UPDATE cars SET flags = \(minute + 1) WHERE id = 7")
    }
    let label = "\(ids[1]).json"
    try FileSystem().unlink(scene.placePath.appending(label))
    #expect(try ids.map { try prove(scene, $0).result } == [.proven, .inconclusive, .inconclusive])
    #expect(try prove(scene, ids[1]).problems.map { $0.words.contains(label) } == [true])
    let pruner = BackupPruner(of: place(scene), surroundings: .still(at: "2026-11-21T12:00:00Z"))
    #expect(try pruner.prune(RetentionPolicy(last: .number(1))).plan.dropped.isEmpty)
    #expect(try BackupRestorer(of: place(scene, owner), surroundings: .still()).choice().backup.id == ids[2])
    let proof = try prove(scene, ids[1], owner)
    #expect(proof.result == .proven && proof.warnings?.contains { $0.words.hasPrefix("\(label) is missing") } == true)
    #expect(try extract(ids[2], scene, to: "Restored.sqlite").isWhole)
    let flags = try DatabaseQueue(path: scene.folder.appending("Restored.sqlite").string).read { database in
      try Int.fetchOne(database, sql: "SELECT flags FROM cars WHERE id = 7")
    }
    #expect(flags == 2)
  }

  @Test func theProofHoldsWithoutTheEncryptedManifest() throws {
    let scene = try BackupScene(rows: 4000)
    let id = try back(up: 0, scene).id
    try FileSystem().unlink(scene.placePath.appending("\(id).manifest.age"))
    for isProvenAgain in [false, true] {
      if isProvenAgain { #expect(try prove(scene, id, owner).result == .proven) }
      let seen = try BackupCatalog(of: place(scene, owner)).backup(id)
      #expect(seen.isProvenGood && seen.warnings.map(\.code) == [.manifestMissing])
      #expect(try BackupCatalog(of: place(scene)).backup(id).isProvenGood)
    }
  }

  @Test func pruningNeedsNoKey() throws {
    let scene = try BackupScene(rows: 4000)
    var ids: [BackupIdentifier] = []
    for minute in 0..<3 { ids.append(try back(up: minute, scene, isDelta: false) { $0.isFull = true }.id) }
    _ = try BackupPruner(of: place(scene), surroundings: .still(at: "2026-11-21T12:00:00Z")).prune(
      RetentionPolicy(last: .number(1)))
    #expect(try BackupCatalog(of: place(scene, owner)).backups.map(\.id) == [ids[2]])
    #expect(try BackupCatalog(of: place(scene, owner), section: .trash).backups.map(\.id) == [ids[1], ids[0]])
    #expect(try extract(ids[2], scene, to: "Restored.sqlite").isWhole)
  }

  @Test(arguments: [UInt64(1), 2])
  func noChangeMakesAnythingTrapOrBeTakenForWhole(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let scene = try BackupScene(rows: 3000)
    let backup = try back(up: 0, scene)
    let names = try FileSystem().entries(of: scene.placePath).map(\.string)
      .filter { $0.hasPrefix("\(backup.id)") && !$0.hasSuffix(".proof.json") }.sorted()
    let expected = try BackupScene.summary(of: scene.store)
    for round in 0..<40 {
      let name = names[round % names.count]
      let whole = try scene.bytes(scene.placePath.appending(name))
      var bytes = whole
      if Bool.random(using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      } else {
        bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      }
      try scene.folder.write(bytes, to: "Backups/App/\(name)")
      let restored = "Restored\(round).sqlite"
      if let result = try? extract(backup.id, scene, to: restored, isTolerant: true), result.isWhole {
        #expect(try BackupScene.summary(of: scene.folder.appending(restored)) == expected, "\(name), round \(round)")
      }
      _ = try? prove(scene, backup.id, owner)
      _ = try? prove(scene, backup.id)
      try scene.folder.write(whole, to: "Backups/App/\(name)")
    }
  }

  @Test func noKeyIsPrinted() throws {
    let identity = AgeIdentity()
    var place = try BackupScene(rows: 1).place
    place = place.unlocked(with: [identity])
    var text = "\(place)"
    dump(place, to: &text)
    #expect(!text.contains(identity.secretText) && !text.lowercased().contains("secret"))
  }
}
