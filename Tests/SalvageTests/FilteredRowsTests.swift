import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Salvage
import TestSupport
import Testing

/// Records that a filter of the app's mapping leaves out when a salvaged store is migrated.
struct FilteredRowsTests {
  private static func model(_ names: String...) -> ManagedObjectModel {
    ManagedObjectModel(entities: [
      Entity(
        name: "Post",
        properties: names.map { name in
          .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: .integer32))
        })
    ])
  }

  @Test func theyAreCountedAsLeftOut() throws {
    let (old, new) = (Self.model("n"), Self.model("n", "m"))
    let folder = try TemporaryFolder()
    let path = folder.appending("App.sqlite")
    try folder.write(
      try StoreCreation(
        model: old, uuid: "11111111-2222-4333-8444-555555555555", modelCache: try old.modelCache()
      ).bytes(), to: "App.sqlite")
    let store = try PersistentStore(opening: path, model: old)
    try store.write { database in
      try database.execute(
        sql: "INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZN) "
          + "VALUES (1, 1, 1, 1), (2, 1, 1, 50), (3, 1, 1, NULL), (4, 1, 1, 9)")
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 4")
    }
    try store.close()
    let bundle = try #require(
      ModelBundle(
        name: "Posts",
        versions: [
          ModelVersion(name: "V1", model: old, isCurrent: false), ModelVersion(name: "V2", model: new, isCurrent: true),
        ]))
    var options = Migrator.Options()
    options.mappings = [
      MappingModel(
        name: "custom", origin: .code, source: old, destination: new,
        entityMappings: [
          EntityMapping(
            name: "PostToPost", kind: .custom, source: "Post", destination: "Post",
            propertyMappings: [PropertyMapping("n", .copy("n"))], sourceFilter: .sql("n > 10"))
        ])
    ]
    let output = folder.appending("Out.sqlite")
    let report = try Salvager(surroundings: .still()).salvage(
      path, to: output, model: .coreData(bundle), options: .init(), migration: SalvageMigration(options))
    #expect(report.rebuild?.migratedTo == "V2")
    // One record has come along, and three have not.
    let migrated = try PersistentStore(opening: output, model: new)
    #expect(try migrated.recordCount(of: "Post") == 1)
    try migrated.close()
    #expect(report.rebuild?.migrationLosses.map(\.count) == [3] && !report.isComplete)
    #expect(report.count.words.contains("left out 3 records"), "\(report.count.words)")
    #expect(!report.count.words.contains("no place"), "\(report.count.words)")
    #expect((report.count.percent ?? 100) < 100)
  }
}
