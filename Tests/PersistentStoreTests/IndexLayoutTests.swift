import GRDB
import ManagedObjectModel
import PersistentStore
import Testing

@Suite struct IndexLayoutTests {
  @Test func indexesRelationshipsHierarchiesAndConstraints() throws {
    let layout = try layout(
      Entity(
        name: "Book",
        properties: [attribute("isbn", .string), toOne("author", "Author"), attribute("year", .integer16)],
        uniquenessConstraints: [["isbn"], ["author", "year"], ["gone"]]),
      Entity(
        name: "Novel", parentName: "Book", properties: [attribute("plot", .string)], uniquenessConstraints: [["plot"]]),
      Entity(name: "Author"))
    #expect(
      layout.indexes.map(\.statement) == [
        "CREATE INDEX ZBOOK_ZAUTHOR_INDEX ON ZBOOK (ZAUTHOR)",
        "CREATE INDEX ZBOOK_Z_ENT_INDEX ON ZBOOK (Z_ENT)",
        "CREATE UNIQUE INDEX Z_Book_UNIQUE_isbn ON ZBOOK (ZISBN COLLATE BINARY ASC)",
        "CREATE UNIQUE INDEX Z_Book_UNIQUE_author_year ON ZBOOK (ZAUTHOR COLLATE BINARY ASC, ZYEAR COLLATE BINARY ASC)",
        "CREATE UNIQUE INDEX Z_Novel_UNIQUE_plot ON ZBOOK (ZPLOT COLLATE BINARY ASC)",
      ])
    #expect(layout.notes == [LayoutNote(kind: .constraintLeftOut, entityName: "Book", subject: "gone")])
  }

  @Test func makesFetchIndexes() throws {
    let layout = try layout(
      Entity(
        name: "Note",
        properties: [
          attribute("title", .string), attribute("done", .boolean), attribute("old", .integer16, indexed: true),
          attribute("place", .composite, elements: [leaf("city", .string)]), toMany("tags", "Note"),
        ],
        fetchIndexes: [
          FetchIndex(
            name: "byTitle",
            elements: [
              FetchIndexElement(propertyName: "title", isAscending: false), FetchIndexElement(propertyName: "done"),
            ]),
          FetchIndex(
            name: "open", elements: [FetchIndexElement(propertyName: "title")],
            partialIndexPredicate: "done == NO AND title != nil"),
          FetchIndex(
            name: "odd", elements: [FetchIndexElement(propertyName: "title")],
            partialIndexPredicate: "ANY tags.title BEGINSWITH 'x'"),
          FetchIndex(name: "city", elements: [FetchIndexElement(propertyName: "place.city")]),
          FetchIndex(name: "many", elements: [FetchIndexElement(propertyName: "tags")]),
          FetchIndex(
            name: "expression", elements: [FetchIndexElement(propertyName: nil, expression: "lowercase:(title)")]),
        ], compoundIndexes: [["title", "old"], ["old", "done"], ["title", "done"]]))
    let statements = layout.indexes.filter { if case .fetch = $0.purpose { true } else { false } }.map(\.statement)
    #expect(
      statements == [
        "CREATE INDEX Z_Note_old ON ZNOTE (ZOLD COLLATE BINARY ASC)",
        "CREATE INDEX Z_Note_byTitle ON ZNOTE (ZTITLE COLLATE BINARY DESC, ZDONE COLLATE BINARY ASC)",
        "CREATE INDEX Z_Note_open ON ZNOTE (ZTITLE COLLATE BINARY ASC) WHERE ZDONE = 0 AND ZTITLE IS NOT NULL",
        "CREATE INDEX Z_Note_odd ON ZNOTE (ZTITLE COLLATE BINARY ASC)",
        "CREATE INDEX Z_Note_city ON ZNOTE (ZPLACE_CITY COLLATE BINARY ASC)",
        "CREATE INDEX Z_Note_title_old ON ZNOTE (ZTITLE COLLATE BINARY ASC, ZOLD COLLATE BINARY ASC)",
        "CREATE INDEX Z_Note_old_done ON ZNOTE (ZOLD COLLATE BINARY ASC, ZDONE COLLATE BINARY ASC)",
      ])
    // The index of a relationship alone is the relationship's own.
    #expect(layout.notes.map(\.kind) == [.partialIndexMadeWhole, .indexLeftOut])
    _ = try SQLSchema(layout)
  }

  @Test(
    arguments: [
      ("a == 1", "ZA = 1"), ("a=='it''s'", nil), ("a == \"it's\"", "ZA = 'it''s'"),
      ("a <= -3 AND a>0", "ZA <= -3 AND ZA > 0"),
      ("a == nil", "ZA IS NULL"), ("a != NULL && a <> TRUE", "ZA IS NOT NULL AND ZA <> 1"), ("a < nil", nil),
      ("b == 1", nil), ("a == 1 OR a == 2", nil), ("AND a == 1", nil), ("a == 1 AND", nil),
      ("a == 1; DROP TABLE x", nil),
      ("a == (1)", nil), ("", nil), ("a == 'x\\'", nil), ("a == x", nil),
    ] as [(String, String?)])
  func translatesSimplePredicates(predicate: String, expected: String?) {
    #expect(PartialIndexPredicate.sql(predicate) { $0 == "a" ? "ZA" : nil } == expected)
  }

  @Test func makesSpatialIndexes() throws {
    let elements = ["latitude", "longitude"].map { FetchIndexElement(propertyName: $0, kind: .rTree) }
    let properties = [attribute("latitude", .double), attribute("longitude", .double)]
    let layout = try layout(
      Entity(
        name: "Asset", properties: properties,
        fetchIndexes: [FetchIndex(name: "boundedByRect", elements: elements)]))
    #expect(layout.spatialIndexes.map(\.name) == ["Z_RT_Asset_boundedByRect"])
    #expect(layout.triggers.map(\.name) == ["INSERT", "UPDATE", "DELETE"].map { "Z_RT_Asset_boundedByRect_\($0)" })
    let database = try DatabaseQueue()
    try database.write { (database) throws in
      for statement in layout.statements { try database.execute(sql: statement) }
      try database.execute(
        sql: """
          INSERT INTO ZASSET (Z_PK, Z_ENT, ZLATITUDE, ZLONGITUDE) VALUES (1, 1, 10, 20), (2, 1, 30, 40);
          UPDATE ZASSET SET ZLATITUDE = 12 WHERE Z_PK = 1;
          DELETE FROM ZASSET WHERE Z_PK = 2
          """)
      let found = try Row.fetchAll(
        database, sql: "SELECT Z_PK, ZLATITUDE_MIN, ZLONGITUDE_MAX FROM Z_RT_Asset_boundedByRect")
      #expect(found.count == 1)
      #expect(found.first?[1] == 12.0)
      #expect(found.first?[2] == 20.0)
    }
  }
}
