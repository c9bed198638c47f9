import GRDB
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What lies about when a swap is finished: stores that were written to since, strangers, other people's folders.
struct InterruptedMigrationSwapTests {
  typealias Base = InterruptedMigrationTests
  private let system = FileSystem()

  /// Surroundings in which the process dies at the first step that a condition holds for.
  private static func dying(_ condition: @escaping @Sendable (FileOperation) -> Bool) -> Surroundings {
    let isDead = Mutex(false)
    return .still(
      fileSystem: FileSystem { operation throws(Errno) in
        let dies = isDead.withLock { dead in
          if condition(operation) { dead = true }
          return dead
        }
        if dies { throw .ioError }
      })
  }

  /// A store whose migration died at a step.
  ///
  /// With a log, which has to be gone before another main file has the name, the place is empty for a moment.
  private func scene(
    leavingLog: Bool = true, dyingAt condition: @escaping @Sendable (FileOperation) -> Bool
  ) throws -> MigrationScene {
    let scene = try Base.make()
    if leavingLog { try scene.leaveInLog("UPDATE ZCAR SET Z_OPT = 2 WHERE Z_PK = 2") }
    #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions(), Self.dying(condition)) }
    #expect(try system.status(of: working(scene)) != nil)
    return scene
  }

  /// Dead with the original in the backups and nothing in its place.
  private func gap() throws -> MigrationScene {
    let scene = try scene { $0.kind == .link && $0.path.lastComponent?.string == "App.sqlite" }
    #expect(try system.status(of: scene.store) == nil)
    return scene
  }

  /// Dead before the original got its second name.
  private func unmoved() throws -> MigrationScene {
    try scene { $0.kind == .link && $0.path.string.contains("/Backups/") }
  }

  /// Dead with the result in its place, which was empty before where there was a log.
  private func placed(leavingLog: Bool) throws -> MigrationScene {
    if leavingLog { return try scene { $0.kind == .unlink && $0.path.lastComponent?.string == "step-1.sqlite" } }
    // The name by which the original could have gone back goes when the result has the store's: once before, once after.
    let seen = Mutex(0)
    let scene = try scene(leavingLog: false) { operation in
      guard operation.kind == .unlink, operation.path.lastComponent?.string == ".App.sqlite.leaving" else {
        return false
      }
      return seen.withLock { count in
        count += 1
        return count == 2
      }
    }
    #expect(try scene.rows("SELECT ZMAKER FROM ZCAR") == ["Fiat", "Opel"])
    return scene
  }

  private func working(_ scene: MigrationScene) -> FilePath { scene.folder.appending(".App.sqlite.migrating") }

  private func execute(_ sql: String, in store: FilePath) throws {
    let opened = try PersistentStore(opening: store)
    try opened.write { try $0.execute(sql: sql) }
    try opened.close()
  }

  private func backups(_ scene: MigrationScene) -> [FilePath] {
    RealMaterial.allFiles(below: scene.folder.appending("Backups")).filter { $0.string.hasSuffix(".sqlite") }
  }

  private struct NoStore: Error {}

  private func failing() throws -> Migrator {
    var migrator = Migrator(try Base.versions(), surroundings: .still())
    migrator.checkOpening = { _ in throw NoStore() }
    return migrator
  }

  // MARK: The result

  @Test(arguments: [true, false])
  func aResultThatWasWrittenToIsNeverTakenBack(leavingLog: Bool) throws {
    let scene = try placed(leavingLog: leavingLog)
    try execute("INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZMAKER) VALUES (3, 2, 1, 'Saab')", in: scene.store)
    #expect(try failing().finishInterrupted(scene.store) == backups(scene).first)
    #expect(try scene.rows("SELECT ZMAKER FROM ZCAR") == ["Fiat", "Opel", "Saab"])
    #expect(try system.status(of: working(scene)) == nil && backups(scene).count == 1)
  }

  @Test(arguments: [true, false])
  func aResultThatWasNotWrittenToIsTakenBack(leavingLog: Bool) throws {
    let scene = try placed(leavingLog: leavingLog)
    #expect(throws: MigrationError.self) { try failing().finishInterrupted(scene.store) }
    #expect(try scene.rows("SELECT ZBRAND FROM ZCAR") == ["Fiat", "Opel"])
    #expect(try system.status(of: working(scene)) == nil && backups(scene).isEmpty)
  }

  @Test func aResultThatChangesWhileItIsCheckedIsKept() throws {
    let scene = try Base.make()
    var migrator = try failing()
    migrator.checkOpening = { store in
      try execute("UPDATE ZCAR SET ZMAKER = 'Saab'", in: store)
      throw NoStore()
    }
    #expect(throws: MigrationError.self) { try migrator.migrate(scene.store) }
    #expect(try scene.rows("SELECT ZBRAND FROM ZCAR") == ["Fiat", "Opel"])
    let kept = backups(scene)
    #expect(kept.count == 1 && kept.first?.string.hasSuffix("-unopened.sqlite") == true)
    #expect(try MigrationScene.rows("SELECT ZMAKER FROM ZCAR", in: try #require(kept.first)) == ["Saab", "Saab"])
    let external = scene.folder.appending(".App_SUPPORT/_EXTERNAL_DATA/file")
    #expect(try system.contents(of: external, limit: 100) == Array("outside".utf8))
  }

  // MARK: The working folder

  @Test func nothingIsRemovedThroughALink() throws {
    let scene = try Base.make()
    try scene.folder.write("mine", to: "Other/step-1.sqlite")
    _ = try ChildProcess.run("ln", ["-s", "Other", working(scene).string])
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions()) }
    #expect(error?.code == "file-exists")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func strangersInTheWorkingFolderStay() throws {
    let scene = try Base.make()
    try scene.folder.write("mine", to: ".App.sqlite.migrating/letter.txt")
    try scene.folder.write("ours", to: ".App.sqlite.migrating/step-1.sqlite")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions()) }
    #expect(error?.code == "file-exists" && error?.path?.lastComponent?.string == "letter.txt")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test(arguments: [#"{"version":3,"phase":"swapping"}"#, #"{"version":1,"phase":"swapping"}"#, "{", ""])
  func aJournalThatCannotBeReadIsKept(text: String) throws {
    let scene = try Base.make()
    try scene.folder.write(text, to: ".App.sqlite.migrating/journal.json")
    try scene.folder.write("the only one", to: ".App.sqlite.migrating/step-1.sqlite")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions()) }
    #expect(error?.code == "migration-journal-unreadable")
    #expect(throws: MigrationError.self) {
      try Migrator(try Base.versions(), surroundings: .still()).finishInterrupted(scene.store)
    }
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func anEarlierJournalThatMovedNothingIsDiscarded() throws {
    let scene = try Base.make()
    try scene.folder.write(#"{"version":1}"#, to: ".App.sqlite.migrating/journal.json")
    try scene.migrate(try Base.versions())
    try Base.expectMigrated(scene, "")
  }

  @Test func anOutputLeavesAnInterruptedSwapAlone() throws {
    // Dead where nothing at all is in the place.
    let scene = try scene { $0.kind == .makeDirectory && $0.path.lastComponent?.string == ".App_SUPPORT" }
    #expect(try StoreFileSet(main: scene.store).members(in: system).isEmpty)
    let other = try Base.make()
    var options = Migrator.Options()
    options.output = scene.store
    let error = #expect(throws: MigrationError.self) { try other.migrate(try Base.versions(), options: options) }
    #expect(error?.code == "place-taken")
    try scene.migrate(try Base.versions())
    try Base.expectMigrated(scene, "")
  }

  // MARK: The original

  @Test func aStoreMadeInTheGapForgetsNothing() throws {
    let scene = try gap()
    try scene.folder.write("another store", to: "App.sqlite")
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions()) }
    #expect(error?.code == "place-taken")
    #expect(error?.path == scene.store && error?.detail.contains(backups(scene).first?.string ?? "?") == true)
    #expect(try FolderContents(of: scene.folder.path) == before)
    try system.unlink(scene.store)
    try scene.migrate(try Base.versions())
    try Base.expectMigrated(scene, "")
  }

  @Test func aFolderThatWasMovedIsFinishedThere() throws {
    let scene = try gap()
    let moved = scene.folder.path.sibling(suffix: "-moved")
    defer { TemporaryFolder.remove(moved) }
    try system.rename(scene.folder.path, to: moved)
    let store = moved.appending("App.sqlite")
    let backup = try Migrator(try Base.versions(), surroundings: .still()).finishInterrupted(store)
    #expect(backup?.starts(with: moved) == true)
    #expect(try MigrationScene.rows("SELECT ZMAKER FROM ZCAR", in: store) == ["Fiat", "Opel"])
    #expect(
      try system.contents(of: moved.appending(".App_SUPPORT/_EXTERNAL_DATA/file"), limit: 100)
        == Array("outside".utf8))
  }

  @Test func withoutTheBackupNothingIsPutInPlace() throws {
    let scene = try gap()
    let (there, away) = (scene.folder.appending("Backups"), scene.folder.appending("Away"))
    try system.rename(there, to: away)
    #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions()) }
    #expect(try system.status(of: scene.store) == nil)
    try system.rename(away, to: there)
    try scene.migrate(try Base.versions())
    try Base.expectMigrated(scene, "")
  }

  @Test func aStoreWrittenToBeforeItWasMovedBeginsAnew() throws {
    let scene = try unmoved()
    try execute("UPDATE ZCAR SET ZBRAND = 'Saab' WHERE Z_PK = 2", in: scene.store)
    let migrator = Migrator(try Base.versions(), surroundings: .still())
    #expect(try migrator.finishInterrupted(scene.store) == nil)
    #expect(try system.status(of: working(scene)) == nil)
    try scene.migrate(try Base.versions())
    #expect(try scene.rows("SELECT ZMAKER FROM ZCAR") == ["Fiat", "Saab"])
  }

  @Test func aNameThatWasTakenMeanwhileIsNoObstacle() throws {
    let scene = try unmoved()
    let name = "b-\(Surroundings.still().now().fileName)"
    try scene.folder.write("of another store", to: "Backups/App/\(name).sqlite")
    try scene.migrate(try Base.versions())
    #expect(try scene.rows("SELECT ZMAKER FROM ZCAR") == ["Fiat", "Opel"])
    #expect(
      backups(scene).compactMap { $0.lastComponent?.string }.sorted() == ["\(name)-2.sqlite", "\(name).sqlite"])
  }

  // MARK: External data

  @Test func foldersKeepTheirAccess() throws {
    let scene = try Base.make()
    _ = try ChildProcess.run("chmod", ["711", scene.folder.appending(".App_SUPPORT").string])
    _ = try ChildProcess.run("chmod", ["750", scene.folder.appending(".App_SUPPORT/_EXTERNAL_DATA").string])
    let result = try scene.migrate(try Base.versions())
    for store in [scene.store, try #require(result.backup)] {
      let folder = StoreFileSet(main: store).path(of: .externalData)
      #expect(try system.status(of: folder)?.permissions.rawValue == 0o711)
      #expect(try system.status(of: folder.appending("_EXTERNAL_DATA"))?.permissions.rawValue == 0o750)
    }
  }

  @Test func aCopySharesNoFileWithItsOriginal() throws {
    let scene = try Base.make()
    var options = Migrator.Options()
    options.output = scene.folder.appending("Copy.sqlite")
    try scene.migrate(try Base.versions(), options: options)
    let copied = scene.folder.appending(".Copy_SUPPORT/_EXTERNAL_DATA/file")
    #expect(try system.status(of: copied)?.linkCount == 1)
  }

  @Test(arguments: [".App_SUPPORT", ".App_SUPPORT/_EXTERNAL_DATA/file"])
  func linksAreRefusedBeforeAnythingBegins(name: String) throws {
    let scene = try Base.make()
    try system.rename(scene.folder.appending(name), to: scene.folder.appending("Elsewhere"))
    _ = try ChildProcess.run(
      "ln", ["-s", scene.folder.appending("Elsewhere").string, scene.folder.appending(name).string])
    let before = try FolderContents(of: scene.folder.path)
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try Base.versions()) }
    #expect(error?.code == "not-a-regular-file" && error?.path == scene.folder.appending(name))
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func anOutputBesideAWriterStartsAgain() throws {
    let scene = try Base.make()
    let store = scene.store
    let isDone = Mutex(false)
    let fileSystem = FileSystem { operation throws(Errno) in
      guard operation.kind == .makeDirectory, operation.path.lastComponent?.string == ".New_SUPPORT" else { return }
      let wasDone = isDone.withLock { done in
        defer { done = true }
        return done
      }
      if wasDone { return }
      do {
        // As a writer in WAL mode, whom no lock keeps out.
        try scene.folder.write("new", to: ".App_SUPPORT/_EXTERNAL_DATA/another")
      } catch { throw .ioError }
    }
    var options = Migrator.Options()
    options.output = scene.folder.appending("New.sqlite")
    try scene.migrate(try Base.versions(), .still(fileSystem: fileSystem), options: options)
    #expect(try system.status(of: store) != nil)
    let external = scene.folder.appending(".New_SUPPORT/_EXTERNAL_DATA")
    #expect(try system.entries(of: external).map(\.string) == ["another", "file"])
  }
}
