import Foundation
import LazaretTesting
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What is in a bundle at each level.
struct LevelTests {
  // Drift is damage of the schema of Core Data, which a plain store has not.
  @Test(arguments: DamageKind.Name.allCases.filter { $0 != .drift })
  func everyKindOfDamageIsExportedAtEveryLevel(_ kind: DamageKind.Name) throws {
    let isJournal = [.journalMissing, .journalHeader, .journalShape].contains(kind)
    let scene = try ExportScene.plain(log: !isJournal, journal: isJournal)
    try scene.damage(kind.rawValue)
    let before = try FolderContents(of: scene.stores)
    for level in BundleLevel.allCases {
      let (summary, received) = try scene.export(level)
      #expect(received.level == level)
      let facts = try JSONDecoder().decode(
        BundleFacts.self, from: Data(try scene.content(BundleFacts.name, of: received)))
      #expect(facts.level == level)
      #expect(facts.store == "App")
      let names = Set(received.files.map(\.name))
      for name in ["README.txt", "salvage.json", "examination.json", "schema.sql", "system.json", "log.txt"] {
        #expect(names.contains(name), "\(level)")
      }
      #expect((facts.storePath != nil) == (level == .scrubbed || level == .full))
      if let path = facts.storePath { #expect(names.contains(path)) }
      #expect(names.contains("pages/pages.bin") == (level == .damagedPages))
      #expect(names.contains("scrub.json") == (level == .scrubbed))
      #expect(summary.bundle.items.count == received.files.count + 4)
      try scene.system.unlink(try #require(summary.path.path))
    }
    #expect(try FolderContents(of: scene.stores) == before)
    try scene.expectTidy()
  }

  @Test func allOfItIsByteForByte() throws {
    let scene = try ExportScene.plain()
    try scene.folder.write("a large value", to: "Stores/.App_SUPPORT/_EXTERNAL_DATA/0A1B-2C")
    try scene.folder.write("an index", to: "Stores/App.sqlite-shm")
    let (_, received) = try scene.export(.full)
    let names = ["App.sqlite", "App.sqlite-wal", "App.sqlite-shm", ".App_SUPPORT/_EXTERNAL_DATA/0A1B-2C"]
    #expect(Set(received.files.map(\.name).filter { $0.hasPrefix("store/") }) == Set(names.map { "store/\($0)" }))
    for name in names {
      let original = try scene.system.contents(of: scene.stores.pushing(FilePath(name)), limit: 1 << 24)
      #expect(try scene.content("store/\(name)", of: received) == original, "\(name)")
    }
    let storePath = try #require(received.storePath)
    #expect(storePath.lastComponent == "App.sqlite")
  }

  @Test(arguments: [".App_SUPPORT", ".App_SUPPORT/_EXTERNAL_DATA", ".App_SUPPORT/_EXTERNAL_DATA/0A1B-2C"])
  func aLinkAmongLargeValuesIsLeftOutAndTold(name: String) throws {
    let scene = try ExportScene.plain()
    try scene.folder.write("a large value", to: "Stores/.App_SUPPORT/_EXTERNAL_DATA/0A1B-2C")
    let (place, elsewhere) = (scene.folder.appending("Stores/\(name)"), scene.folder.appending("Elsewhere"))
    try scene.system.rename(place, to: elsewhere)
    try FileManager.default.createSymbolicLink(atPath: place.string, withDestinationPath: elsewhere.string)
    let (summary, received) = try scene.export(.full)
    #expect(!received.files.contains { $0.name.contains("_SUPPORT") })
    #expect(summary.remarks == ["large values left out, as links or without a plain name: 1"])
  }

  @Test(arguments: ["zero:30", "rand:20", "roots", "wal-badsum", "none"])
  func theDamagedPagesAreThoseOfTheStore(_ kind: String) throws {
    let scene = try ExportScene.plain(log: kind.hasPrefix("wal"), hasLongValues: kind != "none")
    try scene.damage(kind)
    let (_, received) = try scene.export(.damagedPages)
    let bytes = try scene.content("pages/pages.bin", of: received)
    let index = try scene.json("pages/index.json", of: received)
    let pieces = try #require(index["pieces"] as? [[String: Any]])
    let map = try scene.json("page-map.json", of: received)
    let runs = try #require(map["runs"] as? [[String: Any]])
    var place = 0
    var pages = Set<Int>()
    for piece in pieces {
      let (offset, length) = (try #require(piece["offset"] as? Int), try #require(piece["length"] as? Int))
      #expect(piece["at"] as? Int == place)
      let word = try #require(piece["part"] as? String)
      let part = try #require(StoreFileSet.Part(rawValue: word))
      let file = try scene.system.contents(of: StoreFileSet(main: scene.store).path(of: part), limit: 1 << 24)
      #expect(Array(bytes[place..<(place + length)]) == Array(file[offset..<(offset + length)]))
      place += length
      let (first, count) = (try #require(piece["page"] as? Int), try #require(piece["pages"] as? Int))
      for number in first..<(first + count) { pages.insert(number) }
    }
    #expect(place == bytes.count)
    #expect(pages.contains(1))
    for run in runs {
      let (first, last) = (try #require(run["first"] as? Int), try #require(run["last"] as? Int))
      let state = try #require(run["state"] as? String)
      for number in first...last {
        switch state {
        case "damaged", "orphan", "unplaced": #expect(pages.contains(number), "page \(number) is \(state)")
        case "healthy":
          if number > 1, run["table"] as? String != "sqlite_schema" {
            #expect(!pages.contains(number), "page \(number) is healthy")
          }
        default: break
        }
      }
    }
    // Of a sound store there is the schema alone.
    if kind == "none" { #expect(bytes.count <= 2 * 1024) }
  }

  @Test func thePreviewSaysWhatIsWritten() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:10")
    for (number, level) in BundleLevel.allCases.enumerated() {
      let prepared = try scene.exporter(seed: UInt64(100 + number)).make(ExportOptions(level: level))
      let preview = prepared.preview
      let asked = try #require(preview.asked)
      #expect(preview.levels.map(\.level) == BundleLevel.allCases)
      #expect(asked.isExact)
      #expect(asked.bytes == preview.files.reduce(0) { $0 + $1.bytes })
      #expect(asked.files == preview.files.count)
      #expect(preview.files.allSatisfy { !$0.words.isEmpty })
      let summary = try prepared.write(at: scene.out)
      let content = summary.bundle.items.filter { $0.name.hasPrefix("data/") }
      #expect(content.map { String($0.name.dropFirst(5)) }.sorted() == preview.files.map(\.name))
      #expect(content.reduce(0) { $0 + $1.bytes } == asked.bytes)
      // An estimate, good to a third.
      #expect(abs(summary.bundle.bytes - asked.packedBytes) < max(4000, summary.bundle.bytes / 3), "\(level)")
      for other in preview.levels where other.level != level && other.isExact {
        let exact = try scene.exporter().make(ExportOptions(level: other.level)).preview.asked
        #expect(other.bytes == exact?.bytes, "\(other.level) told by \(level)")
        #expect(other.files == exact?.files)
      }
    }
    try scene.expectTidy()
  }

  @Test func aStoreOfAnotherNameOpensToo() throws {
    let scene = try ExportScene.plain(log: false)
    let other = scene.stores.appending("default.store")
    try scene.system.rename(scene.store, to: other)
    let summary = try SupportExports(home: scene.home).export(other, ExportOptions(level: .full), at: scene.out)
    let received = try scene.open(summary)
    #expect(received.store == "default")
    #expect(received.storePath?.lastComponent == "default.sqlite")
  }

  @Test func whatIsNotThereCannotBeExported() throws {
    let scene = try ExportScene()
    let error = #expect(throws: (any Error).self) { try scene.export(.facts) }
    #expect((error as? any ReportableError)?.code == "not-in-quarantine")
    try scene.expectTidy()
  }
}
