import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// The mapping models that people released, with the models that lie beside them.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMappingModelTests {
  static var files: [FilePath] {
    (RealMaterial.folders(below: "models", ending: ".xcmappingmodel")
      + RealMaterial.files(below: "models", ending: ".cdm"))
      .sorted { $0.string < $1.string }
  }

  /// The models in the project that a file belongs to.
  static func bundles(beside path: FilePath) -> [ModelBundle] {
    guard let folder = RealMaterial.folder?.appending("models") else { return [] }
    let project = path.components.dropFirst(folder.components.count).first?.string ?? ""
    let places = ["xcdatamodeld", "momd"].flatMap { RealMaterial.folders(below: "models/\(project)", ending: ".\($0)") }
    return places.compactMap { try? ModelBundle.load(path: $0) }
      .filter { $0.versions.count > 1 }
  }

  /// What a file is expected to hold: its mappings, the properties they have, and the versions of the model beside it.
  struct Expectation {
    var mappings: Int
    var properties: Int
    var way: String
    var policies = 0
  }

  /// By the end of the path; nil where no version of any model beside it has its hashes.
  static let expectations: [(String, Expectation?)] = [
    (
      "BookMigration/Model1_to_Model2.xcmappingmodel",
      Expectation(mappings: 3, properties: 8, way: "Model1 → Model2", policies: 1)
    ),
    (
      "BookMigration/Model2_to_Model3.xcmappingmodel",
      Expectation(mappings: 3, properties: 8, way: "Model2 → Model3", policies: 1)
    ),
    (
      "BookMigration/Model2_to_Model3_User.xcmappingmodel",
      Expectation(mappings: 1, properties: 2, way: "Model2 → Model3")
    ),
    ("MappingModels/SampleModel2 - SampleModel3 v2.xcmappingmodel", nil),
    ("MappingModels/SampleModel2 - SampleModel3.xcmappingmodel", nil), ("MappingModels/V2ToV3.xcmappingmodel", nil),
    ("Fixtures/V2toV3.cdm", Expectation(mappings: 5, properties: 26, way: "SampleModel2 → SampleModel3", policies: 3)),
    (
      "MappingModels/V2toV3.xcmappingmodel",
      Expectation(mappings: 5, properties: 26, way: "SampleModel2 → SampleModel3", policies: 3)
    ),
    (
      "EvolutionDemo.V1.FromV2.xcmappingmodel",
      Expectation(mappings: 1, properties: 2, way: "Advanced.EvolutionDemo.V2 → Advanced.EvolutionDemo.V1")
    ),
    (
      "EvolutionDemo.V2.FromV1.xcmappingmodel",
      Expectation(mappings: 1, properties: 5, way: "Advanced.EvolutionDemo.V1 → Advanced.EvolutionDemo.V2", policies: 1)
    ),
    (
      "migration2.54.xcmappingmodel",
      Expectation(mappings: 17, properties: 261, way: "zmessaging2.53.0 → zmessaging2.54.0")
    ),
    (
      "TestMigrationStore_1_2.xcmappingmodel",
      Expectation(mappings: 1, properties: 2, way: "TestMigrationStore → TestMigrationStore 2")
    ),
    (
      "TestMigrationStore_2_3.xcmappingmodel",
      Expectation(mappings: 1, properties: 3, way: "TestMigrationStore 2 → TestMigrationStore 3")
    ),
    (
      "DataModelVersion1Version2MappingModel.xcmappingmodel",
      Expectation(mappings: 1, properties: 2, way: "DataModel → Version 2")
    ),
    (
      "ReviewJournalModelMapping_v2_to_v3.xcmappingmodel",
      Expectation(mappings: 2, properties: 10, way: "ReviewJournal v2 → ReviewJournal v3")
    ),
    (
      "ReviewJournalModelMapping_v3_to_v4.xcmappingmodel",
      Expectation(mappings: 2, properties: 12, way: "ReviewJournal v3 → ReviewJournal v4", policies: 1)
    ),
    (
      "ReviewJournalModelMapping_v4_to_v5.xcmappingmodel",
      Expectation(mappings: 2, properties: 13, way: "ReviewJournal v4 → ReviewJournal v5", policies: 1)
    ),
    (
      "Migration1to2.xcmappingmodel",
      Expectation(mappings: 1, properties: 3, way: "CoreDataMigration_Example → CoreDataMigration_Example 2")
    ),
    (
      "Migration2to3.xcmappingmodel",
      Expectation(
        mappings: 2, properties: 6, way: "CoreDataMigration_Example 2 → CoreDataMigration_Example 3", policies: 1)
    ),
    (
      "wibosco-migration-large/CoreDataMigration-Example/CoreData/Migration/Mappings/Migration2to3ModelMapping.xcmappingmodel",
      nil
    ),
    (
      "wibosco-migration/CoreDataMigration-Example/CoreData/Migration/Mappings/Migration2to3ModelMapping.xcmappingmodel",
      Expectation(
        mappings: 2, properties: 8, way: "CoreDataMigration_Example 2 → CoreDataMigration_Example 3", policies: 1)
    ),
  ]

  static func way(_ mapping: MappingModel, in bundle: ModelBundle) -> String {
    let source = bundle.versions.first { $0.versionHashes == mapping.sourceHashes }?.name ?? "?"
    let destination = bundle.versions.first { $0.versionHashes == mapping.destinationHashes }?.name ?? "?"
    return "\(source) → \(destination)"
  }

  @Test func everyFileIsReadAndFittedOrSaidToBeStale() throws {
    let files = Self.files
    #expect(files.count == 23)
    var values: [String: Int] = [:]
    for file in files {
      let name = file.string.split(separator: "/models/").last.map(String.init) ?? ""
      let found = Self.expectations.first { file.string.hasSuffix($0.0) }
      let (_, expected) = try #require(found, "\(name)")
      var loaded: [(mapping: MappingModel, way: String)] = []
      var stale: [MigrationError] = []
      for bundle in Self.bundles(beside: file) {
        do {
          for mapping in try MappingModel.load(path: file, for: bundle).mappings {
            loaded.append((mapping, Self.way(mapping, in: bundle)))
          }
        } catch {
          stale.append(MigrationError(any: error))
        }
      }
      #expect(stale.allSatisfy { $0.kind == .mappingStale && $0.entityName != nil && $0.path == file }, "\(name)")
      guard let expected else {
        #expect(loaded.isEmpty && !stale.isEmpty, "\(name)")
        print("  \(name): stale (\(stale.map(\.detail).min { $0.count < $1.count } ?? ""))")
        continue
      }
      let first = try #require(loaded.first, "\(name)")
      for (mapping, way) in loaded {
        #expect(way == expected.way, "\(name)")
        #expect(mapping.entityMappings == first.mapping.entityMappings, "\(name)")
        #expect(mapping.entityMappings.count == expected.mappings, "\(name)")
        #expect(mapping.entityMappings.map(\.propertyMappings.count).reduce(0, +) == expected.properties, "\(name)")
        #expect(mapping.entityMappings.count { $0.policyClassName != nil } == expected.policies, "\(name)")
        #expect(mapping.entityMappings.allSatisfy { ($0.kind == .custom) == ($0.policyClassName != nil) }, "\(name)")
      }
      var words: [String: Int] = [:]
      for property in first.mapping.entityMappings.flatMap(\.propertyMappings) {
        let word = "\(property.value)".prefix { $0 != "(" }
        words[String(word), default: 0] += 1
        values[String(word), default: 0] += 1
      }
      let list = words.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
      print("  \(name): \(expected.way); \(expected.mappings) mappings, \(expected.policies) policies; \(list)")
    }
    print("  all: \(values.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
    // No expression that occurs is left to a policy, and none is refused.
    #expect(values["expression"] == 1)
    #expect(values["destinations"] == 1)
  }

  /// The same mapping model as Xcode's compiler made it of its source.
  @Test func aSourceSaysWhatItsCompiledFormSays() throws {
    let folder = try #require(RealMaterial.folder).appending("models/coredataplus/SampleModel")
    let bundle = try ModelBundle.load(path: folder.appending("SampleModel.xcdatamodeld"))
    let source = try MappingModel.load(path: folder.appending("MappingModels/V2toV3.xcmappingmodel"), for: bundle)
    let compiled = try MappingModel.load(path: folder.appending("Fixtures/V2toV3.cdm"), for: bundle)
    let (first, second) = (try #require(source.mappings.first), try #require(compiled.mappings.first))
    #expect(first.entityMappings == second.entityMappings)
    #expect(first.losses == second.losses && first.conditions == second.conditions)
    #expect(
      first.entityMapping(named: "CarToCar")?.propertyMapping(of: "previousOwners")?.value == .relationship("owner"))
    let whole = try MappingModel.load(path: folder, for: bundle)
    #expect(whole.mappings.count == 2 && whole.notes.isEmpty)
  }

  /// The models that mapping models embed have the version hashes of the versions that they were made of.
  @Test func damagedRealFilesAreReadOrRefused() throws {
    let folder = try TemporaryFolder()
    var outcomes: [String: Int] = [:]
    for (place, file) in Self.files.enumerated() where place % 4 == 1 {
      let isSource = file.extension == "xcmappingmodel"
      let path = isSource ? file.appending("xcmapping.xml") : file
      let bytes = try FileSystem().contents(of: path, limit: 1 << 20)
      guard let bundle = Self.bundles(beside: file).first else { continue }
      for number in 0..<mutationCount(usually: 20) {
        var mutation = Mutation(seed: 0xCD_0003 &+ UInt64(number))
        let target = try folder.write(mutation.apply(to: bytes), to: isSource ? "xcmapping.xml" : "M.cdm")
        do {
          _ = try MappingModel.load(path: target, for: bundle)
          outcomes["loaded", default: 0] += 1
        } catch {
          outcomes[MigrationError(any: error).code, default: 0] += 1
        }
      }
    }
    print("  damaged: \(outcomes)")
    #expect(outcomes.values.reduce(0, +) > 50)
  }
}
