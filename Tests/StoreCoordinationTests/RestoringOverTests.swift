import Backup
import Foundation
import Lazaret
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Restoring a backup over an app's store, with kills and failures at every write.
struct RestoringOverTests {
  private static let id = BackupIdentifier(date: Timestamp(secondsSince1970: 1_795_000_000))

  /// Puts a backup of a small store into the home of a scene.
  private static func backUp(_ bytes: [UInt8], _ values: [UInt8], in scene: Scene) throws {
    let place = try Backups(home: scene.home).place(of: scene.store())
    func put(
      _ role: BackupManifest.File.Role, _ bytes: [UInt8], _ content: BackupManifest.Content?
    ) throws -> BackupManifest.File {
      let folder = try TemporaryFolder()
      let packed = try FileSystem().contents(
        of: try Self.pack(try folder.write(bytes, to: "content")), limit: 1 << 24)
      try place.replace("\(id)\(role.suffix)", with: packed, in: .kept)
      return .init(
        role: role, name: "\(id)\(role.suffix)", bytes: Int64(packed.count), sha256: FileDigest(of: packed).hexadecimal,
        members: [packed.count], content: content)
    }
    func content(_ bytes: [UInt8]) -> BackupManifest.Content {
      let digest = FileDigest(of: bytes).hexadecimal
      return .init(bytes: Int64(bytes.count), sha256: digest, blocks: [digest])
    }
    var whole = content(bytes)
    whole.pageSize = 4096
    whole.pageCount = UInt32(bytes.count / 4096)
    let files = [try put(.database, bytes, nil), try put(.externalData, values, content(values))]
    var manifest = BackupManifest(
      id: id, kind: .full, reason: .manual, store: .init(path: PathText(scene.store()), kind: "core-data"),
      files: files, check: .init(isSound: true), versions: .init(library: "1", operatingSystem: "test"))
    manifest.database = whole
    manifest.externalData = .init(items: [
      .init(
        name: PathText("_EXTERNAL_DATA/A"), bytes: Int64(values.count), sha256: FileDigest(of: values).hexadecimal,
        offset: 0)
    ])
    try place.replace("\(id).json", with: try manifest.json(), in: .kept)
  }

  private static func pack(_ file: FilePath) throws -> FilePath {
    let result = try ChildProcess.run("gzip", ["-n", file.string])
    #expect(result.status == 0, "\(result.errors)")
    return file.sibling(suffix: ".gz")
  }

  /// A scene with a damaged store and a backup of a sound one.
  private static func scene() throws -> (scene: Scene, old: [String: [UInt8]], new: [String: [UInt8]]) {
    let scene = try Scene()
    try scene.makeStore()
    let bytes = try scene.system.contents(of: scene.store(), limit: 1 << 24)
    try backUp(bytes, Array("value".utf8), in: scene)
    try scene.system.unlink(scene.store())
    try scene.makeDamagedStore()
    return (
      scene, try scene.parts(scene.store()), ["main": bytes, "_EXTERNAL_DATA/A": Array("value".utf8)]
    )
  }

  @Test func theOldStoreIsQuarantinedAndTheBackupTakesItsPlace() throws {
    let (scene, old, new) = try Self.scene()
    let restored = try Backups(home: scene.home, surroundings: .still()).restore(over: scene.store())
    #expect(restored.report.id == Self.id && restored.report.isComplete)
    #expect(try scene.parts(scene.store()) == new)
    let quarantined = try scene.quarantined()
    #expect(quarantined.map(\.id) == [restored.quarantined?.id])
    #expect(try scene.parts(try #require(quarantined.first).files.main) == old)
    #expect(try scene.names() == [".App_SUPPORT", "App.sqlite", "Incompatible"])
    try scene.coordinator(home: scene.home).open(scene.store()).store.close()
  }

  @Test func aPlaceThatIsEmptyIsFilled() throws {
    let (scene, _, new) = try Self.scene()
    TemporaryFolder.remove(scene.stores)
    try scene.system.makeDirectory(scene.stores)
    let restored = try Backups(home: scene.home, surroundings: .still()).restore(over: scene.store())
    #expect(restored.quarantined == nil)
    #expect(try scene.parts(scene.store()) == new)
  }

  @Test func aStoreThatIsInUseStays() throws {
    let (scene, _, _) = try Self.scene()
    for part in try StoreFileSet(main: scene.store()).members(in: scene.system) { TemporaryFolder.remove(part.path) }
    try scene.makeStore()
    let holder = try ChildProcess(
      "python3",
      [
        "-c",
        "import sqlite3,sys; c=sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE'); "
          + "print('held', flush=True); sys.stdin.read()", scene.store().string,
      ])
    #expect(try holder.waits(for: "held"))
    let error = #expect(throws: FileError.self) {
      try Backups(home: scene.home, surroundings: .still()).restore(over: scene.store())
    }
    #expect(error?.isEnvironmental == true)
    #expect(try scene.quarantined().isEmpty)
    #expect(!(try scene.names().contains(".App.sqlite.restoring")))
    _ = try holder.finish()
  }

  @Test(arguments: [
    Trouble.Kind.death, .failure(.noSpace), .failure(.ioError), .failure(.permissionDenied),
  ])
  func aRestoreMayBeCutShortAnywhere(kind: Trouble.Kind) throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let (first, _, _) = try Self.scene()
    _ = try Backups(home: first.home, surroundings: .still(fileSystem: rehearsal.fileSystem))
      .restore(over: first.store())
    #expect(rehearsal.steps > 25)
    for step in 1...rehearsal.steps {
      let told = Comment(rawValue: "\(kind) at \(step)")
      let (scene, old, new) = try Self.scene()
      let trouble = Trouble(kind, atStep: step)
      do {
        _ = try Backups(home: scene.home, surroundings: .still(fileSystem: trouble.fileSystem))
          .restore(over: scene.store())
      } catch let error as any ReportableError { #expect(error.isEnvironmental, "\(told): \(error)") }
      // The next process finds the old store or the new one, whole; never neither, never a mix.
      _ = try QuarantineFolder(beside: StoreFileSet(main: scene.store()), surroundings: .still()).finishInterrupted()
      _ = try Backups(home: scene.home, surroundings: .still()).finishInterrupted(StoreFileSet(main: scene.store()))
      let parts = try scene.parts(scene.store())
      #expect(parts == old || parts == new, told)
      if parts == new {
        #expect(try scene.quarantined().count == 1, told)
        #expect(try scene.parts(try #require(try scene.quarantined().first).files.main) == old, told)
      } else {
        #expect(try scene.quarantined().isEmpty, told)
        _ = try Backups(home: scene.home, surroundings: .still()).restore(over: scene.store())
        #expect(try scene.parts(scene.store()) == new, told)
      }
      #expect(try scene.names() == [".App_SUPPORT", "App.sqlite", "Incompatible"], told)
      try scene.coordinator(home: scene.home).open(scene.store()).store.close()
    }
  }

  /// A real SIGKILL before every few writes of ours, or before each with LAZARET_LONG=1.
  @Test func aRestoreMayBeKilledAnywhere() async throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let (first, _, _) = try Self.scene()
    _ = try Backups(home: first.home, surroundings: .still(fileSystem: rehearsal.fileSystem))
      .restore(over: first.store())
    for step in chosenSteps(of: rehearsal.steps) {
      let told = Comment(rawValue: "step \(step) of \(rehearsal.steps)")
      let (scene, old, new) = try Self.scene()
      let place = scene.folder.path.string
      let temporary = scene.folder.appending("Temporary")
      try scene.system.makeDirectory(temporary)
      await #expect(processExitsWith: .signal(SIGKILL), told) {
        [place = place as String, step = step as Int] in
        let folder = FilePath(place)
        unsafe setenv("TMPDIR", folder.appending("Temporary").string, 1)
        let system = Trouble(.kill, atStep: step).fileSystem
        _ = try Backups(home: folder.appending("Home"), surroundings: .still(fileSystem: system))
          .restore(over: folder.appending("Stores/App.sqlite"))
      }
      // Any command puts right what was begun, and leaves no copy.
      PrivateFolder.removeRemains(in: temporary, scene.system) { try? EarlierRuns.finish(at: $0) }
      #expect(try !scene.names().contains(".App.sqlite.restoring"), told)
      _ = try QuarantineFolder(beside: StoreFileSet(main: scene.store()), surroundings: .still()).finishInterrupted()
      _ = try Backups(home: scene.home, surroundings: .still()).finishInterrupted(StoreFileSet(main: scene.store()))
      let parts = try scene.parts(scene.store())
      #expect(parts == old || parts == new, told)
      let quarantined = try scene.quarantined()
      #expect(quarantined.count == (parts == new ? 1 : 0), told)
      if let stored = quarantined.first { #expect(try scene.parts(stored.files.main) == old, told) }
      if parts == old {
        _ = try Backups(home: scene.home, surroundings: .still()).restore(over: scene.store())
        #expect(try scene.parts(scene.store()) == new, told)
      }
    }
  }

  @Test func anOpeningFinishesWhatWasInterrupted() throws {
    let (scene, _, new) = try Self.scene()
    let set = StoreFileSet(main: scene.store())
    let restorer = BackupRestorer(of: try Backups(home: scene.home).place(of: scene.store()), surroundings: .still())
    let folder = RestoreFolder(for: set, in: FileSystem())
    do {
      let working = try folder.make()
      try folder.markReady(Self.id, try restorer.stage(Self.id, in: folder))
      _ = try Quarantines(home: scene.home, surroundings: .still()).add(scene.store())
      // While the restoring process is alive no other takes its store.
      #expect(try folder.finishInterrupted() == nil)
      _ = consume working
    }
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(opening.events.contains { $0.kind == .recovery && $0.id == Self.id.description })
    try opening.store.close()
    #expect(try scene.parts(scene.store())["_EXTERNAL_DATA/A"] == new["_EXTERNAL_DATA/A"])
  }
}
