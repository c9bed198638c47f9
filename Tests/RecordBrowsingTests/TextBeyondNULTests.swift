import GRDB
import Inspector
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Text with a NUL in it, looked at")
struct TextBeyondNULTests {
  /// The names of five ships: alike up to the NUL, and one that has none.
  private static let names = ["Aurora\u{0}One", "Aurora\u{0}Two", "Aurora", "Bo%_\\x", nil]

  private func fleet() throws -> Fleet {
    let fleet = try Fleet()
    let queue = try DatabaseQueue(path: fleet.path.string)
    try queue.write { database in
      for (index, name) in Self.names.enumerated() {
        let value = name.map { "CAST(x'\(Array($0.utf8).hexadecimal)' AS TEXT)" } ?? "NULL"
        try database.execute(sql: "UPDATE ZSHIP SET ZNAME = \(value) WHERE Z_PK = \(index + 1)")
      }
    }
    try queue.close()
    return fleet
  }

  @Test(
    "Filters compare all of it, and look behind the NUL",
    arguments: [
      ("name", "Aurora", [3]), ("name", "Aurora\u{0}One", [1]), ("name__not", "Aurora\u{0}Two", [1, 3, 4, 5]),
      ("name__contains", "ONE", [1]), ("name__contains", "a\u{0}t", [2]), ("name__startswith", "aurora", [1, 2, 3]),
      ("name__startswith", "Aurora\u{0}", [1, 2]), ("name__endswith", "two", [2]), ("name__endswith", "rora", [3]),
      ("name__contains", "%_\\", [4]), ("_search", "two", [2]),
    ])
  func filters(name: String, value: String, keys: [Int]) throws {
    let fleet = try fleet()
    let browsed = try fleet.browse()
    let ship = try browsed.collection("Ship")
    let query = try RecordQuery([(name, value)], of: ship)
    #expect(try browsed.page(of: ship, query).rows.map(\.key.description) == keys.map { "\($0)" })
    // The same list as a query gives the same records.
    let selection = try #require(try browsed.selection(of: ship, query))
    #expect(try browsed.run(selection).rows.count == keys.count)
  }

  @Test("Values, facets, searches and pages have all of it")
  func values() throws {
    let fleet = try fleet()
    let browsed = try fleet.browse()
    let ship = try browsed.collection("Ship")
    let place = try #require(ship.columns.firstIndex { $0.name == "name" })
    let all = try browsed.page(of: ship, RecordQuery())
    #expect(all.rows.map { $0.values[place].text } == Self.names.map { $0 ?? "" })
    #expect(try browsed.bytes(of: "name", key: RecordKey(1), in: ship) == Array("Aurora\u{0}One".utf8))
    let faceted = try browsed.page(of: ship, try RecordQuery([("_facet", "name")], of: ship))
    #expect(faceted.facets.first?.values?.map(\.count) == [1, 1, 1, 1, 1])
    #expect(try browsed.search("Two").finds.flatMap(\.records).map(\.key.description) == ["2"])
    // Page by page, each record comes once.
    var (keys, next): ([String], String?) = ([], nil)
    repeat {
      var query = try RecordQuery([("_sort", "name"), ("_size", "1")], of: ship)
      query.next = next
      let page = try browsed.page(of: ship, query)
      keys += page.rows.map(\.key.description)
      next = page.next
    } while next != nil && keys.count < 10
    #expect(keys == ["5", "3", "1", "2", "4"])
  }

  @Test("What differs behind the NUL is a change, with both values")
  func comparison() throws {
    let fleet = try fleet()
    let other = fleet.folder.appending("Other.sqlite")
    try FileSystem().duplicate(fleet.path, to: other)
    let queue = try DatabaseQueue(path: other.string)
    try queue.write { database in
      try database.execute(
        sql: "UPDATE ZSHIP SET ZNAME = CAST(x'4175726F72610054776F' AS TEXT) WHERE Z_PK = 1")
    }
    try queue.close()
    let comparison = try SideComparison(
      try fleet.browse(), try BrowsedStore(other, model: fleet.model, connections: 2))
    let record = try #require(try comparison.records("Ship", .changed).records.first)
    #expect(record.firstKey?.description == "1")
    let name = try #require(record.properties.first { $0.name == "name" })
    #expect(name.first?.text == "Aurora\u{0}One" && name.second?.text == "Aurora\u{0}Two")
  }

  @Test("A query with a NUL is refused, since SQLite would do what stands before it")
  func query() {
    let error = #expect(throws: PersistentStoreError.self) { try StoreQuery("SELECT 1\u{0}, 2") }
    #expect(error?.kind == .badQuery)
  }
}
