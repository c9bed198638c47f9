import Foundation
import Lazaret
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What a bundle of a quarantined store tells of its large values: nothing by which a holder of a document could find out that it
/// was among them.
struct LargeValueTests {
  /// Files of large values whose SHA-256 FIPS 180-2 has.
  private static let files: [(path: String, content: [UInt8], sum: String)] = [
    (
      "_EXTERNAL_DATA/0BADCAFE-1234-4000-8000-00C0FFEE0001", [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000),
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    ),
    (
      "_EXTERNAL_DATA/letter-to-quirinus.pdf", Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      "Papers of Wolpertinger/contract.txt", Array("abc".utf8),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    ),
  ]

  /// What must not be found, in every spelling: the sums, and the names.
  private static func needles() -> [[UInt8]] {
    var result: [[UInt8]] = [
      "0BADCAFE-1234-4000-8000-00C0FFEE0001", "letter-to-quirinus", "Papers of Wolpertinger", "contract.txt",
    ].map { Array($0.utf8) }
    for file in files {
      let bytes = stride(from: 0, to: 64, by: 2).compactMap { UInt8(file.sum.dropFirst($0).prefix(2), radix: 16) }
      result += [
        Array(file.sum.prefix(16).utf8), Array(file.sum.uppercased().prefix(16).utf8), Array(bytes.prefix(8)),
        Array(Data(bytes).base64EncodedString().utf8.prefix(40)),
      ]
    }
    return result
  }

  private func quarantined(_ scene: ExportScene) throws -> QuarantinedStore {
    let folder = StoreFileSet(main: scene.store).path(of: .externalData)
    for file in Self.files {
      let path = folder.pushing(FilePath(file.path))
      try scene.system.makeDirectory(path.removingLastComponent())
      try scene.system.writeAtomically(file.content, to: path, replacing: false)
    }
    return try Quarantines(home: scene.home).add(scene.store, reason: "a word of the user's")
  }

  /// Which needles are in any file of a folder, or in a name below it.
  private func found(_ needles: [[UInt8]], in folder: FilePath, _ system: FileSystem) throws -> [Int] {
    var texts = [Data(folder.string.utf8)]
    for file in try system.descendants(of: folder).files {
      texts += [Data(file.path.string.utf8), Data(try system.contents(of: file.path, limit: 1 << 26))]
    }
    return needles.indices.filter { index in texts.contains { $0.range(of: Data(needles[index])) != nil } }
  }

  @Test(arguments: [BundleLevel.facts, .scrubbed])
  func noNameAndNoSumOfAFileIsInABundleWithoutValues(_ level: BundleLevel) throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:30")
    let stored = try quarantined(scene)
    _ = try Quarantines(home: scene.home).salvage(FilePath(stored.id))
    let receipt = try #require(try Quarantines(home: scene.home).store(FilePath(stored.id)).receipt)
    let exports = SupportExports(home: scene.home)
    let sums = receipt.files.map { Array($0.sha256.utf8) } + [Array(try #require(receipt.salvage?.result).sha256.utf8)]
    #expect(sums.count > Self.files.count && sums.allSatisfy { $0.count == 64 })
    // The second one has the first in its receipt.
    for name in ["one", "two"] {
      let summary = try exports.export(FilePath(stored.id), ExportOptions(level: level), at: scene.out)
      let received = try scene.open(summary, as: name)
      let hits = try found(
        Self.needles() + sums + [Array("a word of the user".utf8)], in: received.folder, scene.system)
      #expect(hits.isEmpty, "\(hits)")
      let shared = try scene.json("receipt.json", of: received)
      #expect(shared["format"] as? String == "lazaret-shared-receipt")
      #expect(shared["reason"] as? String == "by-request")
      let parts = try #require(shared["parts"] as? [[String: Any]])
      let large = try #require(parts.first { $0["part"] as? String == "external-data" })
      #expect(large["files"] as? Int == 3 && large["bytes"] as? Int == 1_000_059)
      #expect((shared["exports"] as? [Any])?.count == (name == "one" ? 0 : 1))
      if level == .scrubbed {
        let values = received.files.filter { $0.name.contains("_SUPPORT/") }
        #expect(values.map(\.bytes).sorted() == [56, 1_000_000], "a folder with a space in its name is left out")
      }
      try scene.system.unlink(try #require(summary.path.path))
    }
    // The search finds them where they are.
    let summary = try exports.export(FilePath(stored.id), ExportOptions(level: .full), at: scene.out)
    let hits = try found(Self.needles(), in: try scene.open(summary, as: "full").folder, scene.system)
    #expect(Set(0..<3).isSubset(of: hits) && hits.count >= 6)
  }

  @Test func aScrubbedBundleOfAQuarantinedStoreTellsOnlyMonths() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:30")
    let stored = try quarantined(scene)
    _ = try Quarantines(home: scene.home).salvage(FilePath(stored.id))
    let receipt = try #require(try Quarantines(home: scene.home).store(FilePath(stored.id)).receipt)
    let day = String(receipt.date.prefix(10))
    let needles = [Array("\(day)T".utf8), Array("\(day)-".utf8), Array("\(day) ".utf8), Array(stored.id.utf8)]
    let exports = SupportExports(home: scene.home)
    let summary = try exports.export(FilePath(stored.id), ExportOptions(level: .scrubbed), at: scene.out)
    let received = try scene.open(summary)
    // On the first day of a month nothing but the time of the day can be seen to be gone.
    let wanted = day.hasSuffix("-01") ? [needles[3]] : needles
    #expect(try found(wanted, in: received.folder.appending("data"), scene.system).isEmpty)
    let facts = try scene.json(BundleFacts.name, of: received)
    #expect(facts["quarantineID"] as? String == receipt.lineage?.generation)
    let second = try exports.export(FilePath(stored.id), ExportOptions(level: .facts), at: scene.out)
    let told = try found([Array(stored.id.utf8)], in: try scene.open(second, as: "facts").folder, scene.system)
    #expect(told == [0])
  }
}
