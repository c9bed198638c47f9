import ManagedObjectModel
import Migration
import Platform
import Testing

/// Section 5.3: what becomes of attributes.
struct AttributeInferenceTests {
  static let numeric: [AttributeType] = [.integer16, .integer32, .integer64, .decimal, .double, .float, .boolean]
  static let all = AttributeType.allCases.filter { $0 != .composite }

  static func change(_ before: Property, _ after: Property) -> MappingInference {
    MappingInference(from: model(entity("Car", before)), to: model(entity("Car", after)))
  }

  @Test func addedRemovedRenamed() {
    let inference = MappingInference(
      from: model(entity("Car", attribute("a"), attribute("b"), attribute("c"))),
      to: model(
        entity("Car", attribute("a"), attribute("bb", id: "b"), attribute("d"), attribute("e", default: .string("x")))))
    #expect(inference.value("Car", "a") == .copy("a"))
    #expect(inference.value("Car", "bb") == .copy("b"))
    #expect(inference.value("Car", "d") == .null)
    #expect(inference.value("Car", "e") == .defaultValue)
    #expect(inference.lossWords == ["removed-attribute Car.c"])
    #expect(inference.mapping.conditions.isEmpty)
  }

  @Test(arguments: all, all) func typeChanges(_ before: AttributeType, _ after: AttributeType) {
    let inference = Self.change(attribute("x", before), attribute("x", after))
    if before == after {
      // An attribute without a type is refused even where nothing changes.
      #expect(inference.refusals.isEmpty == (before != .undefined))
      return
    }
    if Self.numeric.contains(before), Self.numeric.contains(after) {
      #expect(inference.value("Car", "x") == .convert("x", from: before, to: after))
      #expect(inference.refusals.isEmpty)
    } else {
      #expect(inference.refusalWords == ["incompatible-types Car.x"])
      #expect(inference.refusals.first?.reason == "Source and destination attribute types are incompatible")
    }
  }

  @Test func onlyNarrowingDependsOnTheData() {
    #expect(Self.change(attribute("x", .integer16), attribute("x", .integer64)).isHarmless)
    #expect(Self.change(attribute("x", .boolean), attribute("x", .double)).isHarmless)
    #expect(Self.change(attribute("x", .float), attribute("x", .double)).isHarmless)
    for (before, after) in [
      (AttributeType.integer64, AttributeType.integer32), (.double, .integer64), (.integer64, .double),
      (.integer16, .boolean), (.decimal, .float),
    ] {
      let inference = Self.change(attribute("x", before), attribute("x", after))
      #expect(inference.conditionWords == ["value-out-of-range Car.x"])
      #expect(inference.mapping.conditions.first?.effect == .loses)
    }
  }

  @Test func optionalToMandatory() {
    let with = Self.change(attribute("x"), attribute("x", optional: false, default: .string("?")))
    #expect(with.isHarmless)
    #expect(with.mapping.entityMappings.first?.propertyMappings.first?.replacesNilWithDefault == true)
    let without = Self.change(attribute("x"), attribute("x", optional: false))
    #expect(without.refusals.isEmpty)
    #expect(without.conditionWords == ["missing-attribute-value Car.x"])
    #expect(without.mapping.conditions.first?.effect == .fails)
    #expect(Self.change(attribute("x", optional: false), attribute("x")).isHarmless)
  }

  @Test func newMandatory() {
    let without = MappingInference(
      from: model(entity("Car")), to: model(entity("Car", attribute("x", optional: false))))
    #expect(without.conditionWords == ["new-mandatory-attribute Car.x"])
    let with = MappingInference(
      from: model(entity("Car")), to: model(entity("Car", attribute("x", optional: false, default: .string("")))))
    #expect(with.isHarmless)
    // An entity that is new has no records, and neither has one that was abstract.
    #expect(MappingInference(from: model(), to: model(entity("Car", attribute("x", optional: false)))).isHarmless)
    let abstract = MappingInference(
      from: model(entity("Car", abstract: true)), to: model(entity("Car", attribute("x", optional: false))))
    #expect(abstract.isHarmless)
    let opaque = MappingInference(
      from: model(entity("Car")),
      to: model(entity("Car", attribute("x", .transformable, default: .opaque(className: "NSColor")))))
    #expect(opaque.value("Car", "x") == .null)
    #expect(opaque.conditionWords == ["unreadable-default Car.x"])
  }

  @Test func externalStorage() {
    let inside = attribute("x", .binary)
    let outside = attribute("x", .binary, external: true)
    let on = Self.change(inside, outside)
    #expect(on.isHarmless)
    #expect(on.value("Car", "x") == .externalize("x"))
    let off = Self.change(outside, inside)
    #expect(off.refusalWords == ["external-storage-off Car.x"])
    #expect(off.refusals.first?.reason == "Unable to use inferred mapping to move external reference into store.")
    #expect(Self.change(outside, attribute("y", .binary, id: "x", external: true)).value("Car", "y") == .copy("x"))
  }

  @Test func transformableAndBinary() {
    let allowed = ["NSMigrationAllowTypeTransformation": "YES"]
    for (before, after) in [(AttributeType.binary, AttributeType.transformable), (.transformable, .binary)] {
      let with = Self.change(attribute("x", before), attribute("x", after, userInfo: allowed))
      #expect(with.isHarmless)
      #expect(with.value("Car", "x") == .copy("x"))
      #expect(!Self.change(attribute("x", before, userInfo: allowed), attribute("x", after)).refusals.isEmpty)
      let external = Self.change(
        attribute("x", before), attribute("x", after, external: true, userInfo: allowed))
      #expect(external.refusalWords == ["incompatible-types Car.x"])
    }
    let other = Self.change(attribute("x", .string), attribute("x", .binary, userInfo: allowed))
    #expect(other.refusalWords == ["incompatible-types Car.x"])
  }

  @Test func transientAndDerived() {
    let toTransient = Self.change(attribute("x"), attribute("x", transient: true))
    #expect(toTransient.lossWords == ["becomes-transient Car.x"])
    #expect(toTransient.mapping.entityMappings.first?.propertyMappings.isEmpty == true)
    // What was transient was never stored, so that it can have any type and is new.
    let fromTransient = Self.change(attribute("x", .undefined, transient: true), attribute("x", .date))
    #expect(fromTransient.isHarmless)
    #expect(fromTransient.value("Car", "x") == .null)
    let toDerived = Self.change(attribute("x"), attribute("x", .integer64, derived: "doors.@count"))
    #expect(toDerived.value("Car", "x") == .recompute)
    #expect(toDerived.lossWords == ["becomes-derived Car.x"])
    let fromDerived = Self.change(attribute("x", derived: "now()"), attribute("x"))
    #expect(fromDerived.isHarmless)
    #expect(fromDerived.value("Car", "x") == .copy("x"))
    #expect(
      MappingInference(from: model(entity("C", attribute("x", derived: "now()"))), to: model(entity("C"))).isHarmless)
  }

  @Test func compositeLeaves() {
    let before = attribute("address", .composite, elements: [leaf("city"), leaf("zip", .integer32), leaf("street")])
    let after = attribute(
      "place", .composite, id: "address", elements: [leaf("town", id: "city"), leaf("zip", .integer64), leaf("land")])
    let inference = Self.change(before, after)
    #expect(inference.refusals.isEmpty)
    #expect(
      inference.value("Car", PropertyPath("place", leaf: ["town"])) == .copy(PropertyPath("address", leaf: ["city"])))
    #expect(
      inference.value("Car", PropertyPath("place", leaf: ["zip"]))
        == .convert(PropertyPath("address", leaf: ["zip"]), from: .integer32, to: .integer64))
    #expect(inference.value("Car", PropertyPath("place", leaf: ["land"])) == .null)
    #expect(inference.lossWords == ["removed-attribute Car.address.street"])
    // A plain attribute does not become a composite one.
    let plain = Self.change(attribute("address"), before)
    #expect(plain.refusals.isEmpty)
    #expect(plain.lossWords == ["removed-attribute Car.address"])
  }

  @Test func anotherKindIsNewAndRemoved() {
    let inference = MappingInference(
      from: model(entity("Car", attribute("owner")), entity("Person")),
      to: model(entity("Car", toOne("owner", "Person")), entity("Person")))
    #expect(inference.refusals.isEmpty)
    #expect(inference.lossWords == ["removed-attribute Car.owner"])
    #expect(inference.value("Car", "owner") == .null)
  }

  @Test func ambiguousProperties() {
    let inference = Self.change(attribute("a"), attribute("b", id: "a"))
    #expect(inference.isHarmless)
    let double = MappingInference(
      from: model(entity("Car", attribute("a"))),
      to: model(entity("Car", attribute("a"), attribute("b", id: "a"))))
    #expect(double.refusalWords == ["ambiguous-property Car.b"])
    #expect(double.refusals.first?.reason == "Each property must have a unique renaming identifier")
  }

  @Test func swappedIdentifiersOfAnEqualEntityDoNotSwapValues() {
    let before = model(entity("Car", attribute("a"), attribute("b")))
    let after = model(entity("Car", attribute("a", id: "b"), attribute("b", id: "a")))
    #expect(MappingInference(from: before, to: after).value("Car", "a") == .copy("a"))
  }

  @Test func everyReasonIsTold() throws {
    let before = model(
      entity("Car", attribute("a"), attribute("b", .binary, external: true), toMany("c", "Person")), entity("Person"),
      entity("Other"))
    let after = model(
      entity("Base"),
      entity("Car", attribute("a", .date), attribute("b", .binary), toOne("c", "Person"), parent: "Base"),
      entity("Person", parent: "Base"), entity("Other"))
    let error = try #require(throws: MigrationError.self) { try MappingModel.inferred(from: before, to: after) }
    #expect(error.refusals.count == 4)
    #expect(error.kind == .notInferable)
    #expect(error.coreDataCode == 134140)
    #expect(error.code == "mapping-not-inferable")
    #expect(error.detail.contains("and 3 more"))
    #expect(error.entityName == "Car")
    #expect(error.propertyName == "a")
  }

  @Test func inheritedRefusalsAreToldOnce() {
    let before = model(entity("A", attribute("x")), entity("B", parent: "A"), entity("C", parent: "B"))
    let after = model(entity("A", attribute("x", .date)), entity("B", parent: "A"), entity("C", parent: "B"))
    #expect(MappingInference(from: before, to: after).refusalWords == ["incompatible-types A.x"])
  }
}
