import ManagedObjectModel
import Migration
import Testing

/// Section 5.3: what becomes of relationships.
struct RelationshipInferenceTests {
  static func garage(_ vehicles: Property, _ owner: Property?) -> ManagedObjectModel {
    let car = owner.map { entity("Car", $0) } ?? entity("Car")
    return model(entity("Person", vehicles), car)
  }

  static let oneToMany = garage(toMany("cars", "Car", inverse: "owner"), toOne("owner", "Person", inverse: "cars"))
  static let manyToMany = garage(toMany("cars", "Car", inverse: "owner"), toMany("owner", "Person", inverse: "cars"))

  @Test func oneToManyBecomesManyToMany() {
    let inference = MappingInference(from: Self.oneToMany, to: Self.manyToMany)
    #expect(inference.isHarmless)
    #expect(inference.value("Person", "cars") == .relationship("cars"))
    #expect(inference.value("Car", "owner") == .relationship("owner"))
  }

  @Test func manyToManyBecomesOneToManyIsRefused() {
    let inference = MappingInference(from: Self.manyToMany, to: Self.oneToMany)
    #expect(inference.refusalWords == ["to-many-to-to-one Car.owner"])
    #expect(inference.refusals.first?.reason == "Can not map from a to-many to a to-one relationship")
  }

  @Test func manyToManyWithANewToOneInverseDependsOnTheData() {
    let after = Self.garage(toMany("cars", "Car", inverse: "keeper"), toOne("keeper", "Person", inverse: "cars"))
    let inference = MappingInference(from: Self.manyToMany, to: after)
    #expect(inference.refusals.isEmpty)
    #expect(inference.value("Car", "keeper") == .inverse)
    #expect(inference.conditionWords == ["several-owners Person.cars"])
    #expect(inference.lossWords.isEmpty)
  }

  @Test func inverseAddedAndRemoved() {
    let oneWay = Self.garage(toMany("cars", "Car"), nil)
    let added = MappingInference(from: oneWay, to: Self.oneToMany)
    #expect(added.isHarmless)
    #expect(added.value("Car", "owner") == .inverse)
    let removed = MappingInference(from: Self.oneToMany, to: oneWay)
    #expect(removed.isHarmless)
    // A to-many without an inverse has room for one owner only.
    let cut = MappingInference(from: Self.manyToMany, to: oneWay)
    #expect(cut.conditionWords == ["several-owners Person.cars"])
    let widened = MappingInference(from: oneWay, to: Self.manyToMany)
    #expect(widened.isHarmless)
    #expect(widened.value("Car", "owner") == .inverse)
  }

  @Test func mandatoryInverseIsCounted() {
    let after = Self.garage(
      toMany("cars", "Car", inverse: "owner"), toOne("owner", "Person", inverse: "cars", optional: false))
    let inference = MappingInference(from: Self.garage(toMany("cars", "Car"), nil), to: after)
    #expect(inference.conditionWords == ["missing-relationship Car.owner"])
    #expect(inference.mapping.conditions.first?.sourceProperty == nil)
  }

  @Test func relationshipsThatBecomeInverseAreJoined() {
    let before = Self.garage(toMany("cars", "Car"), toOne("owner", "Person"))
    let inference = MappingInference(from: before, to: Self.oneToMany)
    #expect(inference.refusals.isEmpty)
    #expect(Set(inference.conditionWords) == ["new-inverse Person.cars", "new-inverse Car.owner"])
  }

  @Test func renamedOnBothSides() {
    let after = Self.garage(
      toMany("vehicles", "Car", inverse: "keeper", id: "cars"),
      toOne("keeper", "Person", inverse: "vehicles", id: "owner"))
    let inference = MappingInference(from: Self.oneToMany, to: after)
    #expect(inference.isHarmless)
    #expect(inference.value("Person", "vehicles") == .relationship("cars"))
    #expect(inference.value("Car", "keeper") == .relationship("owner"))
  }

  @Test func removedOnBothSides() {
    let inference = MappingInference(from: Self.oneToMany, to: model(entity("Person"), entity("Car")))
    #expect(Set(inference.lossWords) == ["removed-relationship Person.cars", "removed-relationship Car.owner"])
  }

  @Test func toOneToToMany() {
    let before = model(entity("Car", toOne("owner", "Person")), entity("Person"))
    let after = model(
      entity("Car", toMany("owner", "Person", inverse: "cars")),
      entity("Person", toMany("cars", "Car", inverse: "owner")))
    #expect(MappingInference(from: before, to: after).isHarmless)
    // Without an inverse several cars of one person cannot all keep it.
    let oneWay = model(entity("Car", toMany("owner", "Person")), entity("Person"))
    #expect(MappingInference(from: before, to: oneWay).conditionWords == ["several-owners Car.owner"])
    let back = MappingInference(from: after, to: before)
    #expect(back.refusalWords == ["to-many-to-to-one Car.owner"])
  }

  @Test func order() {
    let plain = model(entity("List", toMany("items", "Item")), entity("Item"))
    let ordered = model(entity("List", toMany("items", "Item", ordered: true)), entity("Item"))
    #expect(MappingInference(from: plain, to: ordered).isHarmless)
    let lost = MappingInference(from: ordered, to: plain)
    #expect(lost.refusals.isEmpty)
    #expect(lost.lossWords == ["relationship-order List.items"])
  }

  @Test func mandatoryAndCounts() {
    func list(_ items: Property) -> ManagedObjectModel { model(entity("List", items), entity("Item")) }
    let free = list(toMany("items", "Item"))
    func words(_ items: Property) -> [String] { MappingInference(from: free, to: list(items)).conditionWords }
    // An empty mandatory relationship to many is no violation, unless its minimum count says so.
    #expect(words(toMany("items", "Item", optional: false)) == [])
    #expect(words(toMany("items", "Item", optional: false, min: 1)) == ["missing-relationship List.items"])
    #expect(words(toMany("items", "Item", min: 2)) == ["too-few-destinations List.items"])
    #expect(words(toMany("items", "Item", max: 3)) == ["too-many-destinations List.items"])
    #expect(words(toMany("items", "Item", max: -1)) == [])
    let new = MappingInference(
      from: model(entity("List"), entity("Item")), to: list(toMany("items", "Item", optional: false, min: 1)))
    #expect(new.conditionWords == ["new-mandatory-relationship List.items"])
    #expect(new.value("List", "items") == .null)
  }

  @Test func anotherDestination() {
    func cars(_ destination: String) -> ManagedObjectModel {
      model(
        entity("Car", toOne("owner", destination)), entity("Party"), entity("Person", parent: "Party"),
        entity("Firm", parent: "Party"), entity("Rock"))
    }
    #expect(MappingInference(from: cars("Person"), to: cars("Party")).isHarmless)
    let narrowed = MappingInference(from: cars("Party"), to: cars("Person"))
    #expect(narrowed.conditionWords == ["destination-of-other-entity Car.owner"])
    let cut = MappingInference(from: cars("Person"), to: cars("Rock"))
    #expect(cut.refusals.isEmpty)
    #expect(cut.lossWords == ["unrelated-destination Car.owner"])
    #expect(cut.value("Car", "owner") == .null)
  }

  @Test func destinationUnderTheSameNameMayBeAnother() {
    let before = model(entity("Car", toOne("owner", "Person")), entity("Person"))
    let after = model(entity("Car", toOne("owner", "Person")), entity("Person", attribute("name"), id: "Somebody"))
    #expect(MappingInference(from: before, to: after).refusalWords == ["disagreeing-identifiers Person"])
    let inference = MappingInference(from: before, to: after, acceptsLosses: true)
    #expect(inference.mapping.entityMappings(to: "Car").first?.kind == .copy)
    #expect(inference.lossWords == ["unrelated-destination Car.owner", "removed-entity Person"])
  }

  @Test func ownInverse() {
    let friends = model(entity("Person", toMany("friends", "Person", inverse: "friends")))
    #expect(MappingInference(from: friends, to: friends).isHarmless)
    let renamed = model(entity("Person", toMany("mates", "Person", inverse: "mates", id: "friends")))
    let inference = MappingInference(from: friends, to: renamed)
    #expect(inference.isHarmless)
    #expect(inference.value("Person", "mates") == .relationship("friends"))
  }
}
