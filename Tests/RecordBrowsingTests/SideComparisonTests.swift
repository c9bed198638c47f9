import GRDB
import ManagedObjectModel
import RecordBrowsing
import StoreFiles
import TestSupport
import Testing

@Suite("Two sides of a store compared")
struct SideComparisonTests {
  @Test("Values of a property that one version alone has are changes")
  func anotherVersion() throws {
    let scene = try ShipStore(seed: 11, records: 200)
    let other = scene.folder.appending("Other.sqlite")
    try FileSystem().duplicate(scene.store, to: other)
    try scene.change(
      "ALTER TABLE ZPERSON ADD COLUMN ZNICK VARCHAR; UPDATE ZPERSON SET ZNICK = 'n' WHERE Z_PK BETWEEN 3 AND 7",
      at: other)
    var newer = ShipStore.model
    newer.entities["Person"]?.properties["nick"] = Fleet.attribute("nick", .string)
    let one = try BrowsedStore(scene.store, model: ShipStore.model)
    let two = try BrowsedStore(other, model: newer)
    let there = try SideComparison(one, two)
    let person = try there.entity("Person")
    #expect(person.counts == [.missing: 0, .added: 0, .changed: 5])
    #expect(person.firstOnly.isEmpty && person.secondOnly == ["nick"])
    #expect(try there.entity("Ship").isSame)
    let records = try there.records("Person", .changed).records
    #expect(records.compactMap { $0.firstKey?.description } == (3...7).map(String.init))
    #expect(records.allSatisfy { $0.properties.map(\.name) == ["nick"] })
    #expect(records.allSatisfy { $0.properties.first?.first == nil && $0.properties.first?.second?.text == "n" })
    // The other way round, and where no record has a value.
    let back = try SideComparison(two, one)
    #expect(try back.entity("Person").counts?[.changed] == 5)
    try scene.change("UPDATE ZPERSON SET ZNICK = NULL", at: other)
    let empty = try SideComparison(one, BrowsedStore(other, model: newer)).entity("Person")
    #expect(empty.counts?[.changed] == 0 && !empty.isSame)
  }

  @Test("Missing, added and changed records, by key and by a property with UUIDs")
  func differences() throws {
    let scene = try ShipStore(seed: 11, records: 200)
    let other = scene.folder.appending("Other.sqlite")
    try FileSystem().duplicate(scene.store, to: other)
    try scene.change(
      """
      DELETE FROM ZPERSON WHERE Z_PK IN (3, 4);
      UPDATE ZPERSON SET ZNAME = 'changed' WHERE Z_PK BETWEEN 10 AND 70;
      UPDATE ZPERSON SET ZBORN = NULL WHERE Z_PK = 10;
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZID) SELECT 9000, Z_ENT, 1, 'new', x'000102030405060708090a0b0c0d0e0f' FROM ZPERSON LIMIT 1
      """, at: other)
    let one = try BrowsedStore(scene.store, model: ShipStore.model)
    let two = try BrowsedStore(other, model: ShipStore.model)
    let comparison = try SideComparison(one, two)
    #expect(comparison.names == ["Ferry", "Person", "Ship"])
    let person = try comparison.entity("Person")
    #expect(person.first == 200 && person.second == 199)
    #expect(person.counts == [.missing: 2, .added: 1, .changed: 61])
    #expect(try comparison.entity("Ship").isSame)
    #expect(try comparison.records("Person", .missing).records.map(\.firstKey?.description) == ["3", "4"])
    #expect(try comparison.records("Person", .added).records.map(\.secondKey?.description) == ["9000"])
    var keys: [String] = []
    var next: RecordKey?
    repeat {
      let page = try comparison.records("Person", .changed, next: next, size: 20)
      keys += page.records.compactMap { $0.firstKey?.description }
      next = page.next
      #expect(page.records.allSatisfy { $0.properties.contains { $0.name == "name" && $0.second?.text == "changed" } })
    } while next != nil && keys.count < 1_000
    #expect(keys == (10...70).map(String.init))
    let first = try #require(try comparison.records("Person", .changed).records.first)
    #expect(first.properties.map(\.name).sorted().contains("born"))

    // Where keys moved, the property tells.
    try scene.change("UPDATE ZPERSON SET Z_PK = Z_PK + 100000", at: other)
    let moved = try SideComparison(one, BrowsedStore(other, model: ShipStore.model))
    #expect(try moved.entity("Person").counts?[.missing] == 200)
    let byID = try #require(try moved.entity("Person", by: "id").counts)
    let without = try Int64(
      one.page(
        of: one.collection("Person"),
        RecordQuery([("id__isnull", "1"), ("_size", "1000")], of: one.collection("Person"))
      )
      .rows.count)
    #expect(byID[.missing] ?? 0 <= 2 + without)
    #expect(byID[.changed] ?? 0 > 0)
    #expect(throws: RecordBrowsingError.self) { try moved.entity("Person", by: "color") }
  }
}
