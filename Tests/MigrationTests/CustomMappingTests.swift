import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import TestSupport
import Testing

/// What custom mappings make of the records: splits, merges, filters, expressions and the relationships between them.
struct CustomMappingTests {
  /// A mapping model from entity mappings, named by source and destination.
  static func custom(
    _ old: ManagedObjectModel, _ new: ManagedObjectModel, _ mappings: EntityMapping...
  ) -> MappingModel {
    MappingModel(name: "custom", origin: .code, source: old, destination: new, entityMappings: mappings)
  }

  /// `PersonToAddress` from `Person` to `Address`.
  static func map(
    _ source: String, _ destination: String, filter: String? = nil, _ values: [PropertyPath: PropertyMapping.Value],
    policy: String? = nil
  ) -> EntityMapping {
    EntityMapping(
      name: "\(source)To\(destination)", kind: .custom, source: source, destination: destination,
      propertyMappings: values.sorted { $0.key.description < $1.key.description }.map { PropertyMapping($0, $1) },
      policyClassName: policy, sourceFilter: filter.map { .sql($0) })
  }

  static func options(_ mapping: MappingModel) -> Migrator.Options {
    var options = Migrator.Options()
    options.mappings = [mapping]
    return options
  }

  static let oldPeople = model(
    entity(
      "Person", attribute("name"), attribute("street"), attribute("town"), toOne("boss", "Person", inverse: "staff"),
      toMany("staff", "Person", inverse: "boss", ordered: true)))
  static let newPeople = model(
    entity("Address", attribute("line"), toOne("person", "Person", inverse: "address")),
    entity(
      "Person", attribute("name"), toOne("address", "Address", inverse: "person"),
      toOne("boss", "Person", inverse: "staff"),
      toMany("staff", "Person", inverse: "boss", ordered: true), toOne("bossAddress", "Address")))

  @Test func oneRecordBecomesTwo() throws {
    let scene = try MigrationScene(
      Self.oldPeople,
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSTREET, ZTOWN, ZBOSS, Z_FOK_BOSS) VALUES
        (1, 1, 4, 'Ada', 'Long Lane', 'Linz', NULL, NULL), (2, 1, 1, 'Bob', NULL, 'Graz', 1, 20),
        (5, 1, 1, 'Cid', 'Mill''s', NULL, 1, 10)
      """)
    let mapping = Self.custom(
      Self.oldPeople, Self.newPeople,
      Self.map(
        "Person", "Person",
        [
          "name": .copy("name"), "boss": .relationship("boss"), "staff": .relationship("staff"),
          "address": .destinations(mapping: "PersonToAddress", of: .record),
          "bossAddress": .destinations(mapping: "PersonToAddress", of: .relationship("boss")),
        ]),
      Self.map(
        "Person", "Address", filter: "street IS NOT NULL",
        ["line": .expression(.sql("street || ifnull(', ' || upper(town), '')"))]))
    let result = try scene.migrate(try bundle(Self.oldPeople, Self.newPeople), options: Self.options(mapping))
    #expect(
      try scene.rows("SELECT Z_PK, Z_ENT, ZLINE, ZPERSON FROM ZADDRESS ORDER BY 1")
        == ["1|1|Long Lane, LINZ|1", "5|1|Mill's|5"])
    #expect(
      try scene.rows("SELECT Z_PK, Z_OPT, ZNAME, ZADDRESS, ZBOSS, ZBOSSADDRESS FROM ZPERSON ORDER BY 1")
        == ["1|4|Ada|1|NULL|NULL", "2|1|Bob|NULL|1|1", "5|1|Cid|5|1|1"])
    let store = try PersistentStore(opening: scene.store, model: Self.newPeople)
    #expect(try store.destinationKeys(of: "staff", entity: "Person", primaryKey: 1) == [5, 2])
    try store.close()
    #expect(result.steps.first?.entities.map { "\($0.entity) \($0.rows)" } == ["Address 2", "Person 3"])
    #expect(result.steps.first?.filteredRows == [:])
    #expect(try scene.rows("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1") == ["Address|5", "Person|5"])
  }

  @Test func hierarchiesBecomeOne() throws {
    let old = model(
      entity("Cat", attribute("name"), toMany("toys", "Toy", inverse: "cats"), toOne("home", "House", inverse: "cats")),
      entity("Dog", attribute("call"), toOne("foe", "Cat")), entity("Toy", toMany("cats", "Cat", inverse: "toys")),
      entity("House", toMany("cats", "Cat", inverse: "home")))
    let new = model(
      entity("Pet", attribute("name"), toOne("foe", "Pet")),
      entity("Cat", toMany("toys", "Toy", inverse: "cats"), toOne("home", "House", inverse: "cats"), parent: "Pet"),
      entity("Dog", parent: "Pet"), entity("Toy", toMany("cats", "Cat", inverse: "toys")),
      entity("House", toMany("cats", "Cat", inverse: "home")))
    let before = try StoreLayout(old)
    func number(_ name: String) -> Int { before.entity(named: name)?.number ?? 0 }
    let join = try #require(before.joinTables.first)
    guard case .toManyByJoinTable(_, let cat, let toy, _) = before.storage(of: "toys", in: "Cat") else {
      Issue.record("no join table")
      return
    }
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZCAT (Z_PK, Z_ENT, Z_OPT, ZNAME, ZHOME) VALUES (1, \(number("Cat")), 1, 'Tom', 3), (2, \(number("Cat")), 1, 'Kit', NULL)",
      "INSERT INTO ZDOG (Z_PK, Z_ENT, Z_OPT, ZCALL, ZFOE) VALUES (1, \(number("Dog")), 1, 'Rex', 2), (2, \(number("Dog")), 1, 'Bo', NULL)",
      "INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT) VALUES (8, \(number("Toy")), 1)",
      "INSERT INTO ZHOUSE (Z_PK, Z_ENT, Z_OPT) VALUES (3, \(number("House")), 1)",
      "INSERT INTO \(join.name) (\(cat), \(toy)) VALUES (2, 8), (1, 8)")
    let mapping = Self.custom(
      old, new,
      Self.map(
        "Cat", "Cat", ["name": .copy("name"), "toys": .relationship("toys"), "home": .relationship("home")]),
      Self.map("Dog", "Dog", ["name": .copy("call"), "foe": .relationship("foe")]),
      Self.map("Toy", "Toy", ["cats": .relationship("cats")]),
      Self.map("House", "House", ["cats": .relationship("cats")]))
    try scene.migrate(try bundle(old, new), options: Self.options(mapping))
    let store = try PersistentStore(opening: scene.store, model: new)
    let pets = try store.records(of: "Pet")
    #expect(pets.map { "\($0.primaryKey) \($0.entityName)" } == ["1 Cat", "2 Cat", "3 Dog", "4 Dog"])
    #expect(pets.map { $0.values["name"] } == [.string("Tom"), .string("Kit"), .string("Rex"), .string("Bo")])
    #expect(pets[2].toOne["foe"] == RecordReference(entityName: "Cat", primaryKey: 2))
    #expect(try store.destinationKeys(of: "cats", entity: "Toy", primaryKey: 8) == [1, 2])
    #expect(try store.destinationKeys(of: "cats", entity: "House", primaryKey: 3) == [1])
    try store.close()
    #expect(try scene.rows("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Pet'") == ["4"])
  }

  @Test func oneRecordBecomesTwoOfOneHierarchy() throws {
    let old = model(entity("Item", attribute("a"), attribute("b")))
    let new = model(entity("Part", attribute("text"), toOne("other", "Part")))
    let scene = try MigrationScene(
      old, "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZA, ZB) VALUES (1, 1, 1, 'a1', 'b1'), (3, 1, 1, 'a3', NULL)")
    var second = Self.map("Item", "Part", filter: "b IS NOT NULL", ["text": .copy("b")])
    second.name = "Second"
    let mapping = Self.custom(
      old, new,
      Self.map("Item", "Part", ["text": .copy("a"), "other": .destinations(mapping: "Second", of: .record)]), second)
    try scene.migrate(try bundle(old, new), options: Self.options(mapping))
    #expect(
      try scene.rows("SELECT Z_PK, ZTEXT, ZOTHER FROM ZPART ORDER BY 1") == ["1|a1|4", "3|a3|NULL", "4|b1|NULL"])
    #expect(try scene.rows("SELECT Z_MAX FROM Z_PRIMARYKEY") == ["6"])
  }

  @Test func filteredRecordsAreCountedAndReferencesToThemCut() throws {
    let old = model(
      entity(
        "A", attribute("n", .integer32), toOne("next", "A", inverse: "before"), toMany("before", "A", inverse: "next")))
    let new = model(
      entity(
        "A", attribute("n", .integer32), attribute("x"), toOne("next", "A", inverse: "before"),
        toMany("before", "A", inverse: "next")))
    let scene = try MigrationScene(
      old, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZN, ZNEXT) VALUES (1, 1, 1, 5, 2), (2, 1, 1, 50, 3), (3, 1, 1, NULL, 1)"
    )
    let mapping = Self.custom(
      old, new,
      Self.map(
        "A", "A", filter: "n < 10 OR n IS NULL",
        ["n": .copy("n"), "next": .relationship("next"), "before": .relationship("before")]))
    let result = try scene.migrate(try bundle(old, new), options: Self.options(mapping))
    #expect(try scene.rows("SELECT Z_PK, ZNEXT FROM ZA ORDER BY 1") == ["1|NULL", "3|1"])
    #expect(result.steps.first?.filteredRows == ["A": 1])
  }

  @Test func keyPathsAndFunctions() throws {
    let old = model(
      entity("Shop", attribute("name"), toMany("sales", "Sale", inverse: "shop")),
      entity(
        "Sale", attribute("price", .double), attribute("at", .date), attribute("order", .integer16),
        toOne("shop", "Shop", inverse: "sales")))
    let new = model(
      entity(
        "Shop", attribute("name"), attribute("count", .integer32), attribute("sum", .double), attribute("key", .uuid),
        attribute("top", .double)),
      entity(
        "Sale", attribute("label"), attribute("year", .integer16), attribute("order", .integer32),
        attribute("now", .date)))
    let scene = try MigrationScene(
      old, "INSERT INTO ZSHOP (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 2, 1, 'A''s'), (2, 2, 1, 'B')",
      "INSERT INTO ZSALE (Z_PK, Z_ENT, Z_OPT, ZPRICE, ZAT, ZORDER, ZSHOP) VALUES (1, 1, 1, 2.5, 0, 7, 1), (2, 1, 1, 4, 31622400, NULL, 1), (3, 1, 1, 1, NULL, 9, NULL)"
    )
    let mapping = Self.custom(
      old, new,
      Self.map(
        "Shop", "Shop",
        [
          "name": .copy("name"), "count": .expression(.sql("count(sales)")),
          "sum": .expression(.sql("ifnull(sum(sales.price), 0)")), "key": .expression(.sql("uuid()")),
          "top": .expression(.sql("max(max(sales.price), 3)")),
        ]),
      Self.map(
        "Sale", "Sale",
        [
          "label": .expression(.sql("shop.name || ' \"it''s\" ' || [price] /* not \"name\" */")),
          "year": .expression(.sql("CAST(strftime('%Y', at + 978307200, 'unixepoch') AS INTEGER)")),
          "order": .expression(.sql("CASE WHEN \"order\" IN (7, 8) THEN `order` * 2 ELSE coalesce(order, -1) END")),
          "now": .expression(.sql("NSCoreDataNow()")),
        ]))
    try scene.migrate(try bundle(old, new), options: Self.options(mapping))
    #expect(
      try scene.rows("SELECT ZNAME, ZCOUNT, ZSUM, ZTOP, length(ZKEY), typeof(ZKEY) FROM ZSHOP ORDER BY Z_PK")
        == ["A's|2|6.5|4.0|16|blob", "B|0|0.0|NULL|16|blob"])
    #expect(try scene.rows("SELECT count(DISTINCT ZKEY) FROM ZSHOP") == ["2"])
    #expect(
      try scene.rows("SELECT ZLABEL, ZYEAR, ZORDER FROM ZSALE ORDER BY Z_PK")
        == ["A's \"it's\" 2.5|2001|14", "A's \"it's\" 4.0|2002|-1", "NULL|NULL|9"])
  }

  @Test func historyAndForeignTablesFollow() throws {
    let old = model(entity("Item", attribute("a")), entity("Zero", attribute("a")))
    let new = model(entity("Item", attribute("a")))
    let scene = try MigrationScene(
      old, "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (4, 1, 1, 'i')",
      "INSERT INTO ZZERO (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, 'z')",
      "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZCOLUMNS BLOB)",
      "INSERT INTO ACHANGE VALUES (1, 16001, 1, 4, NULL), (2, 16001, 2, 1, NULL)")
    let mapping = Self.custom(
      old, new, Self.map("Item", "Item", ["a": .copy("a")]), Self.map("Zero", "Item", ["a": .copy("a")]))
    try scene.migrate(try bundle(old, new), options: Self.options(mapping))
    #expect(try scene.rows("SELECT Z_PK, ZA FROM ZITEM ORDER BY 1") == ["4|i", "5|z"])
    #expect(try scene.rows("SELECT Z_PK, ZENTITY, ZENTITYPK FROM ACHANGE") == ["1|1|4", "2|1|5"])
  }

  // MARK: Errors

  @Test(arguments: [
    ("oops(name)", "expression-unsupported", "oops"), ("nam || 'x'", "mapping-invalid", "Did you mean \"name\""),
    ("name; DROP TABLE ZPERSON", "mapping-invalid", "character 5"),
    ("(SELECT ZNAME FROM ZPERSON)", "mapping-invalid", "SELECT"), ("name ||", "mapping-invalid", "SQLite"),
    ("load_extension('x')", "expression-unsupported", "load_extension"), ("staff", "mapping-invalid", "count(staff)"),
    ("randomblob(1000000000)", "expression-unsupported", "uuid()"), ("'open", "mapping-invalid", "no end"),
    ("printf('%1000000d', 1)", "mapping-invalid", "three digits"), ("count(name)", "mapping-invalid", "to-many"),
    ("boss.boss.boss.boss.boss.boss.boss.boss.boss.name", "mapping-invalid", "more than 8"),
    ("?1", "mapping-invalid", "parameters"),
    ("sqlite_master.sql", "mapping-invalid", "no stored property"), ("abs(1, 2)", "mapping-invalid", "SQLite"),
    ("lower(name", "mapping-invalid", "not closed"), ("name.x", "mapping-invalid", "followed"),
  ])
  func wrongExpressionsAreRefusedBeforeTheStart(text: String, code: String, word: String) throws {
    let scene = try MigrationScene(
      Self.oldPeople, "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'secret')")
    let mapping = Self.custom(
      Self.oldPeople, Self.newPeople, Self.map("Person", "Person", ["name": .expression(.sql(text))]))
    let before = try FolderContents(of: scene.folder.path)
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.oldPeople, Self.newPeople), options: Self.options(mapping))
    }
    #expect(error.code == code, "\(error)")
    #expect(error.description.contains(word), "\(error)")
    #expect(error.detail.contains("PersonToPerson") && error.propertyName == "name")
    #expect(!error.description.contains("secret"))
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test(arguments: [
    (AttributeType.integer16, "name"), (.integer16, "70000"), (.boolean, "2"), (.double, "name"),
    (.date, "'2020-01-01'"),
    (.uuid, "name"), (.string, "x'00'"), (.binary, "name"), (.integer64, "1.5"),
  ])
  func valuesThatDoNotFitTheirTypeAreCountedAndNotTold(type: AttributeType, text: String) throws {
    let new = model(entity("Person", attribute("value", type)))
    let scene = try MigrationScene(
      Self.oldPeople, "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'secret'), (4, 1, 1, 'hidden')")
    let mapping = Self.custom(Self.oldPeople, new, Self.map("Person", "Person", ["value": .expression(.sql(text))]))
    let before = try FolderContents(of: scene.folder.path)
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.oldPeople, new), options: Self.options(mapping))
    }
    #expect(error.kind == .dataViolation && error.propertyName == "value", "\(error)")
    #expect(error.detail.contains("2 records") && error.detail.contains("(1, 4)"), "\(error)")
    #expect(!error.description.contains("secret"))
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func mandatoryAndUniqueAreChecked() throws {
    let new = model(
      entity("Person", attribute("name", optional: false), attribute("town"), unique: [["town"]]))
    func failure(_ values: [PropertyPath: PropertyMapping.Value]) throws -> MigrationError {
      let scene = try MigrationScene(
        Self.oldPeople,
        "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZTOWN) VALUES (1, 1, 1, 'a', 'Linz'), (2, 1, 1, NULL, 'linz')")
      let mapping = Self.custom(Self.oldPeople, new, Self.map("Person", "Person", values))
      return try #require(throws: MigrationError.self) {
        try scene.migrate(try bundle(Self.oldPeople, new), options: Self.options(mapping))
      }
    }
    let missing = try failure(["name": .expression(.sql("upper(name)")), "town": .copy("town")])
    #expect(missing.kind == .dataViolation && missing.propertyName == "name" && missing.detail.contains("(2)"))
    let double = try failure(["name": .expression(.sql("'x'")), "town": .expression(.sql("lower(town)"))])
    #expect(double.kind == .constraintViolation, "\(double)")
  }

  @Test func wrongMappingsAreRefused() throws {
    func detail(_ mappings: EntityMapping...) throws -> String {
      let mapping = MappingModel(
        name: "custom", origin: .code, source: Self.oldPeople, destination: Self.newPeople, entityMappings: mappings)
      return try #require(throws: MigrationError.self) { try mapping.check() }.description
    }
    #expect(try detail(Self.map("Persn", "Person", [:])).contains("Did you mean \"Person\""))
    #expect(try detail(Self.map("Person", "Person", ["nme": .null])).contains("Did you mean \"name\""))
    #expect(
      try detail(Self.map("Person", "Person", ["boss": .destinations(mapping: "x", of: .record)])).contains(
        "no entity mapping \"x\""))
    #expect(
      try detail(Self.map("Person", "Person", ["boss": .expression(.sql("1"))])).contains("cannot be made by an SQL"))
    #expect(try detail(Self.map("Person", "Person", [:], policy: "App.Gone")).contains("App.Gone"))
    #expect(
      try detail(Self.map("Person", "Person", filter: "town = ", [:])).contains("SQLite cannot compile"))
  }
}
