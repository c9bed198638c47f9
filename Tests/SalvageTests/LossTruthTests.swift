import GRDB
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// What is said to be lost, held against what the test itself put into the store.
@Suite("What is said of losses is true")
struct LossTruthTests {
  @Test("Where the list of tables and the last page of a table are gone, nobody says that it lost nothing")
  func unknownEnd() throws {
    let scene = try PlainScene(schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)") { db in
      for id in 1...400 {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?)", arguments: [id, String(repeating: "note \(id) ", count: 9)])
      }
    }
    // The root is the page behind the list of tables; rows in the order of their keys fill the last page last.
    let result = try scene.overwriting([1, 2, UInt32(scene.main.count / scene.pageSize)]).salvage()
    let notes = try #require(result.report.entities.first { $0.table == "notes" })
    #expect(notes.recovered > 0 && scene.missingRows(result) > 0, "the store is not what this test is about")
    #expect(notes.hasLosses && !result.report.isComplete, "\(notes.lost), \(notes.lostBasis)")
  }

  // MARK: Indexes

  private static let rows = 400

  /// Two tables with an index each, whose pages have other numbers of entries: large numbers in one, small ones in the other.
  private func twoTables() throws -> PlainScene {
    try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER, body TEXT); CREATE INDEX aN ON a (n);
        CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER, body TEXT); CREATE INDEX bN ON b (n)
        """
    ) { db in
      for id in 1...Self.rows {
        try db.execute(sql: "INSERT INTO a VALUES (?, ?, ?)", arguments: [id, 1 << 40 + id * 3, "row \(id) of a"])
        try db.execute(sql: "INSERT INTO b VALUES (?, ?, ?)", arguments: [id + 1000, id % 100, "row \(id) of b"])
      }
    }
  }

  /// The leaves of an index whose root is an inner page, in their order; the roots are made one after another.
  private func leaves(below root: UInt32, of scene: PlainScene) throws -> [UInt32] {
    let page = Array(scene.main[scene.range(of: root)])
    func number(at offset: Int, _ bytes: Int) -> Int { page[offset..<(offset + bytes)].reduce(0) { $0 << 8 | Int($1) } }
    try #require(page[0] == 2)
    let cells = (0..<number(at: 3, 2)).map { number(at: number(at: 12 + 2 * $0, 2), 4) }
    return (cells + [number(at: 8, 4)]).map { UInt32($0) }
  }

  /// What happens to pages of an index.
  enum Mixing: CaseIterable {
    /// A leaf of one changes places with a leaf of the other.
    case exchanged

    /// A leaf of one is a copy of one of the other.
    case copied

    /// Two leaves of one change places.
    case disordered
  }

  @Test("An index with pages of another one counts no row as lost", arguments: Mixing.allCases)
  func foreignPages(mixing: Mixing) throws {
    let scene = try twoTables()
    let (own, other) = (try leaves(below: 3, of: scene), try leaves(below: 5, of: scene))
    let mixed = scene.changing { changed in
      switch mixing {
      case .exchanged: changed = scene.swapping(own[1], other[1])
      case .copied: changed.main.replaceSubrange(scene.range(of: own[1]), with: scene.main[scene.range(of: other[1])])
      case .disordered: changed = scene.swapping(own[1], own[3])
      }
    }
    let result = try mixed.salvage(withModel: false)
    #expect(scene.missingRows(result) == 0 && scene.falseRows(result) == 0)
    for account in result.report.entities {
      #expect(account.recovered == Int64(Self.rows) && account.lost == 0, "\(account.name): \(account.lostBasis)")
    }
    #expect(result.report.count.total == Int64(2 * Self.rows))
  }

  @Test("An index that is whole and agrees with the rows that are left counts the lost ones, and knows them")
  func ownPages() throws {
    let scene = try twoTables()
    // The leaves of the table itself; page 2 is its root, an inner page.
    let page = Array(scene.main[scene.range(of: 2)])
    try #require(page[0] == 5)
    let cell = Int(page[12]) << 8 | Int(page[13])
    let leaf = page[cell..<(cell + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    let zeroed = scene.changing { $0.main.replaceSubrange(scene.range(of: leaf), with: repeatElement(0, count: 1024)) }
    let result = try zeroed.salvage(withModel: false)
    let account = try #require(result.report.entities.first { $0.name == "a" })
    let there = Set((result.rows["a"] ?? []).compactMap { $0.first })
    let missing = (scene.truth["a"] ?? []).filter { row in row.first.map { !there.contains($0) } ?? true }
    #expect(!missing.isEmpty && account.lost == Int64(missing.count) && account.lostBasis == .index)
    #expect(account.recovered + account.lost == Int64(Self.rows) && account.areLostKeysComplete)
    for row in missing {
      let rowid = try #require(row.first.flatMap { Int64.fromDatabaseValue($0) })
      #expect(account.lostKeys.contains(rowid))
    }
  }

  // MARK: Pages

  @Test(
    "No row is called lost where the header or all pointers of a leaf are gone and every row was found",
    arguments: [0, 1, -1])
  func foundRows(place: Int) throws {
    let scene = try PlainScene(schema: "CREATE TABLE word (id INTEGER PRIMARY KEY, w TEXT)") { db in
      for id in 1...600 {
        try db.execute(sql: "INSERT INTO word (id, w) VALUES (?, ?)", arguments: [2 * id, "name of number \(id)"])
      }
    }
    let leaves = (1..<(scene.main.count / 4096)).map { $0 * 4096 }.filter { scene.main[$0] == 13 }
    let leaf = try #require(place < 0 ? leaves.last : leaves[place])
    let count = Int(scene.main[leaf + 3]) << 8 | Int(scene.main[leaf + 4])
    let headless = scene.changing {
      $0.main.replaceSubrange(leaf..<(leaf + 8), with: [0x5A, 0xC3, 0x17, 0xEE, 0x01, 0x99, 0x42, 0x07])
    }
    let pointerless = scene.changing {
      $0.main.replaceSubrange((leaf + 8)..<(leaf + 8 + 2 * count), with: repeatElement(0, count: 2 * count))
    }
    for damaged in [headless, pointerless] {
      let result = try damaged.salvage(withModel: false)
      let account = try #require(result.report.entities.first { $0.table == "word" })
      #expect(scene.missingRows(result) == 0 && account.recovered == 600)
      #expect(account.lost == 0 && account.lostBasis == .none, "\(account.lost)")
    }
  }

  @Test("A lost leaf of a table without rowids costs its rows, whichever it is", arguments: [0, 1, 4, -1])
  func leafWithoutRowids(place: Int) throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024", schema: "CREATE TABLE word (w TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID"
    ) { db in
      for id in 0..<600 {
        try db.execute(sql: "INSERT INTO word VALUES (?, ?)", arguments: ["word \(id * 7919 % 4001)", id])
      }
    }
    let leaves = try leaves(below: 2, of: scene)
    let leaf = place < 0 ? try #require(leaves.last) : leaves[place]
    let zeroed = scene.changing { $0.main.replaceSubrange(scene.range(of: leaf), with: repeatElement(0, count: 1024)) }
    let result = try zeroed.salvage(withModel: false)
    let missing = scene.missingRows(result)
    let account = try #require(result.report.entities.first { $0.name == "word" })
    #expect(missing > 0 && account.recovered == Int64(600 - missing) && !result.report.isComplete)
    #expect(
      account.lost > 0 && !account.isLostExact && abs(account.lost - Int64(missing)) < 30, "\(account.lost), \(missing)"
    )
    #expect(result.report.count.percent ?? 100 < 100)
  }

  @Test("Where a leaf lies over the root of its table and over other leaves, the rows of those are counted, about")
  func overwrittenRoot() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024", schema: "CREATE TABLE word (id INTEGER PRIMARY KEY, body TEXT)"
    ) { db in
      for id in 1...1500 { try db.execute(sql: "INSERT INTO word VALUES (?, ?)", arguments: [id, "the word \(id)"]) }
    }
    // The root is page 2; the leaves come one after another.
    let copy = scene.changing { changed in
      for page: UInt32 in [2, 9, 10, 11, 15] {
        changed.main.replaceSubrange(scene.range(of: page), with: scene.main[scene.range(of: 5)])
      }
    }
    let result = try copy.salvage(withModel: false)
    let missing = scene.missingRows(result)
    let account = try #require(result.report.entities.first { $0.name == "word" })
    #expect(missing > 100 && !account.isLostExact && !result.report.isComplete)
    #expect(abs(account.lost - Int64(missing)) <= Int64(missing / 2), "\(account.lost), \(missing)")
  }

  @Test("Where the list of tables is damaged and no model has them, no share is told")
  func unknownTables() throws {
    let tables = (1...40).map { "CREATE TABLE table\($0) (id INTEGER PRIMARY KEY, text TEXT, number INTEGER)" }
    let scene = try PlainScene(pragmas: "PRAGMA page_size = 1024", schema: tables.joined(separator: ";")) { db in
      for table in 1...40 { try db.execute(sql: "INSERT INTO table\(table) (text) VALUES ('one')") }
    }
    // The list of tables is longer than a page: one of its leaves is lost, and all pages of what it tells of.
    let page = Array(scene.main[0..<1024])
    try #require(page[100] == 5)
    let cell = Int(page[112]) << 8 | Int(page[113])
    let leaf = page[cell..<(cell + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    let zeroed = scene.changing { $0.main.replaceSubrange(scene.range(of: leaf), with: repeatElement(0, count: 1024)) }
    let report = try zeroed.salvage(withModel: false).report
    #expect(report.recovered < 40 && report.mayLackTables && report.count.hasUnknown)
    #expect(report.count.percent == nil && !report.count.words.contains("(100 %)"), "\(report.count.words)")
    #expect(try zeroed.salvage(withModel: true).report.mayLackTables == false)
  }

  // MARK: Keys

  @Test("A lost list of the highest keys is told of, and nothing without it is called complete")
  func highestKeys() throws {
    let scene = try PlainScene(schema: "CREATE TABLE word (id INTEGER PRIMARY KEY AUTOINCREMENT, w TEXT)") { db in
      for id in 1...600 { try db.execute(sql: "INSERT INTO word (w) VALUES (?)", arguments: ["word \(id)"]) }
      try db.execute(sql: "DELETE FROM word WHERE id > 580")
    }
    #expect(try scene.salvage(withModel: false).report.isComplete)
    // The table of highest keys is made behind the first table with them.
    let page: UInt32 = 3
    try #require(scene.main[scene.range(of: page).lowerBound] == 13)
    let zeroed = scene.changing {
      $0.main.replaceSubrange(scene.range(of: page), with: repeatElement(0, count: scene.pageSize))
    }
    let result = try zeroed.salvage(withModel: false)
    #expect(scene.missingRows(result) == 0 && !result.report.isComplete)
    #expect(result.report.remarks.contains { $0.contains("highest keys") }, "\(result.report.remarks)")
  }

  @Test("An overflow page of an index that the list of tables named is no lost page of rows")
  func overflowPages() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA auto_vacuum = 1",
      schema: """
        CREATE TABLE word (w TEXT, n INTEGER, x REAL, y TEXT, z INTEGER, PRIMARY KEY (w, n)) WITHOUT ROWID;
        CREATE TABLE long (id INTEGER PRIMARY KEY, bytes BLOB); CREATE INDEX byBytes ON long (bytes)
        """
    ) { db in
      for id in 1...600 {
        try db.execute(
          sql: "INSERT INTO word VALUES (?, ?, ?, ?, ?)",
          arguments: ["word \(id)", id, Double(id) / 7, "text \(id)", -id])
      }
      try db.execute(sql: "INSERT INTO long VALUES (1, CAST(replace(hex(zeroblob(5000)), '0', 'x') AS BLOB))")
    }
    let listless = scene.changing {
      $0.main.replaceSubrange(scene.range(of: 1), with: repeatElement(0, count: scene.pageSize))
    }
    let result = try listless.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(result.report.entities.allSatisfy { $0.lost == 0 }, "\(result.report.entities.map(\.lost))")
  }

  // MARK: References

  @Test("Rows that others refer to are lost at least, where nothing else counts them")
  func references() throws {
    let schema = """
      CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE car (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES owner(id), driver REFERENCES owner, plate TEXT)
      """
    let scene = try PlainScene(schema: schema) { db in
      for id in 1...20 { try db.execute(sql: "INSERT INTO owner VALUES (?, ?)", arguments: [id, "owner \(id)"]) }
      for id in 1...30 {
        try db.execute(
          sql: "INSERT INTO car VALUES (?, ?, ?, ?)",
          arguments: [id, id % 4 == 0 ? nil : 1 + id % 5, id % 3 == 0 ? 9 : nil, "plate \(id)"])
      }
    }
    let cars = try #require(scene.truth["car"])
    let referred = Set(cars.flatMap { [$0[2], $0[3]] }.filter { !$0.isNull })
    // The roots are made one after another: page 2 is that of the owners, and has all of them.
    let zeroed = scene.changing {
      $0.main.replaceSubrange(scene.range(of: 2), with: repeatElement(0, count: scene.pageSize))
    }
    let folder = try TemporaryFolder()
    let store = try folder.write(zeroed.main, to: "Store.sqlite")
    let report = try Salvager().salvage(store, to: folder.appending("Out.sqlite"), model: nil, options: .init())
    let owner = try #require(report.entities.first { $0.name == "owner" })
    #expect(referred.count == 6 && owner.recovered == 0)
    #expect(owner.lost == Int64(referred.count) && owner.lostBasis == .unknown && !owner.isLostExact)
    #expect(owner.count.lostNumber == "at least 6" && report.count.percent == nil)
    #expect(report.count.words.hasPrefix("Recovered 30 of at least 36 records (at most 83 %). 6 records are lost"))
  }

  // MARK: What was set aside

  @Test("Records that were set aside are among those that the store held")
  func setAside() throws {
    let scene = try RebuildScene(seed: 7, records: 60)
    let queue = try DatabaseQueue(path: scene.store.string)
    let people = try queue.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM ZPERSON") } ?? 0
    let held = try queue.read { database in
      try ["ZSHIP", "ZPERSON", "ZPORT", "ZFLAG"].reduce(Int64(0)) { sum, table in
        sum + (try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0)
      }
    }
    try queue.close()
    try scene.change(
      "DROP INDEX Z_Person_UNIQUE_name",
      "UPDATE ZPERSON SET ZNAME = (SELECT ZNAME FROM ZPERSON WHERE Z_PK = 8) WHERE Z_PK IN (9, 10)")
    let report = try scene.rebuild(scene.store).report
    let person = try #require(report.entities.first { $0.name == "Person" })
    #expect(person.setAside == 2 && person.recovered == people - 2 && person.count.total == people)
    #expect(report.count.setAside == 2 && report.count.total == held && report.count.percent ?? 100 < 100)
    #expect(
      report.count.words.contains("of \(held) records") && report.count.words.contains("2 records were set aside."))
  }

  // MARK: Pairs

  /// A store with one many-to-many relationship, its join table and how many pairs that has.
  private func pairScene() throws -> (scene: RebuildScene, table: String, pairs: Int64, roots: [Int]) {
    let scene = try RebuildScene(seed: 5, records: 60)
    let table = try #require(try StoreLayout(RebuildScene.model()).joinTables.first).name
    let queue = try DatabaseQueue(path: scene.store.string)
    let (pairs, roots) = try queue.read { database in
      (
        try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0,
        try Int.fetchAll(database, sql: "SELECT rootpage FROM sqlite_master WHERE tbl_name = ?", arguments: [table])
      )
    }
    try queue.close()
    let hasPairs = pairs > 0 && roots.count >= 2
    try #require(hasPairs)
    return (scene, table, pairs, roots)
  }

  /// A copy of a store with zeros in some pages and in all that they lead to.
  private func zeroing(_ roots: [Int], of scene: RebuildScene) throws -> FilePath {
    var bytes = try FileSystem().contents(of: scene.store, limit: 1 << 24)
    let size = Int(bytes[16]) << 8 | Int(bytes[17])
    func number(at offset: Int, _ length: Int) -> Int {
      bytes[offset..<(offset + length)].reduce(0) { $0 << 8 | Int($1) }
    }
    var open = roots
    while let page = open.popLast() {
      let start = (page - 1) * size
      if bytes[start] == 2 || bytes[start] == 5 {
        open += (0..<number(at: start + 3, 2)).map { number(at: start + number(at: start + 12 + 2 * $0, 2), 4) }
        open.append(number(at: start + 8, 4))
      }
      for offset in start..<(start + size) { bytes[offset] = 0 }
    }
    return try scene.folder.write(bytes, to: "Zeroed\(roots.count).sqlite")
  }

  @Test("Pairs of which nothing is left are said to be, and the recovery is not called whole")
  func lostPairs() throws {
    let (scene, table, pairs, roots) = try pairScene()
    let report = try scene.rebuild(try zeroing(roots, of: scene)).report
    #expect(report.count.lost == 0 && report.count.recovered == report.count.total, "the records are all there")
    let count = report.count.pairs
    #expect(count.recovered == 0 && !count.isWhole)
    if count.isLostExact { #expect(count.lost == pairs) }
    #expect(report.count.percent ?? 99 < 100 && !report.count.words.contains("(100 %)"), "\(report.count.words)")
    #expect(report.count.words.contains("pairs of many-to-many relationships"))
    #expect(!report.isComplete && report.lacksRecords)
    #expect(report.pairs.map(\.table) == [table])
  }

  @Test("Pairs that are there, or that the index of their key has, are counted as recovered")
  func recoveredPairs() throws {
    let (scene, _, pairs, roots) = try pairScene()
    let sound = try scene.rebuild(scene.store).report
    #expect(sound.count.pairs.recovered == pairs && sound.count.pairs.isWhole && sound.isComplete)
    #expect(sound.count.percent == 100)
    let table = try #require(roots.first)
    let report = try scene.rebuild(try zeroing([table], of: scene)).report
    let count = report.count.pairs
    #expect(count.recovered + count.lost == pairs || !count.isLostExact)
    #expect(count.recovered == pairs || report.count.percent ?? 99 < 100)
  }

  @Test("A pair of which a record is gone is set aside, and is none that was recovered")
  func halfPairs() throws {
    let (scene, table, pairs, _) = try pairScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    let layout = try StoreLayout(RebuildScene.model())
    let join = try #require(layout.joinTables.first)
    let port = try queue.read { database in
      let columns = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
      let column = try #require(
        columns.first { $0.uppercased().hasSuffix("PORTS") || $0.uppercased().hasSuffix("PORTS1") })
      let row = try #require(
        try Row.fetchOne(database, sql: "SELECT \(column) AS k, count(*) AS n FROM \(table) GROUP BY 1 ORDER BY 2 DESC")
      )
      return (key: row["k"] as Int64, pairs: row["n"] as Int64)
    }
    try queue.close()
    try scene.change("DELETE FROM ZPORT WHERE Z_PK = \(port.key)")
    let report = try scene.rebuild(scene.store).report
    #expect(
      report.count.pairs.setAside == port.pairs && report.count.pairs.recovered == pairs - port.pairs, "\(join.name)")
    #expect(report.count.pairs.total == pairs)
    #expect(report.count.words.contains("\(port.pairs) pair") && report.count.percent ?? 99 < 100)
  }
}
