import GRDB
import Lazaret
import Logging
import Synchronization
import TestSupport
import Testing

/// The examples of the library's documentation.
struct LibraryExampleTests {
  @Test func theDocumentHasTheExamplesThatAreCompiledHere() throws {
    func text(_ name: String) throws -> String {
      let path = RealMaterial.projectRoot.appending(name)
      return String(decoding: try FileSystem().contents(of: path, limit: 1 << 20), as: UTF8.self)
    }
    let compiled =
      try text("Tests/LazaretTests/LibraryExamples.swift") + text("Tests/LazaretTestingTests/LibraryExamples.swift")
    var block: [Substring] = []
    var isInside = false
    var count = 0
    for line in try text("Documentation/LIBRARY.md").split(separator: "\n", omittingEmptySubsequences: false) {
      if line == "```swift" {
        isInside = true
        block = []
      } else if line == "```", isInside {
        isInside = false
        count += 1
        #expect(compiled.contains(block.joined(separator: "\n")), "\(block.first ?? "")")
      } else if isInside {
        block.append(line)
      }
    }
    #expect(count == 12)
  }

  @Test func aStoreTellsItsModel() throws {
    let scene = try Scene()
    try scene.makeStore()
    let written = try ModelBundle.load(path: scene.model, order: ["V1", "V2", "V3"]).version(named: "V2")
    #expect(try releasedChecksum(scene.store()) == #require(written).checksum)
    #expect(try releasedChecksum(scene.folder.appending("nothing.sqlite")) == nil)
  }

  @Test func theAppGoesBackToItsBackup() throws {
    let scene = try Scene()
    try scene.makeStore()
    #expect(try backUp(scene.store(), home: scene.home) != nil)
    #expect(try backUp(scene.store(), home: scene.home) == nil)
    let store = try PersistentStore(opening: scene.store())
    try store.write {
      try $0.execute(
        sql:
          "INSERT INTO ZCAR (Z_ENT, Z_OPT) VALUES (1, 1); "
          + "UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
    }
    try store.close()
    #expect(try !bringBack(scene.store(), home: scene.home, losingAtMost: 0))
    #expect(try bringBack(scene.store(), home: scene.home, losingAtMost: 1))
    try scene.expectGoodStore(scene.store())
  }

  @Test func theAppShowsAnAlertOnce() async throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let model = scene.folder.appending("Only.xcdatamodel")
    let contents = scene.model.appending("V2.xcdatamodel/contents")
    try scene.folder.write(try scene.system.contents(of: contents, limit: 1 << 20), to: "Only.xcdatamodel/contents")
    guard case .alert(let notice, let store) = await start(store: scene.store(), model: model) else {
      Issue.record("no alert")
      return
    }
    #expect(notice.title == "Your data was set aside")
    try store.close()
    guard case .ready(let again) = await start(store: scene.store(), model: model) else {
      Issue.record("not ready")
      return
    }
    try again.close()
    guard case .tryAgain = await start(store: scene.stores, model: model) else {
      Issue.record("a folder is no damage")
      return
    }
    guard case .broken = await start(store: scene.store(), model: scene.store()) else {
      Issue.record("a store is no model")
      return
    }
    #expect(try setAside(home: scene.stores).count == 1)
  }

  @Test func theRecordsAreRecoveredLater() async throws {
    let scene = try SalvagingScene()
    let policy = OpeningPolicy(whenDamaged: .salvageLater)
    let opening = try scene.coordinator(policy).open(scene.scene.store())
    try opening.store.close()
    let id = FilePath(try #require(opening.events.first?.id))
    var shares: [Double] = []
    let place = try await recover(id, home: scene.scene.home, model: try scene.scene.appModel()) { shares.append($0) }
    #expect(place == scene.scene.store())
    #expect(shares == shares.sorted())
    let again = try scene.coordinator().open(place)
    #expect(try SalvagingScene.names(again.store) == SalvagingScene.allNames())
    try again.store.close()
  }

  @Test func theServerRefuses() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try FolderContents(of: scene.folder.path)
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let model = try scene.appModel()
    let error = #expect(throws: LazaretError.self) { try openForServing(scene.store(), model: model, logger: logger) }
    #expect(error?.code == "store-damaged")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func anOlderStoreIsMigrated() throws {
    let scene = try MigratingScene()
    let model = AppModel.coreData(try scene.bundle())
    let opening = try openMigrating(scene.store, model: model, mappings: [], home: scene.home)
    #expect(opening.events.map(\.kind) == [.backup, .migration])
    try opening.store.close()
  }

  @Test func progressAndReopening() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let shares = Mutex<[Double]>([])
    let opening = try openReporting(scene.store(), with: try scene.coordinator()) { share in
      shares.withLock { $0.append(share) }
    }
    #expect(shares.withLock { $0.last } == 1)
    let again = try reopen(opening.store, model: try scene.appModel())
    #expect(again.events.isEmpty)
    try again.store.close()
  }
}
