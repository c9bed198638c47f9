import Foundation
import GRDB
import Lazaret
import Logging
import Platform
import SystemPackage
import TestSupport
import Testing

/// The examples of the library's documentation.
struct LibraryExampleTests {
  @Test func theDocumentHasTheExamplesThatAreCompiledHere() throws {
    func text(_ name: String) throws -> String {
      try String(contentsOfFile: RealMaterial.projectRoot.appending(name).string, encoding: .utf8)
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

  @Test func aStoreTellsItsModel() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 1)
    let written = try StoreModel(contentsOf: scene.model).versions.last
    #expect(try releasedChecksum(scene.place) == #require(written).checksum)
    #expect(try releasedChecksum(scene.url("nothing.sqlite")) == nil)
  }

  @Test func theAppGoesBackToItsBackup() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 1)
    let store = try scene.store(home: scene.home)
    #expect(try await backUp(store) != nil)
    #expect(try await backUp(store) == nil)
    try scene.write {
      try $0.execute(
        sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (2, 1, 1, 'New'); UPDATE Z_PRIMARYKEY SET Z_MAX = 2")
    }
    #expect(try await !bringBack(store, losingAtMost: 0))
    #expect(try await bringBack(store, losingAtMost: 1))
    #expect(try scene.names() == ["Car 1"])
  }

  /// A pair is no record of its own, and is lost all the same.
  @Test func pairsCountAgainstTheLimit() async throws {
    let scene = try AppScene()
    func entity(_ name: String, _ relationship: String, _ other: String, _ inverse: String) -> String {
      """
      <entity name="\(name)" representedClassName="\(name)" syncable="YES">
        <relationship name="\(relationship)" optional="YES" toMany="YES" deletionRule="Nullify"
          destinationEntity="\(other)" inverseName="\(inverse)" inverseEntity="\(other)"/>
      </entity>
      """
    }
    try scene.folder.write(
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
      \(entity("Car", "tags", "Tag", "cars"))\(entity("Tag", "cars", "Car", "tags"))
      </model>
      """, to: "Tags.xcdatamodel/contents")
    let store = try scene.store(scene.url("Tags.xcdatamodel"), home: scene.home)
    _ = try await store.open()
    try scene.write { database in
      try database.execute(
        sql: """
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1); INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
          UPDATE Z_PRIMARYKEY SET Z_MAX = 1
          """)
    }
    #expect(try await backUp(store) != nil)
    try scene.write { database in
      let table = try String.fetchOne(
        database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*'")
      try database.execute(sql: "INSERT INTO \(try #require(table)) VALUES (1, 1)")
    }
    let preview = try await store.backups.preview()
    #expect(preview.entities.allSatisfy { $0.lost == 0 && $0.changed == 0 })
    #expect(preview.pairs.map(\.name) == ["Car.tags and Tag.cars"] && preview.pairs.map(\.lost) == [1])
    #expect(try await !bringBack(store, losingAtMost: 0))
    #expect(try await bringBack(store, losingAtMost: 1))
  }

  @Test func theAppShowsAnAlertOnce() async throws {
    let scene = try AppScene()
    try scene.makeNonsense()
    guard case .alert(let notice, _) = await start(store: scene.place, model: scene.model) else {
      Issue.record("no alert")
      return
    }
    #expect(notice.title == "Your data was set aside")
    guard case .ready = await start(store: scene.place, model: scene.model) else {
      Issue.record("not ready")
      return
    }
    guard case .tryAgain = await start(store: scene.url("Stores"), model: scene.model) else {
      Issue.record("a folder is no damage")
      return
    }
    guard case .broken = await start(store: scene.place, model: scene.place) else {
      Issue.record("a store is no model")
      return
    }
  }

  @Test func theRecordsAreRecoveredLater() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2000)
    try scene.damage()
    var store = try scene.store(home: scene.home)
    store.policy.whenDamaged = .salvageLater
    store.policy.depth = .full
    let opening = try await store.open()
    #expect(try scene.names().isEmpty)
    let id = try #require(opening.events.first?.id)
    let shares = Mutex<[Double]>([])
    let recovered = try await recover(id, of: store) { share in shares.withLock { $0.append(share) } }
    #expect(recovered == Int64(try scene.names().count))
    #expect(recovered > 0)
    #expect(shares.withLock { $0 == $0.sorted() })
  }

  @Test func theServerRefuses() async throws {
    let scene = try AppScene()
    try scene.makeNonsense()
    let before = try FolderContents(of: scene.folder.path)
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let model = try StoreModel(contentsOf: scene.model)
    let error = try await #require(throws: StoreError.self) {
      try await openForServing(scene.place, model: model, logger: logger)
    }
    #expect(error.code == "store-damaged")
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func anOlderStoreIsMigrated() async throws {
    let scene = try AppScene()
    try await scene.make("V1", cars: 1)
    let model = try StoreModel(contentsOf: scene.model)
    let opening = try await openMigrating(scene.place, model: model, mapping: nil, home: scene.home)
    #expect(opening.events.map(\.kind) == [.backup, .migration])
    try await opening.waitForCheck()
  }

  @Test func progressAndReopening() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2000)
    try scene.damage()
    let store = try scene.store(home: scene.home)
    var full = store
    full.policy.depth = .full
    let shares = Mutex<[Double]>([])
    let opening = try await openReporting(full, for: .seconds(120)) { share in shares.withLock { $0.append(share) } }
    #expect(opening.notice != nil)
    #expect(shares.withLock { $0.last } != nil)
    let again = try await reopen(store)
    #expect(again.events.isEmpty)
  }

  @Test func aReportIsMadeIfTheUserAgrees() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2)
    let store = try scene.store(home: scene.home)
    let entry = try await store.quarantine.add()
    let folder = scene.url("Stores")
    // Any public key will do.
    let key = "age1dty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur4"
    #expect(try await report(store, of: entry, into: folder, key: key) { _ in false } == nil)
    let bundle = try #require(try await report(store, of: entry, into: folder, key: key) { _ in true })
    #expect(try Data(contentsOf: bundle).starts(with: Data("age-encryption.org/v1".utf8)))
  }
}
