import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What apps put into the metadata of a store.
@Suite("Scrubbing metadata")
struct MetadataTests {
  static let own: [String: PropertyList] = [
    "NSStoreType": .string("SQLite"),
    "NSStoreModelVersionHashes": .dictionary(["Book": .data((0..<32).map { UInt8(31 + $0 * 7) })]),
    "NSPersistenceFrameworkVersion": .integer(1_244_000),
    "_NSAutoVacuumLevel": .string("2"),
  ]

  static let others: [String: PropertyList] = [
    "owner": .string("Wandergeselle Quokka"), "place": .string("東京タワー駅前"),
    "token": .data([0x9d, 0x21, 0x77, 0xee, 0x4b, 0xc3, 0x55, 0x1a, 0x68, 0x90]), "serial": .integer(40_717_253_881),
    "count": .unsigned(18_446_744_073_709_000_123), "weight": .real(3.141592653589793), "since": .date(687_654_321.125),
    "deep": .array([.dictionary(["inner": .string("Schuhgröße vierundvierzig")])]),
  ]

  /// Pieces of those that must be nowhere.
  static let needles: [[UInt8]] = [
    Array("Wandergeselle".utf8), wide("東京タワー"), [0x9d, 0x21, 0x77, 0xee, 0x4b], bigEndian(UInt64(40_717_253_881)),
    bigEndian(18_446_744_073_709_000_123),
    bigEndian((3.141592653589793).bitPattern), bigEndian((687_654_321.125).bitPattern), wide("Schuhgröße"),
  ]

  static func wide(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    for unit in text.utf16 { bytes += [UInt8(unit >> 8), UInt8(unit & 255)] }
    return bytes
  }

  static func bigEndian(_ word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }

  static func scene(_ list: [UInt8]) throws -> ScrubScene {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(
        sql: """
          CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
          CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
          """)
      try db.execute(
        sql: "INSERT INTO Z_METADATA VALUES (1, '6E4C5A52-0F3B-4A6C-9D7A-2B1C5D8E9F00', ?)", arguments: [Data(list)])
    }
    try queue.close()
    return ScrubScene(folder, path)
  }

  static func list(of scene: ScrubScene) throws -> [UInt8] {
    try DatabaseQueue(path: scene.store.string).read {
      try Data.fetchOne($0, sql: "SELECT Z_PLIST FROM Z_METADATA").map(Array.init) ?? []
    }
  }

  static func isIn(_ needle: [UInt8], _ bytes: [UInt8]) -> Bool {
    Data(bytes).range(of: Data(needle)) != nil
  }

  @Test("Where a bit of the metadata is flipped no value of an app's stays")
  func flipped() throws {
    let list = try PropertyList.dictionary(Self.own.merging(Self.others) { first, _ in first }).binaryBytes()
    var random = SeededGenerator(seed: 4)
    var looked = 0
    for _ in 0..<150 {
      var damaged = list
      let place = Int.random(in: 8..<damaged.count, using: &random)
      damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      let (scrubbed, _) = try Self.scene(damaged).scrubbed()
      let result = try Self.list(of: scrubbed)
      for needle in Self.needles where Self.isIn(needle, damaged) {
        looked += 1
        #expect(!Self.isIn(needle, result), "byte \(place)")
      }
    }
    #expect(looked > 1000)
  }

  @Test("Metadata on several pages keeps Core Data's entries, which are no finding; an app's are found there")
  func overPages() throws {
    var random = SeededGenerator(seed: 6)
    let hashes = (0..<300).map { number in
      ("Entity\(number)", PropertyList.data((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }))
    }
    var own = Self.own
    own["NSStoreModelVersionHashes"] = .dictionary(Dictionary(uniqueKeysWithValues: hashes))
    let original = try PropertyList.dictionary(own.merging(Self.others) { first, _ in first }).binaryBytes()
    #expect(original.count > 3 * 4096)
    let scene = try Self.scene(original)
    let (scrubbed, _) = try scene.scrubbed()
    guard case .dictionary(let entries) = try PropertyList(try Self.list(of: scrubbed)) else {
      Issue.record("the metadata is no dictionary any more")
      return
    }
    for (name, value) in own { #expect(entries[name] == value, "\(name)") }
    for (name, value) in Self.others { #expect(entries[name] != value, "\(name)") }

    // One of the app's values, put on a page of the chain by hand.
    var leaking = try scrubbed.files()["main"] ?? []
    let value = Array("Wandergeselle Quokka".utf8)
    leaking.replaceSubrange((leaking.count - 1000)..<(leaking.count - 1000 + value.count), with: value)
    let folder = try TemporaryFolder()
    let path = try folder.write(leaking, to: "Store.sqlite")
    let outcome = try ResultCheck(of: StoreFileSet(main: scene.store)).run(on: StoreFileSet(main: path))
    #expect(try #require(outcome).findings.count == 1)
  }

  @Test("Core Data's entries stay, an app's are replaced, and are looked for")
  func replaced() throws {
    let original = try PropertyList.dictionary(Self.own.merging(Self.others) { first, _ in first }).binaryBytes()
    let (scrubbed, result) = try Self.scene(original).scrubbed()
    let list = try Self.list(of: scrubbed)
    #expect(list.count == original.count)
    guard case .dictionary(let entries) = try PropertyList(list) else {
      Issue.record("the metadata is no dictionary any more")
      return
    }
    #expect(entries.keys.sorted() == (Array(Self.own.keys) + Self.others.keys).sorted())
    for (name, value) in Self.own { #expect(entries[name] == value, "\(name)") }
    for (name, value) in Self.others { #expect(entries[name] != value, "\(name)") }
    for needle in Self.needles {
      #expect(Self.isIn(needle, original))
      #expect(!Self.isIn(needle, try scrubbed.files()["main"] ?? []), "\(needle)")
    }
    for leak in ["Wandergeselle Quokka", "Schuhgröße vierundvierzig", "東京タワー駅前", "40717253881"] {
      #expect(!result.scanner.scan(Array(leak.utf8), named: "x").isEmpty, "\(leak)")
    }
    #expect(result.scanner.scan(Array("NSStoreType _NSAutoVacuumLevel".utf8), named: "x").isEmpty)
  }

  @Test("Entries are Core Data's own by their whole names, and the store's identifier is another one in both places")
  func names() throws {
    let identifier = "6E4C5A52-0F3B-4A6C-9D7A-2B1C5D8E9F00"
    let list = try PropertyList.dictionary([
      "NSStoreType": .string("SQLite"), "NSStoreUUID": .string(identifier),
      "NSCloudKitUserRecordName": .string("Wandergeselle Quokka"), "NSMine": .integer(40_717_253_881),
    ]).binaryBytes()
    let (scrubbed, _) = try Self.scene(list).scrubbed()
    guard case .dictionary(let entries) = try PropertyList(try Self.list(of: scrubbed)),
      case .string(let other)? = entries["NSStoreUUID"]
    else {
      Issue.record("the metadata has no identifier any more")
      return
    }
    #expect(entries["NSStoreType"] == .string("SQLite"))
    #expect(entries["NSCloudKitUserRecordName"] != .string("Wandergeselle Quokka"))
    #expect(entries["NSMine"] != .integer(40_717_253_881))
    #expect(other != identifier && UUID(uuidString: other) != nil)
    let column = try DatabaseQueue(path: scrubbed.store.string).read {
      try String.fetchOne($0, sql: "SELECT Z_UUID FROM Z_METADATA")
    }
    #expect(column == other)
  }

  @Test("What is no binary property list stays only where nothing of an app's is in it")
  func otherForms() throws {
    func xml(_ entries: String) -> [UInt8] {
      Array(
        ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>" + entries + "</dict></plist>").utf8
      )
    }
    let plain = xml("<key>NSStoreType</key><string>SQLite</string>")
    #expect(try Self.list(of: try Self.scene(plain).scrubbed().scene) == plain)
    var cut = try PropertyList.dictionary(Self.own.merging(Self.others) { first, _ in first }).binaryBytes()
    cut.removeLast(20)
    for list in [xml("<key>owner</key><string>Wandergeselle Quokka</string>"), cut, Array("no list at all".utf8)] {
      let (scrubbed, _) = try Self.scene(list).scrubbed()
      let found = try Self.list(of: scrubbed)
      #expect(found.count == list.count)
      for needle in Self.needles + [Array("list at".utf8)] { #expect(!Self.isIn(needle, found)) }
    }
  }
}
