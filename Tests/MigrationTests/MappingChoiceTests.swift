import ManagedObjectModel
import Migration
import SystemPackage
import Testing

/// Which of several mappings is taken, and what is said of the others.
struct MappingChoiceTests {
  private func custom(
    _ name: String?, _ source: ManagedObjectModel, _ destination: ManagedObjectModel,
    origin: MappingModel.Origin = .code
  ) -> MappingModel {
    MappingModel(name: name, origin: origin, source: source, destination: destination, entityMappings: [])
  }

  private let first = MigrationPathTests.first
  private let second = MigrationPathTests.second
  private let third = MigrationPathTests.third

  @Test func firstByNameIsTakenAndTheOthersAreListed() throws {
    let bundle = try bundle(first, second, third)
    let b = custom("b", first, second)
    let a = custom("a", first, second, origin: .mappingFile("/z/a.json"))
    for mappings in [[a, b], [b, a]] {
      let path = try MigrationPath(in: bundle, from: .version("V1"), options: .init(mappings: mappings))
      #expect(path.steps.first?.mapping.name == "a")
      #expect(path.steps.first?.mapping.origin.path == "/z/a.json")
      #expect(path.steps.first?.alternatives.map(\.name) == ["b"])
      #expect(path.unused.map(\.reason) == [.otherMapping])
      #expect(path.steps.last?.alternatives == [])
    }
  }

  @Test func staleMappingsAreTold() throws {
    let bundle = try bundle(first, second, third)
    let changed = model(entity("Car", attribute("a"), attribute("z")), entity("Bike"))
    let stale = custom("stale", changed, second)
    let other = custom("other", second, third)
    let path = try MigrationPath(in: bundle, from: .version("V1"), to: "V2", options: .init(mappings: [stale, other]))
    #expect(path.unused.map(\.mapping.name) == ["other", "stale"])
    #expect(path.unused.map(\.reason) == [.otherSteps, .stale])
    let told = try #require(path.unused.last)
    #expect(told.source.entityNames == ["Bike", "Car"] && told.source.nearestVersion == "V1")
    #expect(told.destination.nearestVersion == nil)
    #expect(told.text.contains("Bike, Car"))
  }

  @Test func mappingToTheNextVersionComesBeforeTheOneThatLeadsFurthest() throws {
    let bundle = try bundle(first, second, third, model(entity("Car", attribute("c", id: "a"))))
    let far = custom("a far", first, third)
    let further = custom("b further", first, bundle.current.model)
    let next = custom("z next", first, second)
    func names(_ mappings: MappingModel...) throws -> [String] {
      try MigrationPath(in: bundle, from: .version("V1"), options: .init(mappings: mappings)).steps.map(\.name)
    }
    #expect(try names(far, further, next) == ["V1 → V2", "V2 → V4"])
    #expect(try names(far, further) == ["V1 → V4"])
    #expect(try names(far) == ["V1 → V3", "V3 → V4"])
  }
}
