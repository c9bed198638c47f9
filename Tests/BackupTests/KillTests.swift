import Backup
import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A real SIGKILL before a write of ours: of every few of them, or of each with LAZARET_LONG=1.
@Suite("Backups whose process is killed")
struct KillTests {
  /// The first backup, and a change of the store since.
  private static func scene() throws -> (scene: BackupScene, first: BackupIdentifier) {
    let scene = try BackupScene(rows: 2000)
    let first = try scene.back(up: 0).id
    try scene.run("UPDATE cars SET flags = 1 WHERE id = 7")
    return (scene, first)
  }

  /// What was there is there, whole, and nothing that is listed as whole is not.
  private static func check(_ scene: BackupScene, _ first: BackupIdentifier, _ told: Comment) throws {
    let catalog = try BackupCatalog(of: scene.place)
    #expect(try catalog.backup(first).isProvenGood, told)
    for backup in catalog.backups where backup.isWhole {
      let proof = try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(
        backup.id, in: scene.place)
      #expect(proof.result == .proven, told)
    }
  }

  @Test("Taking one") func create() async throws {
    let counting = Trouble(.death, atStep: 0)
    _ = try Self.scene().scene.back(up: 1, fileSystem: counting.fileSystem)
    for step in chosenSteps(of: counting.steps) {
      let (scene, first) = try Self.scene()
      let store = try FolderContents(of: scene.folder.appending("Stores"))
      let place = scene.folder.path.string
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [place = place as String, step = step as Int] in
        let folder = FilePath(place)
        let system = Trouble(.kill, atStep: step).fileSystem
        _ = try BackupCreator(surroundings: .still(at: "2026-11-21T10:01:12Z", fileSystem: system), temporary: folder)
          .create(folder.appending("Stores/App.sqlite"), in: FolderPlace(folder.appending("Backups/App"), in: system))
      }
      let told = Comment(rawValue: "step \(step) of \(counting.steps)")
      #expect(try FolderContents(of: scene.folder.appending("Stores")) == store, told)
      try Self.check(scene, first, told)
      #expect(try scene.back(up: 2).isProvenGood, told)
      let left = try FileSystem().entries(of: scene.placePath).filter { $0.string.hasSuffix(".unfinished") }
      #expect(left.isEmpty, told)
    }
  }

  @Test("Pruning") func prune() async throws {
    func scene() throws -> BackupScene {
      let scene = try BackupScene(rows: 500)
      for minute in 0..<3 { try scene.back(up: minute) { $0.isFull = true } }
      return scene
    }
    let counting = Trouble(.death, atStep: 0)
    _ = try BackupPruner(
      of: FolderPlace(try scene().placePath, in: counting.fileSystem),
      surroundings: .still(fileSystem: counting.fileSystem)
    ).prune(RetentionPolicy(last: .number(1)))
    for step in chosenSteps(of: counting.steps) {
      let scene = try scene()
      let all = try BackupCatalog(of: scene.place).backups.map(\.id)
      let place = scene.placePath.string
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [place = place as String, step = step as Int] in
        let system = Trouble(.kill, atStep: step).fileSystem
        _ = try BackupPruner(
          of: FolderPlace(FilePath(place), in: system), surroundings: .still(fileSystem: system)
        ).prune(RetentionPolicy(last: .number(1)))
      }
      let told = Comment(rawValue: "step \(step) of \(counting.steps)")
      try Self.check(scene, try #require(all.first), told)
      // The next run ends what was begun; whatever was dropped comes back whole.
      let pruner = BackupPruner(of: scene.place, surroundings: .still())
      _ = try pruner.prune(RetentionPolicy(last: .number(1)))
      #expect(try pruner.trash().map(\.id) == Array(all.dropFirst()), told)
      for id in all.dropFirst() { _ = try pruner.undelete(id) }
      #expect(try BackupCatalog(of: scene.place).backups.map(\.isProvenGood) == [true, true, true], told)
    }
  }

  @Test("Restoring to a path") func restore() async throws {
    let (model, _) = try Self.scene()
    let wanted = try BackupScene.summary(of: model.store)
    func run(_ scene: BackupScene, _ system: FileSystem) throws {
      let second = try scene.back(up: 1)
      _ = try BackupRestorer(of: FolderPlace(scene.placePath, in: system), surroundings: .still(fileSystem: system))
        .restore(second.id, to: scene.folder.appending("Restored/App.sqlite"))
    }
    let counting = Trouble(.death, atStep: 0)
    try FileSystem().makeDirectory(model.folder.appending("Restored"))
    try run(model, counting.fileSystem)
    for step in chosenSteps(of: counting.steps) {
      let (scene, first) = try Self.scene()
      let second = try scene.back(up: 1)
      try FileSystem().makeDirectory(scene.folder.appending("Restored"))
      let (place, id) = (scene.folder.path.string, second.id.description)
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [place = place as String, step = step as Int, id = id as String] in
        let folder = FilePath(place)
        let system = Trouble(.kill, atStep: step).fileSystem
        guard let id = BackupIdentifier(id) else { return }
        _ = try BackupRestorer(
          of: FolderPlace(folder.appending("Backups/App"), in: system), surroundings: .still(fileSystem: system)
        ).restore(id, to: folder.appending("Restored/App.sqlite"))
      }
      let told = Comment(rawValue: "step \(step) of \(counting.steps)")
      let path = scene.folder.appending("Restored/App.sqlite")
      // It is not there yet, or it is there and whole.
      if try FileSystem().status(of: path) != nil { #expect(try BackupScene.summary(of: path) == wanted, told) }
      try Self.check(scene, first, told)
      if try FileSystem().status(of: path) == nil {
        _ = try BackupRestorer(of: scene.place, surroundings: .still()).restore(second.id, to: path)
      }
      #expect(try BackupScene.summary(of: path) == wanted, told)
    }
  }
}
