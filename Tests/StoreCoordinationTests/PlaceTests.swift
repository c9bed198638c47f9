import Lazaret
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores in unusual places and under unusual names.
struct PlaceTests {
  @Test(arguments: [
    "App Store.sqlite", "it's \"quoted\".sqlite", "🚗 Ünï.sqlite", "line\nbreak.sqlite", "no-extension",
    ".hidden.sqlite",
    "a?b#c%41&d=e.sqlite", "-wal", "100%.db", "\u{1B}[31mred.sqlite", "--yes.sqlite",
  ])
  func anyNameWillDo(name: String) throws {
    let scene = try Scene()
    try scene.makeDamagedStore(name)
    let path = scene.store(name)
    let before = try scene.parts(path)
    try #require(before.count == 6)
    let opening = try scene.coordinator(home: scene.home).open(path)
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage, .create])
    try opening.store.close()
    try scene.expectGoodStore(path)
    let stored = try scene.quarantined(path)
    try scene.expectQuarantined(before, in: stored)
    #expect(stored.first?.receipt?.originalPath.path == path)
    // And back again.
    _ = try Quarantines(home: scene.home).release(FilePath(try #require(stored.first).id), replacing: true)
    #expect(try scene.parts(path) == before)
  }

  @Test func aNameThatIsNotUTF8WillDo() throws {
    let scene = try Scene()
    let name = try #require(FilePath.Component(platformBytes: [0x41, 0xFF, 0xFE, 0x80] + Array(".sqlite".utf8)))
    let path = scene.stores.appending(name)
    let file = try scene.system.create(path)
    try file.write([0xFF, 0x00, 0x13, 0x37, 0x80, 0x01, 0x02, 0x03])
    let log = try scene.system.create(path.sibling(suffix: "-wal"))
    try log.write(Array("log".utf8))
    let before = try scene.parts(path)
    let opening = try scene.coordinator(home: scene.home).open(path)
    #expect(opening.store.path == path)
    #expect(opening.events.last?.path.path == path)
    try opening.store.close()
    try scene.expectGoodStore(path)
    let stored = try scene.quarantined()
    try scene.expectQuarantined(before, in: stored)
    #expect(stored.first?.receipt?.originalPath.path == path)
    #expect(stored.first?.receipt?.originalPath.bytes != nil)
    _ = try Quarantines(home: scene.home).release(FilePath(try #require(stored.first).id), replacing: true)
    #expect(try scene.parts(path) == before)
  }

  @Test func aRelativePathWillDo() throws {
    // Its folder is the current one, so that only its errors can be looked at here.
    let scene = try Scene()
    let error = try #require(throws: FileError.self) { try scene.coordinator().open("no/such/folder/App.sqlite") }
    #expect(error.kind == .notFound)
  }

  @Test func theHomeMayBeTheStoresOwnFolder() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    let start = ContinuousClock.now
    try scene.coordinator(home: scene.stores).open(scene.store()).store.close()
    let quarantines = Quarantines(home: scene.stores, surroundings: .still())
    let id = FilePath(try #require(try quarantines.stores().first).id)
    // The catalogue knows the folder already; a lost one is written again.
    try scene.system.unlink(scene.store("Quarantines.json"))
    _ = try quarantines.release(scene.incompatible.appending("\(id).sqlite"), replacing: true)
    #expect(try scene.parts(scene.store()) == before)
    #expect(try quarantines.stores().count == 1)
    // No process waited for a lock of its own.
    #expect(ContinuousClock.now - start < .seconds(9))
  }

  // MARK: Links

  @Test(arguments: [1, 3])
  func aLinkedStoreIsQuarantinedWhereItReallyIs(links: Int) throws {
    let scene = try Scene()
    try scene.makeDamagedStore("Real.sqlite")
    let before = try scene.parts(scene.store("Real.sqlite"))
    let link = try makeLinks(links, to: "Stores/Real.sqlite", scene)
    let opening = try scene.coordinator().open(link)
    #expect(opening.store.path == scene.store("Real.sqlite"))
    try opening.store.close()
    try scene.expectGoodStore(scene.store("Real.sqlite"))
    try scene.expectQuarantined(before, in: try scene.quarantined())
    #expect(try scene.system.status(of: link, followingLinks: false)?.kind == .symbolicLink)
  }

  @Test(arguments: [1, 3])
  func aLinkWhoseStoreWasQuarantinedByAKilledRunLeadsToTheNewOne(links: Int) throws {
    let scene = try Scene()
    try scene.makeDamagedStore("Real.sqlite")
    let before = try scene.parts(scene.store("Real.sqlite"))
    let link = try makeLinks(links, to: "Stores/Real.sqlite", scene)
    _ = try Quarantines(home: scene.home, surroundings: .still()).add(link, appVersion: "7.1")
    #expect(try scene.system.status(of: link) == nil)
    let opening = try scene.coordinator().open(link)
    #expect(opening.store.path == scene.store("Real.sqlite"))
    #expect(opening.events.map(\.kind) == [.recovery, .create])
    #expect(opening.notice != nil)
    try opening.store.close()
    try scene.expectGoodStore(scene.store("Real.sqlite"))
    try scene.expectQuarantined(before, in: try scene.quarantined())
  }

  @Test func aLinkThatLeadsNowhereIsNotReplaced() throws {
    let scene = try Scene()
    let link = try makeLinks(1, to: "Stores/Elsewhere.sqlite", scene)
    let loop = scene.folder.appending("loop")
    _ = try ChildProcess.run("ln", ["-s", "loop", loop.string])
    let before = try FolderContents(of: scene.folder.path)
    for path in [link, loop] {
      let error = try #require(throws: FileError.self) { try scene.coordinator().open(path) }
      #expect(error.kind == .danglingLink)
      #expect(error.isEnvironmental)
    }
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func aStoreWithASecondNameIsCopiedIntoQuarantine() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    try scene.system.link(scene.store(), to: scene.store("second.sqlite"))
    let before = try scene.parts(scene.store())
    try scene.coordinator().open(scene.store()).store.close()
    try scene.expectGoodStore(scene.store())
    try scene.expectQuarantined(before, in: try scene.quarantined())
    #expect(try scene.system.contents(of: scene.store("second.sqlite"), limit: 1 << 20) == before["main"])
  }

  @Test func whatAKilledProcessLeftIsNeverWrittenInto() throws {
    // Killed between giving a new store its name and taking the hidden one away: two names, one file.
    let scene = try Scene()
    try scene.makeDamagedStore()
    let hidden = scene.store(".App.sqlite.unfinished")
    try scene.system.link(scene.store(), to: hidden)
    let before = try scene.parts(scene.store())
    try scene.coordinator().open(scene.store()).store.close()
    try scene.expectGoodStore(scene.store())
    try scene.expectQuarantined(before, in: try scene.quarantined())
    #expect(try scene.names() == ["App.sqlite", "Incompatible"])
  }

  @Test func aSoundStoreLosesTheSecondNameThatAKilledProcessLeft() throws {
    let scene = try Scene()
    try scene.makeStore()
    try scene.system.link(scene.store(), to: scene.store(".App.sqlite.unfinished"))
    let opening = try scene.coordinator().open(scene.store())
    #expect(opening.events.isEmpty)
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    #expect(try scene.names() == ["App.sqlite"])
  }

  // MARK: File systems

  @Test(.enabled(if: PlaceTests.otherFileSystem != nil, "there is no second file system here"))
  func quarantineOnAnotherFileSystemIsAVerifiedCopy() throws {
    let scene = try Scene()
    let far = try TemporaryFolder(in: Self.otherFileSystem)
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    _ = try ChildProcess.run("ln", ["-s", far.path.string, scene.incompatible.string])
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage, .create])
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
    try scene.expectQuarantined(before, in: try scene.quarantined())
    let id = try #require(try scene.quarantined().first).id
    #expect(try scene.system.status(of: far.appending("\(id).sqlite")) != nil)
    _ = try Quarantines(home: scene.home).release(FilePath(id), replacing: true)
    #expect(try scene.parts(scene.store()) == before)
  }

  /// A folder on another file system than the tests' usual one.
  static let otherFileSystem: FilePath? = {
    let system = FileSystem()
    let usual = (try? system.status(of: TemporaryFolder.usualParent))??.identity.device
    return ["/tmp", "/var/tmp", "/dev/shm"].map { FilePath($0) }.first { folder in
      guard let device = (try? system.status(of: folder))??.identity.device else { return false }
      return device != usual
    }
  }()

  // MARK: What is no store

  @Test func aFolderInPlaceOfAFileIsTheSurroundingsFault() throws {
    let scene = try Scene()
    try scene.system.makeDirectory(scene.store())
    let error = try #require(throws: FileError.self) { try scene.coordinator().open(scene.store()) }
    #expect(error.kind == .isDirectory)
    #expect(error.isEnvironmental)
  }

  @Test func aPlaceholderOfACloudIsNotReplaced() throws {
    let scene = try Scene()
    try scene.folder.write("", to: "Stores/.App.sqlite.icloud")
    let error = try #require(throws: FileError.self) { try scene.coordinator().open(scene.store()) }
    #expect(error.kind == .notDownloaded)
    #expect(error.isEnvironmental)
    #expect(try scene.names() == [".App.sqlite.icloud"])
  }

  /// A chain of links in a folder of its own.
  private func makeLinks(_ count: Int, to target: String, _ scene: Scene) throws -> FilePath {
    try scene.system.makeDirectory(scene.folder.appending("links"))
    var target = "../" + target
    for number in 1...count {
      let link = scene.folder.appending("links/link\(number)")
      _ = try ChildProcess.run("ln", ["-s", target, link.string])
      target = "link\(number)"
    }
    return scene.folder.appending("links/link\(count)")
  }
}
