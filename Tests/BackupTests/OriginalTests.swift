import Backup
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("What migrations keep, among the backups")
struct OriginalTests {
  private static let id = "b-2026-11-21-09-00-00"

  /// Puts an original into the place of a scene, with a log and a large value.
  private static func keep(_ scene: BackupScene, withLog: Bool = true) throws {
    let store = scene.folder.appending("Old/App.sqlite")
    try FileSystem().makeDirectory(store.folder)
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = \(withLog ? "wal" : "delete")")
      try database.execute(
        sql: "CREATE TABLE cars (id INTEGER PRIMARY KEY, flags INTEGER NOT NULL, name TEXT); PRAGMA user_version = 7")
      try database.execute(sql: "INSERT INTO cars VALUES (1, 0, 'old'), (2, 0, 'older')")
    }
    for suffix in ["", "-wal"] where withLog || suffix.isEmpty {
      let bytes = try scene.bytes(store.sibling(suffix: suffix))
      try scene.folder.write(bytes, to: "Backups/App/\(id).sqlite\(suffix)")
    }
    try queue.close()
    try scene.folder.write("a large value", to: "Backups/App/.\(id)_SUPPORT/_EXTERNAL_DATA/A")
  }

  @Test("It is listed as what it is, proven, and restored with its log and its large values", arguments: [true, false])
  func restored(withLog: Bool) throws {
    let scene = try BackupScene(rows: 100)
    try Self.keep(scene, withLog: withLog)
    try scene.back(up: 0)
    let before = try FolderContents(of: scene.placePath)
    let catalog = try BackupCatalog(of: scene.place)
    #expect(catalog.backups.map { $0.manifest?.kind } == [.full, .original])
    #expect(catalog.strays.isEmpty)
    let original = try #require(catalog.backups.last)
    #expect(original.isWhole && !original.isApart && !original.isProvenGood)
    #expect(original.manifest?.reason == .beforeMigration)
    // The others of the place say of which store it is.
    #expect(original.manifest?.store.path == catalog.backups.first?.manifest?.store.path)
    let path = scene.folder.appending("Restored.sqlite")
    let report = try BackupRestorer(of: scene.place, surroundings: .still()).restore(original.id, to: path)
    #expect(report.isComplete)
    #expect(try BackupScene.summary(of: path) == "ok 2 0 8 older")
    let value = StoreFileSet(main: path).path(of: .externalData).appending("_EXTERNAL_DATA/A")
    #expect(try scene.bytes(value) == Array("a large value".utf8))
    #expect(try FolderContents(of: scene.placePath) == before)
    for depth in [BackupProof.Depth.files, .restored] {
      var options = BackupProver.Options()
      options.depth = depth
      let proof = try BackupProver(surroundings: .still(), temporary: scene.folder.path).prove(
        original.id, in: scene.place, options)
      #expect(proof.result == .proven && proof.depth == .restored)
    }
    #expect(try BackupCatalog(of: scene.place).backup(original.id).isProvenGood)
  }

  @Test("One that was damaged since is found out, and salvaged on request")
  func damaged() throws {
    let scene = try BackupScene(rows: 3000)
    let bytes = try scene.bytes(scene.store)
    var broken = bytes
    for index in 8192..<8292 { broken[index] = 0xff }
    try scene.folder.write(broken, to: "Backups/App/\(Self.id).sqlite")
    let original = try #require(try BackupCatalog(of: scene.place).backups.first)
    let prover = BackupProver(surroundings: .still(), temporary: scene.folder.path)
    #expect(try prover.prove(original.id, in: scene.place).result == .failed)
    let restorer = BackupRestorer(of: scene.place, surroundings: .still())
    let path = scene.folder.appending("Restored.sqlite")
    do {
      _ = try restorer.restore(original.id, to: path)
      Issue.record("it is damaged")
    } catch { #expect(BackupError(any: error).kind == .verificationFailed) }
    let report = try restorer.restore(original.id, to: path, options: .init(salvages: true))
    #expect(!report.isComplete)
    let summary = try BackupScene.summary(of: path)
    let count = summary.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    #expect(summary.hasPrefix("ok ") && count > 2000, "\(summary)")
  }

  @Test("The rules judge it like any other: into the trash with all its parts, and back")
  func pruned() throws {
    let scene = try BackupScene(rows: 100)
    try Self.keep(scene)
    try scene.back(up: 0)
    let before = try FolderContents(of: scene.placePath)
    let pruner = BackupPruner(of: scene.place, surroundings: .still())
    let report = try pruner.prune(RetentionPolicy(last: .number(1)))
    #expect(report.plan.dropped.map(\.id.description) == [Self.id])
    #expect(try BackupCatalog(of: scene.place).backups.count == 1)
    #expect(!(try FileSystem().entries(of: scene.placePath).map(\.string)).contains(".\(Self.id)_SUPPORT"))
    #expect(try pruner.trash().map(\.isWhole) == [true])
    _ = try pruner.undelete(try #require(BackupIdentifier(Self.id)))
    TemporaryFolder.remove(scene.placePath.appending(".trash"))
    #expect(try FolderContents(of: scene.placePath) == before)
    // And for good, once its time in the trash is over.
    _ = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0))
    _ = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0))
    #expect(try FileSystem().entries(of: scene.placePath.appending(".trash")).isEmpty)
  }

  @Test("A pruning of it may be cut short anywhere", arguments: [Trouble.Kind.death, .failure(.ioError)])
  func interrupted(kind: Trouble.Kind) throws {
    let rehearsal = Trouble(.death, atStep: 0)
    func run(_ trouble: Trouble) throws -> BackupScene {
      let scene = try BackupScene(rows: 100)
      try Self.keep(scene)
      try scene.back(up: 0)
      let place = FolderPlace(scene.placePath, in: trouble.fileSystem)
      // Whatever it ends with, what is there afterwards counts.
      _ = try? BackupPruner(of: place, surroundings: .still(fileSystem: trouble.fileSystem))
        .prune(RetentionPolicy(last: .number(1)))
      return scene
    }
    _ = try run(rehearsal)
    #expect(rehearsal.steps > 8)
    for step in 1...rehearsal.steps {
      let scene = try run(Trouble(kind, atStep: step))
      let told = Comment(rawValue: "\(kind) at \(step)")
      let id = try #require(BackupIdentifier(Self.id))
      let pruner = BackupPruner(of: scene.place, surroundings: .still())
      _ = try pruner.prune(RetentionPolicy(last: .number(1)))
      #expect(try pruner.trash().map(\.isWhole) == [true], told)
      _ = try pruner.undelete(id)
      let path = scene.folder.appending("Restored.sqlite")
      _ = try BackupRestorer(of: scene.place, surroundings: .still()).restore(id, to: path)
      #expect(try BackupScene.summary(of: path) == "ok 2 0 8 older", told)
      let value = StoreFileSet(main: path).path(of: .externalData).appending("_EXTERNAL_DATA/A")
      #expect(try scene.bytes(value) == Array("a large value".utf8), told)
    }
  }

  @Test("Parts without a main file, and one that is still on its way, are left alone")
  func onItsWay() throws {
    let scene = try BackupScene(rows: 10)
    try Self.keep(scene)
    let main = scene.placePath.appending("\(Self.id).sqlite")
    try FileSystem().link(main, to: scene.folder.appending("Elsewhere.sqlite"))
    #expect(try BackupCatalog(of: scene.place).backups.isEmpty)
    try FileSystem().unlink(scene.folder.appending("Elsewhere.sqlite"))
    #expect(try BackupCatalog(of: scene.place).backups.count == 1)
    try FileSystem().unlink(main)
    let catalog = try BackupCatalog(of: scene.place)
    #expect(catalog.backups.isEmpty && !catalog.strays.isEmpty)
    // A backup taken in the same second gets another name.
    let second = try scene.creator(at: "2026-11-21T09:00:00Z").create(scene.store, in: scene.place)
    #expect(second.id.description == "\(Self.id)-2")
  }
}
