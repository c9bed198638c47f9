import GRDB
import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that people released, migrated through the mapping models that their apps had.
///
/// Where a mapping model has a policy class, the app's own code would be needed: such a migration must say so before it
/// touches anything.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMappingModelMigrationTests {
  struct Scene {
    let folder: TemporaryFolder
    let store: FilePath
    let bundle: ModelBundle
    let mappings: [MappingModel]

    init(store name: String, model: String, mappings folder: String) throws {
      let real = try #require(RealMaterial.folder)
      self.folder = try TemporaryFolder()
      store = try RealMaterial.copy(real.appending("stores/\(name)"), into: self.folder)
      bundle = try ModelBundle.load(path: real.appending("models/\(model)"))
      mappings = try MappingModel.load(path: real.appending("models/\(folder)"), for: bundle).mappings
    }

    func migrate(to version: String? = nil) throws -> FilePath {
      var options = Migrator.Options()
      options.version = version
      options.mappings = mappings
      options.output = folder.appending("Out.sqlite")
      return try Migrator(bundle, surroundings: .still()).migrate(store, options: options).store
    }

    func rows(_ sql: String, in store: FilePath) throws -> [String] { try MigrationScene.rows(sql, in: store) }
  }

  static let wibosco = "wibosco-migration-large/CoreDataMigration-Example/CoreData"

  private func wibosco(_ store: String) throws -> Scene {
    try Scene(
      store: "wibosco-migration-large/\(store)",
      model: "\(Self.wibosco)/Model/CoreDataMigration_Example.xcdatamodeld",
      mappings: "\(Self.wibosco)/Migration/Mappings")
  }

  @Test func wiboscoGoesFromOneToTwo() throws {
    let scene = try wibosco("CoreDataMigration_Example_1.sqlite")
    let result = try scene.migrate(to: "CoreDataMigration_Example 2")
    let before = try scene.rows("SELECT Z_PK, ZPOSTID, ZDATE, ZCOLOR FROM ZPOST ORDER BY 1", in: scene.store)
    let after = try scene.rows("SELECT Z_PK, ZPOSTID, ZDATE, ZHEXCOLOR FROM ZPOST ORDER BY 1", in: result)
    #expect(!before.isEmpty && before == after)
    print("  wibosco: \(after.count) posts")
  }

  @Test func wiboscoNeedsItsPolicyFromTwoToThree() throws {
    let scene = try wibosco("CoreDataMigration_Example_2.sqlite")
    let error = #expect(throws: MigrationError.self) { try scene.migrate() }
    #expect(error?.kind == .policyMissing, "\(error?.detail ?? "")")
    #expect(try FileSystem().status(of: scene.folder.appending("Out.sqlite")) == nil)
  }

  @Test func ctdatastoremanagerGoesAllTheWay() throws {
    let scene = try Scene(
      store: "ctdatastoremanager/TestMigrationStore_version_1.sqlite",
      model: "ctdatastoremanager/MigrationTest/TestMigrationStore.xcdatamodeld",
      mappings: "ctdatastoremanager/MigrationTest")
    #expect(scene.mappings.count == 2)
    let result = try scene.migrate()
    let before = try scene.rows("SELECT Z_PK, ZDATE FROM ZENTITY ORDER BY 1", in: scene.store)
    #expect(try scene.rows("SELECT Z_PK, ZDATE FROM ZENTITY ORDER BY 1", in: result) == before)
    #expect(try scene.rows("SELECT count(*) FROM ZENTITY WHERE ZNAME IS NOT NULL", in: result) == ["0"])
    print("  ctdatastoremanager: \(before.count) records, \(scene.mappings.count) steps")
  }

  @Test func coredataplusNeedsItsPolicyFromTwoToThree() throws {
    let scene = try Scene(
      store: "coredataplus/SampleModel/Fixtures/SampleModel_V2.sqlite",
      model: "coredataplus/SampleModel/SampleModel.xcdatamodeld",
      mappings: "coredataplus/SampleModel/Fixtures/V2toV3.cdm")
    let error = #expect(throws: MigrationError.self) { try scene.migrate(to: "SampleModel3") }
    #expect(error?.kind == .policyMissing, "\(error?.detail ?? "")")
  }

  @Test func bookMigrationNeedsItsPolicy() throws {
    let scene = try Scene(
      store: "coredataplus/bookmigration/Model1.sqlite",
      model: "coredataplus-history/BookMigration-master/BookMigration/Model.xcdatamodeld",
      mappings: "coredataplus-history/BookMigration-master/BookMigration")
    #expect(scene.mappings.count == 3)
    let error = #expect(throws: MigrationError.self) { try scene.migrate() }
    #expect(error?.kind == .policyMissing, "\(error?.detail ?? "")")
  }

  /// One review becomes a review and, where it has an image, an attachment that belongs to it.
  @Test func cypherpoetMakesAttachmentsOfReviews() throws {
    let scene = try Scene(
      store: "cypherpoet-reviewjournal/ReviewJournal_2.sqlite",
      model: "cypherpoet-reviewjournal/ReviewJournal.xcdatamodeld",
      mappings: "cypherpoet-reviewjournal/Migration/Mapping Models")
    #expect(scene.mappings.count == 3)
    let result = try scene.migrate(to: "ReviewJournal v3")
    let reviews = try scene.rows("SELECT Z_PK, ZTITLE, ZSCORE FROM ZREVIEW ORDER BY 1", in: scene.store)
    #expect(!reviews.isEmpty)
    #expect(try scene.rows("SELECT Z_PK, ZTITLE, ZSCORE FROM ZREVIEW ORDER BY 1", in: result) == reviews)
    let images = try scene.rows(
      "SELECT Z_PK, ZCREATIONDATE, ZIMAGEDATA FROM ZREVIEW WHERE ZIMAGEDATA IS NOT NULL ORDER BY 1", in: scene.store)
    let attachments = try scene.rows(
      "SELECT ZREVIEW, ZCREATIONDATE, ZIMAGEDATA FROM ZIMAGEATTACHMENT ORDER BY 1", in: result)
    #expect(attachments == images)
    print("  cypherpoet: \(reviews.count) reviews, \(attachments.count) attachments")
  }
}
