import ManagedObjectModel
import Migration
import Testing

/// Chains of versions.
struct MigrationPathTests {
  static let first = model(entity("Car", attribute("a")))
  static let second = model(entity("Car", attribute("b", id: "a")))
  static let third = model(entity("Car", attribute("c", id: "a"), attribute("d")))

  @Test func stepByStepAndDirect() throws {
    let bundle = try bundle(Self.first, Self.second, Self.third)
    let chain = try MigrationPath(in: bundle, from: .version("V1"))
    #expect(chain.steps.map(\.name) == ["V1 → V3"])
    #expect(chain.destinationName == "V3")
    let through = try MigrationPath(in: bundle, from: .version("V1"), options: .init(via: ["V2"]))
    #expect(through.steps.map(\.name) == ["V1 → V2", "V2 → V3"])
    let direct = try MigrationPath(in: bundle, from: .version("V1"), options: .init(isDirect: true))
    #expect(direct.steps.map(\.name) == ["V1 → V3"])
    let value = direct.steps.first?.mapping.entityMappings.first?.propertyMapping(of: "c")?.value
    #expect(value == .copy("a"))
    #expect(try MigrationPath(in: bundle, from: .version("V1"), to: "V2").steps.map(\.name) == ["V1 → V2"])
    #expect(try MigrationPath(in: bundle, from: .version("V3")).steps.isEmpty)
  }

  @Test func modelOfAVersionIsFoundByItsHashes() throws {
    let bundle = try bundle(Self.first, Self.second, Self.third)
    let path = try MigrationPath(in: bundle, from: .model(Self.second))
    #expect(path.steps.map(\.name) == ["V2 → V3"])
  }

  @Test func unknownModelIsMappedDirectlyOrThroughAVersion() throws {
    let unknown = model(entity("Car", attribute("a"), attribute("z")))
    let bundle = try bundle(Self.first, Self.second, Self.third)
    let direct = try MigrationPath(in: bundle, from: .model(unknown))
    #expect(direct.steps.map(\.name) == ["the store's model → V3"])
    #expect(direct.steps.first?.sourceName == nil)
    // V1's attribute is text, V2's is a date: only the way through V1 is open, by a mapping that leads from there.
    let bridge = try self.bridge()
    let old = model(entity("Car", attribute("x", .string), attribute("y")))
    let mapping = MappingModel(
      origin: .code, source: bridge.versions[0].model, destination: bridge.versions[1].model,
      entityMappings: [EntityMapping(name: "Car", kind: .custom, source: "Car", destination: "Car")])
    let through = try MigrationPath(in: bridge, from: .model(old), options: .init(mappings: [mapping]))
    #expect(through.steps.map(\.name) == ["the store's model → V1", "V1 → V2"])
    // A version on the way that has no place for what the store holds is no way round.
    let losing = try makeBundle(model(entity("Car", attribute("y"))), bridge.versions[1].model)
    #expect(throws: MigrationError.self) { try MigrationPath(in: losing, from: .model(old)) }
    let error = try #require(throws: MigrationError.self) {
      try MigrationPath(in: bridge, from: .model(old), options: .init(isDirect: true))
    }
    #expect(error.step == "the store's model → V2")
  }

  private func makeBundle(_ models: ManagedObjectModel...) throws -> ModelBundle { try bundle(models) }

  private func bridge() throws -> ModelBundle {
    let last = attribute("w")
    return try bundle(
      model(entity("Car", attribute("x"), attribute("y"), last)),
      model(entity("Car", attribute("x", .date), attribute("y"), last)))
  }

  @Test func backwardsAndUnknownVersions() throws {
    let bundle = try bundle(Self.first, Self.second)
    let older = try #require(
      ModelBundle(
        name: "Test",
        versions: bundle.versions.map { ModelVersion(name: $0.name, model: $0.model, isCurrent: $0.name == "V1") }))
    let backwards = try #require(throws: MigrationError.self) {
      try MigrationPath(in: older, from: .version("V2"))
    }
    #expect(backwards.kind == .backwards && backwards.isEnvironmental)
    #expect(backwards.coreDataCode == 134506)
    // Whoever names the version has decided.
    #expect(try MigrationPath(in: older, from: .version("V2"), to: "V1").steps.map(\.name) == ["V2 → V1"])
    let unknown = try #require(throws: MigrationError.self) { try MigrationPath(in: bundle, from: .version("V9")) }
    #expect(unknown.kind == .unknownVersion)
    #expect(unknown.detail.contains("V1, V2"))
  }

  @Test func versionsWithTheSameHashesAreSteppedOver() throws {
    let bundle = try bundle(Self.first, Self.first, Self.second)
    #expect(try MigrationPath(in: bundle, from: .version("V1")).steps.map(\.name) == ["V1 → V3"])
    #expect(try MigrationPath(in: bundle, from: .version("V1"), to: "V2").steps.isEmpty)
  }

  @Test func refusalsOfAllStepsAreTold() throws {
    let bundle = try bundle(
      model(entity("Car", attribute("a"))), model(entity("Car", attribute("a", .date))),
      model(entity("Car", attribute("a", .uuid))))
    let error = try #require(throws: MigrationError.self) { try MigrationPath(in: bundle, from: .version("V1")) }
    #expect(error.refusals.map(\.step) == ["V1 → V3"])
    #expect(error.step == "V1 → V3")
  }

  @Test func customMappingsAreTaken() throws {
    func custom(_ name: String, _ source: ManagedObjectModel, _ destination: ManagedObjectModel) -> MappingModel {
      MappingModel(name: name, origin: .code, source: source, destination: destination, entityMappings: [])
    }
    let bundle = try bundle(Self.first, Self.second, Self.third)
    let next = custom("next", Self.first, Self.second)
    let far = custom("far", Self.first, Self.third)
    func names(_ mappings: MappingModel...) throws -> [String?] {
      try MigrationPath(in: bundle, from: .version("V1"), options: .init(mappings: mappings)).steps.map(\.mapping.name)
    }
    #expect(try names(far, next) == ["next", nil])
    #expect(try names(far) == ["far"])
    #expect(try names(custom("stale", Self.first, model(entity("Car")))) == [nil])
    let direct = try MigrationPath(
      in: bundle, from: .version("V1"), options: .init(isDirect: true, mappings: [next, far]))
    #expect(direct.steps.map(\.mapping.name) == ["far"])
  }
}
