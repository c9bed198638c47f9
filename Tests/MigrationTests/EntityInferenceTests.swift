import ManagedObjectModel
import Migration
import Testing

/// Section 5.2: what becomes of entities.
struct EntityInferenceTests {
  @Test func equalModelsAreCopied() throws {
    let one = model(entity("Car", attribute("color"), toOne("owner", "Person")), entity("Person", attribute("name")))
    let mapping = try MappingModel.inferred(from: one, to: one)
    #expect(mapping.entityMappings.map(\.name) == ["IEM_Copy_Car", "IEM_Copy_Person"])
    #expect(mapping.entityMappings.allSatisfy { $0.kind == .copy && $0.isIdentity })
    #expect(mapping.isIdentity)
    #expect(mapping.origin == .inferred)
  }

  @Test func addedAndRemovedEntities() {
    let inference = MappingInference(
      from: model(entity("Car"), entity("Wheel", attribute("size"))),
      to: model(entity("Car"), entity("Garage", attribute("city", default: .string("Ulm")), attribute("zip"))))
    #expect(inference.mapping.entityMappings.map(\.kind) == [.copy, .add, .remove])
    #expect(inference.mapping.entityMappings.map(\.kind.rawValue) == [4, 2, 3])
    #expect(inference.lossWords == ["removed-entity Wheel"])
    #expect(inference.value("Garage", "city") == .defaultValue)
    #expect(inference.value("Garage", "zip") == .null)
    #expect(inference.refusals.isEmpty)
  }

  @Test func renamedByIdentifierOfEitherSide() {
    let first = model(entity("Car", attribute("color")))
    let second = model(entity("Auto", attribute("color"), id: "Car"))
    let third = model(entity("Vehicle", attribute("color"), id: "Car"))
    for (from, to, name) in [(first, second, "Auto"), (second, third, "Vehicle"), (first, third, "Vehicle")] {
      let inference = MappingInference(from: from, to: to)
      #expect(inference.isHarmless)
      #expect(inference.mapping.entityMappings.map(\.name) == ["IEM_Transform_\(name)"])
      #expect(inference.value(name, "color") == .copy("color"))
    }
    // The name that it had in between is not what it is matched by.
    let wrong = MappingInference(from: second, to: model(entity("Vehicle", attribute("color"), id: "Auto")))
    #expect(wrong.lossWords == ["removed-entity Auto"])
  }

  @Test func swappedNames() {
    let inference = MappingInference(
      from: model(entity("A", attribute("x")), entity("B", attribute("y"))),
      to: model(entity("A", attribute("y"), id: "B"), entity("B", attribute("x"), id: "A")))
    #expect(inference.isHarmless)
    #expect(inference.mapping.entityMappings(from: "A").first?.destinationEntityName == "B")
    #expect(inference.mapping.entityMappings(from: "B").first?.destinationEntityName == "A")
  }

  @Test func ambiguousEntities() {
    let good = model(entity("A"))
    let bad = model(entity("A"), entity("B", id: "A"))
    let before = MappingInference(from: bad, to: good)
    #expect(before.refusalWords == ["ambiguous-entity B"])
    #expect(before.refusals.first?.reason == "Each source entity must have a unique renaming identifier")
    let after = MappingInference(from: good, to: bad)
    #expect(after.refusals.first?.reason == "Each destination entity must have a unique renaming identifier")
    #expect(after.refusals.first?.coreDataCode == 134190)
  }

  @Test func abstractness() {
    let concrete = model(entity("Car", attribute("color")))
    let abstract = model(entity("Car", attribute("color"), abstract: true))
    #expect(MappingInference(from: concrete, to: abstract).conditionWords == ["records-of-abstract-entity Car"])
    #expect(MappingInference(from: abstract, to: concrete).isHarmless)
  }

  @Test func newParentTakesPropertiesUp() {
    let inference = MappingInference(
      from: model(entity("Car", attribute("color"), attribute("doors", .integer16))),
      to: model(
        entity("Vehicle", attribute("color"), attribute("weight", .double), abstract: true),
        entity("Car", attribute("doors", .integer16), parent: "Vehicle")))
    #expect(inference.isHarmless)
    #expect(inference.value("Car", "color") == .copy("color"))
    #expect(inference.value("Car", "doors") == .copy("doors"))
    #expect(inference.value("Car", "weight") == .null)
    #expect(inference.mapping.entityMappings(to: "Vehicle").first?.kind == .add)
  }

  @Test func pulledUpFromOneChildIsNewInTheOther() {
    let inference = MappingInference(
      from: model(
        entity("Vehicle"), entity("Car", attribute("doors", .integer16, optional: false), parent: "Vehicle"),
        entity("Bike", parent: "Vehicle")),
      to: model(
        entity("Vehicle", attribute("doors", .integer16, optional: false)), entity("Car", parent: "Vehicle"),
        entity("Bike", parent: "Vehicle")))
    #expect(inference.refusals.isEmpty)
    #expect(inference.value("Car", "doors") == .copy("doors"))
    #expect(
      Set(inference.conditionWords) == ["new-mandatory-attribute Vehicle.doors", "new-mandatory-attribute Bike.doors"])
    #expect(inference.mapping.conditionsWithoutInherited.map(\.place) == ["Vehicle.doors"])
  }

  @Test func pushedDownIsLostElsewhere() {
    let inference = MappingInference(
      from: model(
        entity("Vehicle", attribute("doors", .integer16), abstract: true), entity("Car", parent: "Vehicle"),
        entity("Bike", parent: "Vehicle")),
      to: model(
        entity("Vehicle", abstract: true), entity("Car", attribute("doors", .integer16), parent: "Vehicle"),
        entity("Bike", parent: "Vehicle")))
    #expect(inference.refusals.isEmpty)
    #expect(inference.lossWords == ["removed-attribute Bike.doors"])
    #expect(inference.value("Car", "doors") == .copy("doors"))
  }

  @Test func insertedBetweenAndMovedOut() {
    let flat = model(entity("A"), entity("B", attribute("x"), parent: "A"), entity("C", parent: "A"))
    let between = model(
      entity("A"), entity("M", parent: "A"), entity("B", attribute("x"), parent: "M"), entity("C", parent: "A"))
    #expect(MappingInference(from: flat, to: between).isHarmless)
    let out = model(entity("A"), entity("B", attribute("x")), entity("C", parent: "A"))
    #expect(MappingInference(from: flat, to: out).isHarmless)
    // And the removal of the common parent splits the hierarchy.
    let split = MappingInference(from: flat, to: model(entity("B", attribute("x")), entity("C")))
    #expect(split.refusals.isEmpty)
    #expect(split.lossWords == ["removed-entity A"])
  }

  @Test func mergedHierarchiesAreRefused() throws {
    let inference = MappingInference(
      from: model(entity("Car"), entity("Truck"), entity("Person")),
      to: model(
        entity("Vehicle"), entity("Car", parent: "Vehicle"), entity("Truck", parent: "Vehicle"), entity("Person")))
    #expect(inference.refusalWords == ["merged-hierarchies Truck"])
    let refusal = try #require(inference.refusals.first)
    #expect(refusal.detail.contains("\"Car\" and \"Truck\""))
    #expect(refusal.wayRound.contains("version between"))
    // A move into an existing hierarchy is one too, and the entity that moves is the one that is named.
    let moved = MappingInference(
      from: model(entity("Zoo"), entity("Ape", parent: "Zoo"), entity("Bear")),
      to: model(entity("Zoo"), entity("Ape", parent: "Zoo"), entity("Bear", parent: "Zoo")))
    #expect(moved.refusalWords == ["merged-hierarchies Bear"])
    // An added entity may join.
    #expect(MappingInference(from: model(entity("A")), to: model(entity("A"), entity("N", parent: "A"))).isHarmless)
  }

  @Test func uniqueness() {
    let loose = model(entity("Car", attribute("plate"), attribute("key")))
    let strict = model(entity("Car", attribute("plate"), attribute("key"), unique: [["plate"]]))
    let added = MappingInference(from: loose, to: strict)
    #expect(added.conditionWords == ["duplicate-values Car"])
    #expect(added.mapping.conditions.first?.propertyNames == ["plate"])
    #expect(MappingInference(from: strict, to: loose).isHarmless)
    let renamed = model(entity("Car", attribute("sign", id: "plate"), attribute("key"), unique: [["sign"]]))
    #expect(MappingInference(from: strict, to: renamed).isHarmless)
    let wider = model(entity("Car", attribute("plate"), attribute("key"), unique: [["plate"], ["key", "plate"]]))
    #expect(MappingInference(from: strict, to: wider).mapping.conditions.first?.propertyNames == ["key", "plate"])
  }

  @Test func modelsThatContradictThemselvesAreMappedSomehow() {
    let circle = model(entity("A", attribute("x"), parent: "B"), entity("B", parent: "A"), entity("C", parent: "Gone"))
    let inference = MappingInference(from: circle, to: circle)
    #expect(Set(inference.mapping.entityMappings.map(\.destinationEntityName)) == ["A", "B", "C"])
    _ = MappingInference(from: circle, to: model(entity("A", toOne("x", "Nowhere", inverse: "y"))))
  }

  @Test(.timeLimit(.minutes(5))) func largeModelsAreMappedInTime() {
    func large(_ type: AttributeType) -> ManagedObjectModel {
      var root = entity("Root")
      for index in 0..<10 { root.properties["p\(index)"] = attribute("p\(index)", type) }
      let children = (0..<1500).map { index in
        entity("E\(index)", toOne("r\(index)", "E\(index / 2)"), toMany("m\(index)", "Root"), parent: "Root")
      }
      return ManagedObjectModel(entities: [root] + children)
    }
    let inference = MappingInference(from: large(.integer64), to: large(.integer16))
    #expect(inference.mapping.conditions.count == 15_010)
    #expect(inference.mapping.conditionsWithoutInherited.count == 10)
    #expect(!MappingListing(inference, from: "V1", to: "V2").text.isEmpty)
  }
}
