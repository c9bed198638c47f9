import ManagedObjectModel
import Migration
import Platform
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
    // A caller that names the version has decided.
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

  /// Versions of which only the names tell an order.
  private func unordered(_ versions: [(String, ManagedObjectModel)], current: String) throws -> ModelBundle {
    try #require(
      ModelBundle(
        name: "Test", versions: versions.map { ModelVersion(name: $0.0, model: $0.1, isCurrent: $0.0 == current) },
        isOrdered: false))
  }

  private func names(_ bundle: ModelBundle, _ from: String, _ options: MigrationPath.Options = .init()) throws
    -> [String]
  {
    try MigrationPath(in: bundle, from: .version(from), options: options).steps.map(\.name)
  }

  @Test func aDraftIsNeverPassedThrough() throws {
    let bundle = try unordered(
      [
        ("V1", model(entity("Note", attribute("title"), attribute("body")))),
        ("V2", model(entity("Note", attribute("title"), attribute("body"), attribute("stars")))),
        ("V3", model(entity("Note", attribute("title"), attribute("stars")))),
      ], current: "V2")
    #expect(try names(bundle, "V1") == ["V1 → V2"])
    // It has nothing that the current version lacks.
    #expect(try names(bundle, "V3") == ["V3 → V2"])
    #expect(!bundle.isNewer(bundle.versions[2], than: bundle.current))
  }

  @Test func mappingsThatContradictTheNamesComeToAnEnd() throws {
    func version(_ name: String) -> ManagedObjectModel { model(entity("Car", attribute("x"), attribute(name))) }
    let bundle = try unordered(
      ["A", "B", "C1", "C2", "T"].map { ($0, version($0.lowercased())) }, current: "T")
    func mapping(_ from: Int, _ to: Int) -> MappingModel {
      MappingModel(
        origin: .code, source: bundle.versions[from].model, destination: bundle.versions[to].model, entityMappings: [])
    }
    for start in ["A", "B", "C1", "C2"] {
      let steps = try names(bundle, start, .init(mappings: [mapping(1, 2), mapping(3, 0)]))
      #expect(steps.last?.hasSuffix("→ T") == true && steps.count <= 5, "\(steps)")
    }
  }

  @Test func aRenameIsCarriedOnWhereEachNamesTheOneBefore() throws {
    let first = model(entity("Car", attribute("a")))
    let second = model(entity("Car", attribute("b", id: "a"), attribute("y")))
    let third = model(entity("Car", attribute("c", id: "b")))
    let chain = try bundle(first, second, third)
    for start in ["V1", "V2"] {
      let step = try #require(try MigrationPath(in: chain, from: .version(start)).steps.first)
      #expect(step.mapping.carriedRenames.count == 1)
      #expect(step.mapping.entityMappings.first?.propertyMapping(of: "c")?.value == .copy(start == "V1" ? "a" : "b"))
    }
    // Not onto what the source has under that name, and not of another type.
    let taken = try bundle(model(entity("Car", attribute("a"), attribute("c"))), second, third)
    #expect(throws: MigrationError.self) { try names(taken, "V1") }
    let typed = try bundle(first, second, model(entity("Car", attribute("c", .date, id: "b"))))
    let step = try #require(try MigrationPath(in: typed, from: .version("V1")).steps.first)
    #expect(step.mapping.carriedRenames.isEmpty && step.mapping.losses.map(\.property) == ["a"])
    // A version between that only happens to have the name tells nothing.
    let draft = try bundle(first, model(entity("Car", attribute("b"))), model(entity("Car", attribute("b"))))
    #expect(try MigrationPath(in: draft, from: .version("V1")).steps.first?.mapping.carriedRenames.isEmpty == true)
  }

  @Test(arguments: [false, true])
  func aRenameIsCarriedOnWhereTheIdentifierWasDropped(hasMore: Bool) throws {
    let more = hasMore ? [attribute("z")] : []
    let last = ManagedObjectModel(entities: [Entity(name: "Car", properties: [attribute("b")] + more)])
    let dropped = try bundle(model(entity("Car", attribute("a"))), model(entity("Car", attribute("b", id: "a"))), last)
    let step = try #require(try MigrationPath(in: dropped, from: .version("V1")).steps.first)
    #expect(step.name == "V1 → V3" && step.mapping.losses.isEmpty)
    #expect(step.mapping.entityMappings.first?.propertyMapping(of: "b")?.value == .copy("a"))
    let rules = ModelLint(dropped).findings.map { "\($0.rule.rawValue) \($0.place)" }
    #expect(rules.contains(hasMore ? "disagreeing-identifiers V2 → V3" : "dropped-identifier V2 → V3"), "\(rules)")
  }

  @Test func noDetourLosesWhatSourceAndTargetShare() throws {
    func note(_ type: AttributeType?) -> ManagedObjectModel {
      let body = [attribute("body")]
      return model(
        Entity(
          name: "Note", properties: (type == nil ? [] : body + [attribute("m", type ?? .string)]) + [attribute("t")]))
    }
    let bundle = try bundle(note(.string), note(nil), note(.date))
    let error = try #require(throws: MigrationError.self) { try names(bundle, "V1") }
    #expect(error.kind == .notInferable && error.step == "V1 → V3")
  }

  @Test func aMixedRefusalIsOneThatPreventsALoss() throws {
    let bundle = try bundle(
      model(entity("Car", attribute("name", id: "m"), attribute("at", .string))),
      model(entity("Car", attribute("name", id: "l"), attribute("at", .date))))
    let error = try #require(throws: MigrationError.self) { try names(bundle, "V1") }
    #expect(error.kind == .wouldLose && error.refusals.count == 2)
  }

  @Test func versionsToGoByAreTakenInOrder() throws {
    let bundle = try bundle(
      model(entity("Car", attribute("a"))), model(entity("Car", attribute("a"), attribute("b"))),
      model(entity("Car", attribute("a"), attribute("c"))), model(entity("Car", attribute("a"), attribute("d"))))
    #expect(try names(bundle, "V1", .init(via: ["V2", "V3"])) == ["V1 → V2", "V2 → V3", "V3 → V4"])
    #expect(try names(bundle, "V3", .init(via: ["V2"])) == ["V3 → V4"])
    #expect(try names(bundle, "V4", .init(via: ["V2"])).isEmpty)
    let back = try MigrationPath(in: bundle, from: .version("V4"), to: "V1", options: .init(via: ["V2"]))
    #expect(back.steps.map(\.name) == ["V4 → V2", "V2 → V1"])
    #expect(throws: MigrationError.self) { try names(bundle, "V4", .init(via: ["V9"])) }
  }

  @Test func equalHashesAreToldApartByIdentifiersAndTheCarriedModel() throws {
    func version(_ identifier: String, _ id: String?) -> ManagedObjectModel {
      ManagedObjectModel(
        entities: [entity("Car", attribute("a", id: id))], versionIdentifiers: [identifier])
    }
    let versions = [version("1", nil), version("2", "x")]
    let bundle = try unordered(
      [("V1", versions[0]), ("V2", versions[1]), ("V3", model(entity("Car", attribute("a"), attribute("b"))))],
      current: "V3")
    let hashes = versions[0].versionHashes()
    #expect(bundle.version(matching: hashes, identifiers: ["1"])?.name == "V1")
    #expect(bundle.version(matching: hashes, identifiers: ["2"])?.name == "V2")
    #expect(bundle.version(matching: hashes, identifiers: ["9"], cached: versions[0])?.name == "V1")
    #expect(bundle.version(matching: hashes, cached: versions[1])?.name == "V2")
    // A draft that is equal in everything is not what the store was written with.
    let copied = try unordered(
      [("V2", versions[0]), ("V3", model(entity("Car", attribute("b")))), ("V4", versions[0])], current: "V3")
    #expect(copied.version(matching: hashes)?.name == "V2")
  }
}
