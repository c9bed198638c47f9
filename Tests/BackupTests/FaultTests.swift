import Backup
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Backups that are interrupted")
struct FaultTests {
  /// What must be so whatever happened: the first backup is whole, nothing half is listed as whole, the store is as it was.
  private func check(_ scene: BackupScene, _ first: BackupIdentifier, _ store: FolderContents, _ what: String) throws {
    #expect(try FolderContents(of: scene.folder.appending("Stores")) == store, "\(what)")
    let catalog = try BackupCatalog(of: scene.place)
    #expect(try catalog.backup(first).isProvenGood, "\(what)")
    for backup in catalog.backups where backup.isWhole {
      let proof = try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(
        backup.id, in: scene.place)
      #expect(proof.result == .proven, "\(what): \(backup.id)")
    }
  }

  @Test("A fault or the end of the process at every write leaves what was there, and the next backup is taken")
  func everyWrite() throws {
    let counting = Trouble(.failure(.noSpace), atStep: 0)
    let plain = try BackupScene(rows: 2000)
    try plain.back(up: 0)
    try plain.run("UPDATE cars SET flags = 1 WHERE id = 7")
    try plain.back(up: 1, fileSystem: counting.fileSystem)
    let steps = counting.steps
    #expect(steps > 10)
    for kind in [Trouble.Kind.failure(.noSpace), .death] {
      for step in 1...steps {
        let scene = try BackupScene(rows: 2000)
        let first = try scene.back(up: 0)
        try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
        let store = try FolderContents(of: scene.folder.appending("Stores"))
        let trouble = Trouble(kind, atStep: step)
        // What fails at the very end, such as the removal of a leftover, may not matter.
        _ = try? scene.back(up: 1, fileSystem: trouble.fileSystem)
        try check(scene, first.id, store, "\(kind) at step \(step) of \(steps)")
        let next = try scene.back(up: 2)
        #expect(next.isProvenGood, "\(kind) at step \(step)")
        #expect(
          try BackupCatalog(of: scene.place).backups.allSatisfy(\.isWhole),
          "\(kind) at step \(step): half of one is left")
        _ = try scene.extract(next.id, to: "Restored.sqlite")
        #expect(
          try BackupScene.summary(of: scene.folder.appending("Restored.sqlite")) == BackupScene.summary(of: scene.store)
        )
        let left = try FileSystem().entries(of: scene.placePath).filter { $0.string.hasSuffix(".unfinished") }
        #expect(left.isEmpty)
      }
    }
  }

  @Test("A backup that is cancelled leaves nothing")
  func cancelled() throws {
    let scene = try BackupScene()
    var request = BackupRequest { _, _, _ in false }
    request.level = 1
    do {
      _ = try scene.creator().create(scene.store, in: scene.place, request)
      Issue.record("it was not cancelled")
    } catch {
      #expect(BackupError(any: error).kind == .cancelled)
    }
    #expect(try FileSystem().entries(of: scene.placePath).isEmpty)
  }
}
