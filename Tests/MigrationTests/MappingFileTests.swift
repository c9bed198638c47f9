import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import TestSupport
import Testing

/// Mapping files: what they make of the records, their errors, their version hashes, and hostile ones.
struct MappingFileTests {
  static let old = model(
    entity(
      "Person", attribute("name"), attribute("age", .string), attribute("street"),
      toOne("firm", "Firm", inverse: "people")),
    entity("Boss", attribute("bonus", .integer32), parent: "Person"),
    entity("Firm", attribute("title"), toMany("people", "Person", inverse: "firm")), entity("Junk", attribute("x")))
  static let new = model(
    entity("Address", attribute("line"), attribute("country"), toOne("person", "Person", inverse: "address")),
    entity(
      "Person", attribute("name"), attribute("age", .integer32), toOne("address", "Address", inverse: "person"),
      toOne("firm", "Firm", inverse: "people")),
    entity("Boss", attribute("bonus", .integer64), parent: "Person"),
    entity("Firm", attribute("title"), toMany("people", "Person", inverse: "firm")))

  static func bundle() throws -> ModelBundle { try MigrationTests.bundle(old, new) }

  static let good = """
    {
      "format": 1, "name": "Split people", "source": "V1", "destination": {"version": "V2"},
      "entities": [
        {"source": "Person", "destination": "Person",
         "attributes": {"age": "CAST(age AS INTEGER)"},
         "relationships": {"address": {"madeBy": "Address"}}},
        {"source": "Person", "destination": "Address", "filter": "street <> ''", "rest": "none",
         "attributes": {"line": {"copy": "street"}, "country": {"constant": "A\\u0054"}}}
      ]
    }
    """

  static func file(_ text: String) throws -> MappingFile { try MappingFile(bytes: Array(text.utf8)) }

  @Test func fileTakesCareOfWhatCannotBeInferred() throws {
    let bundle = try Self.bundle()
    #expect(throws: MigrationError.self) { try MappingModel.inferred(from: Self.old, to: Self.new) }
    let layout = try StoreLayout(Self.old)
    func number(_ name: String) -> Int { layout.entity(named: name)?.number ?? 0 }
    let scene = try MigrationScene(
      Self.old,
      "INSERT INTO ZFIRM (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (1, \(number("Firm")), 1, 'Firm')",
      "INSERT INTO ZJUNK (Z_PK, Z_ENT, Z_OPT) VALUES (1, \(number("Junk")), 1)",
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZAGE, ZSTREET, ZBONUS, ZFIRM) VALUES
        (1, \(number("Person")), 1, 'Ada', '41', 'Lane', NULL, 1), (2, \(number("Person")), 1, 'Bob', NULL, '', NULL, NULL),
        (3, \(number("Boss")), 1, 'Cid', '50', 'Mill', 9, 1)
      """)
    try scene.folder.write(Self.good, to: "people.json")
    let path = scene.folder.appending("people.json")
    let mappings = try MappingFile.load(path, in: bundle)
    #expect(mappings.map(\.name) == ["Split people"] && mappings.first?.origin == .mappingFile(path))
    // The street is used; of all that Junk had, nothing is.
    #expect(
      mappings.first?.losses.map { "\($0.kind.rawValue) \($0.place)" } == [
        "removed-attribute Boss.street", "removed-entity Junk",
      ])
    var options = Migrator.Options()
    options.mappings = mappings
    let result = try scene.migrate(bundle, options: options)
    #expect(
      try scene.rows("SELECT Z_PK, ZNAME, ZAGE, ZADDRESS, ZBONUS, ZFIRM FROM ZPERSON ORDER BY 1")
        == ["1|Ada|41|1|NULL|1", "2|Bob|NULL|NULL|NULL|NULL", "3|Cid|50|NULL|9|1"])
    #expect(try scene.rows("SELECT Z_PK, ZLINE, ZCOUNTRY, ZPERSON FROM ZADDRESS") == ["1|Lane|AT|1"])
    #expect(result.steps.first?.removedRows == ["Junk": 1])
  }

  @Test func sealedFileFitsAndGoesStale() throws {
    let bundle = try Self.bundle()
    let sealed = try Self.file(Self.good).sealed(in: bundle)
    let again = try Self.file(sealed.text)
    #expect(again.text == sealed.text)
    #expect(try again.mappingModel(in: bundle) == Self.file(Self.good).mappingModel(in: bundle))
    let changed = model(
      entity("Person", attribute("name"), attribute("age"), attribute("way"), toOne("firm", "Firm", inverse: "people")),
      entity("Boss", attribute("bonus", .integer32), parent: "Person"),
      entity("Firm", attribute("title"), toMany("people", "Person", inverse: "firm")), entity("Junk", attribute("x")))
    let error = try #require(throws: MigrationError.self) {
      try again.mappingModel(in: MigrationTests.bundle(changed, Self.new))
    }
    #expect(error.code == "mapping-stale" && error.detail.contains("Boss, Person"), "\(error)")
    #expect(!error.detail.contains("Firm"))
    #expect(error.hint.contains("model seal") && error.hint.contains("delete \"checksum\""))
    // Without hashes nothing tells that a model was changed, but what no longer fits is found.
    let unsealed = try #require(throws: MigrationError.self) {
      try Self.file(Self.good).mappingModel(in: MigrationTests.bundle(changed, Self.new))
    }
    #expect(unsealed.code == "mapping-invalid" && unsealed.description.contains("street"), "\(unsealed)")
  }

  @Test func mergedHierarchiesAndRemovedEntities() throws {
    let old = model(entity("Cat", attribute("name")), entity("Dog", attribute("call")), entity("Rat", attribute("x")))
    let new = model(
      entity("Pet", attribute("name")), entity("Cat", parent: "Pet"), entity("Dog", parent: "Pet"),
      entity("Rat", attribute("x")))
    let bundle = try MigrationTests.bundle(old, new)
    let scene = try MigrationScene(
      old, "INSERT INTO ZCAT (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'c')",
      "INSERT INTO ZDOG (Z_PK, Z_ENT, Z_OPT, ZCALL) VALUES (1, 2, 1, 'd')",
      "INSERT INTO ZRAT (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1)")
    let text = """
      {"format": 1, "source": "V1", "destination": "V2", "remove": ["Rat"], "entities": [
        {"source": "Dog", "destination": "Dog", "attributes": {"name": "call || '!'"}}]}
      """
    var options = Migrator.Options()
    options.mappings = [try Self.file(text).mappingModel(in: bundle)]
    try scene.migrate(bundle, options: options)
    #expect(try scene.rows("SELECT Z_PK, ZNAME FROM ZPET ORDER BY ZNAME") == ["1|c", "2|d!"])
    #expect(try scene.rows("SELECT count(*) FROM ZRAT") == ["0"])
  }

  @Test(arguments: [
    (#"{"#, "line 1"), (#"{"format": 2}"#, "$.format"), (#"{"format": 1, "fromat": 1}"#, "Did you mean \"format\""),
    (#"{"format": 1, "format": 1}"#, "comes twice"),
    (#"{"format": 1, "source": "V1", "destination": "V2"}"#, "neither"),
    (#"{"format": 1, "source": "V7", "destination": "V2", "remove": ["Junk"]}"#, "V1, V2"),
    (#"{"format": 1, "destination": "V2", "remove": ["Junk"]}"#, "$.source"),
    (#"{"format": 1, "source": "V1", "destination": "V2", "remove": ["Jnk"]}"#, "Did you mean \"Junk\""),
    (#"{"format": 1, "source": "V1", "destination": "V2", "entities": {}}"#, "a list is expected"),
    (oneEntity(#""attributes": {"nam": "1"}"#), "Did you mean \"name\""),
    (oneEntity(#""attributes": {"name": 5}"#), "$.entities[0].attributes.name"),
    (oneEntity(#""attributes": {"name": {"copy": "nme"}}"#), "Did you mean \"name\""),
    (oneEntity(#""attributes": {"age": {"copy": "age"}}"#), "cannot be copied"),
    (oneEntity(#""attributes": {"age": {"constant": "x"}}"#), "no constant"),
    (oneEntity(#""attributes": {"firm": "1"}"#), "no stored attribute"),
    (oneEntity(#""attributes": {"name": "upper(nme)"}"#), "character 7"),
    (oneEntity(#""filter": "1; 2""#), "$.entities[0].filter"),
    (oneEntity(#""attributes": {"name": "system('x')"}"#), "expression-unsupported"),
    (oneEntity(#""relationships": {"firm": {"madeBy": "Nobody"}}"#), "Nobody"),
    (oneEntity(#""relationships": {"firm": {"through": "firm"}}"#), "do not make"),
    (
      oneEntity(#""attributes": {"age": "1"}, "relationships": {"address": "firm"}"#),
      "$.entities[0].relationships.address"
    ),
    (
      oneEntity(#""attributes": {"age": "1"}, "relationships": {"address": {"madeBy": "PersonToPerson"}}"#),
      "$.entities[0].relationships.address"
    ),
    (oneEntity(#""name": "Firm""#), "$.entities[0].name: \"Firm\" is the name of another entity"),
    (
      #"{"format": 1, "source": "V1", "destination": "V2", "entities": [{"source": "Firm", "destination": "Firm"}, "#
        + #"{"source": "Firm", "destination": "Firm"}]}"#, "$.entities[1]: another entity mapping has the name"
    ),
    (oneEntity(#""rest": "some""#), "infer"), (oneEntity(#""userInfo": {"a": 1}"#), "userInfo.a"),
    (oneEntity(#""source": "V1""#), "comes twice"), (oneEntity(""), "age"),
    (String(repeating: "[", count: 100_000), "nested"), ("\u{0}", "line 1"), (#""\ud800""#, "surrogate"), ("", "ends"),
  ])
  func errorsSayWhereAndWhat(text: String, word: String) throws {
    let bundle = try Self.bundle()
    let error = try #require(throws: MigrationError.self) { try Self.file(text).mappingModel(in: bundle) }
    #expect(error.description.contains(word), "\(error)")
  }

  @Test func mutilatedFilesNeverTrap() throws {
    let bundle = try Self.bundle()
    let seed: UInt64 = 0x6D61_7070
    print("seed \(seed)")
    var generator = SeededGenerator(seed: seed)
    let bytes = Array(Self.good.utf8)
    for _ in 0..<1500 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let place = Int.random(in: 0..<changed.count, using: &generator)
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: changed[place] = UInt8.random(in: 0...255, using: &generator)
        case 1: changed.remove(at: place)
        default: changed.insert(bytes.randomElement(using: &generator) ?? 0, at: place)
        }
      }
      do {
        let mapping = try MappingFile(bytes: changed).mappingModel(in: bundle)
        try mapping.check()
      } catch {
        #expect(
          ["mapping-invalid", "mapping-stale", "expression-unsupported", "mapping-not-inferable"]
            .contains(MigrationError(any: error).code),
          "\(error)")
      }
    }
  }
}

/// A file with one entity mapping, in which `age` cannot be inferred unless it is given.
private func oneEntity(_ content: String) -> String {
  let start =
    #"{"format": 1, "source": "V1", "destination": "V2", "entities": [{"source": "Person", "destination": "Person""#
  return start + (content.isEmpty ? "" : ", " + content) + "}]}"
}
