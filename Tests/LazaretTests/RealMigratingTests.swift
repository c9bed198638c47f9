import GRDB
import Lazaret
import TestSupport
import Testing

/// Stores that people released, opened with the last version of their models.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMigratingTests {
  /// A store, its model, and what comes of it: the number of steps, or the code of the error.
  struct Chain: Sendable, CustomTestStringConvertible {
    var store: String
    var model: String
    var steps: Int
    var rows: Int
    var code: String?
    var testDescription: String { store }

    init(_ store: String, _ model: String, steps: Int, rows: Int = 0, code: String? = nil) {
      self.store = store
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

  static let chains = [
    Chain("bergier-migration/Example_v1.0.0.sqlite", bergier, steps: 3, rows: 1),
    Chain("bergier-migration/Example_v1.1.0.sqlite", bergier, steps: 2, rows: 1),
    Chain("bergier-migration/Example_v1.2.0.sqlite", bergier, steps: 1, rows: 1),
    // All of its rows are in the log.
    Chain("ddg-bookmarks/Bookmarks_V1.sqlite", ddg, steps: 4, rows: 10),
    Chain("ddg-bookmarks/Bookmarks_V4.sqlite", ddg, steps: 1, rows: 10),
    Chain("coredataplus/SampleModel/Fixtures/SampleModel_V1.sqlite", sample, steps: 2, rows: 145),
    Chain("wibosco-migration/CoreDataMigration_Example_1.sqlite", wibosco, steps: 3, rows: 10),
  ]

  @Test(arguments: chains)
  func chain(chain: Chain) throws {
    let real = try #require(RealMaterial.folder)
    let folder = try TemporaryFolder()
    let path = try RealMaterial.copy(real.appending("stores").pushing(FilePath(chain.store)), into: folder)
    let before = try parts(path)
    let bundle = try ModelBundle.load(
      path: real.appending("models").pushing(FilePath(chain.model)), unreadableVersions: .report)
    let coordinator = StoreCoordinator(
      model: .coreData(bundle), policy: OpeningPolicy(whenDamaged: .refuse, whenIncompatible: .refuse),
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

  private func parts(_ main: FilePath) throws -> [StoreFileSet.Part: [UInt8]] {
    let members = try StoreFileSet(main: main).members(in: FileSystem())
    return try members.filter { $0.part != .sharedMemory && $0.status.kind == .regular }.reduce(into: [:]) {
      $0[$1.part] = try FileSystem().contents(of: $1.path, limit: 1 << 28)
    }
  }
}
