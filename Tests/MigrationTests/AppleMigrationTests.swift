import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import SystemPackage
import TestSupport
import Testing

import struct PersistentStore.StoreRecord

/// Stores that Core Data itself has migrated, beside their originals: ours equal them record by record.
///
/// The material has two pairs that are nothing but a migration; that it was Apple's is seen by the identifier, which
/// both stores of a pair have in common. Other stores with a common identifier got new records after the migration.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct AppleMigrationTests {
  /// A store and what Apple's migration made of it.
  struct Pair: Sendable, CustomTestStringConvertible {
    var before: String
    var after: String
    var model: String
    var rows: Int

    /// The entities that were renamed, by their old names.
    var renamed: [String: String] = [:]
    var testDescription: String { "\(before) → \(after)" }
  }

  static let pairs = [
    Pair(
      before: "stores/wibosco-migration/CoreDataMigration_Example_1.sqlite",
      after: "stores/wibosco-migration/CoreDataMigration_Example_2.sqlite",
      model: "models/wibosco-migration/CoreDataMigration-Example/CoreData/Model/CoreDataMigration_Example.xcdatamodeld",
      rows: 10),
    Pair(
      before: "stores/coredataplus/SampleModel/Fixtures/SampleModel_V1.sqlite",
      after: "stores/coredataplus/SampleModel/Fixtures/SampleModel_V2.sqlite",
      model: "models/coredataplus/SampleModel/Fixtures/SampleModel.momd", rows: 145,
      renamed: ["ExpensiveSportCar": "LuxuryCar"]),
  ]

  @Test(arguments: pairs)
  func oursEqualsApples(pair: Pair) throws {
    let real = try #require(RealMaterial.folder)
    let folder = try TemporaryFolder()
    let store = try RealMaterial.copy(real.pushing(FilePath(pair.before)), into: folder)
    let apples = try RealMaterial.copy(real.pushing(FilePath(pair.after)), into: folder, as: "Apple.sqlite")
    let loaded = try ModelBundle.load(path: real.pushing(FilePath(pair.model)))
    // Where the current version is not the last, the names do not tell the order.
    let versions = loaded.versions.sorted { ($0.name.count, $0.name) < ($1.name.count, $1.name) }
    let bundle = try #require(ModelBundle(name: loaded.name, versions: versions))
    let expected = try #require(try RealMigrationTests.metadata(apples))
    let version = try #require(bundle.version(matching: expected.versionHashes))
    var options = Migrator.Options()
    options.version = version.name
    let result = try Migrator(bundle, surroundings: .still()).migrate(store, options: options)
    #expect(result.steps.count == 1)

    let found = try #require(try RealMigrationTests.metadata(store))
    #expect(found.uuid == expected.uuid)
    #expect(found.versionHashes == expected.versionHashes)
    #expect(found.versionIdentifiers == expected.versionIdentifiers)
    let (ours, theirs) = (try Self.content(store), try Self.content(apples))
    #expect(ours.keys.sorted() == theirs.keys.sorted())
    var rows = 0
    for (table, lines) in theirs {
      guard table == "Z_PRIMARYKEY" else {
        #expect(ours[table] == lines, "\(table)")
        rows += lines.count
        continue
      }
      // Core Data's lightweight migration leaves the old name of a renamed entity there; a fresh store has the new one.
      let renamed = lines.map { line in
        pair.renamed.reduce(line) { $0.replacing("'\($1.key)'", with: "'\($1.value)'") }
      }
      #expect(ours[table] == renamed, "\(table)")
    }
    #expect(rows == pair.rows)
    // The records as a program reads them, their relationships too.
    #expect(try Self.records(store, version.model) == Self.records(apples, version.model))
    #expect(try Self.records(store, version.model).count == pair.rows)
    print("equal to Apple's: \(pair) with \(rows) rows in \(theirs.count) tables")
  }

  /// Every row of every table but the metadata and the cache, columns by name, as quoted by SQLite.
  private static func content(_ path: FilePath) throws -> [String: [String]] {
    let store = try PersistentStore(opening: path)
    let content = try store.read { database in
      var content: [String: [String]] = [:]
      let tables = try String.fetchAll(
        database,
        sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('Z_METADATA', 'Z_MODELCACHE')")
      for table in tables {
        let columns = try String.fetchAll(
          database, sql: "SELECT name FROM pragma_table_info(?) ORDER BY name", arguments: [table])
        let values = columns.map { "'\($0)=' || quote(\"\($0)\")" }.joined(separator: " || '|' || ")
        content[table] = try String.fetchAll(database, sql: "SELECT \(values) AS line FROM \"\(table)\" ORDER BY line")
      }
      return content
    }
    try store.close()
    return content
  }

  private static func records(_ path: FilePath, _ model: ManagedObjectModel) throws -> Set<StoreRecord> {
    let store = try PersistentStore(opening: path, model: model)
    var records: Set<StoreRecord> = []
    for name in model.entities.keys.sorted() {
      try store.forEachRecord(of: name) { record in records.insert(record) }
    }
    try store.close()
    return records
  }
}
