import Foundation
import Lazaret
import Platform
import Salvage
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Bundles of quarantined stores, by the library that apps import.
struct QuarantineExportTests {
  private func quarantined(_ scene: ExportScene) throws -> QuarantinedStore {
    try Quarantines(home: scene.home).add(scene.store, reason: "a word of the user's")
  }

  @Test func theReceiptTellsOfIt() throws {
    let scene = try ExportScene.plain()
    try scene.damage("header")
    let stored = try quarantined(scene)
    let incompatible = scene.stores.appending("Incompatible")
    let before = try FolderContents(of: incompatible, ignoring: ["\(stored.id).json"])
    let exports = SupportExports(home: scene.home)
    let identity = AgeIdentity()
    let summary = try exports.export(
      FilePath(stored.id), ExportOptions(level: .facts, app: "com.example.Garage"), to: [identity.recipient],
      at: scene.out)
    let again = try exports.export(stored.files.main, ExportOptions(level: .full), at: scene.out)
    #expect(try FolderContents(of: incompatible, ignoring: ["\(stored.id).json"]) == before)
    #expect(summary.quarantineID == stored.id)
    let receipt = try #require(try Quarantines(home: scene.home).store(FilePath(stored.id)).receipt)
    let noted = try #require(receipt.exports)
    #expect(noted.map(\.level) == ["facts", "full"])
    #expect(noted.map(\.isEncrypted) == [true, false])
    #expect(noted.map(\.sha256) == [summary.bundle.sha256, again.bundle.sha256])
    #expect(noted.map(\.bytes) == [summary.bundle.bytes, again.bundle.bytes])
    #expect(receipt.history.suffix(2).map(\.kind) == [.exported, .exported])

    let received = try scene.open(again)
    #expect(received.storePath?.lastComponent == "App.sqlite", "the name that the app gave it")
    let facts = try JSONDecoder().decode(
      BundleFacts.self, from: Data(try scene.content(BundleFacts.name, of: received)))
    #expect(facts.quarantineID == stored.id)
    let text = String(decoding: try scene.content("receipt.json", of: received), as: UTF8.self)
    #expect(text.contains("\"originalPath\" : \"App.sqlite\""))
    #expect(!text.contains("a word of the user's"))
    #expect(!text.contains(scene.folder.path.string))
    #expect(
      !String(decoding: try scene.content("timeline.json", of: received), as: UTF8.self).contains(scene.out.string))
    let other = scene.folder.appending("encrypted")
    let opened = try BundleReader(identities: [identity]).unpack(try #require(summary.path.path), into: other)
    #expect(opened.level == .facts && opened.isEncrypted)
    try scene.system.removeTree(scene.home.appending("Keys"))
    #expect(try !scene.system.entries(of: scene.home).contains { $0 == ExportFolder.name })
  }

  @Test func whatIsLeftOfAStoreIsExportedToo() throws {
    let scene = try ExportScene.plain()
    try scene.system.unlink(scene.store)
    let stored = try quarantined(scene)
    let exports = SupportExports(home: scene.home)
    for level in [BundleLevel.facts, .damagedPages, .full] {
      let summary = try exports.export(FilePath(stored.id), ExportOptions(level: level), at: scene.out)
      let received = try scene.open(summary)
      #expect(received.files.contains { $0.name == "store/App.sqlite-wal" } == (level == .full))
      try scene.system.unlink(try #require(summary.path.path))
    }
    let error = #expect(throws: SupportBundleError.self) {
      try exports.export(FilePath(stored.id), ExportOptions(level: .scrubbed), at: scene.out)
    }
    #expect(error?.code == "bundle-store")
  }

  @Test func theSalvageThatWasDoneIsTaken() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:30")
    let stored = try quarantined(scene)
    let salvaged = try Quarantines(home: scene.home).salvage(FilePath(stored.id))
    let summary = try SupportExports(home: scene.home).export(
      FilePath(stored.id), ExportOptions(level: .facts), at: scene.out)
    let received = try scene.open(summary)
    let report = try scene.json("salvage.json", of: received)
    let lost = (report["summary"] as? [String: Any])?["lost"] as? Int64
    #expect(lost == salvaged.report.lost)
    #expect(report["rebuild"] != nil)
    #expect(report["store"] as? String == "\(stored.id).sqlite")
  }

  @Test func theUserIsAskedInWords() throws {
    let scene = try ExportScene.plain()
    for level in BundleLevel.allCases {
      let preview = try scene.exporter().make(ExportOptions(level: level)).preview
      let notice = OpeningNotice.consent(to: preview)
      #expect(notice.key == "lazaret.notice.send-report.\(level.rawValue)")
      #expect(notice.actions.map(\.key).first == "lazaret.action.send")
      #expect(notice.message.contains("B will be sent."))
    }
  }
}
