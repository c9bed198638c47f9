import Backup
import GRDB
import Inspector
import LazaretTesting
import ManagedObjectModel
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("The rows of damaged stores looked at")
struct FoundRowsTests {
  @Test("A whole store shows all its records as certain, each with its cell")
  func whole() throws {
    let scene = try ShipStore(seed: 1)
    let before = try FolderContents(of: scene.folder.path)
    let side = try scene.open(.evidence(StoreFileSet(main: scene.store), sha256: []), in: scene.sides)
    let person = try side.store.collection("Person")
    #expect(try side.store.count(of: person) == 300)
    #expect(try side.store.states(of: person)?[.certain] == 300)
    let pages = try EvidencePages(scene.store, in: FileSystem())
    let page = try side.store.page(of: person, RecordQuery())
    for row in page.rows {
      let provenance = try #require(try side.store.provenance(of: row.key, in: person))
      #expect(provenance.state == .certain)
      let number = try #require(provenance.page)
      let content = try #require(try pages.page(number))
      let anatomy = PageAnatomy(
        content.bytes, number: number, geometry: pages.geometry, encoding: pages.encoding)
      let key = try #require(provenance.storedKey)
      let cell = try #require(anatomy.cell(ofRow: key))
      #expect(anatomy.cells[cell].rowid == key)
      #expect(anatomy.regions.contains { $0.part == .cell(cell) })
    }
    #expect(try FolderContents(of: scene.folder.path) == before, "looking changed something")
  }

  @Test("Of several models that share an entity, a damaged store is read by its own", arguments: [true, false])
  func severalModels(isFirst: Bool) throws {
    let scene = try ShipStore(seed: 3)
    let other = ManagedObjectModel(entities: [
      Entity(name: "Ship", properties: [Fleet.attribute("name", .string), Fleet.attribute("colour", .string)])
    ])
    let bundles = try [("Harbour", other), ("Ships", ShipStore.model)].map { name, model in
      try #require(
        ModelBundle(name: name, versions: [ModelVersion(name: "\(name) 1", model: model, isCurrent: true)]))
    }
    let damaged = try scene.damaged("rand:6", seed: 3)
    let sides = StoreSides(home: scene.home.path, models: isFirst ? bundles.reversed() : bundles)
    let side = try scene.open(.evidence(StoreFileSet(main: damaged), sha256: []), in: sides)
    #expect(side.store.collections.contains { $0.name == "Person" })
    let ship = try side.store.collection("Ship")
    let columns = try side.store.page(of: ship, RecordQuery()).columns.map(\.name)
    #expect(columns.contains("tons") && !columns.contains("colour"))
  }

  @Test("Deleted records are there when they are asked for, with the keys they had")
  func deleted() throws {
    let scene = try ShipStore(seed: 2)
    try scene.change("PRAGMA secure_delete = OFF; DELETE FROM ZPERSON WHERE Z_PK BETWEEN 50 AND 60")
    let side = try scene.open(.evidence(StoreFileSet(main: scene.store), sha256: []), in: scene.sides)
    let person = try side.store.collection("Person")
    #expect(try side.store.count(of: person) == 289)
    let found = try #require(try side.store.states(of: person)?[.deleted])
    #expect(found > 0 && found <= 11)
    let page = try side.store.page(of: person, RecordQuery([("_state", "deleted")], of: person))
    #expect(Int64(page.rows.count) == found)
    #expect(page.rows.allSatisfy { $0.state == .deleted })
    let all = try side.store.page(of: person, RecordQuery([("_state", "all"), ("_size", "1000")], of: person))
    #expect(Int64(all.rows.count) == 289 + found)
    let certain = try side.store.page(of: person, RecordQuery([("_state", "certain"), ("_size", "1000")], of: person))
    #expect(certain.rows.count == 289)
    // A deleted one is found by the key it had, where that is known.
    for row in page.rows {
      let provenance = try #require(try side.store.provenance(of: row.key, in: person))
      #expect(provenance.state == .deleted)
      guard let key = provenance.storedKey else { continue }
      #expect((50...60).contains(key))
      #expect(row.values[0].text == "\(key)")
      let same = try side.store.page(
        of: person, RecordQuery([("Z_PK", "\(key)"), ("_state", "all")], of: person))
      #expect(same.rows.map(\.key) == [row.key])
      #expect(try side.store.versions(of: key, in: person) == [row.key])
    }
    // Relationships lead to live records only.
    let ship = try side.store.collection("Ship")
    let ships = try side.store.page(of: ship, RecordQuery([("_size", "1000")], of: ship)).rows
    var crew: Int64 = 0
    for row in ships {
      crew += try side.store.detail(of: row.key, in: ship).toMany.first { $0.name == "crew" }?.count ?? 0
    }
    let withShip = try side.store.page(of: person, RecordQuery([("ship__notnull", "1")], of: person)).matching
    #expect(crew == withShip)
  }

  @Test(
    "Damaged stores show what is left, and how far it is to be believed",
    arguments: ["rand:6", "interior", "cell-pointers"])
  func damaged(kind: String) throws {
    let scene = try ShipStore(seed: 3)
    let path = try scene.damaged(kind, seed: 7)
    let before = try FolderContents(of: scene.folder.path)
    let side = try scene.open(.evidence(StoreFileSet(main: path), sha256: []), in: scene.sides)
    var live: Int64 = 0
    for collection in side.store.collections where collection.isEntity && collection.name != "Ferry" {
      let count = try side.store.count(of: collection) ?? 0
      live += count
      let states = try #require(try side.store.states(of: collection))
      #expect(states.filter(\.key.isLive).values.reduce(0, +) == count, "\(kind) \(collection.name)")
      for state in RowState.allCases {
        let query = try RecordQuery([("_state", state.rawValue), ("_size", "1000")], of: collection)
        let page = try side.store.page(of: collection, query)
        #expect(Int64(page.rows.count) == states[state] ?? 0, "\(kind) \(collection.name) \(state)")
        #expect(page.rows.allSatisfy { $0.state == state })
      }
    }
    #expect(live > 300, "\(kind)")
    #expect(side.report?.entities.reduce(0) { $0 + $1.recovered } ?? 0 >= live - 1)
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test("What the log replaces and what was never committed is told apart")
  func log() throws {
    let scene = try ShipStore(seed: 4, journal: .log)
    let pages = try EvidencePages(scene.store, in: FileSystem())
    #expect(!pages.frames.isEmpty)
    for (number, frames) in pages.frames {
      let last = try #require(frames.last)
      let content = try #require(try pages.page(number, .frame(last.number)))
      #expect(content.part == .wal && content.frame == last.number)
      #expect(try pages.page(number)?.bytes.count == pages.pageSize)
      #expect(try pages.page(number, .frame(999_999)) == nil)
    }
    let side = try scene.open(.evidence(StoreFileSet(main: scene.store), sha256: []), in: scene.sides)
    #expect(try side.store.count(of: side.store.collection("Person")) == 300)
  }

  @Test(
    "Rows that are no live ones stay where the salvage wrote them, and are shown below the live ones with its notes",
    arguments: [nil, "interior"])
  func apart(damage: String?) throws {
    let scene = try ShipStore(seed: 2)
    try scene.change("PRAGMA secure_delete = OFF; DELETE FROM ZPERSON WHERE Z_PK BETWEEN 50 AND 60")
    let path = try damage.map { try scene.damaged($0, seed: 7) } ?? scene.store
    // What the pages are to show, from the salvage's own tables and views, as SQLite reads them.
    let raw = scene.folder.appending("Raw.sqlite")
    _ = try Salvager().salvageRaw(path, to: raw, options: Salvager.Options(findsDeleted: true))
    var expected: [(key: Int64, name: String?, isDeleted: Bool, stored: Int64?, reason: String?)] = []
    let queue = try DatabaseQueue(path: raw.string)
    let live = try queue.read { database in
      for table in ["lazaret_other_ZPERSON", "lazaret_deleted_ZPERSON"] where try database.tableExists(table) {
        let before = Int64(expected.count)
        let rows = try Row.fetchAll(
          database,
          sql: """
            SELECT t.rowid, t.ZNAME, n."key", n.reason FROM \(table) AS t
            JOIN lazaret_provenance AS n ON n."table" = '\(table)' AND n."row" = t.rowid ORDER BY t.rowid
            """)
        for row in rows {
          expected.append((-before - (row[0] as Int64), row[1], table.contains("deleted"), row[2], row[3]))
        }
      }
      return try Int64.fetchAll(database, sql: "SELECT Z_PK FROM ZPERSON ORDER BY Z_PK")
    }
    try queue.close()
    expected.reverse()
    if damage == nil { #expect(expected.contains { $0.isDeleted }) }

    let side = try scene.open(.evidence(StoreFileSet(main: path), sha256: []), in: scene.sides)
    let person = try side.store.collection("Person")
    let page = try side.store.page(of: person, RecordQuery([("_state", "all"), ("_size", "1000")], of: person))
    #expect(page.rows.map(\.key) == (expected.map(\.key) + live).map { RecordKey($0) })
    let name = try #require(page.columns.firstIndex { $0.name == "name" })
    for (row, truth) in zip(page.rows, expected) {
      if let words = truth.name { #expect(row.values[name].text.prefix(100) == words.prefix(100)) }
      #expect(row.state == (truth.isDeleted ? .deleted : .version))
      let provenance = try side.store.provenance(of: row.key, in: person)
      #expect(provenance?.reason == truth.reason && provenance?.storedKey == truth.stored)
      let detail = try side.store.detail(of: row.key, in: person)
      #expect(detail.row.values.map { $0.text.prefix(100) } == row.values.map { $0.text.prefix(100) })
    }
    #expect(try side.store.count(of: person) == Int64(live.count))
    #expect(!side.store.collections.contains { $0.name.hasPrefix("lazaret_") && $0.name.hasSuffix("ZPERSON") })

    // Each row is in one table only.
    let found = try DatabaseQueue(path: side.store.path.string)
    let stored = try found.read { database in
      try Int64.fetchAll(database, sql: "SELECT Z_PK FROM ZPERSON ORDER BY Z_PK")
    }
    try found.close()
    #expect(stored == live)
  }

  @Test("Tables of any names and keys have their other rows beside the live ones, page by page and sorted")
  func plain() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Plain.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE below (id INTEGER PRIMARY KEY, note TEXT, number INTEGER, more TEXT);
          CREATE TABLE named (rowid TEXT, note TEXT, number INTEGER, more TEXT);
          CREATE TABLE "\u{c4}rger" (a TEXT, note TEXT, number INTEGER, more TEXT)
          """)
      for number in -150..<150 {
        let note = "a note with the number \(number)"
        try database.execute(
          sql: "INSERT INTO below VALUES (?, ?, ?, 'and more')", arguments: [number, note, abs(number)])
        for table in ["named", "\u{c4}rger"] {
          try database.execute(
            sql: "INSERT INTO \"\(table)\" VALUES (?, ?, ?, 'and more')", arguments: ["r\(number)", note, abs(number)])
        }
      }
    }
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA secure_delete = OFF; DELETE FROM below WHERE number % 5 = 0;
          DELETE FROM named WHERE number % 5 = 0;
          DELETE FROM "\u{c4}rger" WHERE number % 5 = 0
          """)
    }
    try queue.close()
    let home = try TemporaryFolder()
    let sides = StoreSides(home: home.path, models: [])
    guard case .ready(let side) = try sides.open(.evidence(StoreFileSet(main: path), sha256: []), patience: 60_000)
    else { throw ShipStore.NotReady() }
    for name in ["below", "named", "\u{c4}rger"] {
      let table = try side.store.collection(name)
      #expect(try side.store.count(of: table) == 240, "\(name)")
      let states = try #require(try side.store.states(of: table))
      let deleted = try #require(states[.deleted], "\(name)")
      #expect(states[.certain] == 240 && states.count == 2, "\(name)")
      let keys = try Self.keys(of: table, in: side.store, [("_state", "all")])
      #expect(keys.count == 240 + Int(deleted), "\(name)")
      #expect(keys == keys.sorted() && Set(keys).count == keys.count, "\(name)")
      #expect(try Self.keys(of: table, in: side.store, [("_state", "deleted")]) == Array(keys.prefix(Int(deleted))))
      #expect(try Self.keys(of: table, in: side.store, [("_state", "certain")]) == Array(keys.dropFirst(Int(deleted))))
      #expect(try Self.keys(of: table, in: side.store, []) == Array(keys.dropFirst(Int(deleted))))
      let sorted = try Self.keys(of: table, in: side.store, [("_state", "all"), ("_sort_desc", "number")])
      #expect(Set(sorted) == Set(keys) && sorted.count == keys.count, "\(name)")
      // Every deleted row that is shown is one that was deleted.
      let page = try side.store.page(
        of: table, RecordQuery([("_state", "deleted"), ("_facet", "more"), ("_size", "1000")], of: table))
      let number = try #require(page.columns.firstIndex { $0.name == "number" })
      #expect(page.rows.allSatisfy { Int($0.values[number].text).map { $0 % 5 == 0 } == true }, "\(name)")
      #expect(page.matching == deleted, "\(name)")
      let counted = page.facets.first?.values?.reduce(0) { $0 + $1.count }
      #expect(counted == deleted, "\(name)")
    }
  }

  /// The keys of all rows that fit a query, page by page.
  private static func keys(
    of table: RecordCollection, in store: BrowsedStore, _ parameters: [(name: String, value: String)]
  ) throws -> [Int64] {
    var query = try RecordQuery(parameters + [("_size", "17")], of: table)
    var keys: [Int64] = []
    repeat {
      let page = try store.page(of: table, query)
      keys += page.rows.compactMap { Int64($0.key.description) }
      query.next = page.next
    } while query.next != nil && keys.count < 10_000
    return keys
  }

  @Test("A store in use is copied, a backup unpacked, a damaged one read; each once")
  func sides() throws {
    let scene = try ShipStore(seed: 5)
    let sides = scene.sides
    let live = try scene.open(.live(StoreFileSet(main: scene.store)), in: sides)
    #expect(live.takenAt != nil)
    #expect(!live.store.hasProvenance)
    let person = try live.store.collection("Person")
    #expect(person.isEntity)
    #expect(try live.store.count(of: person) == 300)
    // Within some minutes the same copy is shown; a new one is made when it is asked for.
    try scene.change("DELETE FROM ZPERSON WHERE Z_PK = 1")
    #expect(try scene.open(.live(StoreFileSet(main: scene.store)), in: sides).store === live.store)
    _ = try sides.open(.live(StoreFileSet(main: scene.store)), patience: 60_000, isFresh: true)
    let fresh = try scene.open(.live(StoreFileSet(main: scene.store)), in: sides)
    #expect(try fresh.store.count(of: fresh.store.collection("Person")) == 299)

    let place = FolderPlace(scene.home.path.appending("Backups").appending("Ships"))
    let backup = try BackupCreator().create(scene.store, in: place, BackupRequest())
    let unpacked = try scene.open(.backup(backup.id, place), in: sides)
    #expect(try unpacked.store.count(of: unpacked.store.collection("Person")) == 299)

    let damaged = try scene.damaged("rand:6", seed: 3)
    let read = try scene.open(.live(StoreFileSet(main: damaged)), in: sides)
    #expect(read.store.hasProvenance)
  }

  @Test("Of a store that is written all the time one copy is made after the other, and each is shown")
  func busy() throws {
    let scene = try ShipStore(seed: 9)
    let side = StoreSide.live(StoreFileSet(main: scene.store))
    var shown = 0
    for number in 1...60 where shown < 3 {
      try scene.change("UPDATE ZPERSON SET Z_OPT = \(number) WHERE Z_PK = 2")
      if case .ready = try scene.sides.open(side, patience: 50, isFresh: true) { shown += 1 }
      let made = try FileSystem().entries(of: scene.home.path.appending(".lazaret-browsing"))
      #expect(made.count <= shown + 2, "\(made)")
    }
    #expect(shown == 3)
  }

  @Test("A file that is no store is told of, and tried again later")
  func hopeless() throws {
    let scene = try ShipStore(seed: 6, records: 2)
    let path = try scene.folder.write("nothing like a database", to: "No.sqlite")
    #expect(throws: SalvageError.self) {
      try scene.open(.evidence(StoreFileSet(main: path), sha256: []), in: scene.sides)
    }
    #expect(try FileSystem().entries(of: scene.home.path.appending(".lazaret-browsing")).isEmpty)
  }
}
