import ManagedObjectModel
import Platform
import SwiftModelSources
import SystemPackage
import Testing

@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct FrozenSchemaTests {
  private func hashes(_ schema: FrozenSchema) throws -> [String: String] {
    try FrozenSchema.hashes(in: Array(schema.text.utf8), schema: schema.name).mapValues(\.hex)
  }

  @Test func aFrozenVersionHasTheHashesOfTheReference() throws {
    let model = try #require(sourceModels(Fixtures.garden, types: ["Garden"]).current?.version.model)
    let frozen = try FrozenSchema(model, name: "GardenV1")
    #expect(try hashes(frozen) == SourceHashTests.garden)
    #expect(frozen.text.contains("enum GardenV1: VersionedSchema {"))
    #expect(frozen.text.contains("Schema.Version(1, 0, 0)"))
  }

  @Test(arguments: ["LibraryV1", "LibraryV2", "LibraryV10"])
  func everyVersionIsFrozenAsItIs(name: String) throws {
    let models = try sourceModels(Fixtures.library)
    let version = try #require(models.versions.first { $0.name == name }).version
    let frozen = try FrozenSchema(version.model, name: "Frozen")
    #expect(try hashes(frozen) == version.versionHashes.mapValues(\.hex))
    // What is not hashed is kept too: renames, delete rules, the version.
    let back = try sourceModels(frozen.text, types: ["Frozen"]).current?.version.model
    #expect(back?.versionIdentifiers == version.model.versionIdentifiers)
    for (entity, old) in version.model.entities {
      for (key, property) in old.properties {
        let new = back?.entities[entity]?.properties[key]
        #expect(new?.traits.explicitRenamingIdentifier == property.traits.explicitRenamingIdentifier)
        #expect(new?.relationship?.deleteRule == property.relationship?.deleteRule)
      }
      #expect(back?.entities[entity]?.fetchIndexes.count == old.fetchIndexes.count)
    }
  }

  @Test func typesThatAClassHasTheNameOfAreNamedWithTheirModule() throws {
    func attribute(_ name: String, _ type: AttributeType) -> Property {
      .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: name == "n"), type: type))
    }
    let model = ManagedObjectModel(
      entities: [
        Entity(name: "Card", properties: [attribute("made", .date), attribute("n", .integer64)]),
        Entity(name: "Date", properties: [attribute("text", .string)]),
        Entity(name: "Int", properties: [attribute("x", .string)]),
      ])
    let frozen = try FrozenSchema(model, name: "V1")
    #expect(try hashes(frozen) == model.versionHashes().mapValues(\.hex))
    #expect(frozen.text.contains("var made: Foundation.Date") && frozen.text.contains("var n: Swift.Int?"))
  }

  @Test func namesThatSwiftReservesAreQuoted() throws {
    let entity = Entity(
      name: "Task",
      properties: [
        .attribute(Attribute(traits: PropertyTraits(name: "default"), type: .string)),
        .attribute(
          Attribute(
            traits: PropertyTraits(name: "tags", isOptional: true, explicitRenamingIdentifier: "a\"\\b"),
            type: .transformable, valueTransformerName: "NSSecureUnarchiveFromData", valueClassName: "Array<String>")),
      ])
    let model = ManagedObjectModel(entities: [entity])
    let frozen = try FrozenSchema(model, name: "V1")
    #expect(try hashes(frozen) == model.versionHashes().mapValues(\.hex))
    #expect(frozen.text.contains("var `default`: String") && frozen.text.contains("var tags: [String]?"))
  }

  @Test(arguments: [
    Entity(name: "Has Space"), Entity(name: "A", isAbstract: true), Entity(name: "A", versionHashModifier: "2"),
    Entity(name: "A", properties: [.attribute(Attribute(traits: PropertyTraits(name: "x"), type: .objectID))]),
    Entity(name: "A) }; import B; enum C {", properties: []),
  ])
  func whatSwiftDataCannotDeclareIsRefused(entity: Entity) {
    #expect { try FrozenSchema(ManagedObjectModel(entities: [entity]), name: "V1") } throws: {
      ($0 as? ModelError)?.kind == .unwritable
    }
  }
}
