import GRDB
import ManagedObjectModel
import Migration
import Platform
import Testing

/// Expressions of mapping models, and what becomes of them.
struct MappingExpressionTests {
  static let source = model(
    entity(
      "Car", attribute("name"), attribute("doors", .integer16), attribute("price", .double), attribute("tax", .decimal),
      attribute("sold", .boolean), attribute("built", .date), attribute("photo", .binary),
      attribute("scan", .binary, external: true), attribute("key", .uuid), attribute("page", .uri),
      attribute("note", transient: true), attribute("odd \"name\""),
      attribute("size", .composite, elements: [leaf("length", .double), leaf("unit")]),
      toOne("owner", "Person", inverse: "cars"), toMany("parts", "Part", inverse: "car")),
    entity(
      "Person", attribute("first"), attribute("age", .integer32), toMany("cars", "Car", inverse: "owner"),
      toOne("boss", "Person")),
    entity("Part", attribute("weight", .double), attribute("label"), toOne("car", "Car", inverse: "parts")))

  /// The mapping of one attribute of a type, from an expression in Core Data's format.
  static func load(
    _ expression: String, to type: AttributeType, optional: Bool = true, default value: AttributeValue? = nil,
    filter: String? = nil, policy: String? = nil
  ) throws -> EntityMapping {
    let destination = model(entity("Car", attribute("result", type, optional: optional, default: value)))
    var mapping = MappingModelFixture.Mapping(source: "Car", destination: "Car")
    mapping.attributes = [MappingModelFixture.Property(name: "result", expression: expression)]
    mapping.filter = filter
    mapping.policy = policy
    let fixture = MappingModelFixture(source, destination, mapping)
    let versions = try bundle(source, destination)
    let compiled = try fixture.loadCompiled(for: versions)
    let fromSource = try fixture.loadSource(for: versions)
    #expect(compiled.entityMappings == fromSource.entityMappings)
    return try #require(compiled.entityMappings.first)
  }

  static func value(_ expression: String, to type: AttributeType) throws -> PropertyMapping.Value? {
    try load(expression, to: type).propertyMappings.first?.value
  }

  @Test(arguments: [
    ("$source.name", AttributeType.string, PropertyMapping.Value.copy("name")),
    ("FUNCTION($source, \"valueForKey:\", \"name\")", .string, .copy("name")),
    ("FUNCTION($source, \"valueForKeyPath:\", \"name\")", .string, .copy("name")),
    ("$source.doors", .integer64, .convert("doors", from: .integer16, to: .integer64)),
    ("$source.doors", .boolean, .convert("doors", from: .integer16, to: .boolean)),
    ("$source.size.length", .double, .copy(PropertyPath("size", leaf: ["length"]))),
    ("nil", .string, .null), ("NULL", .integer16, .null),
  ])
  func plainCopiesFollowTheRulesOfInference(
    _ expression: String, _ type: AttributeType, _ value: PropertyMapping.Value
  ) throws { #expect(try Self.value(expression, to: type) == value) }

  @Test(arguments: [
    ("5", AttributeType.integer16, "5"), ("YES", .boolean, "1"), ("\"it's\"", .string, "'it''s'"),
    ("2.5", .integer32, "CAST(2.5 AS INTEGER)"), ("1", .double, "CAST(1 AS REAL)"), ("3", .boolean, "(3 <> 0)"),
    ("$source.doors + 1", .integer16, #"("doors" + 1)"#),
    ("$source.price * 1.5", .integer32, #"CAST(("price" * 1.5) AS INTEGER)"#),
    ("($source.doors - 1) / 2", .integer64, #"(("doors" - 1) / 2)"#),
    ("modulus:by:($source.doors, 2)", .integer16, #"("doors" % 2)"#),
    ("$source.price ** 2", .double, #"pow("price", 2)"#),
    ("abs:($source.doors)", .integer16, #"abs("doors")"#),
    ("floor:($source.price)", .integer64, #"(CAST("price" AS INTEGER) - ("price" < CAST("price" AS INTEGER)))"#),
    ("ceiling:($source.price)", .integer64, #"(CAST("price" AS INTEGER) + ("price" > CAST("price" AS INTEGER)))"#),
    ("now()", .date, "NSCoreDataNow()"),
    ("CAST(3600, \"NSDate\")", .date, "3600"),
    ("CAST($source.doors, \"NSString\")", .string, #"CAST("doors" AS TEXT)"#),
    ("CAST($source.name, \"NSNumber\")", .double, #"CAST("name" AS NUMERIC)"#),
    ("CAST($source.built, \"NSNumber\")", .double, #""built""#),
    ("$source.owner.first", .string, #""owner"."first""#),
    ("$source.owner.boss.age", .integer64, #""owner"."boss"."age""#),
    ("$source.parts.@count", .integer16, #"count("parts")"#), ("count:($source.parts)", .integer16, #"count("parts")"#),
    ("$source.parts.@sum.weight", .double, #"ifnull(sum("parts"."weight"), 0)"#),
    ("$source.parts.@max.weight", .double, #"max("parts"."weight")"#),
    ("sum:($source.parts.weight)", .double, #"ifnull(sum("parts"."weight"), 0)"#),
    ("average:($source.parts.weight)", .double, #"ifnull(avg("parts"."weight"), 0.0)"#),
    (
      "TERNARY($source.doors > 3, \"wide\", \"small\")", .string, #"CASE WHEN "doors" > 3 THEN 'wide' ELSE 'small' END"#
    ),
    ("TERNARY($source.name == nil, 0, 1)", .boolean, #"(CASE WHEN "name" IS NULL THEN 0 ELSE 1 END <> 0)"#),
    (
      "FUNCTION($source.name, \"stringByAppendingString:\", $source.owner.first)", .string,
      #"("name" || "owner"."first")"#
    ),
    ("FUNCTION($source.doors, \"stringValue\")", .string, #"CAST("doors" AS TEXT)"#),
    ("$source.key", .uuid, ""), ("$source.page", .uri, ""),
  ])
  func valuesBecomeSQL(_ expression: String, _ type: AttributeType, _ sql: String) throws {
    let value = try Self.value(expression, to: type)
    guard !sql.isEmpty else {
      #expect(value == .copy(PropertyPath(String(expression.dropFirst(8)))))
      return
    }
    #expect(value == .expression(.sql(sql)))
  }

  @Test(arguments: [
    ("name != nil", #""name" IS NOT NULL"#), ("scan == nil", #""scan" IS NULL"#), ("doors == 4", #""doors" IS 4"#),
    ("SELF.doors >= 4 AND NOT sold == YES", #"("doors" >= 4 AND NOT ifnull("sold" IS 1, 0))"#),
    (
      "name BEGINSWITH \"A\" || name CONTAINS \"b\"",
      #"(substr("name", 1, length('A')) = 'A' OR instr("name", 'b') > 0)"#
    ),
    ("name LIKE \"a*[\"", #""name" GLOB 'a*[[]'"#), ("doors IN {2, 4}", #""doors" IN (2, 4)"#),
    ("doors BETWEEN {2, 4}", #""doors" BETWEEN 2 AND 4"#), ("parts.@count > 2", #"count("parts") > 2"#),
    ("owner != nil", #""owner" IS NOT NULL"#), ("parts == nil", #"count("parts") = 0"#),
    ("owner.first == \"x\"", #""owner"."first" IS 'x'"#), ("FALSEPREDICATE", "0"),
    ("built > CAST(10, \"NSDate\")", #""built" > 10"#), ("TRUEPREDICATE", ""),
  ])
  func filtersBecomeSQL(_ filter: String, _ sql: String) throws {
    let mapping = try Self.load("nil", to: .string, filter: filter)
    #expect(mapping.sourceFilter == (sql.isEmpty ? nil : .sql(sql)))
    #expect(mapping.kind == .transform)
  }

  @Test(arguments: [
    ("uppercase:($source.name)", AttributeType.string, "uppercase:"),
    ("FUNCTION($entityPolicy, \"colorOf:\", $source.name)", .string, "colorOf:"),
    ("FUNCTION($source, \"fullName\")", .string, "fullName"),
    ("FUNCTION($manager, \"doIt:\", 5)", .string, "doIt:"), ("$source", .string, "$source"),
    ("$source.parts.weight", .double, "to-many relationship parts"), ("$source.owner", .string, "is a relationship"),
    ("name", .string, "does not begin with $source"), ("$source.missing", .string, "no property Car.missing"),
    ("$source.note", .string, "does not store Car.note"), ("$source.name + 1", .integer16, "a number is needed"),
    ("\"five\"", .integer16, "it gives text"), ("$source.price + 1", .string, "it gives a number"),
    ("TERNARY($source.doors > 1, 5, \"five\")", .string, "now a number, now text"),
    ("TERNARY($source.name MATCHES \"a\", 1, 2)", .integer16, "regular expression"),
    ("TERNARY($source.name ==[c] \"a\", 1, 2)", .integer16, "without regard to case"),
    ("TERNARY(ANY $source.parts.weight > 1, 1, 2)", .integer16, "ANY"),
    ("$source.parts.@distinctUnionOfObjects.label", .string, "@distinctUnionOfObjects"),
    ("FETCH(FUNCTION($manager, \"x\"), $manager.sourceContext, NO)", .string, "FETCH"),
    ("{1, 2}", .integer16, "a list"), ("CAST($source.price, \"NSString\")", .string, "CAST"),
  ])
  func whatCannotBeCarriedOutIsNamedBeforehand(_ expression: String, _ type: AttributeType, _ word: String) throws {
    let error = #expect(throws: MigrationError.self) { try Self.value(expression, to: type) }
    #expect(error?.code == "expression-unsupported")
    #expect(error?.entityName == "Car")
    #expect(error?.propertyName == "result")
    #expect(error?.detail.contains("CarToCar") == true)
    #expect(error?.detail.contains(word) == true, "\(error?.detail ?? "")")
    // A policy of the app's own may make it.
    let mapping = try Self.load(expression, to: type, policy: "App.CarPolicy")
    #expect(mapping.kind == .custom)
    #expect(mapping.policyClassName == "App.CarPolicy")
    guard case .expression(.coreData(let text)) = mapping.propertyMappings.first?.value else {
      Issue.record("not kept for the policy")
      return
    }
    #expect(FormatParser.expression(text)?.format == text)
  }

  @Test func incompatibleTypesAreRefused() throws {
    for (expression, type) in [
      ("$source.name", AttributeType.integer16), ("$source.doors", .string), ("$source.scan", .binary),
    ] {
      let error = #expect(throws: MigrationError.self) { try Self.value(expression, to: type) }
      #expect(error?.code == "mapping-invalid")
      #expect(error?.propertyName == "result")
      #expect(error?.refusals.count == 1)
    }
  }

  @Test func aMandatoryAttributeTakesItsDefaultForNil() throws {
    let mapping = try Self.load("$source.doors + 1", to: .integer16, optional: false, default: .integer(7))
    #expect(mapping.propertyMappings.first?.replacesNilWithDefault == true)
  }

  /// What SQL makes of the expressions is what `NSExpression` makes of them.
  @Test func theSQLGivesTheRightValues() throws {
    let queue = try DatabaseQueue()
    let cases: [(String, AttributeType, String)] = [
      ("floor:($source.price)", .integer64, "-3"), ("ceiling:($source.price)", .integer64, "-2"),
      ("trunc:($source.price)", .integer64, "-2"), ("abs:($source.price)", .double, "2.5"),
      ("$source.doors / 2", .integer64, "2"), ("$source.doors / 2.0", .double, "2.5"),
      ("TERNARY($source.sold == YES, \"a\", \"b\")", .string, "b"),
      ("TERNARY($source.sold != YES, \"a\", \"b\")", .string, "a"),
      ("TERNARY(NOT $source.sold > 5, \"a\", \"b\")", .string, "a"),
      ("TERNARY($source.name ENDSWITH \"na\", 1, 2)", .integer16, "1"),
      ("TERNARY($source.name ENDSWITH \"nanana\", 1, 2)", .integer16, "2"),
      ("TERNARY($source.name LIKE \"A?na\", 1, 2)", .integer16, "1"),
      ("TERNARY($source.name LIKE \"a?na\", 1, 2)", .integer16, "2"),
      ("FUNCTION($source.name, \"stringByReplacingOccurrencesOfString:withString:\", \"n\", \"'\")", .string, "A''a"),
    ]
    try queue.write { database in
      try database.execute(sql: "CREATE TABLE Car(name, doors, price, sold)")
      try database.execute(sql: "INSERT INTO Car VALUES ('Anna', 5, -2.5, NULL)")
      for (expression, type, expected) in cases {
        guard case .expression(.sql(let sql)) = try Self.value(expression, to: type) else {
          Issue.record("\(expression) is no SQL")
          continue
        }
        #expect(try String.fetchOne(database, sql: "SELECT \(sql) FROM Car") == expected, "\(expression): \(sql)")
      }
    }
  }

  @Test func formatsPrintAsTheyAreRead() throws {
    for text in [
      "$source.name",
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"A\", $source.b)",
      "TERNARY(a > 1, \"x\", nil)", "CAST(5, \"NSDate\")",
      "FETCH(FUNCTION($manager, \"x\"), $manager.sourceContext, NO)",
      "a.b + (c - 1) * 2", "count:($source.parts)",
    ] {
      let first = try MappingModelFixture.expression(text)
      #expect(try MappingModelFixture.expression(first.format) == first, "\(text)")
    }
  }

  @Test func hostileFormatsAreRefused() {
    for count in [100, 20_000] {
      for text in [
        String(repeating: "(", count: count), String(repeating: "TERNARY(", count: count),
        String(repeating: "FUNCTION(", count: count) + "1", "1" + String(repeating: "+1", count: 3 * count),
        String(repeating: "NOT ", count: count) + "a", String(repeating: "{", count: count),
        String(repeating: "TERNARY((", count: count) + "a", "a" + String(repeating: "**a", count: 3 * count),
      ] {
        #expect(FormatParser.expression(text) == nil)
        #expect(FormatParser.predicate(text) == nil)
      }
    }
    for text in [
      "FUNCTION()", "FUNCTION($a)", "FUNCTION($a, 5)", "CAST(1)", "TERNARY(a, 1)", "FETCH(1, 2, 3)", "$", "$source.",
    ] { #expect(FormatParser.expression(text) == nil, "\(text)") }
  }
}
