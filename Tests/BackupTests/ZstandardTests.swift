import Backup
import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing
import Zstandard

/// Backups packed with Zstandard: what the command `zstd` says of them, and what damage costs.
@Suite(.serialized)
struct ZstandardTests {
  init() { ZstandardSupport.give(ZstandardLibrary()) }

  private func prove(_ scene: BackupScene, _ id: BackupIdentifier) throws -> BackupProof {
    try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(id, in: scene.place)
  }

  private func little(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }

  @Test(arguments: [1, 3, 19])
  func anyZstdOpensTheFile(level: Int) throws {
    let scene = try BackupScene(rows: 20_000)
    let backup = try scene.back(up: 0) {
      $0.compression = .zstd
      $0.level = level
    }
    #expect(backup.isProvenGood && backup.manifest?.version == 2)
    let file = try #require(backup.manifest?.file(.database))
    #expect(file.name == "\(backup.id).sqlite.zst" && file.compression == .zstd)
    let script = "zstd -d -q -c '\(scene.placePath.appending(file.name).string)' > Foreign.sqlite"
    #expect(try ChildProcess.run("sh", ["-c", script], in: scene.folder.path).status == 0)
    #expect(try scene.extract(backup.id, to: "Own.sqlite").isWhole)
    let own = try scene.bytes(scene.folder.appending("Own.sqlite"))
    #expect(try scene.bytes(scene.folder.appending("Foreign.sqlite")) == own)
    #expect(try BackupScene.summary(of: scene.folder.appending("Foreign.sqlite")).hasPrefix("ok 20000"))
  }

  @Test func theSeekTableLeadsToEveryFrame() throws {
    let scene = try BackupScene(rows: 20_000)
    let backup = try scene.back(up: 0) { $0.compression = .zstd }
    let file = try #require(backup.manifest?.file(.database))
    let bytes = try scene.bytes(scene.placePath.appending(file.name))
    #expect(Array(bytes.suffix(4)) == [0xb1, 0xea, 0x92, 0x8f])
    let frames = little(bytes[(bytes.count - 9)..<(bytes.count - 5)])
    let table = bytes.count - 9 - frames * 8
    #expect(bytes[bytes.count - 5] == 0 && Array(bytes[(table - 8)..<(table - 4)]) == [0x5e, 0x2a, 0x4d, 0x18])
    #expect(little(bytes[(table - 4)..<table]) == bytes.count - table)
    var (offset, unpacked) = (0, 0)
    for frame in 0..<frames {
      let entry = table + frame * 8
      let magic = Array(bytes[offset..<(offset + 4)])
      let content = little(bytes[(entry + 4)..<(entry + 8)])
      #expect(magic == (content == 0 ? [0x5c, 0x2a, 0x4d, 0x18] : [0x28, 0xb5, 0x2f, 0xfd]))
      offset += little(bytes[entry..<(entry + 4)])
      unpacked += content
    }
    #expect(offset == table - 8 && unpacked == Int(backup.manifest?.database?.bytes ?? 0))
  }

  @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6])
  func aFlippedBitCostsOneBlockAtMostAndIsNamed(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let scene = try BackupScene(rows: 40_000)
    let backup = try scene.back(up: 0) { $0.compression = .zstd }
    _ = try scene.extract(backup.id, to: "Whole.sqlite")
    let whole = try scene.bytes(scene.folder.appending("Whole.sqlite"))
    let file = try #require(backup.manifest?.file(.database))
    var bytes = try scene.bytes(scene.placePath.appending(file.name))
    let place = Int.random(in: 0..<bytes.count, using: &random)
    bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
    try scene.folder.write(bytes, to: "Backups/App/\(file.name)")
    let result = try scene.extract(backup.id, to: "Restored.sqlite")
    let proof = try prove(scene, backup.id)
    let members = try #require(file.members)
    let block = members.indices.first { members[...$0].reduce(0, +) > place }
    // Behind the blocks there is nothing that restoring needs.
    #expect(proof.result == (block == nil ? .proven : .failed), "seed \(seed), byte \(place)")
    let named = block == nil ? proof.warnings ?? [] : proof.problems
    #expect(named.contains { $0.file == file.name }, "seed \(seed), byte \(place)")
    // Before each frame, and behind the last, there is only what other programs or a search need.
    let start = block.map { members[..<$0].reduce(0, +) } ?? place
    let lost = place - start < 22 ? nil : block
    #expect(Array(result.lostBlocks) == [lost].compactMap(\.self), "seed \(seed), byte \(place)")
    let restored = try scene.bytes(scene.folder.appending("Restored.sqlite"))
    #expect(restored.count == whole.count)
    for other in members.indices where other != block {
      let range = (other << 20)..<min(whole.count, (other + 1) << 20)
      #expect(restored[range] == whole[range])
    }
  }

  @Test func theSeekTableIsComparedAndRestoringDoesWithoutIt() throws {
    let scene = try BackupScene(rows: 4000)
    let backup = try scene.back(up: 0) { $0.compression = .zstd }
    let name = "\(backup.id).sqlite.zst"
    let whole = try scene.bytes(scene.placePath.appending(name))
    var flipped = whole
    flipped[whole.count - 20] ^= 1
    for bytes in [flipped[...], whole.dropLast(3)] {
      try scene.folder.write(bytes, to: "Backups/App/\(name)")
      #expect(try BackupCatalog(of: scene.place).backup(backup.id).isWhole)
      let proof = try prove(scene, backup.id)
      #expect(proof.result == .proven && proof.warnings?.contains { $0.file == name } == true)
    }
  }

  @Test func aLostManifestIsReadFromItsCopyAndWithoutThatFromTheBlocks() throws {
    let scene = try BackupScene(rows: 20_000)
    let backup = try scene.back(up: 0) { $0.compression = .zstd }
    let file = try #require(backup.manifest?.file(.database))
    try FileSystem().unlink(scene.placePath.appending("\(backup.id).json"))
    let copied = try BackupCatalog(of: scene.place).backup(backup.id)
    #expect(copied.isWhole && copied.manifestSource == .copy && copied.manifest == backup.manifest)
    let bytes = try scene.bytes(scene.placePath.appending(file.name))
    try scene.folder.write(bytes[..<Int(file.bytes)], to: "Backups/App/\(file.name)")
    let rebuilt = try BackupCatalog(of: scene.place).backup(backup.id)
    #expect(rebuilt.isWhole && rebuilt.manifestSource == .rebuilt)
    #expect(try scene.extract(backup.id, to: "Restored.sqlite").lostBlocks.isEmpty)
    let summary = try BackupScene.summary(of: scene.folder.appending("Restored.sqlite"))
    #expect(try summary == BackupScene.summary(of: scene.store))
  }

  @Test func whatWasPutInBetweenCostsNothing() throws {
    let scene = try BackupScene(rows: 40_000)
    let backup = try scene.back(up: 0) { $0.compression = .zstd }
    let file = try #require(backup.manifest?.file(.database))
    let first = try #require(file.members?.first)
    let bytes = try scene.bytes(scene.placePath.appending(file.name))
    try scene.folder.write(
      bytes[..<first] + Array("something else".utf8) + bytes[first...], to: "Backups/App/\(file.name)")
    #expect(try scene.extract(backup.id, to: "Restored.sqlite", isTolerant: true).lostBlocks.isEmpty)
  }

  @Test func aChainMayHaveBothFormats() throws {
    let scene = try BackupScene(rows: 20_000)
    let first = try scene.back(up: 0) { $0.compression = .zstd }
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let second = try scene.back(up: 1)
    try scene.run("UPDATE cars SET flags = 2 WHERE id = 9")
    let third = try scene.back(up: 2) { $0.compression = .zstd }
    #expect(second.manifest?.parent == first.id && third.manifest?.parent == second.id)
    #expect(third.manifest?.file(.delta)?.name == "\(third.id).delta.zst" && second.manifest?.version == 3)
    #expect(try prove(scene, third.id).result == .proven)
    #expect(try scene.extract(third.id, to: "Restored.sqlite").isWhole)
    let summary = try BackupScene.summary(of: scene.folder.appending("Restored.sqlite"))
    #expect(try summary == BackupScene.summary(of: scene.store))
  }

  @Test func evidenceIsPackedSoToo() throws {
    let scene = try BackupScene(rows: 4000)
    let bytes = try scene.bytes(scene.store)
    let backup = try scene.back(up: 0) {
      $0.compression = .zstd
      $0.isEvidence = true
    }
    #expect(backup.manifest?.file(.evidenceMain)?.name == "\(backup.id).sqlite.zst")
    let extraction = try BackupExtraction(backup.id, in: BackupCatalog(of: scene.place), fileSystem: FileSystem())
    let target = StoreFileSet(main: scene.folder.appending("Evidence.sqlite"))
    #expect(try extraction.writeEvidence(to: target).isWhole)
    #expect(try scene.bytes(target.main) == bytes)
  }

  @Test func aProcessWithoutZstandardSaysSoAndWritesNothing() async {
    await #expect(processExitsWith: .success) {
      struct Unexpected: Error {}
      let scene = try BackupScene(rows: 10)
      do {
        try scene.back(up: 0) { $0.compression = .zstd }
        throw Unexpected()
      } catch let error as BackupError {
        guard error.kind == .compressionUnavailable, error.detail.contains("zstd") else { throw Unexpected() }
        guard try FileSystem().status(of: scene.placePath) == nil else { throw Unexpected() }
      }
    }
  }

  @Test func senselessLevelsAreRefused() throws {
    let scene = try BackupScene(rows: 10)
    for level in [0, 20, -1] {
      let error = #expect(throws: BackupError.self) {
        try scene.back(up: 0) {
          $0.compression = .zstd
          $0.level = level
        }
      }
      #expect(error?.kind == .request)
    }
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func noBytesMakeTheReaderTrapOrGiveMoreThanWasAskedFor(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let library = ZstandardLibrary()
    let packer = try #require(library.packer(level: 3))
    let content = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let frame = packer.pack(content)
    #expect(library.unpack(frame[...], count: content.count) == content)
    for count in [0, 1, content.count - 1, content.count + 1] {
      #expect(library.unpack(frame[...], count: count) == nil)
    }
    #expect(library.unpack((frame + frame)[...], count: 2 * content.count) == nil)
    #expect(library.unpack(packer.pack([])[...], count: 0) == [])
    for _ in 0..<300 {
      var damaged = frame
      damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      if Bool.random(using: &random) { damaged.removeLast(Int.random(in: 0...damaged.count, using: &random)) }
      let made = library.unpack(damaged[...], count: content.count)
      #expect(made == nil || made == content)
    }
  }
}
