import LazaretTesting
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// Relationships that a mapping leaves alone.
struct CopiedRelationshipTests {
  @Test("A mapping that copies relationships makes the tables that one with a filter makes pair by pair")
  func untouchedRelationships() throws {
    var new = Fixture.everything
    new.entities["Port"]?.properties["mark"] = attribute("mark")
    let folder = try TemporaryFolder()
    for profile in StoreProfile.allCases {
      let source = try StoreGenerator(Fixture.everything, options: .init(profile, records: 12))
        .write(to: folder.appending("\(profile.rawValue).sqlite"))
      let copied = try tables(of: source.path, new, filter: nil)
      let paired = try tables(of: source.path, new, filter: .sql("1"))
      #expect(copied == paired, "\(profile)")
      #expect(profile == .empty || copied.contains { $0.contains("INTO ZPERSON ") }, "\(profile)")
      #expect(profile == .empty || copied.contains { $0.contains("'m1'") }, "\(profile)")
    }
  }

  /// Migrates a copy with a mark for each port, and returns the rows of all tables as statements.
  private func tables(
    of store: FilePath, _ new: ManagedObjectModel, filter: MappingExpression?
  ) throws -> [String] {
    var mapping = try MappingModel.inferred(from: Fixture.everything, to: new)
    mapping.origin = .code
    for index in mapping.entityMappings.indices {
      var entity = mapping.entityMappings[index]
      entity.sourceFilter = filter
      if entity.destinationEntityName == "Port" {
        entity.propertyMappings.removeAll { $0.destination == "mark" }
        entity.propertyMappings.append(PropertyMapping("mark", .expression(.sql("'m' || primaryKey()"))))
      }
      mapping.entityMappings[index] = entity
    }
    let bundle = try #require(
      ModelBundle(
        name: "Test",
        versions: [Fixture.version("V1", Fixture.everything), Fixture.version("V2", new, current: true)]))
    var options = Migrator.Options()
    options.output = store.folder.appending(
      "\(filter == nil ? "copied" : "paired")-\(store.lastComponent?.string ?? "")")
    options.mappings = [mapping]
    let result = try Migrator(bundle).migrate(store, options: options)
    let lines = try ChildProcess.run("sqlite3", [result.store.string, ".dump"]).output.split(separator: "\n")
    return lines.map(String.init).filter { $0.hasPrefix("INSERT INTO Z") && !$0.hasPrefix("INSERT INTO Z_M") }.sorted()
  }
}
