import Backup
import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Damage to backups")
struct BackupDamageTests {
  private func prove(_ scene: BackupScene, _ id: BackupIdentifier) throws -> BackupProof {
    try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(id, in: scene.place)
  }

  @Test("A flipped bit costs one block, which is named; the rest is as it was", arguments: [UInt64(1), 2, 3, 4])
  func flippedBit(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let scene = try BackupScene(rows: 40_000)
    let backup = try scene.back(up: 0)
    _ = try scene.extract(backup.id, to: "Whole.sqlite")
    let whole = try scene.bytes(scene.folder.appending("Whole.sqlite"))
    let name = "\(backup.id).sqlite.gz"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    let place = Int.random(in: 0..<bytes.count, using: &random)
    bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let members = try #require(backup.manifest?.file(.database)?.members)
    #expect(members.count > 3)
    var end = 0
    let block = members.firstIndex {
      end += $0
      return place < end
    }
    let result = try scene.extract(backup.id, to: "Restored.sqlite")
    guard let block else {
      // The copy of the manifest stands behind the blocks, and costs nothing.
      let proof = try prove(scene, backup.id)
      #expect(result.isWhole && proof.result == .proven, "seed \(seed), byte \(place)")
      return #expect(proof.warnings?.map(\.file) == [name], "seed \(seed), byte \(place)")
    }
    // The header's own fields that no other program reads are not part of what is lost.
    guard !result.lostBlocks.isEmpty else { return #expect(place - (end - members[block]) < 28) }
    #expect(result.lostBlocks == [block], "seed \(seed), byte \(place)")
    let restored = try scene.bytes(scene.folder.appending("Restored.sqlite"))
    #expect(restored.count == whole.count)
    for other in 0..<members.count where other != block {
      let range = (other << 20)..<min(whole.count, (other + 1) << 20)
      #expect(restored[range] == whole[range])
    }
    let proof = try prove(scene, backup.id)
    #expect(proof.result == .failed)
    #expect(proof.problems.first?.blocks == [block])
  }

  @Test("The evidence of a damaged store is as it was kept, and is never called a good backup")
  func evidence() throws {
    let scene = try BackupScene()
    var bytes = try scene.bytes(scene.store)
    for place in 8192..<12288 { bytes[place] = 0 }
    try scene.folder.write(bytes, to: "Stores/App.sqlite")
    let backup = try scene.back(up: 0)
    #expect(backup.isApart)
    let proof = try prove(scene, backup.id)
    #expect(proof.result == .proven && proof.isOfEvidence)
    #expect(proof.warnings?.first?.code == "evidence")
    #expect(try BackupProof(json: proof.json(), of: backup.id)?.isOfEvidence == true)
  }

  @Test("A cut tail and a lost file are seen without reading, and the rest can be restored")
  func cutTail() throws {
    let scene = try BackupScene(rows: 40_000)
    let backup = try scene.back(up: 0)
    let name = "\(backup.id).sqlite.gz"
    let bytes = try scene.bytes(scene.placePath.appending(name))
    try scene.folder.write(bytes[..<(bytes.count / 2)], to: "Backups/App/\(name)")
    let broken = try BackupCatalog(of: scene.place).backup(backup.id)
    #expect(broken.problems.map(\.code) == [.fileSizeWrong])
    #expect(try prove(scene, backup.id).result == .failed)
    #expect(throws: BackupError.self) { try scene.extract(backup.id, to: "No.sqlite") }
    let result = try scene.extract(backup.id, to: "Restored.sqlite", isTolerant: true)
    let count = try #require(backup.manifest?.database?.blocks.count)
    #expect(!result.lostBlocks.isEmpty && result.lostBlocks.count < count)
    try FileSystem().unlink(scene.placePath.appending(name))
    #expect(try BackupCatalog(of: scene.place).backup(backup.id).problems.map(\.code) == [.fileMissing])
  }

  @Test("A lost member costs its block and no other, and so does something that was put in between")
  func lostMember() throws {
    let scene = try BackupScene(rows: 40_000)
    let backup = try scene.back(up: 0)
    let name = "\(backup.id).sqlite.gz"
    let bytes = try scene.bytes(scene.placePath.appending(name))
    let members = try #require(backup.manifest?.file(.database)?.members)
    #expect(members.count > 3)
    let (start, end) = (members[0], members[0] + members[1])
    let (head, tail) = (Array(bytes[..<start]), Array(bytes[end...]))
    let half = Array(bytes[start..<(start + 100)])
    let foreign = Array("something else".utf8)
    let cases: [(content: [UInt8], lost: [Int])] = [
      (head + tail, [1]), (head + half + tail, [1]), (head + foreign + Array(bytes[start...]), []),
    ]
    for (content, lost) in cases {
      try scene.folder.write(content, to: "Backups/App/\(name)")
      #expect(try BackupCatalog(of: scene.place).backup(backup.id).problems.map(\.code) == [.fileSizeWrong])
      #expect(try prove(scene, backup.id).result == .failed)
      let result = try scene.extract(backup.id, to: "Restored.sqlite", isTolerant: true)
      #expect(Array(result.lostBlocks) == lost)
      let report = try BackupRestorer(of: scene.place, surroundings: .still()).restore(
        backup.id, to: scene.folder.appending("Salvaged.sqlite"), options: .init(salvages: true))
      #expect(report.lostBlocks.map(\.block) == lost && report.isComplete == lost.isEmpty)
      for name in ["Restored.sqlite", "Salvaged.sqlite"] { TemporaryFolder.remove(scene.folder.appending(name)) }
      for name in try FileSystem().entries(of: scene.folder.path) where name.string.hasPrefix("Salvaged") {
        TemporaryFolder.remove(scene.folder.path.appending(name))
      }
    }
  }

  @Test("A lost parent is named, and what the chain still has can be restored")
  func lostParent() throws {
    let scene = try BackupScene(rows: 40_000)
    let first = try scene.back(up: 0)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let second = try scene.back(up: 1)
    #expect(second.manifest?.parent == first.id)
    for object in try BackupCatalog(of: scene.place).backup(first.id).objects {
      try scene.place.delete(object.name, in: .kept)
    }
    #expect(try BackupCatalog(of: scene.place).backup(second.id).problems.map(\.code) == [.parentMissing])
    #expect(throws: BackupError.self) { try scene.extract(second.id, to: "No.sqlite") }
    let result = try scene.extract(second.id, to: "Restored.sqlite", isTolerant: true)
    #expect(!result.lostBlocks.isEmpty)
    // A new backup does not build on what is broken.
    #expect(try scene.back(up: 2).manifest?.kind == .full)
  }

  @Test("Of a damaged chain exactly the blocks are lost whose pages no later backup has", arguments: [0, 1])
  func lostInChain(damaged: Int) throws {
    let scene = try BackupScene(rows: 40_000)
    let full = try scene.back(up: 0)
    try scene.run("UPDATE cars SET flags = 1 WHERE id BETWEEN 5000 AND 9000")
    let delta = try scene.back(up: 1)
    try scene.run("UPDATE cars SET flags = 2 WHERE id BETWEEN 5000 AND 5010")
    let last = try scene.back(up: 2)
    #expect(delta.manifest?.kind == .delta && last.manifest?.kind == .delta)
    #expect(delta.manifest?.database?.blocks == [] && delta.manifest?.version == 3)
    _ = try scene.extract(last.id, to: "Whole.sqlite")
    let whole = try scene.bytes(scene.folder.appending("Whole.sqlite"))
    // The first block of the file has its bytes changed; the blocks that differ then are found by comparing.
    let backup = damaged == 0 ? full : delta
    let file = try #require(backup.manifest?.file(damaged == 0 ? .database : .delta))
    var bytes = try scene.bytes(scene.placePath.appending(file.name))
    bytes[(file.members?.first ?? 0) / 2] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(file.name)")
    let result = try scene.extract(last.id, to: "Restored.sqlite", isTolerant: true)
    let restored = try scene.bytes(scene.folder.appending("Restored.sqlite"))
    #expect(restored.count == whole.count)
    let differing = stride(from: 0, to: whole.count, by: 1 << 20).filter { start in
      let range = start..<min(whole.count, start + 1 << 20)
      return whole[range] != restored[range]
    }
    #expect(!differing.isEmpty && Array(result.lostBlocks) == differing.map { $0 >> 20 })
    #expect(result.damage == [file.name: [0]] && !result.isContentRight)
  }

  @Test("A lost block of which every page has changed since costs later backups nothing")
  func overwrittenBlock() throws {
    let scene = try BackupScene(rows: 10)
    try scene.run(
      """
      CREATE TABLE big (id INTEGER PRIMARY KEY, x BLOB);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
      INSERT INTO big SELECT i, randomblob(400) FROM n;
      """)
    let full = try scene.back(up: 0)
    // Five blocks and a half; each page above the leaves stands for some four hundred of them.
    try scene.run("UPDATE big SET x = randomblob(400) WHERE id BETWEEN 3000 AND 15500")
    let delta = try scene.back(up: 1)
    #expect(delta.manifest?.kind == .delta)
    let runs = try #require(delta.manifest?.pages)
    var changed: Set<Int> = []
    for index in stride(from: 0, to: runs.count, by: 2) {
      changed.formUnion(Int(runs[index])..<(Int(runs[index]) + Int(runs[index + 1])))
    }
    let members = try #require(full.manifest?.file(.database)?.members)
    let block = try #require(
      members.indices.first { block in (1...256).allSatisfy { changed.contains(block * 256 + $0) } })
    let name = "\(full.id).sqlite.gz"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    bytes[members[..<block].reduce(0, +) + members[block] / 2] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let report = try BackupRestorer(of: scene.place, surroundings: .still()).restore(
      delta.id, to: scene.folder.appending("Restored.sqlite"))
    #expect(report.isComplete && report.lostBlocks.isEmpty)
    let (store, restored) = (scene.store.string, scene.folder.appending("Restored.sqlite").string)
    let difference = try ChildProcess.run(
      "sqlite3",
      [
        restored,
        "ATTACH '\(store)' AS s; PRAGMA main.integrity_check; SELECT count(*) FROM s.big;"
          + "SELECT count(*) FROM (SELECT * FROM s.big EXCEPT SELECT * FROM main.big)",
      ])
    #expect(difference.output == "ok\n30000\n0\n", "\(difference.errors)")
    #expect(throws: BackupError.self) {
      try BackupRestorer(of: scene.place, surroundings: .still()).restore(
        full.id, to: scene.folder.appending("Full.sqlite"))
    }
  }

  @Test("A damaged list of page hashes, and a parent that failed, cost a full backup and nothing else")
  func damagedHashes() throws {
    let scene = try BackupScene(rows: 20_000)
    let first = try scene.back(up: 0)
    let name = "\(first.id).pages"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    bytes[100] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let second = try scene.back(up: 1)
    #expect(second.manifest?.kind == .full && second.isProvenGood)
    #expect(try prove(scene, second.id).result == .proven)
  }

  @Test("No change to a manifest or a member makes anything trap or be taken for whole", arguments: [UInt64(1), 2, 3])
  func hostile(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let scene = try BackupScene(rows: 5000)
    try scene.back(up: 0)
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    let second = try scene.back(up: 1)
    let names = second.objects.map(\.name).filter { !$0.hasSuffix(".proof.json") }
    for round in 0..<60 {
      let name = names[round % names.count]
      let path = scene.placePath.appending(name)
      let whole = try scene.bytes(path)
      var bytes = whole
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      default:
        let digits = bytes.indices.filter { (48...57).contains(bytes[$0]) }
        for _ in 0..<3 {
          guard let place = digits.randomElement(using: &random) else { break }
          bytes[place] = UInt8.random(in: 48...57, using: &random)
        }
      }
      try scene.folder.write(bytes, to: "Backups/App/\(name)")
      let result = try? scene.extract(second.id, to: "Restored\(round).sqlite", isTolerant: true)
      if result?.isWhole == true {
        let summary = try BackupScene.summary(of: scene.folder.appending("Restored\(round).sqlite"))
        #expect(try summary == BackupScene.summary(of: scene.store), "seed \(seed), round \(round)")
      }
      _ = try? prove(scene, second.id)
      TemporaryFolder.remove(scene.folder.appending("Restored\(round).sqlite"))
      try scene.folder.write(whole, to: "Backups/App/\(name)")
    }
    #expect(try prove(scene, second.id).result == .proven)
  }
}
