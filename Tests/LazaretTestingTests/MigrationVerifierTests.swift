import Foundation
import GRDB
import LazaretTesting
import StoreFiles
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
    _ models: ManagedObjectModel..., direct: Bool = false
  ) throws -> VerificationReport {
    let versions = models.enumerated().map { index, model in
      Fixture.version("V\(index + 1)", model, current: index == models.count - 1)
    }
    let bundle = try #require(ModelBundle(name: "Garage", versions: versions))
    let folder = try TemporaryFolder()
    var options = MigrationVerifier.Options()
    options.folder = folder.path
    options.checksDirectSteps = direct
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
      "versions": [
        {
          "from": "V1", "to": "V3", "direct": false, "steps": ["V1 → V2", "V2 → V3"], "outcome": "failed",
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
          "from": "V2", "to": "V3", "direct": false, "steps": [], "outcome": "failed", "losses": [],
          "refusals": [{
            "step": "V2 → V3", "kind": "incompatible-types", "entity": "Car", "property": "maker", "reason": "r",
            "text": "a < b", "wayRound": "Go round."
          }],
          "conditions": [], "cases": []
        }
      ],
      "unreadableVersions": [{"name": "V0", "code": "model-old-format", "detail": "old"}]
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
    #expect(allowing.components(separatedBy: "<failure ").count == 3)
    #expect(xml.components(separatedBy: "<failure ").count == 5)
  }
}
