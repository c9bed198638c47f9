import ManagedObjectModel
import Migration
import PersistentStore
import TestSupport
import Testing

/// What is told of the records, values and pairs that a custom mapping deletes.
struct CustomLossTests {
  static let old = model(
    entity("Post", attribute("hexColor"), attribute("n", .integer32)), entity("Rest", attribute("x")))
  static let new = model(
    entity("Color", attribute("hex")), entity("Post", attribute("n", .integer32)), entity("Rest", attribute("x")))

  static func scene() throws -> MigrationScene {
    try MigrationScene(
      old,
      """
      INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZHEXCOLOR, ZN) VALUES
        (1, 1, 1, 'A1', 1), (2, 1, 1, 'B2', 2), (3, 1, 1, NULL, 3), (7, 1, 1, 'A7', 4)
      """)
  }

  static func load(
    _ entities: String, _ bundle: ModelBundle, rest: String = ""
  ) throws -> MappingModel {
    let text = #"{"format": 1, "source": "V1", "destination": "V2", \#(rest)"entities": [\#(entities)]}"#
    return try MappingFile(bytes: Array(text.utf8)).mappingModel(in: bundle)
  }

  static func losses(_ mapping: MappingModel) -> [String] {
    mapping.losses.map { "\($0.kind.rawValue) \($0.place)" }
  }

  /// The findings of a run, after those of the count beforehand have been seen to be the same.
  private func findings(
    _ entities: String, rest: String = ""
  ) throws -> (account: StepAccount, leftOut: [MigrationPlan.Finding]) {
    let bundle = try bundle(Self.old, Self.new)
    let scene = try Self.scene()
    let mapping = try Self.load(entities, bundle, rest: rest)
    let store = try PersistentStore(opening: scene.store, model: Self.old)
    let planned = try store.read { try mapping.recordsLeftOut(in: $0) }
    try store.close()
    let result = try scene.migrate(bundle, options: CustomMappingTests.options(mapping))
    let account = try #require(result.steps.first)
    let leftOut = account.losses.filter { $0.kind == "filtered-records" }
    #expect(planned == leftOut)
    #expect(try mapping.recordsLeftOut(in: nil).map(\.entity) == planned.map(\.entity))
    #expect(account.filteredRows == Dictionary(uniqueKeysWithValues: leftOut.map { ($0.entity, $0.rows ?? 0) }))
    return (account, leftOut)
  }

  /// What takes all records takes only some of their values.
  @Test func recordsAreLeftOutByTheOnlyMappingThatTakesTheirValues() throws {
    let color = #"{"source": "Post", "destination": "Color", "attributes": {"hex": "hexColor"}}"#
    let rest = #""remove": ["Post"], "#
    let (account, leftOut) = try findings(
      color + #", {"source": "Post", "destination": "Rest", "filter": "n > 2", "attributes": {"x": "n"}}"#, rest: rest)
    #expect(account.filteredRows == ["Post": 2] && leftOut.map(\.rows) == [2])
    // Nothing is left out where the filter takes nothing that the other has not.
    let (other, none) = try findings(
      color + #", {"source": "Post", "destination": "Rest", "filter": "n > 2", "attributes": {"x": "hexColor"}}"#,
      rest: rest)
    #expect(other.filteredRows.isEmpty && none.isEmpty)
  }

  @Test func recordsThatARelationshipToOneLeavesOutAreTold() throws {
    let old = model(
      entity("Note", toMany("tasks", "Task", inverse: "notes")),
      entity("Task", toMany("notes", "Note", inverse: "tasks")))
    let new = model(
      entity("Note", toOne("tasks", "Task", inverse: "notes")),
      entity("Task", toMany("notes", "Note", inverse: "tasks")))
    let join = try #require(try StoreLayout(old).joinTables.first)
    let isNote = join.relationship.entityName == "Note"
    let scene = try MigrationScene(
      old, "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1)",
      "INSERT INTO ZTASK (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1)",
      "INSERT INTO \(join.name) (\(join.sourceColumn), \(join.destinationColumn)) VALUES "
        + (isNote ? "(1, 1), (1, 2), (2, 2)" : "(1, 1), (2, 1), (2, 2)"))
    let versions = try bundle(old, new)
    let mapping = try MappingModelFixture(
      old, new, .init(source: "Note", destination: "Note", relationships: [.init(name: "tasks")]),
      .init(source: "Task", destination: "Task"), .init(name: "Mapping")
    ).loading(for: versions)
    #expect(mapping.notes.count == 1)
    let result = try scene.migrate(versions, options: CustomMappingTests.options(try #require(mapping.mappings.first)))
    let told = try #require(result.steps.first).losses.filter { $0.kind == "dropped-destinations" }
    #expect(told.map { "\($0.entity).\($0.property ?? "") \($0.rows ?? -1)" } == ["Note.tasks 1"])
    #expect(try scene.rows("SELECT Z_PK, ZTASKS FROM ZNOTE ORDER BY 1") == ["1|1", "2|2"])
  }

  @Test func recordsThatAnotherMappingReadsAreLeftOutAllTheSame() throws {
    let (account, leftOut) = try findings(
      #"""
      {"source": "Post", "destination": "Color", "attributes": {"hex": "hexColor"}},
      {"source": "Post", "destination": "Post", "filter": "hexColor LIKE 'A%'"}
      """#)
    #expect(account.filteredRows == ["Post": 2])
    let only = try #require(leftOut.first)
    #expect(leftOut.count == 1 && only.entity == "Post" && only.property == nil)
    #expect(only.rows == 2 && only.examples == [2, 3])
    #expect(only.text == "Post: records are left out by the filter of the mapping")
    #expect(account.entities.first { $0.entity == "Color" }?.rows == 4)
  }

  @Test func aFilterOfWhatDoesNotGoOnLeavesNothingOut() throws {
    let (_, leftOut) = try findings(
      #"{"source": "Post", "destination": "Color", "filter": "hexColor LIKE 'A%'", "attributes": {"hex": "hexColor"}}"#)
    #expect(leftOut.isEmpty)
  }

  @Test func whereNothingGoesOnWhatNoMappingTakesIsLeftOut() throws {
    let (old, new) = (
      model(entity("Post", attribute("n", .integer32))),
      model(entity("Big", attribute("n", .integer32)), entity("Small", attribute("n", .integer32)))
    )
    let bundle = try bundle(old, new)
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 1, 1, 1), (2, 1, 1, 50), (3, 1, 1, NULL), (4, 1, 1, 9)")
    let mapping = try Self.load(
      #"{"source": "Post", "destination": "Big", "filter": "n > 10"}, {"source": "Post", "destination": "Small", "filter": "n < 5"}"#,
      bundle)
    let account = try #require(
      try scene.migrate(bundle, options: CustomMappingTests.options(mapping)).steps.first)
    #expect(account.filteredRows == ["Post": 2])
    #expect(account.losses.map(\.examples) == [[3, 4]])
  }

  // MARK: Values

  @Test(arguments: [
    (#""attributes": {"name": {"null": true}}"#, ["removed-attribute A.name"]),
    (#""attributes": {"name": {"default": true}}"#, ["removed-attribute A.name"]),
    (#""attributes": {"name": {"constant": "x"}}"#, ["removed-attribute A.name"]),
    (#""attributes": {"name": "'x'", "n": "length(name)"}"#, ["removed-attribute A.n"]),
    (#""attributes": {"name": "name || n", "n": {"null": true}}"#, []),
    (#""attributes": {"place.city": {"null": true}}"#, ["removed-attribute A.place.city"]),
    (#""attributes": {"place.city": {"null": true}, "name": "name || place.city"}"#, []),
    // The pairs arrive through the inverse.
    (#""relationships": {"b": {"null": true}}"#, []),
    (#""relationships": {"lone": {"null": true}}"#, ["removed-relationship A.lone"]),
    (
      #""rest": "none", "relationships": {"b": "b"}"#,
      [
        "removed-relationship A.lone", "removed-attribute A.n", "removed-attribute A.name",
        "removed-attribute A.place.city", "removed-attribute A.place.street",
      ]
    ),
    (#""attributes": {"name": {"null": true}}, "policy": "App.Policy""#, []),
  ])
  func valuesThatNothingReadsAreLosses(content: String, expected: [String]) throws {
    let both = [
      entity(
        "A", attribute("name"), attribute("n", .integer32), toOne("lone", "B"), toOne("b", "B", inverse: "a"),
        attribute("place", .composite, elements: [leaf("city"), leaf("street")])),
      entity("B", toMany("a", "A", inverse: "b")),
    ]
    let old = model(both[0], both[1])
    let bundle = try bundle(old, model(both[0], both[1], entity("Extra", attribute("x"))))
    let mapping = try Self.load(#"{"source": "A", "destination": "A", \#(content)}"#, bundle)
    #expect(Self.losses(mapping) == expected)
  }

  @Test func bothSidesOfARelationshipCut() throws {
    let both = [
      entity("A", toOne("b", "B", inverse: "a")), entity("B", attribute("x"), toMany("a", "A", inverse: "b")),
    ]
    let bundle = try bundle(model(both[0], both[1]), model(both[0], both[1], entity("Extra")))
    let mapping = try Self.load(
      #"""
      {"source": "A", "destination": "A", "relationships": {"b": {"null": true}}},
      {"source": "B", "destination": "B", "relationships": {"a": {"null": true}}}
      """#, bundle)
    #expect(Self.losses(mapping) == ["removed-relationship A.b", "removed-relationship B.a"])
  }

  @Test func planAndRunCountThem() throws {
    let bundle = try bundle(Self.old, Self.new)
    let scene = try Self.scene()
    let mapping = try Self.load(
      #"{"source": "Post", "destination": "Post", "attributes": {"n": {"null": true}}}"#, bundle)
    let options = CustomMappingTests.options(mapping)
    let plan = try Migrator(bundle, surroundings: .still()).plan(scene.store, options: options)
    func words(_ list: [MigrationPlan.Finding]) -> [String] {
      list.map { "\($0.kind) \($0.property ?? "") \($0.rows ?? -1)" }
    }
    let expected = ["removed-attribute hexColor 3", "removed-attribute n 4"]
    #expect(words(plan.losses) == expected)
    #expect(words(try scene.migrate(bundle, options: options).steps.flatMap(\.losses)) == expected)
  }
}
