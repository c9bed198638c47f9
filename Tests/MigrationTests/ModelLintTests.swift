import Foundation
import ManagedObjectModel
import Migration
import Platform
import TestSupport
import Testing

/// Every rule of the lint.
struct ModelLintTests {
  static func words(_ lint: ModelLint) -> [String] {
    lint.findings.map { finding in
      let property = finding.propertyName.map { ".\($0)" } ?? ""
      return "\(finding.rule.rawValue) \(finding.place) \(finding.entityName ?? "")\(property)"
    }
  }

  static func lint(_ models: ManagedObjectModel..., cloudKit: Bool = false) throws -> [String] {
    let versions = models.enumerated().map { index, model in
      ModelVersion(name: "V\(index + 1)", model: model, isCurrent: index == models.count - 1)
    }
    let bundle = try #require(ModelBundle(name: "Test", versions: versions))
    return words(ModelLint(bundle, options: ModelLint.Options(checksCloudKit: cloudKit)))
  }

  @Test func additionsAreClean() throws {
    #expect(try Self.lint(model(entity("Car")), model(entity("Car", attribute("color")), entity("Garage"))) == [])
  }

  @Test func lossesDependenciesAndRefusals() throws {
    let findings = try Self.lint(
      model(entity("Car", attribute("a", .date), attribute("b"), attribute("c"))),
      model(entity("Car", attribute("b", optional: false), attribute("c", .uuid))))
    #expect(
      findings == [
        "not-migratable V1 → V2 Car.c", "data-loss V1 → V2 Car.a", "depends-on-data V1 → V2 Car.b",
      ])
  }

  @Test func uniquenessAndMandatory() throws {
    let findings = try Self.lint(
      model(entity("Car", attribute("plate"))),
      model(entity("Car", attribute("plate"), attribute("doors", .integer16, optional: false), unique: [["plate"]])))
    #expect(findings == ["depends-on-data V1 → V2 Car.doors", "depends-on-data V1 → V2 Car"])
  }

  @Test func possibleRenames() throws {
    let lone = try Self.lint(model(entity("Car", attribute("color"))), model(entity("Car", attribute("paint"))))
    #expect(lone == ["possible-rename V1 → V2 Car.paint", "data-loss V1 → V2 Car.color"])
    let named = try Self.lint(
      model(entity("Car", attribute("colour"), attribute("note"))),
      model(entity("Car", attribute("color"), attribute("remark"))))
    #expect(named.first == "possible-rename V1 → V2 Car.color")
    let typed = try Self.lint(
      model(entity("Car", attribute("color"))), model(entity("Car", attribute("color2", .date))))
    #expect(typed == ["data-loss V1 → V2 Car.color"])
    let entities = try Self.lint(
      model(entity("Car", attribute("color"), attribute("doors", .integer16))),
      model(entity("Auto", attribute("color"), attribute("doors", .integer16))))
    #expect(entities == ["possible-rename V1 → V2 Auto", "data-loss V1 → V2 Car"])
    let marked = try Self.lint(
      model(entity("Car", attribute("color"))), model(entity("Auto", attribute("paint", id: "color"), id: "Car")))
    #expect(marked == [])
  }

  @Test func brokenRenames() throws {
    // The third version names what the second had it under, not what it is known as.
    let chain = try Self.lint(
      model(entity("Car", attribute("a"))), model(entity("Car", attribute("b", id: "a"))),
      model(entity("Car", attribute("c", .date, id: "b"))))
    #expect(chain == ["broken-rename V2 → V3 Car.c", "data-loss V2 → V3 Car.b"])
    let dropped = try Self.lint(
      model(entity("Auto", attribute("x"), id: "Car")), model(entity("Auto", attribute("x"), attribute("y"))))
    #expect(dropped == ["disagreeing-identifiers V1 → V2 Auto"])
    #expect(LintFinding.Rule.disagreeingIdentifiers.severity == .error)
    let cleared = try Self.lint(
      model(entity("Car", attribute("a", id: "x"))), model(entity("Car", attribute("a"), attribute("b"))))
    #expect(cleared == ["disagreeing-identifiers V1 → V2 Car.a"])
    // What a later version explains is a rename that is still to come.
    let forward = try Self.lint(
      model(entity("Car", attribute("a"))), model(entity("Car", attribute("a", id: "b"), attribute("z"))),
      model(entity("Car", attribute("b"), attribute("z"))))
    #expect(forward == [])
  }

  @Test func contradictions() throws {
    let findings = try Self.lint(model(entity("A"), entity("B", id: "A")))
    #expect(findings == ["inconsistent-model V1 B"])
  }

  @Test func lockFile() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("model.lock.json")
    #expect(try ModelLock.read(path) == nil)
    let released = try bundle(
      model(entity("Car", attribute("a"), attribute("b"))), model(entity("Car", attribute("a"))))
    #expect(Self.words(ModelLint(released)) == ["data-loss V1 → V2 Car.b"])
    try ModelLock(released).write(to: path)
    let lock = try #require(try ModelLock.read(path))
    #expect(lock == ModelLock(released))
    // What is released cannot be changed any more, and is not told again and again.
    let again = ModelLint(released, lock: lock)
    #expect(again.findings.isEmpty)
    #expect(again.releasedFindingCount == 1)
    let all = ModelLint(released, lock: lock, options: ModelLint.Options(checksReleasedSteps: true))
    #expect(all.findings.count == 1)
    let edited = try bundle(
      model(entity("Car", attribute("a"), attribute("b"))), model(entity("Car", attribute("a"), attribute("n", .date))))
    #expect(
      Self.words(ModelLint(edited, lock: lock)) == ["edited-after-release V2 Car", "data-loss V1 → V2 Car.b"])
    let gone = try bundle(model(entity("Car", attribute("a"), attribute("b"))))
    #expect(Self.words(ModelLint(gone, lock: lock)) == ["missing-release V2 "])
    let grown = try bundle(
      model(entity("Car", attribute("a"), attribute("b"))), model(entity("Car", attribute("a"))), model())
    #expect(Self.words(ModelLint(grown, lock: lock)) == ["data-loss V2 → V3 Car"])
  }

  @Test func damagedLockFiles() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("model.lock.json")
    for text in ["", "{", "[]", "{\"format\":2,\"versions\":{}}", String(repeating: "[", count: 100_000)] {
      try FileSystem().writeAtomically(Array(text.utf8), to: path, replacing: true)
      let error = try #require(throws: MigrationError.self) { try ModelLock.read(path) }
      #expect(error.kind == .lockInvalid)
    }
  }

  @Test func cloudKit() throws {
    let bad = model(
      entity(
        "Car", attribute("a", optional: false), attribute("b", .objectID), attribute("t", .undefined, transient: true),
        toOne("owner", "Person", optional: false, rule: .deny), unique: [["a"]]),
      entity("Person", toMany("cars", "Car", ordered: true), attribute("d", optional: false, default: .string(""))))
    #expect(
      try Self.lint(bad, cloudKit: true) == [
        "cloudkit-uniqueness V1 Car", "cloudkit-mandatory-attribute V1 Car.a", "cloudkit-type V1 Car.b",
        "cloudkit-mandatory-relationship V1 Car.owner", "cloudkit-missing-inverse V1 Car.owner",
        "cloudkit-deny-rule V1 Car.owner", "cloudkit-missing-inverse V1 Person.cars", "cloudkit-ordered V1 Person.cars",
      ])
    let renamed = try Self.lint(
      model(entity("Car", attribute("a"), attribute("n", .integer16))),
      model(entity("Auto", attribute("b", id: "a"), attribute("n", .integer32), id: "Car")), cloudKit: true)
    #expect(
      renamed == [
        "cloudkit-not-additive V1 → V2 Auto", "cloudkit-not-additive V1 → V2 Auto.b",
        "cloudkit-not-additive V1 → V2 Auto.n",
      ])
    #expect(try Self.lint(model(entity("Car")), model(entity("Car", attribute("a"))), cloudKit: true) == [])
  }

  @Test func aSwapByRenamingIdentifiersRunsNothing() throws {
    let before = model(entity("Car", attribute("color"), attribute("tint")), entity("A"), entity("B"))
    let swapped = model(
      entity("Car", attribute("color", id: "tint"), attribute("tint", id: "color")), entity("A"), entity("B"))
    #expect(before.versionHashes() == swapped.versionHashes())
    #expect(
      try Self.lint(before, swapped).filter { $0.hasPrefix("rename-without") } == [
        "rename-without-migration V1 → V2 Car.color", "rename-without-migration V1 → V2 Car.tint",
      ])
    let entities = model(
      entity("Car", attribute("color"), attribute("tint")), entity("A", id: "B"), entity("B", id: "A"))
    #expect(
      try Self.lint(before, entities).filter { $0.hasPrefix("rename-without") } == [
        "rename-without-migration V1 → V2 A", "rename-without-migration V1 → V2 B",
      ])
    // The version between changes nothing of it: a store of the first one is opened as one of the third.
    let more = model(
      entity("Car", attribute("color"), attribute("tint"), attribute("doors")), entity("A"), entity("B"))
    #expect(
      try Self.lint(before, more, swapped).contains("rename-without-migration V1 → V3 Car.color"))
    // Where the hashes differ a migration runs, and moves the values.
    var marked = swapped
    marked.entities["Car"]?.versionHashModifier = "swapped"
    #expect(try !Self.lint(before, marked).contains { $0.hasPrefix("rename-without") })
    // Identifiers that say what both versions said before move nothing.
    #expect(try !Self.lint(swapped, swapped).contains { $0.hasPrefix("rename-without") })
  }

  @Test func encryptionInTheCloudDoesNotChange() throws {
    func car(encrypted: Bool, _ more: Property...) -> ManagedObjectModel {
      var plate = Attribute(traits: PropertyTraits(name: "plate", isOptional: true), type: .string)
      plate.traits.allowsCloudEncryption = encrypted
      var made = entity("Car", attribute("maker"))
      for property in [.attribute(plate)] + more { made.properties[property.name] = property }
      return model(made)
    }
    let (off, on) = (car(encrypted: false), car(encrypted: true))
    #expect(try Self.lint(off, on) == ["cloud-encryption-changed V1 → V2 Car.plate"])
    #expect(try Self.lint(on, off) == ["cloud-encryption-changed V1 → V2 Car.plate"])
    #expect(try Self.lint(on, on) == [])
    // A new attribute may be encrypted.
    #expect(try Self.lint(model(entity("Car", attribute("maker"))), on) == [])
  }

  @Test func findingsAreLocated() throws {
    let versions = [
      ModelVersion(name: "V1", model: model(entity("Car", attribute("a"))), isCurrent: false),
      ModelVersion(name: "V2", model: model(entity("Car")), isCurrent: true),
    ]
    let lint = ModelLint(try #require(ModelBundle(name: "Test", versions: versions))).located { finding in
      (file: "\(finding.entityName ?? "").xml", line: 7)
    }
    #expect(lint.findings.map(\.file) == ["Car.xml"] && lint.findings.map(\.line) == [7])
    #expect(String(decoding: try JSONEncoder().encode(lint), as: UTF8.self).contains("\"line\":7"))
  }
}
