import Backup
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("The recovery kit in a backup")
struct RecoveryKitInBackupTests {
  @Test("It is of the store as it was backed up, in full backups and deltas, and small")
  func kit() throws {
    let scene = try BackupScene(rows: 20_000)
    let first = try scene.back(up: 0)
    try scene.run("DELETE FROM cars WHERE id BETWEEN 100 AND 149")
    let second = try scene.back(up: 1)
    #expect(second.manifest?.kind == .delta)
    let catalog = try BackupCatalog(of: scene.place)
    for (id, rows) in [(first.id, 20_000), (second.id, 19_950)] {
      let backup = try catalog.backup(id)
      let kit = try #require(try catalog.recoveryKit(of: backup))
      #expect(kit.tables.first { $0.name == "cars" }?.rows == Int64(rows))
      let file = try #require(backup.manifest?.file(.recoveryKit))
      #expect(file.bytes < 64 << 10)
    }
    #expect(catalog.strays.isEmpty)
  }

  @Test("One that was changed is not used, and costs nothing else")
  func changed() throws {
    let scene = try BackupScene(rows: 2000)
    let backup = try scene.back(up: 0)
    let name = "\(backup.id).kit"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    bytes[bytes.count / 2] ^= 1
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let catalog = try BackupCatalog(of: scene.place)
    #expect(try catalog.recoveryKit(of: catalog.backup(backup.id)) == nil)
    #expect(try scene.extract(backup.id, to: "Restored.sqlite").isWhole)
    let proof = try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(
      backup.id, in: scene.place, .init())
    #expect(proof.result == .proven)
  }

  @Test("It tells a salvage of a damaged backup which rows are lost")
  func salvage() throws {
    let scene = try BackupScene(rows: 40_000)
    let backup = try scene.back(up: 0)
    let name = "\(backup.id).sqlite.gz"
    var bytes = try scene.bytes(scene.placePath.appending(name))
    let members = try #require(backup.manifest?.file(.database)?.members)
    #expect(members.count > 4)
    bytes[members[0] + members[1] / 2] ^= 255
    try scene.folder.write(bytes, to: "Backups/App/\(name)")
    let report = try BackupRestorer(of: scene.place, surroundings: .still()).restore(
      backup.id, to: scene.folder.appending("Other.sqlite"), options: .init(salvages: true))
    #expect(report.lostBlocks.map(\.block) == [1] && !report.isComplete)
    let summary = try BackupScene.summary(of: scene.folder.appending("Other.sqlite"))
    let count = try #require(summary.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    #expect(summary.hasPrefix("ok ") && count > 10_000 && count < 40_000, "\(summary)")
  }
}
