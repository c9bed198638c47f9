import Foundation
import GRDB
import Inspector
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Records looked at")
struct BrowsedStoreTests {
  @Test("Entities with their properties, then plain tables; nothing is made beside the store")
  func collections() throws {
    let fleet = try Fleet()
    let browsed = try fleet.browse()
    #expect(browsed.collections.map(\.name) == ["Ferry", "Person", "Port", "Ship", "extra"])
    let ship = try browsed.collection("Ship")
    #expect(ship.columns.map(\.name).prefix(2) == ["Z_PK", "Z_ENT"])
    #expect(
      Set(ship.columns.map(\.name)) == ["Z_PK", "Z_ENT", "name", "tons", "seats", "launched", "id", "isFast", "flag"])
    #expect(ship.toMany.map(\.name) == ["crew", "ports"])
    #expect(try browsed.count(of: ship) == 5)
    #expect(try browsed.count(of: browsed.collection("Ferry")) == 2)
    #expect(try FileSystem().entries(of: fleet.folder.path).map(\.string).sorted() == ["Fleet.sqlite"])
    #expect(throws: PersistentStoreError.self) { try browsed.collection("Z_METADATA") }
  }

  @Test("Values have the types of the model")
  func values() throws {
    let browsed = try Fleet().browse()
    let ship = try browsed.collection("Ship")
    let page = try browsed.page(of: ship, RecordQuery())
    #expect(page.rows.map(\.key.description) == ["1", "2", "3", "4", "5"])
    #expect(page.rows.map(\.entity) == ["Ship", "Ship", "Ship", "Ferry", "Ferry"])
    func value(_ row: Int, _ name: String) throws -> PresentedValue {
      page.rows[row].values[try #require(page.columns.firstIndex { $0.name == name })]
    }
    #expect(try value(0, "name").text == "Aurora")
    #expect(try value(0, "launched").text == "2001-01-02T00:00:00Z")
    #expect(try value(0, "id").text == "00112233-4455-6677-8899-AABBCCDDEEFF")
    #expect(try value(0, "isFast").text == "true")
    #expect(try value(1, "name").form == .null)
    #expect(try value(0, "flag").form == .bytes)
    #expect(try value(0, "flag").text == "PNG picture")
    #expect(try value(2, "tons").form == .unexpected)
    #expect(try browsed.bytes(of: "flag", key: RecordKey(1), in: ship)?.count == 9)
  }

  @Test(
    "Filters mean what they say",
    arguments: [
      ("name", "Aurora", [1]), ("name__contains", "ro", [1, 4]), ("name__startswith", "b", [3]),
      ("name__isnull", "", [2]), ("name__not", "Aurora", [2, 3, 4, 5]), ("name__contains", "100%", [5]),
      ("tons__gt", "100", [4, 3]), ("launched", "2001-01-02", [1]), ("launched__lt", "2001-01-02", [4]),
      ("launched__gte", "2001", [1, 2]), ("launched__lte", "2001-01", [1, 4]),
      ("isFast", "yes", [1]), ("id", "00112233-4455-6677-8899-aabbccddeeff", [1]), ("id__contains", "2233-44", [1]),
      ("Z_ENT", "Ferry", [4, 5]), ("_search", "ROSSO", [4]),
    ])
  func filters(name: String, value: String, keys: [Int]) throws {
    let browsed = try Fleet().browse()
    let ship = try browsed.collection("Ship")
    let query = try RecordQuery([(name, value)], of: ship)
    let page = try browsed.page(of: ship, query)
    #expect(page.rows.map(\.key.description) == keys.sorted().map { "\($0)" })
    #expect(page.matching == Int64(keys.count))
    #expect(try RecordQuery(query.parameters, of: ship) == query)
  }

  @Test(
    "What cannot be understood is refused",
    arguments: [
      ("color", "red"), ("name__like", "x"), ("tons", "many"), ("launched", "yesterday"), ("launched", "2001-13"),
      ("id", "xyz"), ("flag", "x"), ("_size", "0"), ("_size", "9999"), ("_sort", "color"), ("_columns", "name,color"),
      ("isFast", "perhaps"), ("_facet", "color"),
    ])
  func refused(name: String, value: String) throws {
    let browsed = try Fleet().browse()
    let ship = try browsed.collection("Ship")
    #expect(throws: PersistentStoreError.self) {
      try browsed.page(of: ship, RecordQuery([(name, value)], of: ship))
    }
  }

  @Test(
    "Pages follow each other without gaps, in any order", arguments: [nil, "name", "tons", "launched"], [false, true])
  func paging(sort: String?, isDescending: Bool) throws {
    let browsed = try Fleet(records: 137).browse()
    let person = try browsed.collection("Person")
    var query = RecordQuery()
    query.size = 10
    query.sort = sort == nil ? nil : sort == "tons" ? "age" : sort == "launched" ? "born" : "name"
    query.isDescending = isDescending && sort != nil
    var keys: [String] = []
    var pages = 0
    repeat {
      let page = try browsed.page(of: person, query)
      keys += page.rows.map(\.key.description)
      query.next = page.next
      pages += 1
    } while query.next != nil && pages < 100
    #expect(pages == 14)
    #expect(Set(keys).count == 137)
    query.next = nil
    query.size = 1000
    #expect(try browsed.page(of: person, query).rows.map(\.key.description) == keys)
    query.next = "i1~zz"
    #expect(throws: PersistentStoreError.self) { try browsed.page(of: person, query) }
  }

  @Test("Relationships lead on in both directions")
  func relationships() throws {
    let browsed = try Fleet().browse()
    let ship = try browsed.collection("Ship")
    let detail = try browsed.detail(of: RecordKey(1), in: ship)
    #expect(detail.label == "Aurora")
    let crew = try #require(detail.toMany.first { $0.name == "crew" })
    #expect(crew.count == 2)
    #expect(crew.first.map(\.label) == ["Ben", "Ada"], "the order of the relationship")
    let person = try browsed.collection("Person")
    let ada = try browsed.detail(of: crew.first[1].key, in: person)
    #expect(ada.toOne["ship"]?.label == "Aurora")
    #expect(ada.toOne["ship"]?.collection == "Ship")
    let lost = try browsed.detail(of: RecordKey(3), in: person)
    #expect(lost.toOne["ship"]?.exists == false)
    #expect(try #require(detail.toMany.first { $0.name == "ports" }).first.map(\.label) == ["Genoa"])
    #expect(throws: PersistentStoreError.self) { try browsed.detail(of: RecordKey(99), in: ship) }
  }

  @Test("Everything that a relationship leads to is listed page by page, in its order", arguments: ["crew", "ports"])
  func related(_ name: String) throws {
    let fleet = try Fleet()
    let expected = try fleet.addRelated(count: 45)
    let browsed = try fleet.browse()
    let ship = try browsed.collection("Ship")
    let index = try #require(ship.toMany.firstIndex { $0.name == name })
    var (keys, next, pages) = ([String](), String?.none, 0)
    repeat {
      let page = try browsed.related(at: index, of: RecordKey(2), in: ship, after: next, size: 7)
      #expect(page.count == 45)
      #expect(page.references.allSatisfy { $0.exists && $0.label != nil })
      keys += page.references.map(\.key.description)
      next = page.next
      pages += 1
    } while next != nil && pages < 20
    #expect(pages == 7)
    #expect(keys == (name == "crew" ? expected.crew : expected.ports).map(String.init))
    #expect(throws: PersistentStoreError.self) {
      _ = try browsed.related(at: index, of: RecordKey(2), in: ship, after: "n~zz")
    }
    #expect(throws: PersistentStoreError.self) { _ = try browsed.related(at: 9, of: RecordKey(2), in: ship) }
  }

  @Test("Facets and searches count")
  func facets() throws {
    let browsed = try Fleet().browse()
    let ship = try browsed.collection("Ship")
    let page = try browsed.page(of: ship, RecordQuery([("_facet", "isFast")], of: ship))
    #expect(page.facets.first?.values?.map { "\($0.value.text) \($0.count)" } == [" 3", "false 1", "true 1"])
    let finds = try browsed.search("rosso")
    #expect(finds.finds.map(\.collection) == ["Ship"])
    #expect(finds.finds.first?.records.map(\.entity) == ["Ferry"])
    #expect(finds.finds.first?.records.first?.excerpt == "Porto Rosso")
  }

  @Test("A stream hands out all records, in order, and ends when it is cancelled")
  func streams() throws {
    let fleet = try Fleet(records: 5_000)
    defer { withExtendedLifetime(fleet) {} }
    let browsed = try fleet.browse()
    let person = try browsed.collection("Person")
    var query = RecordQuery()
    query.filters = [RecordFilter("age", .greater, "1")]
    query.sort = "name"
    let stream = try browsed.stream(person, query)
    var keys: [String] = []
    while let rows = try stream.next() { keys += rows.map(\.key.description) }
    #expect(keys.count == 3_000)
    #expect(Set(keys).count == 3_000)
    query.size = 1_000
    #expect(try browsed.page(of: person, query).rows.map(\.key.description) == Array(keys.prefix(1_000)))
    // More streams than are read at a time are refused, and a place is free again when one was cancelled.
    let open = try (0..<4).map { _ in try browsed.stream(person, RecordQuery()) }
    for stream in open { #expect(try stream.next()?.isEmpty == false) }
    #expect(throws: PersistentStoreError.self) { try browsed.stream(person, RecordQuery()) }
    for stream in open { stream.cancel() }
    var tries = 0
    while tries < 200 {
      if (try? browsed.stream(person, RecordQuery()))?.cancel() != nil { break }
      usleep(10_000)
      tries += 1
    }
    #expect(tries < 200)
  }

  @Test("Of many matches not all are counted, unless they are asked for")
  func counting() throws {
    var limits = BrowsedStore.Limits()
    limits.matchingCount = 500
    let browsed = try Fleet(records: 5_000).browse(limits: limits)
    let person = try browsed.collection("Person")
    var query = RecordQuery()
    query.filters = [RecordFilter("age", .greater, "1")]
    let page = try browsed.page(of: person, query)
    #expect(page.matching == nil)
    #expect(page.matchingAtLeast == 500)
    query.countsAll = true
    #expect(try browsed.page(of: person, query).matching == 3_000)
  }

  @Test("Of long values only the beginning is read, and their length is told")
  func longValues() throws {
    let fleet = try Fleet()
    let queue = try DatabaseQueue(path: fleet.path.string)
    try queue.write {
      try $0.execute(sql: "UPDATE ZSHIP SET ZFLAG = x'89504E470D0A1A0A' || zeroblob(500000) WHERE Z_PK = 2")
    }
    try queue.write { try $0.execute(sql: "UPDATE ZSHIP SET ZFLAG = CAST(ZFLAG AS BLOB)") }
    try queue.close()
    let browsed = try fleet.browse()
    let ship = try browsed.collection("Ship")
    let page = try browsed.page(of: ship, RecordQuery())
    let flag = try #require(page.columns.firstIndex { $0.name == "flag" })
    #expect(page.rows[1].values[flag].byteCount == 500_008)
    #expect(page.rows[1].values[flag].text == "PNG picture")
    #expect(page.rows[0].values[flag].byteCount == 9)
    #expect(try browsed.bytes(of: "flag", key: RecordKey(2), in: ship)?.count == 500_008)
  }

  @Test("A question that takes too long is interrupted, and the next one is not")
  func timeLimit() throws {
    var limits = BrowsedStore.Limits()
    limits.page = .milliseconds(20)
    let browsed = try Fleet(records: 60_000).browse(limits: limits)
    let person = try browsed.collection("Person")
    var slow = RecordQuery()
    slow.filters = (0..<90).map { _ in RecordFilter("name", .contains, "perso") }
    slow.filters.append(RecordFilter("name", .contains, "no such name"))
    do {
      _ = try browsed.page(of: person, slow)
      Issue.record("60,000 records were compared 90 times in 20 ms")
    } catch {
      #expect(error.kind == .timeLimit)
    }
    #expect(try browsed.page(of: person, RecordQuery()).rows.count == 100)
  }

  @Test("Columns that an expression of the store computes are left out and named, and those in the file are shown")
  func computedColumns() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Plain.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g TEXT AS (lower(a)), s TEXT AS (upper(a)) STORED);
          CREATE TABLE "Z_METADATA" (Z_VERSION INTEGER, Z_UUID TEXT, Z_PLIST BLOB AS (lower(Z_UUID)));
          CREATE VIEW v AS SELECT hex(zeroblob(140000000)) AS a;
          CREATE VIRTUAL TABLE f USING fts5(a);
          INSERT INTO t (a) VALUES ('one'), ('two'); INSERT INTO "Z_METADATA" (Z_UUID) VALUES ('x');
          PRAGMA writable_schema = ON;
          UPDATE sqlite_master SET sql = replace(sql, 'lower(a)', 'hex(zeroblob(140000000))');
          UPDATE sqlite_master SET sql = replace(sql, 'lower(Z_UUID)', 'zeroblob(900000000)');
          PRAGMA writable_schema = OFF
          """)
    }
    try queue.close()
    let browsed = try BrowsedStore(path, model: nil)
    #expect(browsed.collections.map(\.name) == ["Z_METADATA", "t"])
    let table = try browsed.collection("t")
    #expect(table.columns.map(\.name) == ["id", "a", "s"])
    #expect(table.computedColumns == ["g"])
    let page = try browsed.page(of: table, RecordQuery())
    #expect(page.rows.map { $0.values.map(\.text) } == [["1", "one", "ONE"], ["2", "two", "TWO"]])
    let metadata = try browsed.collection("Z_METADATA")
    #expect(metadata.computedColumns == ["Z_PLIST"])
    #expect(try browsed.page(of: metadata, RecordQuery()).rows.count == 1)
  }

  @Test("Every real store can be looked at, whole", .enabled(if: RealMaterial.isAvailable))
  func real() throws {
    var seen = 0
    for store in RealMaterial.stores {
      let folder = try TemporaryFolder()
      let copy = try RealMaterial.copy(store, into: folder)
      // The log is written back, since what is browsed is a single file.
      let queue = try DatabaseQueue(path: copy.string)
      try queue.inDatabase { _ = try Row.fetchAll($0, sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
      try queue.close()
      let browsed = try BrowsedStore(copy, model: nil)
      for collection in browsed.collections {
        let page = try browsed.page(of: collection, RecordQuery())
        guard let total = page.total else { continue }
        #expect(Int64(page.rows.count) == min(100, total), "\(store)")
        seen += page.rows.count
        if let key = page.rows.last?.key {
          #expect(try browsed.detail(of: key, in: collection).row.key == key)
          #expect(try RecordKey(key.description, of: collection) == key)
        }
      }
    }
    #expect(seen > 1000)
  }
}
