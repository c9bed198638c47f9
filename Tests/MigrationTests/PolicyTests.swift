import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import TestSupport
import Testing

/// Policies of an app: all stages in their order, one record to many, batches, and their failures.
struct PolicyTests {
  static let old = CustomMappingTests.oldPeople
  static let new = CustomMappingTests.newPeople

  /// What was called, shared between policies.
  final class Log: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  /// Makes a person and one address for each word of the street; tells every stage.
  final class Splitter: EntityMigrationPolicy {
    struct Failure: Error { var text: String }
    let log: Log
    let failing: String?
    init(_ log: Log, failing: String? = nil) {
      self.log = log
      self.failing = failing
    }

    func note(_ stage: String, _ mapping: EntityMapping) throws {
      log.add("\(mapping.name) \(stage)")
      if stage == failing { throw Failure(text: "secret") }
    }
    func begin(_ mapping: EntityMapping, in context: MigrationContext) throws { try note("begin", mapping) }
    func createDestinationInstances(
      for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
    ) throws {
      try note("create", mapping)
      let person = try context.createMappedRecord(for: source, mapping: mapping)
      if case .string(let name) = source["name"] { person["name"] = .string(name.uppercased()) }
      guard case .string(let street) = source["street"] else { return }
      for word in street.split(separator: " ") {
        let address = try context.createRecord(of: "Address")
        address["line"] = .string(String(word))
        try context.associate(source: source, destination: address, mapping: mapping)
      }
    }
    func endInstanceCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {
      try note("endInstances", mapping)
    }
    func createRelationships(
      for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
    ) throws {
      try note("connect", mapping)
      try context.createMappedRelationships(for: destination)
      guard destination.entityName == "Address",
        let source = try context.sourceRecords(for: mapping.name, destination: destination).first
      else { return }
      let made = try context.destinationRecords(for: mapping.name, source: source)
      guard let person = made.first(where: { $0.entityName == "Person" }),
        made.first(where: { $0.entityName == "Address" })?.id == destination.id
      else { return }
      try context.setRecords(of: "person", from: destination, to: [person])
    }
    func endRelationshipCreation(_ mapping: EntityMapping, in context: MigrationContext) throws {
      try note("endRelationships", mapping)
      for person in try context.destinationRecords(of: "Person") {
        log.add("staff of \(person.primaryKey): \(try context.records(of: "staff", from: person).map(\.primaryKey))")
      }
    }
    func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws {
      try note("validate", mapping)
    }
    func end(_ mapping: EntityMapping, in context: MigrationContext) throws { try note("end", mapping) }
  }

  static func scene() throws -> MigrationScene {
    try MigrationScene(
      old,
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSTREET, ZBOSS, Z_FOK_BOSS) VALUES
        (1, 1, 4, 'Ada', 'Long Lane', NULL, NULL), (2, 1, 1, 'Bob', NULL, 1, 20), (5, 1, 1, 'Cid', 'Mill', 1, 10)
      """)
  }

  static func mapping(_ policy: String = "App.Splitter") -> MappingModel {
    CustomMappingTests.custom(
      old, new,
      CustomMappingTests.map(
        "Person", "Person",
        ["name": .copy("name"), "boss": .relationship("boss"), "staff": .relationship("staff")], policy: policy))
  }

  @Test(arguments: ["App.Splitter", "Splitter"])
  func allStagesInOrder(registered: String) throws {
    let scene = try Self.scene()
    let log = Log()
    var options = CustomMappingTests.options(Self.mapping(registered == "Splitter" ? "App.Splitter" : "Splitter"))
    options.policies.register(className: registered) { Splitter(log) }
    let result = try scene.migrate(try bundle(Self.old, Self.new), options: options)
    #expect(
      log.all.map { $0.replacing("PersonToPerson ", with: "") } == [
        "begin", "create", "create", "create", "endInstances", "connect", "connect", "connect", "connect", "connect",
        "connect", "endRelationships", "staff of 1: [5, 2]", "staff of 2: []", "staff of 5: []", "validate", "end",
      ])
    #expect(
      try scene.rows("SELECT Z_PK, ZNAME, ZADDRESS, ZBOSS FROM ZPERSON ORDER BY 1")
        == ["1|ADA|1|NULL", "2|BOB|NULL|1", "5|CID|3|1"])
    #expect(
      try scene.rows("SELECT Z_PK, ZLINE, ZPERSON FROM ZADDRESS ORDER BY 1") == ["1|Long|1", "2|Lane|NULL", "3|Mill|5"])
    #expect(result.steps.first?.entities.map { "\($0.entity) \($0.rows)" } == ["Address 3", "Person 3"])
    #expect(try scene.rows("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1") == ["Address|3", "Person|5"])
  }

  @Test(arguments: ["begin", "create", "endInstances", "connect", "endRelationships", "validate", "end"])
  func failuresLeaveTheStoreAlone(stage: String) throws {
    let scene = try Self.scene()
    let before = try FolderContents(of: scene.folder.path)
    var options = CustomMappingTests.options(Self.mapping())
    options.policies.register(className: "Splitter") { Splitter(Log(), failing: stage) }
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.old, Self.new), options: options)
    }
    #expect(error.code == "policy-failed" && error.entityName == "Person", "\(error)")
    #expect(error.detail.contains("Failure") && !error.description.contains("secret"))
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func missingClassesAreNamedBeforeTheStart() throws {
    let scene = try Self.scene()
    let before = try FolderContents(of: scene.folder.path)
    var options = CustomMappingTests.options(Self.mapping("App.Spliter"))
    options.policies.register(className: "Splitter") { Splitter(Log()) }
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.old, Self.new), options: options)
    }
    #expect(error.code == "policy-missing" && error.detail.contains("App.Spliter"), "\(error)")
    #expect(error.detail.contains("PersonToPerson") && error.coreDataCode == 134170)
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  /// Does one wrong thing.
  final class Wrong: EntityMigrationPolicy {
    let what: String
    init(_ what: String) { self.what = what }
    func createDestinationInstances(
      for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
    ) throws {
      let made = try context.createMappedRecord(for: source, mapping: mapping)
      switch what {
      case "type": made["name"] = .integer(1)
      case "name": made["nam"] = .null
      case "source": source["name"] = .null
      case "entity": _ = try context.createRecord(of: "Persn")
      case "relationship": try context.setRecords(of: "address", from: made, to: [made])
      default: break
      }
    }
    func performCustomValidation(_ mapping: EntityMapping, in context: MigrationContext) throws {
      if what == "late" { try context.destinationRecords(of: "Person").first?["name"] = .string("x") }
    }
  }

  @Test(arguments: [
    ("type", "no String"), ("name", "no attribute \"nam\""), ("source", "only be read"), ("entity", "no entity"),
    ("relationship", "leads to Address"), ("late", "only be read"),
  ])
  func whatPoliciesMustNotDo(what: String, word: String) throws {
    let scene = try Self.scene()
    var options = CustomMappingTests.options(Self.mapping())
    options.policies.register(entityMapping: "PersonToPerson") { Wrong(what) }
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.old, Self.new), options: options)
    }
    #expect(error.code == "policy-failed" && error.description.contains(word), "\(error)")
  }

  @Test func batchesAreWhole() throws {
    let old = model(entity("Item", attribute("n", .integer32)))
    let new = model(entity("Item", attribute("n", .integer32), attribute("text")))
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZN) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2500) SELECT i, 1, 1, i FROM c"
    )
    final class Numbers: EntityMigrationPolicy {}
    var options = CustomMappingTests.options(
      CustomMappingTests.custom(
        old, new,
        CustomMappingTests.map(
          "Item", "Item", filter: "n <> 7", ["n": .copy("n"), "text": .expression(.sql("'#' || n"))], policy: "Numbers")
      ))
    options.policies.register(className: "Numbers") { Numbers() }
    let result = try scene.migrate(try bundle(old, new), options: options)
    #expect(try scene.rows("SELECT count(*), sum(ZN = Z_PK AND ZTEXT = '#' || ZN) FROM ZITEM") == ["2499|2499"])
    #expect(result.steps.first?.filteredRows == ["Item": 1])
  }
}
