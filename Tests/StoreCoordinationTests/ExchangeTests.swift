import Foundation
import Lazaret
import Migration
import PersistentStore
import Platform
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// The exchange of a store for its migrated self, as those see it who look for it meanwhile.
@Suite("Exchange of a store")
struct ExchangeTests {
  /// What the store's folder had when the store's name stood for nothing.
  private final class Gaps: Sendable {
    private let found = Platform.Mutex([String]())
    var all: [String] { found.withLock { $0 } }

    /// A file system whose every step is preceded by a look for the store.
    func watching(_ store: FilePath) -> FileSystem {
      FileSystem { (operation: FileOperation) throws(Errno) in
        // What cannot be looked at is as good as missing.
        let status = try? FileSystem().status(of: store, followingLinks: false)
        if (status ?? nil) == nil {
          self.found.withLock { $0.append("\(operation.kind) \(operation.path)") }
        }
      }
    }
  }

  @Test("The store's name stands for the old store or for the new one at every step", arguments: [false, true])
  func noGap(hasLinkedValues: Bool) throws {
    let scene = try MigratingScene()
    if hasLinkedValues {
      // As after an earlier migration: the parts are copied to the backups then, and not linked.
      let value = scene.stores.appending(".App_SUPPORT/_EXTERNAL_DATA/0A1B")
      try scene.system.link(value, to: scene.folder.appending("second name"))
    }
    let before = try scene.parts(scene.store)
    let gaps = Gaps()
    let opening = try scene.coordinator(OpeningPolicy(), gaps.watching(scene.store)).open(scene.store)
    try opening.store.close()
    #expect(opening.events.contains { $0.kind == .migration })
    #expect(gaps.all.isEmpty, "\(gaps.all)")
    try scene.expectMigrated(before)
  }

  /// Another process that takes a store away and puts it back, under the lock of its folder, as exchanges do.
  private final class Exchange: Sendable {
    private let store: FilePath
    private let number: Int
    private let looks = Atomic<Int>(0)

    /// - Parameter number: before which look at the store's name it happens, from 1; 0 for never.
    init(of store: FilePath, atLook number: Int) {
      self.store = store
      self.number = number
    }

    var count: Int { looks.load(ordering: .relaxed) }

    var fileSystem: FileSystem {
      FileSystem { (operation: FileOperation) throws(Errno) in
        guard operation.path == self.store, [.status, .open, .lock].contains(operation.kind) else { return }
        if self.looks.add(1, ordering: .relaxed).newValue == self.number { self.begin() }
      }
    }

    /// Takes the store away, and comes back while another thread goes on.
    private func begin() {
      let begun = DispatchSemaphore(value: 0)
      let store = store
      Thread.detachNewThread {
        let (system, hidden) = (FileSystem(), store.sibling(suffix: ".away"))
        // Where the opening itself has the lock, no other process can.
        guard let lock = try? FolderLock(store.folder, patience: 0, in: system),
          (try? system.rename(store, to: hidden)) != nil
        else {
          begun.signal()
          return
        }
        begun.signal()
        Thread.sleep(forTimeInterval: 0.05)
        // A store that cannot be put back is missed by the expectations.
        try? system.rename(hidden, to: store)
        _ = consume lock
      }
      begun.wait()
    }
  }

  @Test("An opening looks again under the folder's lock before it says that there is no store")
  func looksAgain() throws {
    let rehearsal = try MigratingScene()
    let counted = Exchange(of: try rehearsal.system.realPath(rehearsal.store), atLook: 0)
    try rehearsal.coordinator(OpeningPolicy(), counted.fileSystem).open(rehearsal.store).store.close()
    #expect(counted.count > 5)
    for number in 1...counted.count {
      let scene = try MigratingScene()
      let store = try scene.system.realPath(scene.store)
      let exchange = Exchange(of: store, atLook: number)
      do {
        try scene.coordinator(OpeningPolicy(), exchange.fileSystem).open(store).store.close()
      } catch let error as any ReportableError {
        #expect(!["file-not-found", "dangling-link"].contains(error.code), "look \(number): \(error)")
      }
      // Whatever came of it, nothing is lost, and no empty store was made.
      let deadline = ContinuousClock.now + .seconds(5)
      while try scene.system.status(of: store) == nil, ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.01)
      }
      try scene.coordinator().open(store).store.close()
      #expect(
        try MigratingScene.rows("SELECT count(*) FROM ZCAR", in: store) == ["3"], "look \(number)")
    }
  }

  @Test("A store that is not there, and that no process is exchanging, is not found")
  func missing() throws {
    let scene = try MigratingScene()
    let path = scene.stores.appending("None.sqlite")
    let migrator = Migrator(try scene.bundle())
    let error = #expect(throws: MigrationError.self) { try migrator.migrate(path) }
    #expect(error?.code == "file-not-found")
    #expect(try scene.system.entries(of: scene.stores).map(\.string).sorted() == [".App_SUPPORT", "App.sqlite"])
  }
}
