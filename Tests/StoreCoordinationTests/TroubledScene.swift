import GRDB
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// A store of one state that is opened while its environment is in trouble, and what must hold of it then.
///
/// What it held is known from its making, and read back with SQLite alone.
struct TroubledScene {
  /// What the store is before it is opened.
  enum State: String, Sendable, CaseIterable {
    case sound, outdated, damaged
  }

  private enum Store {
    case sound(SalvagingScene, [UInt8])
    case outdated(MigratingScene, [String: [UInt8]])
    case damaged(SalvagingScene)
  }

  private let store: Store

  init(_ state: State) throws {
    switch state {
    case .sound:
      let scene = try SalvagingScene()
      // All that it holds is in the main file.
      let queue = try DatabaseQueue(path: scene.whole.string)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
      try queue.close()
      let bytes = try scene.scene.system.contents(of: scene.whole, limit: 1 << 24)
      try scene.scene.folder.write(bytes, to: "Stores/App.sqlite")
      store = .sound(scene, bytes)
    case .outdated:
      let scene = try MigratingScene()
      store = .outdated(scene, try scene.parts(scene.store))
    case .damaged: store = .damaged(try SalvagingScene())
    }
  }

  /// The folder that everything of it lies in.
  var folder: FilePath {
    switch store {
    case .sound(let scene, _), .damaged(let scene): scene.scene.folder.path
    case .outdated(let scene, _): scene.folder.path
    }
  }

  /// Opens the store as an app does that is not patient with locks.
  func open(_ fileSystem: FileSystem = FileSystem()) throws -> Opening {
    var policy = OpeningPolicy()
    policy.recoveryKitInterval = nil
    policy.checkInterval = nil
    var migration = Migrator.Options()
    let (model, home, path): (AppModel, FilePath, FilePath)
    switch store {
    case .sound(let scene, _), .damaged(let scene):
      (model, home, path) = (try scene.scene.appModel(), scene.scene.home, scene.scene.store())
    case .outdated(let scene, _):
      (model, home, path) = (.coreData(try scene.bundle()), scene.home, scene.store)
      migration.via = ["V2", "V3"]
    }
    let coordinator = StoreCoordinator(
      model: model, policy: policy, home: home, appVersion: "7.1",
      storeOptions: .init(busyTimeout: .milliseconds(20)), migration: migration,
      surroundings: .still(fileSystem: fileSystem))
    return try coordinator.open(path)
  }

  // MARK: What must hold

  /// Opens the store while `trouble` goes on and once more when it is over; nothing was lost or replaced by an empty store.
  ///
  /// - Parameter trouble: opens it once, in trouble.
  func expectWaits(_ comment: Comment, during trouble: () throws -> Opening) throws {
    do {
      let opening = try trouble()
      try expectGood(opening, comment)
      try opening.store.close()
    } catch let error as any ReportableError {
      #expect(error.isEnvironmental, "\(comment): \(error)")
      try expectNothingLost(comment)
    }
    let opening = try open()
    try expectGood(opening, comment)
    try opening.store.close()
    try expectEnded(comment)
  }

  /// What was opened is a store of the app's version, with records, and nothing was created.
  private func expectGood(_ opening: Opening, _ comment: Comment) throws {
    #expect(!opening.events.contains { $0.kind == .create }, comment)
    let bundle =
      switch store {
      case .sound(let scene, _), .damaged(let scene):
        try ModelBundle.load(path: scene.scene.model, order: ["V1", "V2", "V3"])
      case .outdated(let scene, _): try scene.bundle()
      }
    #expect(try opening.store.metadata()?.versionHashes == bundle.current.versionHashes, comment)
    #expect(try opening.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") ?? 0 } > 0, comment)
  }

  /// The store is in its place, or in quarantine, or among the backups, with every byte that it had.
  private func expectNothingLost(_ comment: Comment) throws {
    switch store {
    case .sound(let scene, let before):
      #expect(try scene.scene.parts(scene.scene.store())["main"] == before, comment)
      #expect(try scene.scene.quarantined().isEmpty, comment)
    case .outdated(let scene, let before):
      let places = [scene.store] + (try scene.backupFiles())
      #expect(try places.contains { try scene.parts($0)["main"] == before["main"] }, comment)
      #expect(try Quarantines(home: scene.home).stores(at: scene.stores).isEmpty, comment)
    case .damaged(let scene):
      if try scene.scene.parts(scene.scene.store()) == scene.before { return }
      guard let stored = try scene.scene.quarantined().first else {
        // It is on its way, whole under its new name, and the journal says so; the next opening ends the move.
        let names = try scene.scene.system.entries(of: scene.scene.incompatible)
        let journal = try #require(names.first { $0.string.hasSuffix(".moving") }, comment)
        let main = scene.scene.incompatible.appending(journal.string.dropFirst().dropLast(7) + ".sqlite")
        #expect(try scene.scene.parts(main) == scene.before, comment)
        return
      }
      #expect(try scene.scene.parts(stored.files.main) == scene.before, comment)
      // What is in the place by now, if anything, has every record.
      guard try scene.scene.system.status(of: scene.scene.store()) != nil else {
        #expect(stored.receipt?.salvage?.isWanted == true, comment)
        #expect(stored.receipt?.salvage?.state != .failed, comment)
        return
      }
      #expect(try names(in: scene) == SalvagingScene.allNames(), comment)
    }
  }

  /// Every record is in the store at last, and the evidence is as it was.
  private func expectEnded(_ comment: Comment) throws {
    switch store {
    case .sound(let scene, _):
      try expectNothingLost(comment)
      #expect(try names(in: scene) == SalvagingScene.allNames(), comment)
    case .outdated(let scene, let before):
      try scene.expectMigrated(before, comment)
      #expect(try Quarantines(home: scene.home).stores(at: scene.stores).isEmpty, comment)
    case .damaged(let scene): try scene.expectRescued(comment)
    }
  }

  /// The names of the cars, as SQLite reads them.
  private func names(in scene: SalvagingScene) throws -> [String] {
    let queue = try DatabaseQueue(path: scene.scene.store().string)
    let names = try queue.read { try String.fetchAll($0, sql: "SELECT ZNAME FROM ZCAR ORDER BY ZNAME") }
    try queue.close()
    return names
  }
}
