import ManagedObjectModel
import SwiftModelSources
import SystemPackage
import Testing

/// The mistakes of histories, as projects written for the tests; each is found with its line.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SchemaLintTests {
  /// Findings as `kind line` and, with a second file, `kind file:line`.
  private func lint(
    _ sources: String..., released: [ReleasedVersion] = [], others: [SourcePlatform] = []
  ) throws -> [SourceFinding] {
    let files = sources.enumerated().map { (file: "File\($0 + 1).swift", text: Array($1.utf8)) }
    let models = try SwiftSources.read(files)
    let more = try others.map { platform in
      (platform: platform, models: try SwiftSources.read(files, options: .init(platform: platform)))
    }
    return SchemaLint(models, released: released, others: more).findings
  }

  private func words(_ findings: [SourceFinding]) -> [String] {
    findings.map { "\($0.kind.rawValue) \($0.place?.file ?? "-"):\($0.place?.line ?? 0)" }
  }

  /// The hashes that a version of the sources has, as a released one.
  private func released(
    _ name: String, _ origin: ReleasedVersion.Origin, of version: String, in sources: String...
  ) throws -> ReleasedVersion {
    let files = sources.enumerated().map { (file: "File\($0 + 1).swift", text: Array($1.utf8)) }
    let found = try #require(try SwiftSources.read(files).versions.first { $0.name == version })
    return ReleasedVersion(
      name: name, origin: origin, hashes: found.version.versionHashes, model: found.version.model)
  }

  private let plan = """
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self] }
      static var stages: [MigrationStage] { [.lightweight(fromVersion: V1.self, toVersion: V2.self)] }
    }
    """

  private let frozen = """
    enum V1: VersionedSchema {
      static var versionIdentifier: Schema.Version { .init(1, 0, 0) }
      static var models: [any PersistentModel.Type] { [Note.self] }
      @Model final class Note { var text: String; init() {} }
    }
    enum V2: VersionedSchema {
      static var versionIdentifier: Schema.Version { .init(2, 0, 0) }
      static var models: [any PersistentModel.Type] { [Note.self] }
      @Model final class Note { var text: String; var title: String = ""; init() {} }
    }
    """

  @Test func versionsOfTheirOwnClassesAreClean() throws {
    #expect(try lint(frozen, plan).isEmpty)
  }

  @Test func aHistoricalSchemaThatListsLiveClassesIsFoundAtItsList() throws {
    let live =
      "@Model final class Note { var text: String; init() {} }\n@Model final class Tag { var name: String; init() {} }"
    let schemas = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] {
          [Note.self]
        }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Note.self, Tag.self] }
      }
      """
    let found = try lint(live, schemas, plan)
    #expect(words(found) == ["live-class File2.swift:3"])
    #expect(found[0].versionName == "V1" && found[0].severity == .error)
    #expect(found[0].detail.contains("Note (File1.swift:1)") && found[0].hint.contains("model freeze"))
  }

  @Test func aFrozenClassThatLeadsToALiveOneIsFoundAtItsProperty() throws {
    let live = "@Model final class Folder { var name: String; var color: Int; init() {} }"
    let schemas = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Note.self] }
        @Model final class Note {
          var text: String
          var folder: Folder?
          init() {}
        }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Note.self, Folder.self] }
        @Model final class Note { var text: String; var title: String = ""; var folder: Folder?; init() {} }
      }
      """
    let found = try lint(live, schemas, plan)
    #expect(words(found) == ["live-class File2.swift:6"])
    #expect(found[0].entityName == "Note" && found[0].propertyName == "folder")
  }

  @Test func aStoreOfNoVersionIsFoundAtThePropertyThatDiffers() throws {
    // The only schema lists live classes; a field was added to one after the first release.
    let schema = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Item.self, Cart.self] }
      }
      enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self] }
        static var stages: [MigrationStage] { [] }
      }
      """
    let before =
      "@Model final class Item { var name: String; init() {} }\n@Model final class Cart {\n  var owner: String\n  init() {} }"
    let after = before.replacing("  var owner: String", with: "  var owner: String\n  var budget: Double?")
    let store = try released("Cart.store", .store, of: "V1", in: before, schema)
    #expect(try lint(before, schema, released: [store]).isEmpty)
    let found = try lint(after, schema, released: [store])
    #expect(words(found) == ["unknown-release File1.swift:4"])
    #expect(found[0].detail.contains("Cart.budget (only in the version)") && found[0].versionName == "V1")
  }

  @Test func aCopyThatIsCalledAsAnAliasIsFoundAtItsClass() throws {
    let live = """
      @Model final class FontV1 { var name: String; init() {} }
      typealias Font = FontV1
      """
    let schemas = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Font.self] }
        @Model final class Font { var name: String; init() {} }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [FontV1.self] }
      }
      """
    let found = try lint(live, schemas, plan)
    #expect(words(found) == ["alias-name File2.swift:4"])
    #expect(found[0].detail.contains("File1.swift:2") && found[0].detail.contains("entity FontV1"))
    // A released version that has the entity tells that it is right.
    let release = try released("V1", .lock, of: "V1", in: live, schemas, plan)
    #expect(try lint(live, schemas, plan, released: [release]).isEmpty)
    // An alias of the same name as its class is none of these.
    #expect(try lint(frozen, plan, "typealias Note = V2.Note").isEmpty)
  }

  @Test func twoSchemasWithOneChecksumAreFoundAtTheSecond() throws {
    let same = frozen.replacing("var title: String = \"\"; ", with: "").replacing(
      "Note { var text: String; init() {} }\n}\nenum V2",
      with: "Note { var text: String = \"\"; init() {} }\n}\nenum V2")
    let found = try lint(same, plan)
    #expect(words(found) == ["duplicate-checksum File1.swift:6"])
    #expect(found[0].detail.contains("Duplicate version checksums across stages detected."))
  }

  @Test func aPlanWithoutAReleasedVersionIsFoundAtItsList() throws {
    let short = """
      enum Plan: SchemaMigrationPlan {
        static var stages: [MigrationStage] { [] }
        static var schemas: [any VersionedSchema.Type] { [V2.self] }
      }
      """
    #expect(try lint(frozen, short).isEmpty)
    for origin in [ReleasedVersion.Origin.lock, .store] {
      let release = try released("App-1.0", origin, of: "V1", in: frozen, plan)
      let found = try lint(frozen, short, released: [release])
      #expect(words(found) == ["unplanned-release File2.swift:3"])
      #expect(found[0].versionName == "V1" && found[0].hint == "Add V1.self to the plan's schemas.")
    }
    let release = try released("App-1.0", .store, of: "V1", in: frozen, plan)
    #expect(try lint(frozen, plan, released: [release]).isEmpty)
  }

  @Test func aRelationshipIntoAnotherVersionIsFoundAtItsProperty() throws {
    let schemas = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Order.self, Customer.self] }
        @Model final class Order { var number: Int; var customer: Customer?; init() {} }
        @Model final class Customer { var name: String; init() {} }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Order.self] }
        @Model final class Order {
          var number: Int
          var total: Double = 0
          var customer: V1.Customer?
          init() {}
        }
      }
      """
    let found = try lint(schemas, plan)
    #expect(words(found) == ["foreign-version-class File1.swift:13"])
    #expect(found[0].detail.contains("Order.customer of V2 leads to V1.Customer"))
  }

  @Test func aClassOfAnotherVersionThatIsListedIsShared() throws {
    let schemas = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Note.self, Tag.self] }
        @Model final class Note { var text: String; var tag: Tag?; init() {} }
        @Model final class Tag { var name: String; init() {} }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Note.self, V1.Tag.self] }
        @Model final class Note { var text: String; var title: String = ""; var tag: V1.Tag?; init() {} }
      }
      """
    #expect(try lint(schemas, plan).isEmpty)
  }

  @Test func valuesThatAreNotFrozenAreFoundAtTheProperty() throws {
    let live = """
      enum Stage: Codable { case planned, done }
      enum Grade: String, Codable { case low, high }
      struct Place: Codable { var street: String; var inner: Inner }
      struct Inner: Codable { var zip: String }
      """
    let schemas = """
      enum V1: VersionedSchema {
        static var versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Trip.self] }
        @Model final class Trip {
          var stage: Stage
          var grade: Grade
          var place: Place?
          init() {}
        }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Trip.self] }
        @Model final class Trip { var stage: Stage; var grade: Grade; var place: Place?; var title: String = ""; init() {} }
      }
      """
    let found = try lint(live, schemas, plan)
    // The enum with raw values is no part of the hash; the structure within the structure is.
    #expect(
      words(found) == [
        "unfrozen-type File2.swift:5", "unfrozen-type File2.swift:7", "unfrozen-type File2.swift:7",
      ])
    #expect(found[0].detail.contains("enum Stage (File1.swift:1)"))
    #expect(Set(found.dropFirst().map { $0.detail.contains("struct Inner (File1.swift:4)") }) == [true, false])
    // Copies within the schema are what is asked for.
    let own = schemas.replacing(
      "  @Model final class Trip {\n",
      with: """
          enum Stage: Codable { case planned, done }
          struct Place: Codable { var street: String; var inner: Inner }
          struct Inner: Codable { var zip: String }
          @Model final class Trip {

        """)
    #expect(try lint(live, own, plan).isEmpty)
  }

  @Test func fieldsOfOnePlatformAreFoundAtTheirLine() throws {
    let source = """
      @Model final class Photo {
        var name: String
        #if os(macOS)
          var bookmark: Data?
        #endif
        init() {}
      }
      let schema = Schema([Photo.self])
      """
    #expect(try lint(source).isEmpty)
    let found = try lint(source, others: [.macOS, .tvOS])
    #expect(words(found) == ["platform-dependent File1.swift:4"])
    #expect(found[0].detail.contains("Photo.bookmark is not the same on macOS"))
  }

  @Test func aClassThatWasForgottenIsFoundWhereItIsDeclared() throws {
    let schemas = frozen.replacing(
      "[Note.self] }\n  @Model final class Note { var text: String; init()",
      with: """
        [Note.self, Tag.self] }
          @Model final class Tag { var name: String; init() {} }
          @Model final class Note { var text: String; init()
        """
    ).replacing(
      "  @Model final class Note { var text: String; var title",
      with:
        "  @Model final class Tag { var name: String; init() {} }\n  @Model final class Note { var text: String; var title"
    )
    let found = try lint(schemas, plan)
    #expect(words(found) == ["unlisted-class File1.swift:10"])
    #expect(found[0].entityName == "Tag" && found[0].versionName == "V2")
  }

  @Test func placesAreThoseOfPropertiesClassesAndSchemas() throws {
    let models = try sourceModels(frozen, plan)
    #expect(models.place(version: "V2", entity: "Note", property: "title")?.line == 9)
    #expect(models.place(version: "V2", entity: "Note", property: "gone")?.line == 9)
    #expect(models.place(version: "V1", entity: "Gone")?.line == 1)
    #expect(models.place(version: "V3") == nil)
    let unique = try sourceModels(
      """
      @Model final class Car {
        #Unique<Car>([\\.name, \\.year])
        @Attribute(.unique)
        var plate: String
        var name: String
        var year: Int
        init() {}
      }
      """, types: ["Car"])
    let version = unique.currentName
    #expect(unique.constraintPlace(version: version, entity: "Car", named: "unique in plate")?.line == 4)
    #expect(unique.constraintPlace(version: version, entity: "Car", named: "unique in name, year")?.line == 2)
  }
}
