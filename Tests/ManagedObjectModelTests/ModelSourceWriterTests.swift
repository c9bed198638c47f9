import Foundation
import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

/// Models written as source: `.xcdatamodel/contents`.
@Suite struct ModelSourceWriterTests {
  @Test func everyFeatureIsGivenBack() throws {
    let model = try ManagedObjectModel(source: Array(garageSource.utf8))
    let written = try model.source()
    #expect(written.omissions.isEmpty)
    let back = try ManagedObjectModel(source: written.contents)
    for (name, entity) in model.entities { #expect(back.entities[name] == entity, "\(name)") }
    #expect(back == model)
    // What was written once is written alike again.
    #expect(try back.source().contents == written.contents)
  }

  @Test func theTextIsXcodes() throws {
    let entity = Entity(
      name: "Car", className: "Car",
      properties: [
        .attribute(
          Attribute(
            traits: PropertyTraits(name: "plate", explicitRenamingIdentifier: "number"), type: .string,
            defaultValue: .string("a<\"b\">\n&"))),
        .relationship(
          Relationship(
            traits: PropertyTraits(name: "owner", isOptional: true), destinationEntityName: "Car", inverseName: "cars",
            deleteRule: .deny)),
        .relationship(
          Relationship(
            traits: PropertyTraits(name: "cars", isOptional: true), destinationEntityName: "Car", inverseName: "owner",
            maximumCount: 0)),
      ])
    let text = String(decoding: try ManagedObjectModel(entities: [entity]).source().contents, as: UTF8.self)
    #expect(
      text.contains(
        #"<attribute name="plate" elementID="number" attributeType="String" defaultValueString="a&lt;&quot;b&quot;&gt;&#10;&amp;"/>"#
      ))
    #expect(
      text.contains(
        #"<relationship name="owner" optional="YES" maxCount="1" deletionRule="Deny" destinationEntity="Car" inverseName="cars" inverseEntity="Car"/>"#
      ))
    #expect(text.contains(#"<relationship name="cars" optional="YES" toMany="YES" deletionRule="Nullify""#))
  }

  @Test func compositesOfOneNameAndOtherElementsAreTypesOfTheirOwn() throws {
    func attribute(_ name: String, _ isOptional: Bool) -> Property {
      .attribute(
        Attribute(
          traits: PropertyTraits(name: name, isOptional: isOptional), type: .composite,
          compositeElements: [
            Attribute(traits: PropertyTraits(name: "zip", isOptional: isOptional), type: .string),
            Attribute(traits: PropertyTraits(name: "city", isOptional: isOptional), type: .string),
          ], compositeTypeName: "Place"))
    }
    let model = ManagedObjectModel(entities: [
      Entity(name: "Trip", properties: [attribute("from", false), attribute("to", false), attribute("via", true)])
    ])
    let written = try model.source().contents
    let text = String(decoding: written, as: UTF8.self)
    #expect(text.components(separatedBy: "<composite ").count == 3)
    #expect(text.contains(#"<composite name="Place">"#) && text.contains(#"<composite name="Place2">"#))
    let back = try ManagedObjectModel(source: written)
    #expect(back.versionHashes() == model.versionHashes())
    let elements = back.entities["Trip"]?.properties["via"]?.attribute?.compositeElements
    #expect(elements?.map(\.name) == ["zip", "city"] && elements?.allSatisfy { $0.traits.isOptional } == true)
  }

  @Test func whatSourceHasNoWordForIsNamed() throws {
    let attribute = Attribute(
      traits: PropertyTraits(name: "photo", isOptional: true), type: .binary, defaultValue: .data([1, 2]),
      validationPredicates: ["SELF != nil"])
    let model = ManagedObjectModel(entities: [Entity(name: "Car", properties: [.attribute(attribute)])])
    let written = try model.source()
    #expect(Set(written.omissions) == ["the default of Car.photo", "rules of Car.photo"])
    #expect(try ManagedObjectModel(source: written.contents).versionHashes() == model.versionHashes())
  }

  @Test func aNameThatXMLCannotHoldIsRefused() {
    let model = ManagedObjectModel(entities: [Entity(name: "Car\u{1}")])
    #expect { _ = try model.source() } throws: { ($0 as? ModelError)?.kind == .unwritable }
  }
}

/// The models of real stores, written compiled and as source.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealModelExportTests {
  /// The hashes in the store's metadata are Core Data's own.
  @Test(arguments: RealMaterial.stores) func bothFormsHashLikeTheStore(_ store: FilePath) throws {
    let recorded = try RealStoreTests.read(store)
    guard let cache = recorded.cache else { return }
    let hashes = try #require(recorded.metadata["NSStoreModelVersionHashes"]?.dictionary).compactMapValues(\.data)
    let model = try ManagedObjectModel(modelCache: cache)
    let source = try ManagedObjectModel(source: model.source().contents)
    #expect(source.versionHashes().mapValues(\.bytes) == hashes)
    let compiled = try ManagedObjectModel(compiled: model.compiled())
    #expect(compiled.versionHashes().mapValues(\.bytes) == hashes)
  }
}
