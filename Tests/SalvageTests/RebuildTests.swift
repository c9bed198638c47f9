import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Stores rebuilt from damaged ones")
struct RebuildTests {
  @Test("An undamaged store equals itself, with and without its model", arguments: [UInt64(1), 2])
  func undamaged(seed: UInt64) throws {
    let scene = try RebuildScene(seed: seed)
    for withModel in [true, false] {
      let result = try scene.rebuild(scene.store, withModel: withModel)
      #expect(result.differences == [], "seed \(seed)")
      #expect(result.report.isComplete)
      #expect(result.report.rebuild?.isFaithful == true)
      #expect(
        try FileSystem().entries(of: result.folder.path).map(\.string).sorted() == ["Original.sqlite", "Out.sqlite"])
    }
  }

  @Test("Records in the log are part of it, and the result is migrated")
  func migrated() throws {
    let scene = try RebuildScene(seed: 3, journal: .log)
    let result = try scene.rebuild(scene.store, migrates: true)
    #expect(result.differences == [])
    #expect(result.report.rebuild?.version == "V1")
    #expect(result.report.rebuild?.migratedTo == "V2")
    #expect(result.report.rebuild?.steps.count == 1)
  }

  @Test(
    "Damaged stores open again, and no surviving record is another one than before",
    arguments: ["zero:5", "rand:5", "roots", "header", "page1", "interior", "torn:5", "trunc:20", "swap:5"],
    [UInt64(1), 2])
  func damaged(kind: String, seed: UInt64) throws {
    let scene = try RebuildScene(seed: seed)
    let result = try scene.rebuild(scene.damaged(kind, seed: seed))
    let report = result.report
    #expect(result.count(.extraRecord) == 0, "\(kind), seed \(seed)")
    #expect(result.count(.value) == 0, "\(kind), seed \(seed)")
    #expect(result.count(.extraDestination) == 0, "\(kind), seed \(seed)")
    #expect(result.count(.oneSided) == 0, "\(kind), seed \(seed)")
    if result.count(.missingRecord) > 0 { #expect(!report.isComplete, "\(kind), seed \(seed)") }
    if ["roots", "header", "interior"].contains(kind) { #expect(result.differences == [], "\(kind), seed \(seed)") }
  }

  @Test("Contradictions and references to nothing are repaired, counted and kept aside")
  func repairs() throws {
    let scene = try RebuildScene(seed: 7, records: 60)
    try scene.change(
      "DELETE FROM ZPORT WHERE Z_PK = 2",
      "UPDATE ZFLAG SET Z_OPT = NULL WHERE Z_PK = 1", "DROP INDEX Z_Person_UNIQUE_name",
      "UPDATE ZPERSON SET ZNAME = (SELECT ZNAME FROM ZPERSON WHERE Z_PK = 8) WHERE Z_PK = 9")
    let result = try scene.rebuild(scene.store)
    let rebuild = try #require(result.report.rebuild)
    #expect(!result.report.isComplete)
    #expect(rebuild.conflicts.map(\.primaryKeys) == [[9]])
    #expect(rebuild.corrected.contains { $0.property == "Z_OPT" })
    #expect(rebuild.referencesCut.contains { $0.reason == .halfPair })
    #expect(result.count(.extraDestination) == 0)
    let aside = try #require(rebuild.setAsideFile)
    // What it holds is the user's too: like the store, it is its owner's alone.
    for file in [result.store, aside] {
      #expect(try FileSystem().status(of: file)?.permissions == .ownerReadWrite, "\(file)")
    }
    let queue = try DatabaseQueue(path: aside.string)
    try queue.read { database in
      let key = try Int64.fetchOne(database, sql: "SELECT Z_PK FROM lazaret_set_aside_ZPERSON")
      #expect(key == 9)
      let reason = try String.fetchOne(database, sql: "SELECT lazaret_reason FROM lazaret_set_aside_ZPERSON")
      #expect(reason == "conflict")
    }
    try queue.close()
  }

  @Test("A spatial index is made again, with its node table's schema row and without", arguments: [false, true])
  func spatialIndex(lacksNodes: Bool) throws {
    let element = { FetchIndexElement(propertyName: $0, kind: .rTree) }
    let coordinates = ["lat", "lon"].map { name in
      Property.attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: .double))
    }
    let model = ManagedObjectModel(entities: [
      Entity(
        name: "Place", properties: coordinates,
        fetchIndexes: [FetchIndex(name: "loc", elements: [element("lat"), element("lon")])])
    ])
    let bundle = try #require(
      ModelBundle(name: "P", versions: [ModelVersion(name: "P", model: model, isCurrent: true)]))
    let folder = try TemporaryFolder()
    let store = folder.appending("P.sqlite")
    let bytes = try StoreCreation(model: model, uuid: "6E4C5A52-0F3B-4A6C-9D7A-2B1C5D8E9F00", modelCache: nil).bytes()
    try FileSystem().writeAtomically(bytes, to: store, replacing: false)
    let opened = try PersistentStore(opening: store)
    try opened.write { database in
      for key in 1...400 {
        try database.execute(
          sql: "INSERT INTO ZPLACE (Z_PK, Z_ENT, Z_OPT, ZLAT, ZLON) VALUES (?, 1, 1, ?, ?)",
          arguments: [key, Double(key) / 10, Double(key) / 7])
      }
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 400")
      if lacksNodes {
        try database.execute(sql: "PRAGMA writable_schema = 1")
        try database.execute(sql: "DELETE FROM sqlite_master WHERE name = 'Z_RT_Place_loc_node'")
      }
    }
    try opened.close()
    for model in [SalvageModel.coreData(bundle), nil] {
      let out = folder.appending(model == nil ? "Without.sqlite" : "With.sqlite")
      _ = try Salvager().salvage(store, to: out, model: model)
      let database = try DatabaseQueue(path: out.string)
      let counts = try database.read { database in
        try ["ZPLACE", "Z_RT_Place_loc"].map { try Int.fetchOne(database, sql: "SELECT count(*) FROM \($0)") }
      }
      #expect(counts == [400, 400])
      #expect(try database.read { try String.fetchOne($0, sql: "SELECT rtreecheck('Z_RT_Place_loc')") } == "ok")
    }
  }

  @Test("Of two rows of one primary key one is set aside and counted")
  func sharedKeys() throws {
    let scene = try RebuildScene(seed: 7, records: 60)
    let queue = try DatabaseQueue(path: scene.store.string)
    let columns = try queue.read {
      try String.fetchAll($0, sql: "SELECT name || ' ' || type FROM pragma_table_info('ZFLAG')")
    }
    try queue.close()
    try scene.change(
      "CREATE TABLE loose (\(columns.joined(separator: ", ")))", "INSERT INTO loose SELECT * FROM ZFLAG",
      "DROP TABLE ZFLAG", "ALTER TABLE loose RENAME TO ZFLAG", "UPDATE ZFLAG SET Z_PK = 2 WHERE Z_PK = 3")
    let report = try scene.rebuild(scene.store).report
    #expect(!report.isComplete && report.rebuild?.setAside.map(\.count) == [1], "\(report.rebuild?.setAside ?? [])")
  }

  @Test("A plain store keeps its tables, constraints and indexes")
  func plain() throws {
    let folder = try TemporaryFolder()
    let store = folder.appending("Plain.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE cars (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, upper TEXT AS (upper(name)));
          CREATE TABLE words (word TEXT PRIMARY KEY, uses INTEGER CHECK (uses > 0)) WITHOUT ROWID;
          CREATE INDEX byUses ON words (uses); CREATE VIEW names AS SELECT name FROM cars;
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
          INSERT INTO cars (name) SELECT 'car ' || i FROM n;
          INSERT INTO words SELECT name, id FROM cars; PRAGMA user_version = 7
          """)
    }
    let before = try TableDump(queue, ["cars", "words", "names"])
    try queue.close()
    let out = folder.appending("Out.sqlite")
    let report = try Salvager().salvage(store, to: out)
    #expect(report.isComplete)
    let rebuilt = try DatabaseQueue(path: out.string)
    #expect(try TableDump(rebuilt, ["cars", "words", "names"]) == before)
    try rebuilt.read { database in
      let version = try Int.fetchOne(database, sql: "PRAGMA user_version")
      #expect(version == 7)
      let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master WHERE name = 'byUses'")
      #expect(count == 1)
    }
    try rebuilt.close()
  }

  @Test("An error or a cancellation leaves nothing behind")
  func nothingIsLeft() throws {
    let scene = try RebuildScene(seed: 2, records: 30)
    let results = try TemporaryFolder()
    for phase in [SalvagePhase.rows, .rebuild, .migration] {
      let error = #expect(throws: SalvageError.self) {
        try Salvager().salvage(
          scene.store, to: results.appending("Out.sqlite"), model: .coreData(scene.bundle),
          options: .init { now, _, _ in now != phase })
      }
      #expect(error?.kind == .cancelled)
      #expect(try FileSystem().entries(of: results.path).isEmpty, "\(phase)")
    }
  }
}

/// The rows of some tables.
struct TableDump: Equatable {
  let rows: [[DatabaseValue]]

  init(_ queue: DatabaseQueue, _ names: [String]) throws {
    rows = try queue.read { database in
      try names.flatMap { name in
        try Row.fetchAll(database, sql: "SELECT * FROM \(name) ORDER BY 1").map { row in row.map { $0.1 } }
      }
    }
  }
}
