import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("In which order the columns of a table stand whose definition is lost")
struct ColumnOrderTests {
  @Test("Classes and indexes tell; what nothing tells apart is doubtful, and nothing is wrong unmarked")
  func otherWriter() throws {
    let scene = try RebuildScene(seed: 31)
    let queue = try DatabaseQueue(path: scene.store.string)
    for table in ["ZPERSON", "ZSHIP"] { try LostSchema.reorder(table, queue) { $0.reversed() } }
    try queue.vacuum()
    try queue.close()
    let damaged = scene.folder.appending("Damaged.sqlite")
    try LostSchema.damage(scene.store, to: damaged)
    let result = try scene.rebuild(damaged)
    func entity(_ name: String) throws -> SalvageReport.Entity {
      try #require(result.report.entities.first { $0.name == name })
    }
    #expect(try entity("Person").recovered > 50)
    #expect(try entity("Person").doubtful == 0)
    #expect(!result.differences.contains { $0.kind == .value && $0.entityName == "Person" })
    let cut = result.differences.filter { $0.kind == .missingDestination || $0.kind == .missingRecord }
    #expect(cut == [])
    // Both of a ship's texts are text, but every ship has a name.
    let ships = try entity("Ship")
    #expect(ships.recovered > 0)
    let wrong = Set(result.differences.filter { $0.kind == .value && $0.entityName == "Ship" }.map(\.primaryKey))
    #expect(ships.doubtful >= wrong.count)
  }

  @Test("A fresh store is taken for one where nothing speaks against it")
  func fresh() throws {
    let scene = try RebuildScene(seed: 32)
    let damaged = scene.folder.appending("Damaged.sqlite")
    try LostSchema.damage(scene.store, to: damaged)
    let result = try scene.rebuild(damaged)
    #expect(result.differences == [])
    #expect(result.report.entities.allSatisfy { $0.doubtful == 0 })
  }

  /// A store of the second version of notes, whose author was added to a table that had rows.
  private func altered(
    _ folder: TemporaryFolder, _ versions: [ManagedObjectModel], then statement: String = ""
  ) throws -> FilePath {
    let model = versions[1]
    let image = try StoreCreation(
      model: model, uuid: "6D7E5C0A-9E1B-4A55-8C11-0123456789AB", modelCache: try model.modelCache()
    ).bytes()
    let store = try folder.write(image, to: "Notes.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          DROP TABLE ZNOTE;
          CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBODY VARCHAR, ZTITLE VARCHAR);
          WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
          INSERT INTO ZNOTE SELECT i, 1, 1, 'body ' || i, 'title ' || i FROM n;
          ALTER TABLE ZNOTE ADD COLUMN ZAUTHOR VARCHAR;
          UPDATE ZNOTE SET ZAUTHOR = 'author ' || Z_PK WHERE Z_PK > 150;
          \(statement);
          VACUUM
          """)
    }
    try queue.close()
    return store
  }

  private func versions() -> [ManagedObjectModel] {
    [["title", "body"], ["title", "body", "author"]].map { names in
      ManagedObjectModel(entities: [
        Entity(
          name: "Note",
          properties: names.map {
            .attribute(Attribute(traits: PropertyTraits(name: $0, isOptional: true), type: .string))
          })
      ])
    }
  }

  @Test("Columns that were added stand last; the earlier version tells which, and without it they are doubtful")
  func added() throws {
    let folder = try TemporaryFolder()
    let models = versions()
    let store = try altered(folder, models)
    let damaged = folder.appending("Damaged.sqlite")
    try LostSchema.damage(store, to: damaged)
    for known in [2, 1] {
      let list = models.suffix(known).enumerated().map { number, model in
        ModelVersion(name: "V\(number)", model: model, isCurrent: number == known - 1)
      }
      let bundle = try #require(ModelBundle(name: "Notes", versions: list))
      let out = folder.appending("Out\(known).sqlite")
      let report = try Salvager().salvageRaw(damaged, to: out, model: .coreData(bundle))
      let note = try #require(report.entities.first { $0.name == "Note" })
      #expect(note.recovered == 200)
      #expect(note.doubtful == (known == 2 ? 0 : 200))
      guard known == 2 else { continue }
      let wrong = try DatabaseQueue(path: out.string).read { database in
        try Int.fetchOne(
          database,
          sql: """
            SELECT count(*) FROM ZNOTE WHERE ZBODY IS NOT 'body ' || Z_PK OR ZTITLE IS NOT 'title ' || Z_PK
            OR ZAUTHOR IS NOT CASE WHEN Z_PK > 150 THEN 'author ' || Z_PK END
            """)
      }
      #expect(wrong == 0)
    }
  }

  @Test("Rows with the same value in the columns that nothing tells apart are not doubtful")
  func certainRows() throws {
    let folder = try TemporaryFolder()
    let models = versions()
    let store = try altered(
      folder, models,
      then: "UPDATE ZNOTE SET ZBODY = NULL, ZTITLE = NULL WHERE Z_PK BETWEEN 101 AND 140")
    let damaged = folder.appending("Damaged.sqlite")
    try LostSchema.damage(store, to: damaged)
    let bundle = try #require(
      ModelBundle(name: "Notes", versions: [ModelVersion(name: "V1", model: models[1], isCurrent: true)]))
    let raw = try Salvager().salvageRaw(damaged, to: folder.appending("Raw.sqlite"), model: .coreData(bundle))
    let rebuilt = try Salvager().salvage(damaged, to: folder.appending("Out.sqlite"), model: .coreData(bundle))
    for report in [raw, rebuilt] {
      let note = try #require(report.entities.first { $0.name == "Note" })
      #expect(note.recovered == 200)
      #expect(note.doubts == [.columnOrder: 160])
      #expect(report.count.words.contains("160 of them doubtful because the definition of their table is lost"))
    }
    let queue = try DatabaseQueue(path: folder.appending("Raw.sqlite").string)
    let doubted = try queue.read { database in
      try Int64.fetchAll(
        database,
        sql: """
          SELECT DISTINCT n.Z_PK FROM ZNOTE AS n WHERE EXISTS (SELECT 1 FROM lazaret_provenance AS r
          WHERE r."table" = 'ZNOTE' AND r."row" = n.Z_PK AND r.doubt = 'column-order') OR EXISTS (SELECT 1
          FROM lazaret_pages AS p WHERE p."table" = 'ZNOTE' AND n.Z_PK BETWEEN p.first_key AND p.last_key
          AND p.doubt = 'column-order') ORDER BY 1
          """)
    }
    try queue.close()
    #expect(doubted == Array(1...100) + Array(141...200))
  }

  @Test("An old definition anywhere in the files tells")
  func definition() throws {
    let folder = try TemporaryFolder()
    let models = versions()
    let store = try altered(folder, models)
    let damaged = folder.appending("Damaged.sqlite")
    try LostSchema.damage(store, to: damaged)
    let bytes = try FileSystem().contents(of: damaged, limit: 1 << 24)
    var page = [UInt8](repeating: 0, count: 4096)
    let words =
      "tableZNOTEZNOTE CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBODY VARCHAR, "
      + "ZTITLE VARCHAR, ZAUTHOR VARCHAR)"
    for (offset, byte) in words.utf8.enumerated() { page[3000 + offset] = byte }
    try FileSystem().writeAtomically(bytes + page, to: damaged, replacing: true)
    let bundle = try #require(
      ModelBundle(name: "Notes", versions: [ModelVersion(name: "V2", model: models[1], isCurrent: true)]))
    let out = folder.appending("Out.sqlite")
    let report = try Salvager().salvageRaw(damaged, to: out, model: .coreData(bundle))
    #expect(report.entities.first { $0.name == "Note" }?.doubtful == 0)
    let wrong = try DatabaseQueue(path: out.string).read { database in
      try Int.fetchOne(database, sql: "SELECT count(*) FROM ZNOTE WHERE ZTITLE IS NOT 'title ' || Z_PK")
    }
    #expect(wrong == 0)
  }
}
