import GRDB
import ManagedObjectModel
import PersistentStore
import Testing

@Suite struct DerivedAttributeTests {
  /// An open database in memory with the tables of a layout and Core Data's functions.
  private func database(_ layout: StoreLayout, now: Double = 5) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.prepareDatabase { database in
      for function in CoreDataFunctions.all(now: { now }) { database.add(function: function) }
    }
    let queue = try DatabaseQueue(configuration: configuration)
    try queue.write { database in for statement in layout.statements { try database.execute(sql: statement) } }
    return queue
  }

  @Test(
    arguments: [
      ("now()", .now), ("name", .keyPath(["name"])), ("author.name", .keyPath(["author", "name"])),
      ("count:(pages)", .function("count", ["pages"])), ("pages.@count", .function("count", ["pages"])),
      ("sum:(pages.number)", .function("sum", ["pages", "number"])),
      ("pages.@sum.number", .function("sum", ["pages", "number"])),
      ("pages.number.@sum", .function("sum", ["pages", "number"])),
      ("canonical:(name)", .function("canonical", ["name"])), ("", nil), ("a..b", nil), ("f:(a, b)", nil), ("(", nil),
      ("@count", nil), ("a'b", nil),
    ] as [(String, DerivationExpression?)])
  func readsExpressions(text: String, expected: DerivationExpression?) {
    #expect(DerivationExpression(text) == expected)
  }

  @Test func countsThroughAColumnAsCoreDataWritesIt() throws {
    let layout = try layout(
      Entity(
        name: "Book",
        properties: [
          toMany("pages", "Page", inverse: "book"), attribute("pagesCount", .integer64, derived: "pages.@count"),
        ]),
      Entity(name: "Page", properties: [toOne("book", "Book", inverse: "pages")]))
    #expect(
      layout.triggers.map(\.name) == [
        "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_INSERT", "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_UPDATE_INCREMENT",
        "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_UPDATE_DECREMENT", "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_DELETE",
        "Z_DA_ZBOOK_Book_pagesCount_SOURCE_INSERT",
      ])
    #expect(
      layout.triggers[3].statement == """
        CREATE TRIGGER Z_DA_ZPAGE_Book_pagesCount_PARAMETER_DELETE AFTER DELETE ON ZPAGE FOR EACH ROW \
        WHEN (OLD.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZPAGESCOUNT - 1 WHERE Z_PK = OLD.ZBOOK; SELECT \
        NSCoreDataDATriggerUpdatedAffectedObjectValue('ZBOOK', Z_ENT, Z_PK, 'pagesCount', ZPAGESCOUNT) FROM ZBOOK \
        WHERE Z_PK = OLD.ZBOOK; END
        """)
    try database(layout).write { (database) throws in
      func count(_ key: Int) throws -> Int? {
        try Int.fetchOne(database, sql: "SELECT ZPAGESCOUNT FROM ZBOOK WHERE Z_PK = ?", arguments: [key])
      }
      try database.execute(sql: "INSERT INTO ZBOOK (Z_PK, Z_ENT) VALUES (1, 1), (2, 1)")
      #expect(try count(1) == 0)
      try database.execute(sql: "INSERT INTO ZPAGE (Z_PK, Z_ENT, ZBOOK) VALUES (1, 2, 1), (2, 2, 1), (3, 2, NULL)")
      #expect(try count(1) == 2)
      try database.execute(sql: "UPDATE ZPAGE SET ZBOOK = 2 WHERE Z_PK = 1")
      #expect(try count(1) == 1)
      #expect(try count(2) == 1)
      try database.execute(sql: "DELETE FROM ZPAGE")
      #expect(try count(1) == 0)
      #expect(try count(2) == 0)
    }
  }

  @Test func countsThroughAJoinTableAndForSubentities() throws {
    let layout = try layout(
      Entity(name: "Base"),
      Entity(
        name: "List", parentName: "Base",
        properties: [
          toMany("tags", "Tag", inverse: "lists"), attribute("tagCount", .integer16, derived: "count:(tags)"),
        ]),
      Entity(name: "Tag", properties: [toMany("lists", "List", inverse: "tags")]))
    #expect(layout.triggers.last?.statement.contains("WHEN 2 <= NEW.Z_ENT AND NEW.Z_ENT <= 2") == true)
    try database(layout).write { (database) throws in
      try database.execute(
        sql: """
          INSERT INTO ZBASE (Z_PK, Z_ENT) VALUES (1, 1), (2, 2);
          INSERT INTO Z_2TAGS (Z_2LISTS, Z_3TAGS) VALUES (1, 7), (2, 7), (2, 8);
          DELETE FROM Z_2TAGS WHERE Z_3TAGS = 8
          """)
      #expect(try Int?.fetchAll(database, sql: "SELECT ZTAGCOUNT FROM ZBASE ORDER BY Z_PK") == [nil, 1])
    }
  }

  @Test func copiesSumsAndTellsTheTime() throws {
    let layout = try layout(
      Entity(
        name: "Order",
        properties: [
          toOne("client", "Client"), toMany("lines", "Line", inverse: "order"), attribute("title", .string),
          attribute("clientName", .string, derived: "client.name"),
          attribute("total", .integer64, derived: "sum:(lines.price)"),
          attribute("saved", .date, derived: "now()"), attribute("lower", .string, derived: "lowercase:(title)"),
          attribute("plain", .string, derived: "canonical:(title)"),
        ]),
      Entity(name: "Client", properties: [attribute("name", .string)]),
      Entity(name: "Line", properties: [attribute("price", .integer64), toOne("order", "Order", inverse: "lines")]))
    #expect(
      layout.notes == [LayoutNote(kind: .derivedAttributeWithoutTrigger, entityName: "Order", subject: "plain")])
    #expect(
      layout.triggers.first { $0.name == "Z_DA_ZORDER_Order_saved_UPDATE" }?.statement == """
        CREATE TRIGGER Z_DA_ZORDER_Order_saved_UPDATE AFTER UPDATE OF Z_OPT ON ZORDER FOR EACH ROW BEGIN UPDATE ZORDER \
        SET ZSAVED = NSCoreDataNow() WHERE Z_PK = NEW.Z_PK; SELECT \
        NSCoreDataDATriggerUpdatedAffectedObjectValue('ZORDER', Z_ENT, Z_PK, 'saved', ZSAVED) FROM ZORDER \
        WHERE Z_PK = NEW.Z_PK; END
        """)
    try database(layout, now: 77).write { (database) throws in
      try database.execute(
        sql: """
          INSERT INTO ZCLIENT (Z_PK, Z_ENT, ZNAME) VALUES (1, 1, 'Ada'), (2, 1, 'Bob');
          INSERT INTO ZORDER (Z_PK, Z_ENT, ZCLIENT, ZTITLE) VALUES (1, 3, 1, 'HELLO');
          INSERT INTO ZLINE (Z_PK, Z_ENT, ZPRICE, ZORDER) VALUES (1, 2, 10, 1), (2, 2, 5, 1);
          UPDATE ZLINE SET ZPRICE = 11 WHERE Z_PK = 1;
          DELETE FROM ZLINE WHERE Z_PK = 2;
          UPDATE ZCLIENT SET ZNAME = 'Eve' WHERE Z_PK = 1
          """)
      let row = try #require(try Row.fetchOne(database, sql: "SELECT ZCLIENTNAME, ZTOTAL, ZSAVED, ZLOWER FROM ZORDER"))
      #expect(row[0] == "Eve")
      #expect(row[1] == 11)
      #expect(row[2] == 77.0)
      #expect(row[3] == "hello")
      try database.execute(sql: "UPDATE ZORDER SET ZCLIENT = 2")
      #expect(try String.fetchOne(database, sql: "SELECT ZCLIENTNAME FROM ZORDER") == "Bob")
    }
  }
}
