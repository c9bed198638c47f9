import ManagedObjectModel
import Migration
import Platform
import TestSupport
import Testing

/// What a plan says of steps that counting in the store as it is does not tell: it is what the migration does.
struct PlanTrialTests {
  private static let old = model(entity("Post", attribute("text"), attribute("n", .integer32)))

  private static func scene() throws -> MigrationScene {
    try MigrationScene(
      old,
      """
      INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZTEXT, ZN) VALUES
        (1, 1, 1, 'A1', 1), (2, 1, 1, 'B2', 2), (3, 1, 1, NULL, 3), (7, 1, 1, 'A7', 3)
      """)
  }

  /// The plan, and the error of the migration; the folder of the store is as it was after the plan.
  private func outcome(
    _ scene: MigrationScene, _ bundle: ModelBundle, _ options: Migrator.Options
  ) throws -> (plan: MigrationPlan, error: MigrationError?, result: Migrator.Result?) {
    let before = try FolderContents(of: scene.folder.path)
    let plan = try Migrator(bundle, surroundings: .still()).plan(scene.store, options: options)
    #expect(try FolderContents(of: scene.folder.path) == before)
    do {
      return (plan, nil, try scene.migrate(bundle, options: options))
    } catch let error as MigrationError {
      return (plan, error, nil)
    }
  }

  private func outcome(_ attribute: Property, _ expression: String, unique: [[String]] = []) throws -> (
    plan: MigrationPlan, error: MigrationError?, result: Migrator.Result?
  ) {
    let new = model(entity("Post", attribute, unique: unique))
    let bundle = try bundle(Self.old, new)
    let mapping = try CustomLossTests.load(
      #"{"source": "Post", "destination": "Post", "attributes": {"\#(attribute.name)": "\#(expression)"}}"#, bundle)
    return try outcome(try Self.scene(), bundle, CustomMappingTests.options(mapping))
  }

  @Test func expressionsAreEvaluated() throws {
    for (made, expression, unique) in [
      (attribute("size", .integer32), "text || ''", [[String]]()),
      (attribute("label", optional: false), "nullif(text, '')", []),
      (attribute("number", .integer32), "n + 0", [["number"]]),
    ] {
      let (plan, error, _) = try outcome(made, expression, unique: unique)
      let failure = try #require(plan.failures.first, "\(expression) into \(made.name): \(plan)")
      #expect(plan.failures.count == 1 && !plan.isPossible && plan.isCertain)
      let found = try #require(error, "\(made.name)")
      #expect(failure.kind == found.code && failure.property == found.propertyName && failure.entity == "Post")
      #expect(found.detail.hasSuffix(failure.text) || failure.text == found.detail, "\(failure.text) \(found.detail)")
    }
    let (plan, error, result) = try outcome(attribute("label", optional: false), "coalesce(text, 'none')")
    #expect(error == nil && plan.isPossible && plan.isCertain && plan.failures.isEmpty)
    #expect(plan.losses == result?.steps.flatMap(\.losses))
    #expect(plan.steps.first?.entities.map(\.rows) == [4])
  }

  @Test func valuesThatTheStepMakesAreCounted() throws {
    // Every record gets the same value, which must be unique.
    let same = model(
      entity(
        "Post", attribute("text"), attribute("n", .integer32), attribute("kind", .integer16, default: .integer(1)),
        unique: [["kind"]]))
    let (plan, error, _) = try outcome(try Self.scene(), try bundle(Self.old, same), .init())
    #expect(error?.kind == .constraintViolation)
    #expect(plan.failures.map(\.entity) == ["Post"] && !plan.isPossible)
    // Left open where nothing is tried.
    let scene = try Self.scene()
    let open = try withExtendedLifetime(scene) {
      try Migrator(try bundle(Self.old, same), surroundings: .still()).plan(scene.store, tryingSteps: false)
    }
    #expect(open.failures.isEmpty && !open.isCertain)
    #expect(open.steps.first?.uncertain.map(\.kind) == ["duplicate-values"])
  }

  @Test func aMappingThatWasNotTriedIsNotKnown() throws {
    let bundle = try bundle(Self.old, model(entity("Post", attribute("size", .integer32))))
    let mapping = try CustomLossTests.load(
      #"{"source": "Post", "destination": "Post", "attributes": {"size": "text || ''"}}"#, bundle)
    let scene = try Self.scene()
    let migrator = Migrator(bundle, surroundings: .still())
    let open = try migrator.plan(scene.store, options: CustomMappingTests.options(mapping), tryingSteps: false)
    #expect(open.isPossible && !open.isCertain)
    #expect(open.steps.count == 1 && open.steps.allSatisfy { $0.uncertain.contains { $0.kind == "not-tried" } })
    let tried = try withExtendedLifetime(scene) {
      try migrator.plan(scene.store, options: CustomMappingTests.options(mapping))
    }
    #expect(!tried.isPossible && tried.isCertain && tried.steps.allSatisfy(\.uncertain.isEmpty))
  }

  @Test func whatTheInverseKeepsIsNoLoss() throws {
    let before = model(
      entity("Owner", toMany("cats", "Cat", inverse: "owner"), toMany("dogs", "Dog", inverse: "owner")),
      entity("Cat", attribute("name"), toOne("owner", "Owner", inverse: "cats")),
      entity("Dog", attribute("name"), toOne("owner", "Owner", inverse: "dogs")))
    let after = model(
      entity("Owner", toMany("pets", "Pet", inverse: "owner")),
      entity("Pet", attribute("name"), toOne("owner", "Owner", inverse: "pets")))
    let bundle = try bundle(before, after)
    let mapping = try CustomLossTests.load(
      #"""
      {"source": "Cat", "destination": "Pet", "attributes": {"name": "name"}, "relationships": {"owner": "owner"}},
      {"source": "Dog", "destination": "Pet", "attributes": {"name": "name"}, "relationships": {"owner": "owner"}}
      """#, bundle)
    #expect(CustomLossTests.losses(mapping) == [])
  }

  @Test func codeOfTheAppIsNamedAndNotRun() throws {
    let new = model(entity("Post", attribute("text"), attribute("n", .integer32), attribute("more")))
    var options = Migrator.Options()
    options.stages = [
      MigrationStage(
        from: "V1", to: "V2", willMigrate: { _ in Issue.record("a plan ran the app's code") }, didMigrate: nil)
    ]
    let scene = try Self.scene()
    let plan = try withExtendedLifetime(scene) {
      try Migrator(try bundle(Self.old, new), surroundings: .still()).plan(scene.store, options: options)
    }
    #expect(plan.steps.map(\.code) == [["the app's code before the step"]])
    #expect(!plan.isCertain)
  }
}
