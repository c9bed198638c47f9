import ManagedObjectModel
import PersistentStore
import Testing

@Suite struct StoreLayoutTests {
  // MARK: Numbering

  @Test func numbersDepthFirstWithoutRegardToCase() throws {
    let layout = try layout(
      Entity(name: "ComputeSyncAttributes"), Entity(name: "ComputedAssetAttributes"), Entity(name: "apple"),
      Entity(name: "Zebra", parentName: "apple"), Entity(name: "aardvark", parentName: "apple"),
      Entity(name: "Mid", parentName: "aardvark"))
    #expect(
      layout.entities.map(\.name)
        == ["apple", "aardvark", "Mid", "Zebra", "ComputedAssetAttributes", "ComputeSyncAttributes"])
    #expect(layout.entities.map(\.number) == [1, 2, 3, 4, 5, 6])
    #expect(layout.entities.map(\.parentNumber) == [0, 1, 2, 1, 0, 0])
    #expect(layout.entities.map(\.numbers) == [1...4, 2...3, 3...3, 4...4, 5...5, 6...6])
    #expect(layout.entities.map(\.rootName).prefix(4) == ["apple", "apple", "apple", "apple"])
    #expect(layout.tables.map(\.name) == ["ZAPPLE", "ZCOMPUTEDASSETATTRIBUTES", "ZCOMPUTESYNCATTRIBUTES"])
    #expect(layout.table(of: "Mid")?.name == "ZAPPLE")
    #expect(layout.entity(numbered: 4)?.name == "Zebra")
    #expect(layout.entity(numbered: 0) == nil)
    #expect(layout.entity(numbered: 7) == nil)
    #expect(layout.entity(numbered: .min) == nil)
  }

  @Test func refusesCirclesAndMissingEntities() {
    #expect(throws: PersistentStoreError.self) {
      try layout(Entity(name: "A", parentName: "B"), Entity(name: "B", parentName: "A"), Entity(name: "C"))
    }
    #expect(throws: PersistentStoreError.self) { try layout(Entity(name: "A", parentName: "Gone")) }
    #expect(throws: PersistentStoreError.self) {
      try layout(Entity(name: "A", properties: [toOne("b", "Gone")]))
    }
    #expect(throws: PersistentStoreError.self) {
      try layout(Entity(name: "A", properties: [attribute("x\0y", .string)]))
    }
  }

  @Test(arguments: [256, 257, 5000]) func boundsTheDepthOfAHierarchy(depth: Int) throws {
    let entities = (0..<depth).map { index in
      Entity(
        name: "E\(index)", parentName: index == 0 ? nil : "E\(index - 1)",
        properties: index % 100 == 0 ? [attribute("a\(index)", .integer16)] : [])
    }
    guard depth <= 256 else {
      #expect(throws: PersistentStoreError.self) { try StoreLayout(ManagedObjectModel(entities: entities)) }
      return
    }
    let layout = try StoreLayout(ManagedObjectModel(entities: entities))
    #expect(layout.entities.first?.numbers == 1...depth)
    #expect(layout.tables.count == 1)
  }

  // MARK: Columns

  @Test func declaresTypesAndOrdersColumnsInGroups() throws {
    let layout = try layout(
      Entity(
        name: "Thing",
        properties: [
          attribute("zeta", .integer64), attribute("alpha", .boolean), attribute("blob", .binary),
          attribute("shape", .transformable), attribute("ident", .uuid), attribute("text", .string),
          attribute("link", .uri), attribute("price", .decimal), attribute("when", .date),
          attribute("ratio", .double), attribute("weight", .float), attribute("hidden", .string, transient: true),
          toOne("owner", "Thing"),
          .fetchedProperty(FetchedProperty(traits: PropertyTraits(name: "fetched"), fetchRequest: nil)),
        ]))
    #expect(
      layout.tables[0].statement == """
        CREATE TABLE ZTHING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZALPHA INTEGER, ZZETA INTEGER, \
        ZOWNER INTEGER, ZRATIO FLOAT, ZWEIGHT FLOAT, ZWHEN TIMESTAMP, ZPRICE DECIMAL, ZTEXT VARCHAR, ZIDENT BLOB, \
        ZLINK VARCHAR, ZSHAPE BLOB, ZBLOB BLOB )
        """)
    #expect(layout.storage(of: "hidden", in: "Thing") == nil)
    #expect(layout.storage(of: "fetched", in: "Thing") == nil)
    #expect(
      layout.role(ofColumn: "zprice", table: "ZTHING")
        == .attribute(PropertyKey(entityName: "Thing", name: "price"), type: .decimal))
  }

  @Test func givesSuffixesInTheOrderOfNumbers() throws {
    let layout = try layout(
      Entity(name: "Base"),
      Entity(name: "Album", parentName: "Base", properties: [attribute("state", .integer16)]),
      Entity(name: "Fetching", parentName: "Base", properties: [attribute("state", .integer32)]),
      Entity(
        name: "Last", parentName: "Fetching", properties: [attribute("STATE", .string), attribute("_pk", .string)])
    )
    #expect(
      layout.tables[0].columns.map(\.name)
        == ["Z_PK", "Z_ENT", "Z_OPT", "ZSTATE", "ZSTATE1", "ZSTATE2", "Z_PK1"])
    guard case .attribute(let columns) = layout.storage(of: "state", in: "Last") else {
      Issue.record("no storage")
      return
    }
    #expect(columns.map(\.name) == ["ZSTATE1"], "the nearest ancestor's, by its own name")
  }

  @Test func addsEntityAndOrderColumns() throws {
    let layout = try layout(
      Entity(name: "Child", properties: [toOne("parent", "Parent", inverse: "children"), toOne("other", "Leaf")]),
      Entity(name: "Leaf"),
      Entity(name: "Parent", properties: [toMany("children", "Child", inverse: "parent", ordered: true)]),
      Entity(name: "Special", parentName: "Parent"))
    #expect(
      layout.tables[0].columns.map(\.name)
        == ["Z_PK", "Z_ENT", "Z_OPT", "ZOTHER", "ZPARENT", "Z3_PARENT", "Z_FOK_PARENT"])
    #expect(
      layout.storage(of: "parent", in: "Child")
        == .toOne(column: "ZPARENT", entityColumn: "Z3_PARENT", orderColumn: "Z_FOK_PARENT"))
    #expect(
      layout.storage(of: "children", in: "Special")
        == .toManyByColumn(table: "ZCHILD", column: "ZPARENT", orderColumn: "Z_FOK_PARENT"))
    #expect(layout.storage(of: "other", in: "Child") == .toOne(column: "ZOTHER", entityColumn: nil, orderColumn: nil))
  }

  @Test func hidesAColumnForOneWayToMany() throws {
    let layout = try layout(
      Entity(name: "Cart", properties: [toMany("items", "Item")]),
      Entity(name: "Gift", parentName: "Item", properties: []),
      Entity(name: "Item", properties: [attribute("count", .integer16)]),
      Entity(name: "Sub", parentName: "Cart"))
    let table = try #require(layout.table(of: "Gift"))
    #expect(table.columns.map(\.name) == ["Z_PK", "Z_ENT", "Z_OPT", "ZCOUNT", "Z1ITEMS"])
    #expect(table.columns.last?.role == .owner(PropertyKey(entityName: "Cart", name: "items")))
    #expect(
      layout.storage(of: "items", in: "Sub") == .toManyByColumn(table: "ZITEM", column: "Z1ITEMS", orderColumn: nil))
    #expect(layout.indexes.contains { $0.statement == "CREATE INDEX ZITEM_Z1ITEMS_INDEX ON ZITEM (Z1ITEMS)" })
  }

  @Test func flattensComposites() throws {
    let place = leaf("inner", .composite, elements: [leaf("deep", .boolean)])
    let layout = try layout(
      Entity(
        name: "Quake",
        properties: [
          attribute("place", .composite, elements: [leaf("latitude", .double), leaf("name", .string), place])
        ]
      ))
    #expect(
      layout.tables[0].columns.dropFirst(3).map { "\($0.name) \($0.type.rawValue)" }
        == ["ZPLACE_INNER_DEEP INTEGER", "ZPLACE_LATITUDE FLOAT", "ZPLACE_NAME VARCHAR"])
    guard case .attribute(let columns) = layout.storage(of: "place", in: "Quake") else {
      Issue.record("no storage")
      return
    }
    #expect(columns.count == 3)
  }

  // MARK: Hostile names

  @Test func quotesWhatIsNotPlain() throws {
    let layout = try layout(
      Entity(
        name: "Ev\"il); DROP TABLE Z_METADATA;--",
        properties: [
          attribute("a\" INTEGER); --", .string), attribute("emoji 😀", .string), attribute("ünïcode", .string),
          toOne("new\nline", "Ev\"il); DROP TABLE Z_METADATA;--"),
        ], uniquenessConstraints: [["emoji 😀"]]))
    let schema = try SQLSchema(layout)
    #expect(schema.tables.keys.sorted().contains("ZEV\"IL); DROP TABLE Z_METADATA;--"))
    #expect(schema.tables.count == 4)
    #expect(schema.tables["Z_METADATA"] != nil)
    let columns = try #require(schema.tables["ZEV\"IL); DROP TABLE Z_METADATA;--"]).columns.map(\.name)
    #expect(columns == layout.tables[0].columns.map(\.name))
    #expect(SQLText.identifier("1A") == "\"1A\"")
    #expect(SQLText.literal("it's\u{0301}'") == "'it''s\u{0301}'''")
    #expect(SQLText.quotedIdentifier("a\"\u{0301}b").unicodeScalars.count { $0 == "\"" } == 4)
  }

  @Test func keepsTablesApartWhoseNamesMeet() throws {
    let layout = try layout(
      Entity(name: "Car"), Entity(name: "car"), Entity(name: "_PrimaryKey"), Entity(name: "_metadata"),
      Entity(name: "CAR_ZX_INDEX"), Entity(name: "X", properties: [toOne("car", "Car")]))
    let schema = try SQLSchema(layout)
    #expect(schema.tables.count == 6 + 3)
    #expect(Set(layout.tables.map(\.name)).count == 6)
  }
}
