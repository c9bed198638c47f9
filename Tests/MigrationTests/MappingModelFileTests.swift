import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// Mapping models as files: what they say, which versions they fit, and what is said of those that fit none.
struct MappingModelFileTests {
  typealias Property = MappingModelFixture.Property
  typealias Mapping = MappingModelFixture.Mapping

  static let before = model(
    entity(
      "Person", attribute("name", optional: false), attribute("street"), attribute("photo", .binary),
      toMany("cars", "Car", inverse: "owner"), unique: [["name"]]),
    entity("Vehicle", attribute("wheels", .integer16), abstract: true),
    entity("Car", attribute("color"), toOne("owner", "Person", inverse: "cars"), parent: "Vehicle"),
    entity("Gone", attribute("x")))

  static let after = model(
    entity(
      "Person", attribute("name", optional: false), attribute("age", .integer16, default: .integer(18)),
      toOne("address", "Address", inverse: "person"), toMany("cars", "Car", inverse: "owner"), unique: [["name"]]),
    entity("Address", attribute("street"), toOne("person", "Person", inverse: "address")),
    entity("Vehicle", attribute("wheels", .integer16), abstract: true),
    entity("Car", attribute("paint"), toOne("owner", "Person", inverse: "cars"), parent: "Vehicle"))

  static let fixture: MappingModelFixture = {
    let person = Mapping(
      source: "Person", destination: "Person",
      attributes: [
        Property(name: "name", expression: "$source.name", userInfo: ["why": "kept"]), Property(name: "age"),
      ],
      relationships: [
        Property(name: "address"),
        Property(
          name: "cars",
          expression: "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
            + "\"cars\", $source.cars)"),
      ], userInfo: ["step": "1"])
    let address = Mapping(
      name: "PersonToAddress", source: "Person", destination: "Address", filter: "street != nil",
      attributes: [Property(name: "street", expression: "$source.street")],
      relationships: [
        Property(
          name: "person",
          expression: "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
            + "\"PersonToPerson\", $source)")
      ])
    let car = Mapping(
      source: "Car", destination: "Car", policy: "NSEntityMigrationPolicy",
      attributes: [
        Property(name: "paint", expression: "$source.color"), Property(name: "wheels", expression: "$source.wheels"),
      ],
      relationships: [
        Property(
          name: "owner",
          expression: "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
            + "\"PersonToPerson\", $source.owner)")
      ])
    return MappingModelFixture(before, after, person, address, car)
  }()

  private func versions() throws -> ModelBundle { try bundle(Self.before, Self.after) }

  private func value(_ mapping: MappingModel, _ name: String, _ property: PropertyPath) -> PropertyMapping.Value? {
    mapping.entityMapping(named: name)?.propertyMapping(of: property)?.value
  }

  // MARK: What they say

  @Test func bothFormsSayTheSame() throws {
    let bundle = try versions()
    let compiled = try Self.fixture.loadCompiled(for: bundle)
    let source = try Self.fixture.loadSource(for: bundle)
    #expect(compiled.entityMappings == source.entityMappings)
    #expect(compiled.conditions == source.conditions && compiled.losses == source.losses)
    #expect(compiled.name == "Mapping" && source.name == "Mapping")
    guard case .compiledMappingModel(let path) = compiled.origin, case .mappingModelSource = source.origin else {
      Issue.record("the origins are wrong")
      return
    }
    #expect(path.lastComponent == "Mapping.cdm")
    for mapping in [compiled, source] {
      #expect(mapping.fits(source: Self.before.versionHashes(), destination: Self.after.versionHashes()))
      #expect(mapping.entityMappings.map(\.name) == ["PersonToAddress", "CarToCar", "PersonToPerson"])
      #expect(mapping.entityMappings.map(\.kind) == [.transform, .transform, .transform])
      #expect(mapping.entityMapping(named: "PersonToPerson")?.userInfo == ["step": "1"])
      #expect(
        mapping.entityMapping(named: "PersonToPerson")?.propertyMapping(of: "name")?.userInfo == ["why": "kept"])
      #expect(mapping.entityMapping(named: "CarToCar")?.policyClassName == "NSEntityMigrationPolicy")
      #expect(mapping.entityMapping(named: "PersonToAddress")?.sourceFilter == .sql(#""street" IS NOT NULL"#))
      #expect(value(mapping, "PersonToPerson", "age") == .defaultValue)
      // It is empty in the file; the other side fills it.
      #expect(value(mapping, "PersonToPerson", "address") == .inverse)
      #expect(value(mapping, "PersonToPerson", "cars") == .relationship("cars"))
      #expect(value(mapping, "PersonToAddress", "person") == .destinations(mapping: "PersonToPerson", of: .record))
      #expect(
        value(mapping, "CarToCar", "owner")
          == .destinations(mapping: "PersonToPerson", of: .relationship("owner")))
      #expect(value(mapping, "CarToCar", "paint") == .copy("color"))
      #expect(
        mapping.losses.map(\.text) == [
          "Gone is removed: all its records are deleted", "Person.photo is removed: its values are deleted",
        ])
    }
  }

  @Test func aPlainWayThroughAMappingIsThatOfTheRelationship() throws {
    var fixture = Self.fixture
    fixture.mappings.remove(at: 1)
    let mapping = try fixture.loadCompiled(for: versions())
    #expect(value(mapping, "CarToCar", "owner") == .relationship("owner"))
    #expect(value(mapping, "PersonToPerson", "address") == .null)
  }

  /// What Xcode's compiler makes of properties for which nothing is written.
  @Test func sourcesLeaveOutWhatTheCompilerMakes() throws {
    var fixture = Self.fixture
    fixture.mappings[0].attributes = [Property(name: "name"), Property(name: "age")]
    fixture.mappings[0].relationships = [Property(name: "address"), Property(name: "cars")]
    fixture.mappings[1].relationships = [Property(name: "person", mapping: "PersonToPerson", keyPath: "$source")]
    fixture.mappings[2].attributes = [Property(name: "paint"), Property(name: "wheels", isEmpty: true)]
    fixture.mappings[2].relationships = [Property(name: "owner")]
    let mapping = try fixture.loadSource(for: versions())
    #expect(value(mapping, "PersonToPerson", "name") == .copy("name"))
    #expect(value(mapping, "PersonToPerson", "cars") == .relationship("cars"))
    #expect(value(mapping, "PersonToAddress", "person") == .destinations(mapping: "PersonToPerson", of: .record))
    #expect(value(mapping, "CarToCar", "paint") == .null)
    #expect(value(mapping, "CarToCar", "wheels") == .null)
    // Records of Person become two others; the one that a Person is meant.
    #expect(
      value(mapping, "CarToCar", "owner") == .destinations(mapping: "PersonToPerson", of: .relationship("owner")))
    fixture.mappings[2].relationships = [Property(name: "owner", mapping: "PersonToPerson", keyPath: "owner")]
    #expect(
      value(try fixture.loadSource(for: versions()), "CarToCar", "owner")
        == .destinations(mapping: "PersonToPerson", of: .relationship("owner")))
  }

  @Test func relationshipsThatCannotBeFollowedAreNamed() throws {
    let manager = "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\""
    for (expression, word) in [
      ("\(manager), \"Nothing\", $source.owner)", "no mapping called \"Nothing\""),
      ("\(manager), \"PersonToAddress\", $source.owner)", "makes no records of entity \"Person\""),
      ("\(manager), \"PersonToPerson\", $source.color)", "no relationship Car.color"),
      ("\(manager), \"PersonToPerson\", $source.owner.cars)", "more than one relationship"),
      ("FUNCTION($entityPolicy, \"ownerOf:\", $source)", "ownerOf:"), ("$source.owner", "what has become of them"),
    ] {
      var fixture = Self.fixture
      fixture.mappings[2].relationships[0].expression = expression
      let error = #expect(throws: MigrationError.self) { try fixture.loadCompiled(for: versions()) }
      #expect(error?.code == "expression-unsupported", "\(expression)")
      #expect(error?.propertyName == "owner" && error?.detail.contains(word) == true, "\(error?.detail ?? "")")
      fixture.mappings[2].policy = "App.Policy"
      #expect(
        value(try fixture.loadCompiled(for: versions()), "CarToCar", "owner")
          == .expression(.coreData(try MappingModelFixture.expression(expression).format)))
    }
  }

  @Test func everyExpressionThatCannotBeCarriedOutIsListed() throws {
    var fixture = Self.fixture
    fixture.mappings[0].attributes[0].expression = "FUNCTION($source, \"upper\")"
    fixture.mappings[1].filter = "street MATCHES \"a\""
    fixture.mappings[2].attributes[0].expression = "colour:($source.color)"
    let error = #expect(throws: MigrationError.self) { try fixture.loadCompiled(for: versions()) }
    #expect(error?.kind == .expressionUnsupported)
    #expect(error?.refusals.map(\.entityName) == ["Person", "Address", "Car"])
    #expect(error?.refusals.map { $0.property?.description } == ["name", nil, "paint"])
    #expect(error?.detail.hasSuffix("(and 2 more)") == true)
    #expect(error?.path?.lastComponent == "Mapping.cdm")
  }

  @Test func toManyIntoToOneIsACustomStep() throws {
    let destination = model(
      entity("Person", attribute("name"), toOne("cars", "Car")), entity("Car", attribute("color")))
    let fixture = MappingModelFixture(
      Self.before, destination,
      Mapping(
        source: "Person", destination: "Person",
        relationships: [
          Property(
            name: "cars",
            expression: "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
              + "\"cars\", $source.cars)")
        ]), Mapping(source: "Car", destination: "Car"))
    let mapping = try fixture.loadCompiled(for: bundle(Self.before, destination))
    #expect(mapping.isCustom)
    let person = mapping.entityMappings.first { $0.sourceEntityName == "Person" }
    #expect(
      person?.kind == .custom && person?.propertyMapping(of: PropertyPath("cars"))?.value == .relationship("cars"))
  }

  // MARK: Versions

  @Test func aFileFitsTheVersionsWithItsHashes() throws {
    let third = model(entity("Other", attribute("x")))
    let versions = try bundle(third, Self.before, Self.after, third)
    for mapping in [try Self.fixture.loadCompiled(for: versions), try Self.fixture.loadSource(for: versions)] {
      #expect(mapping.source == Self.before && mapping.destination == Self.after)
    }
    let path = try MigrationPath(
      in: versions, from: .version("V2"), to: "V3",
      options: .init(mappings: [try Self.fixture.loadCompiled(for: versions)]))
    #expect(path.steps.map(\.mapping.name) == ["Mapping"])
  }

  /// A file that maps only some entities fits several versions: the closest two are taken, then those that it names.
  @Test func ofSeveralVersionsTheClosestOrTheNamedAreTaken() throws {
    func version(_ number: Int) -> ManagedObjectModel {
      model(entity("A", attribute(number < 3 ? "old" : "new")), entity("B", attribute("b\(number)")))
    }
    let versions = try bundle(version(1), version(2), version(3), version(4))
    var fixture = MappingModelFixture(
      version(1), version(4),
      Mapping(source: "A", destination: "A", attributes: [Property(name: "new", expression: "$source.old")]))
    let compiled = try fixture.loadCompiled(for: versions)
    #expect(compiled.source == version(2) && compiled.destination == version(3))
    #expect(compiled.losses.contains { $0.kind == .removedEntity && $0.sourceEntityName == "B" })
    // The source has both models whole.
    let source = try fixture.loadSource(for: versions)
    #expect(source.source == version(1) && source.destination == version(4))
    fixture.embedsModels = false
    fixture.sourcePath = "App.xcdatamodeld/V1.xcdatamodel"
    fixture.destinationPath = "App.xcdatamodeld/V4.xcdatamodel"
    let named = try fixture.loadSource(for: versions)
    #expect(named.source == version(1) && named.destination == version(4))
  }

  @Test func staleFilesSayWhichSideAndEntityDiffers() throws {
    let changed = model(entity("Person", attribute("name")), entity("Vehicle", abstract: true), entity("Car"))
    for (versions, side, entity) in [
      (try bundle(changed, Self.after), "source", "Car"), (try bundle(Self.before, changed), "destination", "Address"),
    ] {
      for isCompiled in [true, false] {
        let error = #expect(throws: MigrationError.self) {
          _ =
            isCompiled
            ? try Self.fixture.loadCompiled(for: versions) : try Self.fixture.loadSource(for: versions)
        }
        #expect(error?.code == "mapping-stale" && error?.coreDataCode == 134140)
        #expect(error?.entityName == entity, "\(error?.detail ?? "")")
        #expect(error?.detail.contains("another \(side) model") == true)
        #expect(error?.path?.stem == "Mapping")
      }
    }
  }

  /// A model with a setting that is not understood has no reliable hashes: then the names count.
  @Test func embeddedModelsThatAreNotUnderstoodAreLeftAside() throws {
    let known = try EditorModel(EditorModelFixture.bytes(of: Self.before))
    #expect(known.isComplete)
    #expect(known.model.versionHashes() == Self.before.versionHashes())
    let unknown = try EditorModel(
      EditorModelFixture.bytes(of: Self.before, extraSetting: ("XD_PPSK_future", .boolean(true))))
    #expect(!unknown.isComplete)
    let off = try EditorModel(
      EditorModelFixture.bytes(of: Self.before, extraSetting: ("XD_PPSK_future", .boolean(false))))
    #expect(off.isComplete)
  }

  // MARK: Folders

  @Test func foldersGiveWhatFitsAndSayWhatDoesNot() throws {
    let folder = try TemporaryFolder()
    try folder.write(try Self.fixture.compiled(), to: "a/One.cdm")
    var partial = Self.fixture
    partial.mappings.removeLast()
    try folder.write(try partial.compiled(), to: "A-Partial.cdm")
    try folder.write(try Self.fixture.xml(), to: "b/c/Two.xcmappingmodel/xcmapping.xml")
    var stale = Self.fixture
    stale.source = Self.after
    try folder.write(try stale.compiled(), to: "Stale.cdm")
    try folder.write("nonsense", to: "Broken.cdm")
    try folder.write("nonsense", to: "Other.txt")
    let loaded = try MappingModel.load(path: folder.path, for: versions())
    #expect(loaded.mappings.map(\.name) == ["One", "Two", "A-Partial"])
    #expect(loaded.notes.map(\.path?.lastComponent?.string) == ["Broken.cdm", "Stale.cdm"])
    #expect(loaded.notes.map(\.code) == ["mapping-invalid", "mapping-stale"])
    let inner = folder.appending("b/c/Two.xcmappingmodel/xcmapping.xml")
    #expect(try MappingModel.load(path: inner, for: versions()).mappings.map(\.name) == ["Two"])
    let empty = try TemporaryFolder()
    let missing = #expect(throws: MigrationError.self) { try MappingModel.load(path: empty.path, for: versions()) }
    #expect(missing?.code == "mapping-missing")
    let nowhere = #expect(throws: FileError.self) {
      try MappingModel.load(path: empty.appending("x.cdm"), for: versions())
    }
    #expect(nowhere?.code == "file-not-found")
  }
}
