import ManagedObjectModel
import Platform
import SwiftModelSources
import SystemPackage
import Testing

/// Reads sources that are in memory.
func sourceModels(
  _ sources: String..., types: [String] = [], platform: SourcePlatform? = .iOS, flags: Set<String> = []
) throws -> SourceModels {
  try SwiftSources.read(
    sources.enumerated().map { (file: "File\($0 + 1).swift", text: Array($1.utf8)) },
    options: SwiftSources.Options(types: types, platform: platform, flags: flags))
}

extension SourceModels {
  /// The current version.
  var current: SourceVersion? { versions.first { $0.name == currentName } }

  /// The hashes of the current version.
  var hashes: [String: String] { current?.version.versionHashes.mapValues(\.hex) ?? [:] }

  /// An attribute of the current version.
  func attribute(_ entity: String, _ name: String) -> Attribute? {
    current?.version.model.entities[entity]?.properties[name]?.attribute
  }

  /// A relationship of the current version.
  func relationship(_ entity: String, _ name: String) -> Relationship? {
    current?.version.model.entities[entity]?.properties[name]?.relationship
  }
}

/// Hashes were computed from the same declarations by the Python reference of the format, `verhash_swiftdata.py`.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceHashTests {
  static let garden = [
    "Bed": "e52c58f714232a130f15b31a48387ecf21c157555902ba1e2f427b0c66c7e922",
    "Garden": "35dade7532fc32f04aed39a793201cc47851f60f62e33306a13b11fe1b3d8cb9",
    "Keeper": "f8075751cc623e5934da96ef9cd22b2b201f6c5c5a1a663e49865c087233f86d",
    "Plant": "24d7862efd5f0c17e6d4eaa7941d354e8e9207b4bbbcebfcf3ea23017c903329",
  ]

  @Test func hashesAreThoseOfTheReference() throws {
    let models = try sourceModels(Fixtures.garden, types: ["Garden"])
    #expect(models.hashes == Self.garden)
    #expect(models.current?.version.checksum == "0fOVisFhiQjefwSyzP1Ses1IExAGfFIdkEPIZz5WdNw=")
    #expect(models.versions.count == 1 && models.current?.isComplete == true)
    #expect(models.current?.version.model.versionIdentifiers == ["1.0.0"])
  }

  @Test func theStyleOfSourcesMakesNoDifference() throws {
    // Here the types are those that the app gives to its containers; the preview's are left out.
    let models = try sourceModels(Fixtures.styledGardenTypes, Fixtures.styledGarden)
    #expect(models.hashes == Self.garden)
    #expect(models.current?.isComplete == true)
  }

  @Test func theOrderOfFilesMakesNoDifference() throws {
    #expect(try sourceModels(Fixtures.styledGarden, Fixtures.styledGardenTypes).hashes == Self.garden)
  }

  @Test func versionsAndTheirOrderAreThoseOfThePlan() throws {
    let models = try sourceModels(Fixtures.library)
    #expect(models.versions.map(\.name) == ["LibraryV1", "LibraryV2", "LibraryV10"])
    #expect(models.versions.map { $0.version.model.versionIdentifiers } == [["1.0.0"], ["2.0.0"], ["10.1.0"]])
    #expect(models.currentName == "LibraryV10" && models.isOrdered)
    #expect(models.versions.allSatisfy { $0.isPlanned })
    let first = models.versions[0].version
    #expect(first.checksum == "0HGkjFL10KI0LWNypGr2/9is0OtrfQ/tZR4ig+YX2OA=")
    #expect(models.versions[2].version.checksum == "c8sGGxIEbcSVXwuiO5P3eoBWiUEpI3A8KpJ4blO6cKA=")
    // The second lists what the first lists, and a class of its own.
    let second = models.versions[1].version.versionHashes
    #expect(Set(second.keys) == ["Book", "Shelf", "Reader"])
    #expect(second["Book"] == first.versionHashes["Book"])
    #expect(second["Reader"]?.hex == "decd532ce5b00cfc20b86bd3a959ed800e811fa16dc60513981ba386752a8ee8")
    let bundle = try models.bundle()
    #expect(bundle.current.name == "LibraryV10" && bundle.order.isGiven)
    #expect(bundle.versions.map(\.name) == models.versions.map(\.name))
  }

  @Test func stagesAreThoseOfThePlan() throws {
    let models = try sourceModels(Fixtures.library)
    #expect(models.stages.map(\.source) == ["LibraryV1", "LibraryV2"])
    #expect(models.stages.map(\.destination) == ["LibraryV2", "LibraryV10"])
    #expect(models.stages.map(\.isCustom) == [false, true])
    #expect(models.findings.filter { $0.kind == .customStage }.map(\.versionName) == ["LibraryV10"])
  }

  @Test func aSchemaOrClassesCanBeNamed() throws {
    let schema = try sourceModels(Fixtures.library, types: ["LibraryV1"])
    #expect(schema.versions.map(\.name) == ["LibraryV1"])
    let nested = try sourceModels(Fixtures.library, types: ["LibraryV1.Shelf"])
    #expect(nested.hashes.keys.sorted() == ["Shelf"])
    // An alias is followed.
    #expect(try sourceModels(Fixtures.library, types: ["Book"]).hashes["Shelf"] != nested.hashes["Shelf"])
    for names in [["Shelf"], ["Nothing"], ["LibraryV1", "Book"], ["Plan"]] {
      #expect { try sourceModels(Fixtures.library, types: names) } throws: { ($0 as? ModelError)?.kind == .unknownType }
    }
  }

  @Test func theAppsOwnTypesAreAVersionWhereNoSchemaHasThem() throws {
    let live = """
      @Model final class Book { var title: String; var pages: Int; init() {} }
      let container = try ModelContainer(for: Book.self)
      """
    let frozen = """
      enum V1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Book.self] }
        @Model final class Book { var title: String; init() {} }
      }
      """
    let models = try sourceModels(live, frozen)
    #expect(models.versions.map(\.name) == ["V1", "current"] && models.currentName == "current")
    #expect(models.attribute("Book", "pages")?.type == .integer64)
    // A schema inside an enumeration sees the class there first.
    #expect(models.versions[0].version.model.entities["Book"]?.properties.count == 1)
  }

  /// The checksums are those that the stores' metadata hold (`NSStoreModelVersionChecksumKey`); the declarations beside
  /// them were made from the models that they carry.
  @Test(
    .enabled(if: RealSources.areAvailable, "the real stores are not on this machine (../shared/real, or LAZARET_REAL)"),
    arguments: [
      ("cartkit", "2wsb3KxvOg2fCKAI7XTcqex2LnE5kpf6CjcDP/Srhao="),
      ("freezeray-1", "hVf/dkygPyXWgY+Jcgvx9sMUcaiS0yfaIlBvgiRFqr4="),
      ("freezeray-2", "vYclKAIUuGnEdsZfWYGeTfATZeMMc3+o0OnpOa5KyZM="),
      ("pegase", "HtJcS6Ur0OW1FotlHaC/cf79Bo6EHUuDBJzmsUh59bY="),
    ])
  func hashesAreThoseOfStores(name: String, checksum: String) throws {
    let folder = try #require(RealSources.folder).appending(name)
    let models = try SwiftSources.load(folder)
    #expect(models.current?.version.checksum == checksum)
  }
}
