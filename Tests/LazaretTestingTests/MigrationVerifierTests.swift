import Foundation
import GRDB
import LazaretTesting
import Platform
import TestSupport
import Testing

/// What the check of a model's migrations says.
struct MigrationVerifierTests {
  private static let first = model(
    entity("Car", attribute("maker"), attribute("color"), attribute("plate"), attribute("doors", .integer32)))
  private static let second = model(
    entity("Car", attribute("maker"), attribute("plate"), attribute("doors", .integer32)))
  private static let strict = model(
    entity(
      "Car", attribute("maker"), attribute("color"), attribute("plate", optional: false),
      attribute("doors", .integer32)))
  private static let narrow = model(
    entity("Car", attribute("maker"), attribute("color"), attribute("plate"), attribute("doors", .integer16)))
  private static let unique = model(
    entity(
      "Car", attribute("maker"), attribute("color"), attribute("plate"), attribute("doors", .integer32),
      unique: [["maker"]]))
  private static let refused = model(
    entity("Car", attribute("maker", .date), attribute("color"), attribute("plate"), attribute("doors", .integer32)))
  private static let impossible = model(
    entity(
      "Car", attribute("maker"), attribute("color"), attribute("plate"), attribute("doors", .integer32),
      attribute("id", .uuid, optional: false)))

  private func verify(
    _ models: ManagedObjectModel..., direct: Bool = false, current: Int? = nil, mappings: [MappingModel] = [],
    _ change: (inout MigrationVerifier.Options) -> Void = { _ in }
  ) throws -> VerificationReport {
    let versions = models.enumerated().map { index, model in
      Fixture.version("V\(index + 1)", model, current: index == current ?? (models.count - 1))
    }
    let bundle = try #require(ModelBundle(name: "Garage", versions: versions))
    let folder = try TemporaryFolder()
    var options = MigrationVerifier.Options()
    options.folder = folder.path
    options.checksDirectSteps = direct
    options.mappings = mappings
    change(&options)
    return try MigrationVerifier(bundle, options: options, surroundings: Fixture.surroundings).run()
  }

  private func outcomes(_ version: VerificationReport.Version?) -> [String] {
    version?.cases.map { "\($0.profile.rawValue) \($0.outcome.rawValue)" } ?? []
  }

  @Test func addingIsFine() throws {
    let report = try verify(Self.second, Self.first)
    #expect(report.outcome == .fine, "\(report)")
    #expect(report.versions.first?.cases.count == 5)
    #expect(report.versions.first?.cases.allSatisfy { $0.comparedRecords == $0.records } == true)
  }

  @Test func lossesAreCounted() throws {
    let report = try verify(Self.first, Self.second)
    #expect(report.outcome == .lossy)
    let loss = try #require(report.versions.first?.losses.first)
    #expect(loss.kind == .removedAttribute && loss.entity == "Car" && loss.property == "color")
    #expect(loss.count > 20 && loss.count < 80)
  }

  @Test func storesThatFailAreToldApart() throws {
    let mandatory = try verify(Self.first, Self.strict)
    // Usual records have now and then no value either.
    #expect(
      outcomes(mandatory.versions.first)
        == ["empty fine", "typical failed", "edge conditional", "sparse conditional", "uniform fine"])
    #expect(mandatory.versions.first?.cases[3].condition?.contains("Car.plate") == true)
    let unique = try verify(Self.first, Self.unique)
    #expect(unique.versions.first?.cases.last?.outcome == .conditional, "\(outcomes(unique.versions.first))")
    #expect(unique.versions.first?.cases[3].outcome == .fine)
    let impossible = try verify(Self.first, Self.impossible)
    #expect(impossible.outcome == .failed)
    #expect(impossible.versions.first?.cases.first?.outcome == .fine)
  }

  @Test func numbersThatDoNotFitAreAlterations() throws {
    let report = try verify(Self.first, Self.narrow)
    #expect(report.outcome == .fine, "\(report)")
    let altered = report.versions.first?.cases.first { $0.profile == .edge }?.alterations
    #expect(altered?.first?.kind == .valueOutOfRange)
  }

  @Test func refusalsAreFailures() throws {
    let report = try verify(Self.first, Self.refused)
    #expect(report.outcome == .failed)
    #expect(report.versions.first?.refusals.first?.kind == .incompatibleTypes)
    #expect(report.versions.first?.cases.isEmpty == true)
  }

  @Test func chainsAreComparedStepByStepAndWhole() throws {
    let report = try verify(Self.second, Self.first, Self.narrow, direct: true)
    // One step leads there, so that there is no other way to check.
    #expect(report.versions.map(\.from) == ["V1", "V2"])
    #expect(report.versions.map(\.direct) == [false, false])
    #expect(report.versions.map(\.steps.count) == [1, 1])
    #expect(report.outcome == .fine, "\(report)")
    #expect(report.versions[0].cases.allSatisfy { $0.comparedRecords == $0.records })
  }

  @Test func eachStepIsCheckedOnceAndWaysOnlyWhereStepsDepend() throws {
    let third = model(
      entity(
        "Car", attribute("maker"), attribute("color"), attribute("plate"), attribute("doors", .integer32),
        attribute("seats", .integer32)))
    // A mapping on the way is always taken, so that there are two steps.
    let mapping = try MappingModel.inferred(from: Self.second, to: Self.first)
    let apart = try verify(Self.second, Self.first, third, mappings: [mapping])
    #expect(apart.outcome == .fine, "\(VerificationListing(apart).text)")
    #expect(apart.steps.map(\.step) == ["V1 → V2", "V2 → V3"])
    #expect(apart.steps.map(\.versions) == [["V1"], ["V1", "V2"]])
    #expect(apart.steps.map(\.cases.count) == [5, 5])
    #expect(apart.versions.map(\.steps) == [["V1 → V2", "V2 → V3"], ["V2 → V3"]])
    #expect(apart.versions.map(\.wholeWay) == [false, false])
    #expect(!JUnitReport(apart).xml.contains("<testsuite name=\"ways\""))
    // Whether the second step goes well depends on the records, which the first one has made.
    let together = try verify(Self.second, Self.first, Self.strict, mappings: [mapping])
    #expect(together.versions.map(\.wholeWay) == [true, false])
    #expect(JUnitReport(together).xml.contains("<testcase name=\"V1 → V3 (2 steps)\""))
  }

  @Test func aWayIsJudgedByWhatItsFirstStepMakes() throws {
    func car(_ more: Property...) -> ManagedObjectModel {
      var made = entity("Car", attribute("maker"))
      for property in more { made.properties[property.name] = property }
      return model(made)
    }
    // The first step gives every record a value; stores of the second version may have none.
    let filled = car(attribute("tag", default: .string("new")))
    let mandatory = car(attribute("tag", optional: false))
    let mapping = try MappingModel.inferred(from: car(), to: filled)
    let report = try verify(car(), filled, mandatory, mappings: [mapping])
    #expect(report.versions.map(\.wholeWay) == [true, false])
    #expect(report.versions.first?.outcome == .fine, "\(VerificationListing(report).text)")
    #expect(report.versions.last?.cases.first { $0.profile == .sparse }?.outcome == .conditional)
    #expect(report.outcome >= .conditional)
  }

  @Test func theNumberOfThreadsChangesNothing() throws {
    let one = try verify(Self.second, Self.first, Self.strict) { $0.threads = 1 }
    let four = try verify(Self.second, Self.first, Self.strict) { $0.threads = 4 }
    #expect(one == four)
  }

  @Test func newerVersionsAreNamedAndNotChecked() throws {
    let report = try verify(Self.second, Self.first, Self.narrow, current: 1)
    #expect(report.versions.map(\.from) == ["V1"])
    #expect(report.uncheckedVersions.map { "\($0.name) \($0.reason.rawValue)" } == ["V3 newer"])
    #expect(VerificationListing(report).text.contains("Not checked, since newer than V2: V3"))
    #expect(VerificationListing(report).text.contains("Every version that was checked migrates"))
    do {
      _ = try verify(Self.second, Self.first, Self.narrow, current: 1) { $0.version = "V3" }
      Issue.record("a newer version was checked")
    } catch let error as PersistentStoreError {
      #expect(error.code == "version-is-newer")
      // It is about the model; there is no store.
      #expect(error.detail == "version \"V3\" is newer than the current one, \"V2\"")
    }
  }

  @Test func identifiersThatDisagreeAreAFinding() throws {
    let before = model(entity("Car", attribute("maker")))
    let after = model(entity("Car", attribute("maker"), attribute("doors"), id: "Truck"))
    let report = try verify(before, before.adding(attribute("color"), to: "Car"), after)
    #expect(report.outcome == .failed)
    #expect(report.versions.map(\.refusals.isEmpty) == [false, false])
    #expect(report.steps.map(\.from) == ["V1", "V2"])
  }

  @Test func aCheckThatIsCancelledEnds() throws {
    do {
      _ = try verify(Self.second, Self.first) { $0.isCancelled = { true } }
      Issue.record("it went on")
    } catch let error as PersistentStoreError {
      #expect(error.code == "migration-cancelled")
    }
  }

  @Test func everythingComesAlong() throws {
    // Another name for every entity, so that all numbers, tables and columns change.
    var renamed = Fixture.everything
    let map = ["Base": "Root", "Ship": "Zeppelin", "Boat": "Airship", "Raft": "Balloon", "Person": "Aviator"]
    func new(_ name: String) -> String { map[name] ?? name }
    renamed.entities = [:]
    for var found in Fixture.everything.entities.values {
      found.explicitRenamingIdentifier = found.name
      found.name = new(found.name)
      found.parentName = found.parentName.map(new)
      found.properties = found.properties.mapValues { property in
        guard case .relationship(var relationship) = property else { return property }
        relationship.destinationEntityName = new(relationship.destinationEntityName)
        return .relationship(relationship)
      }
      renamed.entities[found.name] = found
    }
    let report = try verify(Fixture.everything, renamed)
    #expect(report.outcome == .fine, "\(VerificationListing(report).text)")
    #expect(report.versions.first?.cases.allSatisfy { $0.comparedRecords == $0.records } == true)
  }

  @Test func theComparisonFindsWhatAMigrationWouldSpoil() throws {
    let mapping = try MappingModel.inferred(from: Fixture.everything, to: Fixture.everything)
    let folder = try TemporaryFolder()
    let statements = [
      "UPDATE ZBASE SET ZTONS = ZTONS + 1 WHERE Z_PK = 1": StoreDifference.Kind.value,
      "DELETE FROM ZBASE WHERE Z_PK = 2": .missingRecord,
      "UPDATE ZPERSON SET ZSPOUSE = NULL WHERE Z_PK = (SELECT min(Z_PK) FROM ZPERSON WHERE ZSPOUSE > 0)": .oneSided,
      "UPDATE ZPERSON SET Z_FOK_SHIP = -Z_FOK_SHIP": .order,
      "UPDATE ZBASE SET ZCREWCOUNT = 77 WHERE Z_PK = 1": .value,
      "INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT 900, Z_ENT, 1, 'x' FROM ZPORT LIMIT 1": .extraRecord,
      "UPDATE Z_METADATA SET Z_UUID = 'x'": .metadata,
    ]
    for (number, (statement, kind)) in statements.enumerated() {
      for name in ["One\(number)", "Two\(number)"] {
        try FileSystem().makeDirectory(folder.appending(name))
        try StoreGenerator(Fixture.everything, options: .init(.typical, records: 12))
          .write(to: folder.appending("\(name)/Store.sqlite"))
      }
      let first = try PersistentStore(
        opening: folder.appending("One\(number)/Store.sqlite"), model: Fixture.everything)
      let second = try PersistentStore(
        opening: folder.appending("Two\(number)/Store.sqlite"), model: Fixture.everything)
      let whole = try MigrationComparison(mapping, source: first, result: second)
      #expect(whole.differenceCount == 0, "\(whole.differences)")
      try second.write { try $0.execute(sql: statement) }
      let comparison = try MigrationComparison(mapping, source: first, result: second)
      #expect(comparison.differences.contains { $0.kind == kind }, "\(statement): \(comparison.differences)")
      try first.close()
      try second.close()
    }
    // A large value's file that did not come along.
    let one = try StoreGenerator(Fixture.everything, options: .init(.edge, records: 12))
      .write(to: folder.appending("Edge.sqlite"))
    let bundle = try #require(
      ModelBundle(name: "Test", versions: [Fixture.version("V1", Fixture.everything, current: true)]))
    let pair = try SideBySide(one.path, bundle: bundle, from: "V1")
    #expect(one.externalFiles > 0)
    let files = try FileSystem().descendants(of: StoreFileSet(main: pair.after.path).path(of: .externalData)).files
    #expect(files.count == one.externalFiles)
    try FileSystem().unlink(try #require(files.first).path)
    let lost = try MigrationComparison(mapping, source: pair.before, result: pair.after)
    #expect(lost.differences.map(\.kind) == [.externalFile])
  }

  /// A report as `model verify --json` prints it.
  private static let report = """
    {
      "model": "<Garage> & \\"Söhne\\"\\u0001", "to": "V3", "seed": 7, "rows": 20, "outcome": "failed",
      "steps": [
        {
          "step": "V1 → V2", "from": "V1", "to": "V2", "direct": false, "versions": ["V1"], "outcome": "failed",
          "losses": [{
            "step": "V1 → V2", "kind": "removed-attribute", "entity": "Car", "property": "color",
            "text": "Car.color is removed", "count": 3
          }],
          "refusals": [], "conditions": [],
          "cases": [
            {
              "profile": "empty", "records": 0, "outcome": "fine", "comparedRecords": 0, "alterations": [],
              "differences": [], "differenceCount": 0, "unchecked": [], "notes": [], "seconds": 0.0125
            },
            {
              "profile": "sparse", "records": 20, "outcome": "conditional", "step": "V1 → V2",
              "code": "migration-data-violation", "detail": "20 records", "condition": "Car.plate becomes mandatory",
              "comparedRecords": 0, "alterations": [], "differences": [], "differenceCount": 0, "unchecked": [],
              "notes": [], "seconds": 1.5
            },
            {
              "profile": "edge", "records": 20, "outcome": "failed", "comparedRecords": 20,
              "alterations": [{"kind": "value-out-of-range", "entity": "Car", "property": "doors", "count": 2}],
              "differences": [{"kind": "value", "entityName": "Car", "primaryKey": 7, "propertyName": "doors"}],
              "differenceCount": 1, "unchecked": [], "notes": [], "seconds": 0
            }
          ]
        },
        {
          "step": "V2 → V3", "from": "V2", "to": "V3", "direct": false, "versions": ["V2"], "outcome": "failed",
          "losses": [],
          "refusals": [{
            "step": "V2 → V3", "kind": "incompatible-types", "entity": "Car", "property": "maker", "reason": "r",
            "text": "a < b", "wayRound": "Go round."
          }],
          "conditions": [], "cases": []
        }
      ],
      "versions": [
        {
          "from": "V1", "to": "V3", "direct": false, "steps": ["V1 → V2", "V2 → V3"], "wholeWay": true,
          "outcome": "lossy",
          "losses": [{
            "step": "V1 → V2", "kind": "removed-attribute", "entity": "Car", "property": "color",
            "text": "Car.color is removed", "count": 3
          }],
          "refusals": [], "conditions": [],
          "cases": [
            {
              "profile": "uniform", "records": 0, "outcome": "fine", "comparedRecords": 0, "alterations": [],
              "differences": [], "differenceCount": 0, "unchecked": [], "notes": [], "seconds": 0.5
            }
          ]
        },
        {
          "from": "V2", "to": "V3", "direct": false, "steps": [], "wholeWay": false, "outcome": "failed", "losses": [],
          "refusals": [{
            "step": "V2 → V3", "kind": "incompatible-types", "entity": "Car", "property": "maker", "reason": "r",
            "text": "a < b", "wayRound": "Go round."
          }],
          "conditions": [], "cases": []
        }
      ],
      "unreadableVersions": [{"name": "V0", "code": "model-old-format", "detail": "old"}],
      "uncheckedVersions": [{"name": "V4", "reason": "newer"}]
    }
    """

  @Test func theReportIsXMLThatBuildServersRead() throws {
    let report = try JSONDecoder().decode(VerificationReport.self, from: Data(Self.report.utf8))
    let path = RealMaterial.projectRoot.appending("Tests/LazaretTestingTests/Snapshots/junit.xml")
    let xml = JUnitReport(report).xml
    if environment("LAZARET_RECORD") != nil {
      let file = try FileSystem().create(path, permissions: .init(rawValue: 0o644), truncating: true)
      try file.write(Array(xml.utf8))
    }
    #expect(xml == String(decoding: try FileSystem().contents(of: path, limit: 1 << 20), as: UTF8.self))
    let allowing = JUnitReport(report, allowing: [.lossy, .conditional]).xml
    #expect(xml.components(separatedBy: "<failure ").count == 4)
    #expect(allowing.components(separatedBy: "<failure ").count == 3)
    #expect(allowing.contains("<failure type=\"difference\"") && !allowing.contains("<failure type=\"loss\""))
  }
}
