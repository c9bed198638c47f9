import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// The loss of one thing of a store's schema or bookkeeping.
struct SchemaDriftTests {
  private static let model = ManagedObjectModel(
    entities: [
      Entity(
        name: "Ship",
        properties: [
          .attribute(Attribute(traits: PropertyTraits(name: "code", isOptional: true), type: .string)),
          .attribute(Attribute(traits: PropertyTraits(name: "length", isOptional: true), type: .double)),
        ], uniquenessConstraints: [["code"]]),
      Entity(
        name: "Port",
        properties: [.attribute(Attribute(traits: PropertyTraits(name: "name", isOptional: true), type: .string))]),
    ])

  private func makeStore(_ folder: TemporaryFolder) throws -> FilePath {
    let creation = try StoreCreation(
      model: Self.model, uuid: "00000000-0000-4000-8000-000000000001", modelCache: try Self.model.modelCache())
    let path = try folder.write(try creation.bytes(), to: "Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          INSERT INTO ZSHIP (Z_PK, Z_ENT, Z_OPT, ZCODE) VALUES (1, 2, 1, 'a'), (2, 2, 1, 'b');
          INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'Kiel');
          UPDATE Z_PRIMARYKEY SET Z_MAX = 3 - Z_ENT + 1; PRAGMA wal_checkpoint(TRUNCATE)
          """)
    }
    try queue.close()
    return path
  }

  @Test(
    "The store is repairable, its pages are sound, and the same seed gives the same bytes",
    arguments: [
      ("column", ["missing-column", "missing-unique-index"]), ("table", ["missing-table", "missing-unique-index"]),
      ("index", ["missing-unique-index"]), ("key-row", ["missing-key-row"]), ("key-maximum", ["low-key-maximum"]),
      ("entity-number", ["other-entity-number"]), ("model-cache", ["other-model-cached"]),
    ])
  func drifted(word: String, codes: [String]) throws {
    let folder = try TemporaryFolder()
    let store = try makeStore(folder)
    let before = try FolderContents(of: folder.path)
    let kind = try DamageKind("drift:\(word)")
    let version = ModelVersion(name: "V1", model: Self.model, isCurrent: true)
    let bundle = try #require(ModelBundle(name: "App", versions: [version]))
    for seed in UInt64(1)...4 {
      let out = try TemporaryFolder()
      let first = try DamagedCopy.make(
        of: store, at: out.appending("First.sqlite"), kinds: [kind], seed: seed)
      #expect(first.kinds == ["drift:\(word)"])
      _ = try DamagedCopy.make(of: store, at: out.appending("Second.sqlite"), kinds: [kind], seed: seed)
      let bytes = try ["First.sqlite", "Second.sqlite"].map {
        try FileSystem().contents(of: out.appending($0), limit: 1 << 24)
      }
      #expect(bytes[0] == bytes[1])
      let examination = try Examiner().examine(out.appending("First.sqlite"), model: .coreData(bundle))
      #expect(examination.verdict == .repairable)
      let found = Set(examination.drift?.differences.map(\.code) ?? [])
      #expect(!found.isEmpty && found.isSubset(of: codes), "\(found)")
    }
    #expect(try FolderContents(of: folder.path) == before)
  }

  @Test("A plain store has nothing of the kind")
  func plain() throws {
    let folder = try TemporaryFolder()
    let store = try DamagedCopyTests.makeStore(folder, log: false)
    let kind = try DamageKind("drift:table")
    let error = #expect(throws: PersistentStoreError.self) {
      try DamagedCopy.make(of: store, at: folder.appending("Copy.sqlite"), kinds: [kind], seed: 1)
    }
    #expect(error?.kind == .nothingToDamage)
  }
}
