import LazaretTesting
import TestSupport
import Testing

/// Changes of relationships and hierarchies, verified on generated stores with every kind of records.
struct VerifiedChangesTests {
  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let before: ManagedObjectModel
    let after: ManagedObjectModel

    init(_ name: String, _ before: ManagedObjectModel, _ after: ManagedObjectModel) {
      testDescription = name
      self.before = before
      self.after = after
    }
  }

  /// Two entities with one relationship each.
  private static func two(_ first: Property, _ second: Property?, _ others: Entity...) -> ManagedObjectModel {
    let b = second.map { entity("B", attribute("n", .integer32), $0) } ?? entity("B", attribute("n", .integer32))
    return ManagedObjectModel(entities: [entity("A", attribute("n", .integer32), first), b] + others)
  }

  static let changes = [
    Change(
      "two to-ones become each other's inverse", two(toOne("r", "B"), toOne("i", "A")),
      two(toOne("r", "B", inverse: "i"), toOne("i", "A", inverse: "r"))),
    Change(
      "a to-one and a to-many become each other's inverse", two(toOne("r", "B"), toMany("i", "A")),
      two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"))),
    Change(
      "a to-one and an ordered to-many become each other's inverse", two(toOne("r", "B"), toMany("i", "A")),
      two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r", ordered: true))),
    Change(
      "two to-manys become each other's inverse", two(toMany("r", "B"), toMany("i", "A")),
      two(toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"))),
    Change(
      "a to-one gets a to-one inverse", two(toOne("r", "B"), nil),
      two(toOne("r", "B", inverse: "i"), toOne("i", "A", inverse: "r"))),
    Change(
      "a to-one gets a to-many inverse", two(toOne("r", "B"), nil),
      two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r", ordered: true))),
    Change(
      "a to-many gets a to-one inverse", two(toMany("r", "B"), nil),
      two(toMany("r", "B", inverse: "i"), toOne("i", "A", inverse: "r"))),
    Change(
      "a to-many gets a to-many inverse", two(toMany("r", "B"), nil),
      two(toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"))),
    Change(
      "a to-many loses its inverse", two(toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r")),
      two(toMany("r", "B"), nil)),
    Change(
      "inverses part", two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r")),
      two(toOne("r", "B"), toMany("i", "A"))),
    Change(
      "one-to-one inverses part", two(toOne("r", "B", inverse: "i"), toOne("i", "A", inverse: "r")),
      two(toOne("r", "B"), toOne("i", "A"))),
    Change(
      "a to-one becomes to-many", two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r")),
      two(toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"))),
    Change("a to-one without inverse becomes to-many", two(toOne("r", "B"), nil), two(toMany("r", "B"), nil)),
    Change(
      "both sides of one-to-one become to-many", two(toOne("r", "B", inverse: "i"), toOne("i", "A", inverse: "r")),
      two(toMany("r", "B", inverse: "i", ordered: true), toMany("i", "A", inverse: "r"))),
    Change(
      "one side of one-to-one becomes to-many", two(toOne("r", "B", inverse: "i"), toOne("i", "A", inverse: "r")),
      two(toMany("r", "B", inverse: "i"), toOne("i", "A", inverse: "r"))),
    Change(
      "orders come and go",
      two(toMany("r", "B", inverse: "i", ordered: true), toMany("i", "A", inverse: "r")),
      two(toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r", ordered: true))),
    Change(
      "an order stays under other names",
      two(toMany("r", "B", inverse: "i", ordered: true), toOne("i", "A", inverse: "r")),
      two(toMany("z", "B", inverse: "y", id: "r", ordered: true), toOne("y", "A", inverse: "z", id: "i"))),
    Change(
      "an order of a join table stays under other names",
      two(toMany("r", "B", inverse: "i", ordered: true), toMany("i", "A", inverse: "r", ordered: true)),
      two(
        toMany("b", "B", inverse: "a", id: "r", ordered: true), toMany("a", "A", inverse: "b", id: "i", ordered: true))),
    Change(
      "a to-one becomes its own inverse", two(toOne("r", "A"), nil),
      two(toOne("r", "A", inverse: "r"), nil).adding(attribute("more"), to: "A")),
    Change(
      "a to-many becomes its own inverse", two(toMany("r", "A"), nil),
      two(toMany("r", "A", inverse: "r"), nil).adding(attribute("more"), to: "A")),
    Change(
      "two to-manys become one that is its own inverse",
      two(toMany("r", "A", inverse: "s"), nil, entity("C", toOne("c", "A"))).adding(
        toMany("s", "A", inverse: "r"), to: "A"),
      two(toMany("r", "A", inverse: "r"), nil, entity("C", toOne("c", "A")))),
    Change(
      "its own inverse parts", two(toMany("r", "A", inverse: "r"), toOne("q", "B", inverse: "q")),
      two(toMany("r", "A"), toOne("q", "B")).adding(attribute("more"), to: "A")),
    Change(
      "neighbours become inverses", two(toOne("next", "A"), nil).adding(toOne("last", "A"), to: "A"),
      two(toOne("next", "A", inverse: "last"), nil).adding(toOne("last", "A", inverse: "next"), to: "A")),
    Change(
      "inverses are swapped",
      two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r")).adding(toOne("q", "B", inverse: "j"), to: "A")
        .adding(toMany("j", "A", inverse: "q"), to: "B"),
      two(toOne("r", "B", inverse: "j"), toMany("i", "A", inverse: "q")).adding(toOne("q", "B", inverse: "i"), to: "A")
        .adding(toMany("j", "A", inverse: "r"), to: "B")),
    Change(
      "a part of the destinations is removed, and counted",
      two(toMany("r", "B", inverse: "i"), toOne("i", "A", inverse: "r"), entity("C", parent: "B"))
        .adding(attribute("count", .integer32, derived: "r.@count"), to: "A"),
      two(toMany("r", "B", inverse: "i"), toOne("i", "A", inverse: "r"))
        .adding(attribute("count", .integer32, derived: "r.@count"), to: "A")),
    Change(
      "a relationship is narrowed to a sub-entity, and counted",
      two(toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"), entity("C", parent: "B"))
        .adding(attribute("count", .integer32, derived: "r.@count"), to: "A"),
      ManagedObjectModel(entities: [
        entity(
          "A", attribute("n", .integer32), toMany("r", "C", inverse: "i"),
          attribute("count", .integer32, derived: "r.@count")),
        entity("B", attribute("n", .integer32)), entity("C", toMany("i", "A", inverse: "r"), parent: "B"),
      ])),
    Change(
      "an entity leaves its hierarchy",
      two(toOne("r", "B"), toMany("i", "A"), entity("C", attribute("x"), parent: "B")),
      ManagedObjectModel(entities: [
        entity("A", attribute("n", .integer32), toOne("r", "B")),
        entity("B", attribute("n", .integer32), toMany("i", "A")),
        entity("C", attribute("n", .integer32), attribute("x"), toMany("i", "A")),
      ])),
    Change(
      "a parent is put between", two(toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r")),
      ManagedObjectModel(entities: [
        entity("A", attribute("n", .integer32), toOne("r", "P", inverse: "i")),
        entity("P", attribute("n", .integer32), toMany("i", "A", inverse: "r"), abstract: true),
        entity("B", parent: "P"),
      ])),
    Change(
      "numbers of every type change",
      model(
        entity(
          "A", attribute("a", .integer64), attribute("b", .double), attribute("c", .decimal), attribute("d", .float),
          attribute("e", .integer32), attribute("f", .boolean), attribute("g", .double), attribute("h", .integer64),
          attribute("i", .decimal), attribute("j", .integer64), attribute("k", .double), attribute("l", .integer16))),
      model(
        entity(
          "A", attribute("a", .integer16), attribute("b", .integer32), attribute("c", .integer64),
          attribute("d", .decimal), attribute("e", .boolean), attribute("f", .double), attribute("g", .float),
          attribute("h", .double), attribute("i", .float), attribute("j", .decimal), attribute("k", .boolean),
          attribute("l", .integer64)))),
    Change(
      "defaults fill in, external storage is switched on",
      model(
        entity(
          "A", attribute("a"), attribute("b", .integer16), attribute("c", .binary), attribute("d", .date),
          attribute("e", .uuid), attribute("f", .decimal))),
      model(
        entity(
          "A", attribute("a", optional: false, default: .string("it's")),
          attribute("b", .double, optional: false, default: .real(0.5)), attribute("c", .binary, external: true),
          attribute("d", .date, optional: false, default: .date(-1.5)),
          attribute("e", .uuid, optional: false, default: .uuid([UInt8](repeating: 7, count: 16))),
          attribute("f", .decimal, optional: false, default: .decimal("1.25")),
          attribute("g", .integer64, default: .integer(.min)), attribute("h", .boolean, default: .boolean(true)),
          attribute("i", .binary, default: .data([1, 2]), external: true),
          attribute("j", .uri, optional: false, default: .uri("x:'y'"))))),
  ]

  @Test(arguments: changes)
  func everyRecordIsWhereItShouldBe(change: Change) throws {
    let bundle = try #require(
      ModelBundle(
        name: "Test",
        versions: [Fixture.version("V1", change.before), Fixture.version("V2", change.after, current: true)]))
    for seed in 1...UInt64(mutationCount(usually: 3)) {
      let folder = try TemporaryFolder()
      var options = MigrationVerifier.Options()
      options.folder = folder.path
      options.seed = seed
      options.records = 12
      let report = try MigrationVerifier(bundle, options: options, surroundings: Fixture.surroundings).run()
      let version = try #require(report.versions.first)
      #expect(version.refusals.isEmpty, "\(version.refusals)")
      #expect(report.outcome <= .lossy, "seed \(seed) \(VerificationListing(report).text)")
    }
  }
}

extension ManagedObjectModel {
  /// The model with one more property.
  func adding(_ property: Property, to entity: String) -> ManagedObjectModel {
    var copy = self
    copy.entities[entity]?.properties[property.name] = property
    return copy
  }
}
