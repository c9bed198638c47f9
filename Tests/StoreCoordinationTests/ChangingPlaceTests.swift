import Lazaret
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Places that other processes change between two steps of an opening.
struct ChangingPlaceTests {
  /// Counts how often an opening begins, and exchanges what is at the place with what is elsewhere before each lock.
  private final class Exchange: Sendable {
    private let place: FilePath
    private let elsewhere: FilePath
    private let limit: Int
    private let counts = Mutex((beginnings: 0, exchanges: 0))

    /// - Parameter limit: how many exchanges there are at most.
    init(_ place: FilePath, _ elsewhere: FilePath, limit: Int = .max) {
      self.place = place
      self.elsewhere = elsewhere
      self.limit = limit
    }

    var beginnings: Int { counts.withLock { $0.beginnings } }

    var observer: OpeningObserver {
      OpeningObserver { progress in
        if progress.phase == .examining { self.counts.withLock { $0.beginnings += 1 } }
        // An opening says that it makes an empty store before it takes the folder's lock and looks again.
        guard progress.phase == .creating, self.counts.withLock({ $0.exchanges }) < self.limit else { return }
        self.counts.withLock { $0.exchanges += 1 }
        let system = FileSystem()
        do {
          if try system.status(of: self.place) == nil {
            try system.rename(self.elsewhere, to: self.place)
          } else {
            try system.rename(self.place, to: self.elsewhere)
          }
        } catch {
          Issue.record("\(error)")
        }
      }
    }
  }

  /// Bytes of no kind that is known.
  private static let noDatabase: [UInt8] = [0xFF, 0x00, 0x13, 0x37, 0x80, 0x01, 0x02, 0x03]

  @Test func aPlaceThatChangesEachTimeIsLeftAsItIs() throws {
    let scene = try Scene()
    let other = try scene.folder.write(Self.noDatabase, to: "Other")
    let exchange = Exchange(scene.store(), other)
    let error = try #require(throws: FileError.self) {
      try scene.coordinator(home: scene.home).open(scene.store(), observer: exchange.observer)
    }
    #expect(error.kind == .changed && error.isEnvironmental)
    #expect(exchange.beginnings == 5)
    #expect(try scene.quarantined().isEmpty)
    #expect(try scene.names() == ["App.sqlite"])
    #expect(try scene.parts(scene.store()) == ["main": Self.noDatabase])
    // At rest it is opened.
    try scene.coordinator(home: scene.home).open(scene.store()).store.close()
    try scene.expectGoodStore(scene.store())
  }

  @Test func aStoreThatAnotherProcessPutsThereIsOpenedAsItIs() throws {
    let scene = try Scene()
    try scene.makeStore("Other.sqlite")
    let exchange = Exchange(scene.store(), scene.store("Other.sqlite"), limit: 1)
    let opening = try scene.coordinator(home: scene.home).open(scene.store(), observer: exchange.observer)
    #expect(exchange.beginnings == 2)
    #expect(opening.examination.verdict == .compatible)
    #expect(opening.events.isEmpty && opening.notice == nil)
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
  }

  @Test func aStoreOfAnEarlierVersionThatComesMeanwhileIsMigrated() throws {
    let scene = try Scene()
    try scene.makeStore("Other.sqlite", version: "V1")
    let exchange = Exchange(scene.store(), scene.store("Other.sqlite"), limit: 1)
    let opening = try scene.coordinator(home: scene.home).open(scene.store(), observer: exchange.observer)
    #expect(opening.events.map(\.kind) == [.backup, .migration])
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
  }

  /// Another process has quarantined and replaced the store, and was killed before its opening returned.
  @Test func aReplacementThatAnotherProcessCouldNotTellOfIsTold() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    // The mark is the last thing that an opening removes.
    let rehearsal = Trouble(.death, atStep: 0)
    let policy = OpeningPolicy(whenDamaged: .emptyStore)
    let first = try Scene()
    try first.makeDamagedStore()
    try first.coordinator(policy, home: first.home, surroundings: .still(fileSystem: rehearsal.fileSystem))
      .open(first.store()).store.close()
    let killed = Trouble(.death, atStep: rehearsal.steps)
    _ = try? scene.coordinator(policy, home: scene.home, surroundings: .still(fileSystem: killed.fileSystem))
      .open(scene.store())
    let elsewhere = scene.folder.appending("elsewhere.sqlite")
    try scene.system.rename(scene.store(), to: elsewhere)
    // SQLite may have left its own beside it.
    for suffix in ["-wal", "-shm"] { try scene.system.unlink(scene.store().sibling(suffix: suffix)) }
    let exchange = Exchange(scene.store(), elsewhere, limit: 1)
    let opening = try scene.coordinator(home: scene.home).open(scene.store(), observer: exchange.observer)
    #expect(opening.events.map(\.kind) == [.recovery])
    #expect(opening.notice?.key == "lazaret.notice.damaged")
    try opening.store.close()
    try scene.expectQuarantined(before, in: try scene.quarantined())
    let again = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(again.events.isEmpty && again.notice == nil)
    try again.store.close()
  }
}
