import Inspector
import ManagedObjectModel
import PersistentStore
import Platform
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
    #expect(throws: PersistentStoreError.self) { try moved.entity("Person", by: "color") }
  }

  // MARK: Pairs

  @Test("Pairs of a many-to-many relationship are counted and listed, each once, page by page")
  func pairs() throws {
    let folder = try TemporaryFolder()
    var before: [LibraryStore.Pair: Int] = [:]
    for number in 0..<400 { before[.init(book: 1 + number * 7 % 60, tag: 1 + number * 11 % 45)] = number }
    var after = before
    for (index, pair) in before.keys.sorted().enumerated() where index % 5 == 0 { after[pair] = nil }
    for number in 0..<90 { after[.init(book: 61 + number % 9, tag: 1 + number % 40), default: 0] += 1 }
    for (index, pair) in after.keys.sorted().enumerated() where index % 4 == 2 { after[pair, default: 0] += 5000 }
    let one = try LibraryStore(folder.appending("One.sqlite"), before)
    let two = try LibraryStore(folder.appending("Two.sqlite"), after)
    let comparison = try SideComparison(one.browse(), two.browse())
    // What sets say of both.
    let expected: [RecordDifference: [LibraryStore.Pair]] = [
      .missing: before.keys.filter { after[$0] == nil }.sorted(),
      .added: after.keys.filter { before[$0] == nil }.sorted(),
      .changed: after.keys.filter { before[$0] != nil && before[$0] != after[$0] }.sorted(),
    ]
    #expect(expected.values.allSatisfy { $0.count > 20 })
    #expect(comparison.relationshipNames == ["Book.tags-Tag.books"])
    let counted = try comparison.pairs("Book.tags-Tag.books")
    #expect(counted.sides == ["Book.tags", "Tag.books"])
    #expect(counted.first == Int64(before.count) && counted.second == Int64(after.count))
    for difference in RecordDifference.allCases {
      let pairs = expected[difference] ?? []
      #expect(counted.counts?[difference] == Int64(pairs.count))
      var found: [LibraryStore.Pair] = []
      var next: String?
      repeat {
        let page = try comparison.pairs("Book.tags-Tag.books", difference, next: next, size: 7)
        #expect(
          page.pairs.count <= 7 && page.pairs.allSatisfy { $0.first.entity == "Book" && $0.second.entity == "Tag" })
        for pair in page.pairs {
          let own = LibraryStore.Pair(
            book: Int(pair.first.key.description) ?? 0, tag: Int(pair.second.key.description) ?? 0)
          found.append(own)
          #expect(pair.first.label == "book \(own.book)" && pair.second.label == "tag \(own.tag)")
          #expect(pair.places.map(\.name) == (difference == .changed ? ["Book.tags"] : []))
          #expect(pair.places.allSatisfy { $0.first?.text == before[own].map(String.init) })
          #expect(pair.places.allSatisfy { $0.second?.text == after[own].map(String.init) })
        }
        next = page.next
      } while next != nil && found.count < 1_000
      #expect(found == pairs, "\(difference)")
    }
    #expect(throws: PersistentStoreError.self) { try comparison.pairs("Book.tags") }
    #expect(throws: PersistentStoreError.self) { try comparison.pairs("Book.tags-Tag.books", .added, next: "x") }
    // The other way round, and with itself.
    let back = try SideComparison(two.browse(), one.browse()).pairs("Book.tags-Tag.books")
    #expect(back.counts?[.missing] == counted.counts?[.added] && back.counts?[.added] == counted.counts?[.missing])
    let same = try SideComparison(one.browse(), one.browse()).pairs("Book.tags-Tag.books")
    #expect(same.counts == [.missing: 0, .added: 0, .changed: 0])
  }

  @Test("Pairs are the same where another version numbers the entities anew, and all differ where one version has none")
  func pairsOfAnotherVersion() throws {
    let folder = try TemporaryFolder()
    let pairs: [LibraryStore.Pair: Int] = [
      .init(book: 1, tag: 2): 1, .init(book: 2, tag: 2): 2, .init(book: 3, tag: 1): 3,
    ]
    var fewer = pairs
    fewer[.init(book: 2, tag: 2)] = nil
    let one = try LibraryStore(folder.appending("One.sqlite"), pairs)
    let two = try LibraryStore(folder.appending("Two.sqlite"), fewer, more: [Entity(name: "Author")])
    #expect(one.table != two.table)
    let comparison = try SideComparison(one.browse(), two.browse())
    #expect(try comparison.pairs("Book.tags-Tag.books").counts == [.missing: 1, .added: 0, .changed: 0])
    #expect(!comparison.names.contains(one.table) && !comparison.names.contains(two.table))
    let alone = try SideComparison(one.browse(), LibraryStore(folder.appending("None.sqlite"), nil).browse())
    let result = try alone.pairs("Book.tags-Tag.books")
    #expect(result.isInFirst && !result.isInSecond && result.counts == nil)
    #expect(result.count(.missing) == 3 && result.count(.added) == 0 && result.count(.changed) == 0)
    #expect(try alone.pairs("Book.tags-Tag.books", .missing).pairs.isEmpty)
  }
}
