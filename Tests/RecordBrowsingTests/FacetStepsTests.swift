import GRDB
import Inspector
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Dates and numbers counted in steps")
struct FacetStepsTests {
  /// A fleet whose people have dates over some hundred years, and ages of every size.
  private static func fleet() throws -> Fleet {
    let fleet = try Fleet(records: 900)
    let queue = try DatabaseQueue(path: fleet.path.string)
    try queue.write { database in
      try database.execute(
        sql: """
          UPDATE ZPERSON SET ZBORN = (Z_PK * 7919 % 40000 - 25000) * 86400.0 + Z_PK % 86400, ZAGE = Z_PK * 37 % 4001 - 500;
          UPDATE ZPERSON SET ZBORN = 0 WHERE Z_PK = 1; UPDATE ZPERSON SET ZBORN = -0.5 WHERE Z_PK = 2;
          UPDATE ZPERSON SET ZBORN = NULL, ZAGE = NULL WHERE Z_PK % 50 = 0;
          UPDATE ZPERSON SET ZBORN = 'someday', ZAGE = 'old' WHERE Z_PK % 97 = 0;
          UPDATE ZPERSON SET ZBORN = 1e300, ZAGE = 9e999 WHERE Z_PK = 3
          """)
    }
    try queue.close()
    return fleet
  }

  private static func numbers(_ fleet: Fleet, _ sql: String) throws -> [String: Int64] {
    let queue = try DatabaseQueue(path: fleet.path.string)
    defer { try? queue.close() }
    return try queue.read { database in
      try Dictionary(uniqueKeysWithValues: Row.fetchAll(database, sql: sql).map { ($0[0] as String, $0[1] as Int64) })
    }
  }

  @Test(
    "Years and months are those that SQLite tells, the last first, and each leads to its records",
    arguments: ["year", "month"])
  func dates(step: String) throws {
    let fleet = try Self.fleet()
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    let person = try browsed.collection("Person")
    let format = step == "year" ? "%Y" : "%Y-%m"
    // Whole seconds, since SQLite rounds to the next thousandth.
    let expected = try Self.numbers(
      fleet,
      """
      SELECT strftime('\(format)', CAST(ZBORN - (ZBORN < 0) * 0.999 AS INTEGER) + 978307200, 'unixepoch') AS y, count(*) FROM ZPERSON
      WHERE typeof(ZBORN) IN ('integer', 'real') AND ZBORN < 1e11 GROUP BY y
      """)
    let page = try browsed.page(of: person, RecordQuery([("_facet_\(step)", "born")], of: person))
    let facet = try #require(page.steppedFacets.first)
    let counts = try #require(facet.counts)
    #expect(counts.map(\.first) == expected.keys.sorted(by: >).prefix(24).map { $0 })
    #expect(facet.isCut == (expected.count > 24))
    for count in counts {
      #expect(count.count == expected[count.first ?? ""], "\(count)")
      var query = RecordQuery()
      query.filters = count.filters(facet.steps)
      query.size = 1000
      #expect(try browsed.page(of: person, query).rows.count == Int(count.count), "\(count)")
    }
    // Counted again, it is what it was.
    #expect(
      try browsed.page(of: person, RecordQuery([("_facet_\(step)", "born")], of: person)).steppedFacets == [facet])
  }

  @Test("Ranges of numbers hold every number once, and each leads to its records")
  func ranges() throws {
    let fleet = try Self.fleet()
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    let person = try browsed.collection("Person")
    let all = try Self.numbers(
      fleet, "SELECT 'all', count(*) FROM ZPERSON WHERE typeof(ZAGE) = 'integer'")
    let page = try browsed.page(of: person, RecordQuery([("_facet_range", "age")], of: person))
    let facet = try #require(page.steppedFacets.first)
    let counts = try #require(facet.counts)
    #expect(counts.count > 3 && counts.count < 12)
    #expect(counts.reduce(0) { $0 + $1.count } == all["all"])
    for count in counts {
      let lower = count.first.map { " AND ZAGE >= \($0)" } ?? ""
      let upper = count.end.map { " AND ZAGE < \($0)" } ?? ""
      let found = try Self.numbers(
        fleet, "SELECT 'n', count(*) FROM ZPERSON WHERE typeof(ZAGE) = 'integer'\(lower)\(upper)")
      #expect(count.count == found["n"], "\(count)")
      var query = RecordQuery()
      query.filters = count.filters(facet.steps)
      query.size = 1000
      #expect(try browsed.page(of: person, query).rows.count == Int(count.count), "\(count)")
    }
    // Numbers that are all the same have a range of their own.
    let same = try browsed.page(of: person, RecordQuery([("_facet_range", "age"), ("age", "-463")], of: person))
    let one = try #require(same.steppedFacets.first?.counts?.first)
    #expect(one.first == "-463" && one.end == "-462" && one.count == same.matching)
    // Narrowed by a condition, it counts what fits.
    let narrow = try browsed.page(of: person, RecordQuery([("_facet_range", "age"), ("age__lt", "0")], of: person))
    let negative = try Self.numbers(
      fleet, "SELECT 'n', count(*) FROM ZPERSON WHERE typeof(ZAGE) = 'integer' AND ZAGE < 0")
    #expect(narrow.steppedFacets.first?.counts?.reduce(0) { $0 + $1.count } == negative["n"])
  }

  @Test("Steps that do not fit a property are refused, and an address keeps those that do")
  func addresses() throws {
    let fleet = try Self.fleet()
    defer { withExtendedLifetime(fleet) {} }
    let person = try fleet.browse().collection("Person")
    for (name, value) in [
      ("_facet_year", "name"), ("_facet_range", "born"), ("_facet_month", "age"), ("_facet_year", "colour"),
    ] {
      #expect(throws: PersistentStoreError.self) { try RecordQuery([(name, value)], of: person) }
    }
    let query = try RecordQuery([("_facet_year", "born"), ("_facet_range", "age"), ("_facet", "name")], of: person)
    #expect(query.steps == [FacetSteps("born", .year), FacetSteps("age", .range)])
    #expect(try RecordQuery(query.parameters, of: person) == query)
  }
}
