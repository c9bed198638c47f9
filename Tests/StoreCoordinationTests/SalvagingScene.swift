import GRDB
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// A damaged store with records that can be recovered, and with a large value in a file.
struct SalvagingScene {
  let scene: Scene

  /// The undamaged store, elsewhere.
  let whole: FilePath

  /// The parts of the damaged one.
  let before: [String: [UInt8]]

  static let records = 60

  /// - Parameters:
  ///   - kind: the damage, as the command line names it.
  ///   - version: the version that the store is of.
  init(
    _ kind: String = "header", seed: UInt64 = 7, records: Int = Self.records, version: String = "V2",
    in parent: FilePath? = nil
  ) throws {
    scene = try Scene(in: parent)
    whole = scene.folder.appending("Whole.sqlite")
    let bundle = try ModelBundle.load(path: scene.model, order: ["V1", "V2", "V3"])
    let model = try #require(bundle.version(named: version)).model
    _ = try StoreGenerator(model, options: .init(.sparse, seed: seed, records: records)).write(to: whole)
    let opened = try PersistentStore(opening: whole)
    try opened.write { database in
      for number in 1...records {
        try database.execute(
          sql: "UPDATE ZCAR SET ZNAME = ? WHERE Z_PK = ?", arguments: ["car \(number)", number])
      }
    }
    try opened.close()
    _ = try DamagedCopy.make(of: whole, at: scene.store(), kinds: [try DamageKind(kind)], seed: seed)
    try scene.folder.write("a large value", to: "Stores/.App_SUPPORT/_EXTERNAL_DATA/0A1B")
    before = try scene.parts(scene.store())
  }

  /// A coordinator that quarantines and salvages.
  func coordinator(
    _ policy: OpeningPolicy = OpeningPolicy(), fileSystem: FileSystem = FileSystem()
  ) throws -> StoreCoordinator {
    try scene.coordinator(policy, home: scene.home, surroundings: .still(fileSystem: fileSystem))
  }

  /// The names of the cars in a store, sorted.
  static func names(_ store: PersistentStore) throws -> [String] {
    try store.read { try String.fetchAll($0, sql: "SELECT ZNAME FROM ZCAR ORDER BY ZNAME") }
  }

  static func allNames(_ records: Int = Self.records) -> [String] { (1...records).map { "car \($0)" }.sorted() }

  /// The names in `Stores` and `Incompatible` that only an unfinished run would have left.
  func leftovers() throws -> [String] {
    let system = scene.system
    var names = try scene.names().filter { $0.hasPrefix(".") && $0 != ".App_SUPPORT" }
    guard try system.status(of: scene.incompatible) != nil else { return names }
    names += try system.entries(of: scene.incompatible).map(\.string).filter { name in
      name.hasPrefix(".") && !name.hasSuffix("_SUPPORT")
    }
    return names
  }

  /// The evidence is whole and unchanged, what was salvaged lies beside it, and a copy is in the place with every record.
  func expectRescued(_ comment: Comment? = nil, _ location: SourceLocation = #_sourceLocation) throws {
    let quarantined = try scene.quarantined()
    try scene.expectQuarantined(before, in: quarantined, comment, location)
    let stored = try #require(quarantined.first, comment, sourceLocation: location)
    let salvage = try #require(stored.receipt?.salvage, comment, sourceLocation: location)
    #expect(salvage.state == .installed, comment, sourceLocation: location)
    #expect(!salvage.isWanted, comment, sourceLocation: location)
    #expect(salvage.installed?.path.path == scene.store(), comment, sourceLocation: location)
    let result = try #require(salvage.result, comment, sourceLocation: location)
    let name = try #require(result.name.path)
    #expect(
      try FileDigest(of: scene.system.open(scene.incompatible.pushing(name))).hexadecimal == result.sha256, comment,
      sourceLocation: location)
    let examination = try Examiner().examine(
      scene.store(), model: try scene.appModel(), options: .init(depth: .full))
    #expect(examination.verdict == .compatible, comment, sourceLocation: location)
    let bundle = try ModelBundle.load(path: scene.model, order: ["V1", "V2", "V3"])
    let store = try PersistentStore(opening: scene.store(), model: bundle.current.model)
    #expect(try Self.names(store) == Self.allNames(), comment, sourceLocation: location)
    #expect(
      try store.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok", comment,
      sourceLocation: location)
    try store.close()
    let large = scene.stores.appending(".App_SUPPORT/_EXTERNAL_DATA/0A1B")
    #expect(
      try scene.system.contents(of: large, limit: 100) == Array("a large value".utf8), comment,
      sourceLocation: location)
    #expect(try leftovers().isEmpty, comment, sourceLocation: location)
  }
}
