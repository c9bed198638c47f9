import Inspector
import LazaretTesting
import ManagedObjectModel
import TestSupport
import Testing

@Suite("Lists of records as queries in SQL")
struct SelectionTests {
  @Test(
    "A list of records is a query in SQL that gives the same rows in the same order",
    arguments: [
      ("Ship", [], ["1", "2", "3", "4", "5"]), ("Ship", [("name__contains", "o")], ["1", "4"]),
      ("Ship", [("name__contains", "0% S")], ["5"]), ("Ship", [("name__contains", "0_")], []),
      ("Ship", [("_search", "R_")], []), ("Ship", [("_search", "R\\")], []), ("Ship", [("_search", "ROSSO")], ["4"]),
      ("Ship", [("name__startswith", "100%")], ["5"]), ("Ship", [("name__endswith", "o_")], []),
      ("Ship", [("tons__lte", "100"), ("name__notnull", "1")], ["1", "5"]),
      ("Ship", [("id", "00112233-4455-6677-8899-aabbccddeeff")], ["1"]), ("Ship", [("launched", "2001-01-02")], ["1"]),
      ("Ship", [("isFast", "true")], ["1"]), ("Ship", [("Z_ENT", "Ferry")], ["4", "5"]),
      ("Ship", [("Z_PK", "3")], ["3"]),
      ("Ship", [("_search", "it's ? a \"quotation\"")], []),
      ("Ship", [("name__not", "Au?rora\u{0}")], ["1", "2", "3", "4", "5"]),
      ("Ship", [("_sort_desc", "name")], ["4", "3", "1", "5", "2"]),
      ("Ship", [("_sort_desc", "Z_PK")], ["5", "4", "3", "2", "1"]),
      ("Ship", [("_columns", "Z_PK,name"), ("_sort", "tons"), ("tons__gte", "0")], ["5", "1", "4", "3"]),
      ("Ferry", [("seats__gt", "80")], ["5"]), ("Ferry", [], ["4", "5"]), ("extra", [("note", "=1+1")], ["1"]),
      ("extra", [("note", "a \"b\", c")], ["2"]), ("extra", [("_sort_desc", "id"), ("_size", "2")], ["3", "2"]),
    ] as [(String, [(String, String)], [String])])
  func lists(name: String, parameters: [(String, String)], keys: [String]) throws {
    let fleet = try Fleet()
    let browsed = try fleet.browse()
    let collection = try browsed.collection(name)
    let wanted = try RecordQuery(parameters.map { (name: $0.0, value: $0.1) }, of: collection)
    let query = try #require(try browsed.selection(of: collection, wanted))
    let result = try browsed.run(query)
    #expect(result.rows.map { $0.first?.text } == keys, "\(query.sql)")
    #expect(result.columns.count == wanted.columns?.count ?? collection.columns.count)
    #expect(try browsed.page(of: collection, wanted).rows.map(\.key.description) == keys)
    withExtendedLifetime(fleet) {}
  }

  @Test(
    "Entities and properties with names of SQLite's keywords can be selected, and what is too long for a query is not one"
  )
  func keywords() throws {
    let folder = try TemporaryFolder()
    let model = ManagedObjectModel(entities: [
      Entity(name: "Order", properties: [Fleet.attribute("group", .string), Fleet.attribute("select", .integer32)])
    ])
    let path = folder.appending("Orders.sqlite")
    try StoreGenerator(model, options: .init(.typical, seed: 2, records: 20)).write(to: path)
    let browsed = try BrowsedStore(path, model: model)
    let order = try browsed.collection("Order")
    let query = try RecordQuery(
      [("group__notnull", "1"), ("_sort", "select"), ("_columns", "group,select")], of: order)
    let selection = try #require(try browsed.selection(of: order, query))
    let expected = try StoreQueryTests.oracle(
      path, "SELECT ZGROUP, ZSELECT FROM ZORDER WHERE ZGROUP IS NOT NULL ORDER BY ZSELECT, Z_PK LIMIT 100")
    let shown = StoreQueryTests.texts(try browsed.run(selection))
    #expect(shown.count == expected.count && !shown.isEmpty)
    #expect(zip(shown, expected).allSatisfy { $0[1] == $1[1] && $1[0].hasPrefix($0[0]) }, "\(selection.sql)")
    let source = try #require(try browsed.querySources().first { $0.name == "Order" })
    #expect(try browsed.run(StoreQuery(source.selection)).rows.count == 20)
    let long = try RecordQuery([("group", String(repeating: "x", count: 5_000))], of: order)
    #expect(try browsed.selection(of: order, long) == nil)
  }
}
