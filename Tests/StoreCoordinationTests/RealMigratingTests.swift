import GRDB
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that people released, opened with the last version of their models.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMigratingTests {
  /// A store, its model, and what comes of it: the number of steps, or the code of the error.
  struct Chain: Sendable, CustomTestStringConvertible {
    var store: String
    var model: String
    var order: [String]?
    var steps: Int
    var rows: Int
    var code: String?
    var testDescription: String { store }

    init(
      _ store: String, _ model: String, order: [String]? = nil, steps: Int, rows: Int = 0, code: String? = nil
    ) {
      self.store = store
      self.order = order
      self.model = model
      self.steps = steps
      self.rows = rows
      self.code = code
    }
  }

  private static let ddg = "ddg-browserserviceskit/Bookmarks/BookmarksModel.xcdatamodeld"
  private static let bergier = "bergier-migration/Model.xcdatamodeld"
  private static let sample = "coredataplus/SampleModel/Fixtures/SampleModel.momd"
  private static let wibosco =
    "wibosco-migration/CoreDataMigration-Example/CoreData/Model/CoreDataMigration_Example.xcdatamodeld"

  private static let sampleOrder = ["SampleModel", "SampleModel2"]

  static let chains = [
    Chain("bergier-migration/Example_v1.0.0.sqlite", bergier, steps: 1, rows: 1),
    Chain("bergier-migration/Example_v1.1.0.sqlite", bergier, steps: 1, rows: 1),
    Chain("bergier-migration/Example_v1.2.0.sqlite", bergier, steps: 1, rows: 1),
    // All of its rows are in the log.
    Chain("ddg-bookmarks/Bookmarks_V1.sqlite", ddg, steps: 1, rows: 10),
    Chain("ddg-bookmarks/Bookmarks_V4.sqlite", ddg, steps: 1, rows: 10),
    Chain("coredataplus/SampleModel/Fixtures/SampleModel_V1.sqlite", sample, order: sampleOrder, steps: 1, rows: 145),
    // For the rest of its way the app had a mapping model.
    Chain(
      "coredataplus/SampleModel/Fixtures/SampleModel_V2.sqlite", sample,
      order: sampleOrder + ["SampleModel3"], steps: 1, rows: 145),
    // Persistent history and triggers; the models are those that the two stores carry.
    Chain(
      "coredataplus/SampleModel2/Fixtures/SampleModel2_V1.sqlite",
      "stores/coredataplus/SampleModel2/Fixtures/SampleModel2_V2.sqlite", steps: 1, rows: 5468),
    Chain(
      "wibosco-migration/CoreDataMigration_Example_1.sqlite", wibosco, steps: 1, rows: 10),
    Chain(
      "cypherpoet-reviewjournal/ReviewJournal_1.sqlite", "cypherpoet-reviewjournal/ReviewJournal.xcdatamodeld",
      steps: 1, rows: 3, code: "migration-data-violation"),
    Chain(
      "ctdatastoremanager/TestMigrationStore_version_1.sqlite",
      "ctdatastoremanager/MigrationTest/TestMigrationStore.xcdatamodeld", steps: 1, rows: 3),
  ]

  @Test(arguments: chains)
  func chain(chain: Chain) throws {
    let real = try #require(RealMaterial.folder)
    let folder = try TemporaryFolder()
    let path = try RealMaterial.copy(real.appending("stores").pushing(FilePath(chain.store)), into: folder)
    let before = try parts(path)
    let bundle = try bundle(of: chain, real)
    let coordinator = StoreCoordinator(
      model: .coreData(bundle),
      policy: OpeningPolicy(
        whenDamaged: .refuse, whenIncompatible: .refuse, checkInterval: nil, recoveryKitInterval: nil),
      home: folder.appending("Home"), surroundings: .still())
    do {
      let opening = try coordinator.open(path)
      let migration = try #require(opening.events.last?.migration)
      print("\(chain.store): \(migration.words) \(migration.metrics?.words ?? "")")
      #expect(chain.code == nil)
      #expect(migration.steps.count == chain.steps)
      let rows = try bundle.current.model.entities.values.filter { $0.parentName == nil }.reduce(0) { sum, entity in
        try sum + opening.store.recordCount(of: entity.name)
      }
      #expect(rows == chain.rows)
      #expect(try opening.store.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
      try opening.store.close()
      let backup = try #require(opening.events.first { $0.kind == .backup }?.path.path)
      #expect(try parts(backup) == before)
      #expect(try coordinator.examine(path, options: .init(depth: .full)).verdict == .compatible)
    } catch let error as LazaretError {
      print("\(chain.store): \(error)")
      #expect(error.migrationError?.code == chain.code, "\(error)")
      #expect(try parts(path) == before)
    }
  }

  /// The versions of a chain, the last one current.
  private func bundle(of chain: Chain, _ real: FilePath) throws -> ModelBundle {
    if chain.model.hasSuffix(".sqlite") {
      let stores = [real.appending("stores").pushing(FilePath(chain.store)), real.pushing(FilePath(chain.model))]
      let models = try stores.map { try #require(try Examiner().examine($0).storeModel) }
      let versions = models.enumerated().map { ModelVersion(name: "V\($0 + 1)", model: $1, isCurrent: $0 == 1) }
      return try #require(ModelBundle(name: "Cached", versions: versions))
    }
    let bundle = try ModelBundle.load(
      path: real.appending("models").pushing(FilePath(chain.model)))
    guard let order = chain.order else { return bundle }
    let models = try order.map { try #require(bundle.version(named: $0)).model }
    let versions = zip(order, models).map { ModelVersion(name: $0, model: $1, isCurrent: $0 == order.last) }
    return try #require(ModelBundle(name: bundle.name, versions: versions))
  }

  private func parts(_ main: FilePath) throws -> [StoreFileSet.Part: [UInt8]] {
    let members = try StoreFileSet(main: main).members(in: FileSystem())
    return try members.filter { $0.part != .sharedMemory && $0.status.kind == .regular }.reduce(into: [:]) {
      $0[$1.part] = try FileSystem().contents(of: $1.path, limit: 1 << 28)
    }
  }
}
