import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("A page of another table is none of the table's that leads to it")
struct MisplacedPageTests {
  private static let people = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, born REAL)"
  private static let marks = "CREATE TABLE marks (id INTEGER PRIMARY KEY, place INTEGER, mark TEXT NOT NULL)"

  /// A table of pairs with the indexes that Core Data makes for it.
  private static func pairs(_ name: String) -> String {
    """
    CREATE TABLE \(name) (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
    CREATE INDEX \(name)_b ON \(name) (b, a)
    """
  }

  private static func scene(people count: Int, _ others: String...) throws -> PlainScene {
    try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: ([people, marks, pairs("one"), pairs("two"), pairs("none")] + others).joined(separator: ";\n")
    ) { db in
      for index in 1...count {
        try db.execute(
          sql: "INSERT INTO people VALUES (?, ?, ?)", arguments: [index, "person \(index)", Double(index) + 0.5])
      }
      for index in 1...20 {
        try db.execute(sql: "INSERT INTO marks VALUES (?, ?, ?)", arguments: [index, index * 7, "mark \(index)"])
        try db.execute(sql: "INSERT INTO one VALUES (?, ?)", arguments: [index, 40 - index])
        try db.execute(sql: "INSERT INTO two VALUES (?, ?)", arguments: [index * 3, index])
      }
    }
  }

  private func root(_ table: String, _ scene: PlainScene) throws -> UInt32 {
    let schema = try SQLiteFormat.Database(main: MemoryBytes(scene.main)).schema()
    return try #require(schema.tables.first { $0.name == table }).rootPage
  }

  /// The store with the bytes of one page over those of another one.
  private func copying(_ from: UInt32, over page: UInt32, _ scene: PlainScene) -> PlainScene {
    scene.changing { $0.main.replaceSubrange(scene.range(of: page), with: scene.main[scene.range(of: from)]) }
  }

  @Test("Over the only page of a table of another shape", arguments: [true, false])
  func misfit(withModel: Bool) throws {
    let scene = try Self.scene(people: 15)
    let damaged = try copying(root("marks", scene), over: root("people", scene), scene)
    let result = try damaged.salvage(withModel: withModel)
    #expect(scene.falseRows(result) == 0)
    #expect(result.rows["marks"] == scene.truth["marks"])
    #expect(!result.report.isComplete)
    #expect(result.report.causes.contains { $0.code == .pageCopies }, "\(result.report.causes.map(\.words))")
  }

  @Test("Over the only page of a table of the same shape, whose indexes tell")
  func sameShape() throws {
    let scene = try Self.scene(people: 15)
    let result = try copying(root("two", scene), over: root("one", scene), scene).salvage(withModel: false)
    #expect(scene.falseRows(result) == 0)
    #expect(result.rows["two"] == scene.truth["two"])
    // The index of the key has all values of each row.
    #expect(result.rows["one"] == scene.truth["one"])
    #expect(result.report.causes.contains { $0.code == .pageCopies }, "\(result.report.causes.map(\.words))")
  }

  @Test("A copy fills no table of its shape that is empty", arguments: [15, 600])
  func emptyTable(people: Int) throws {
    let scene = try Self.scene(people: people)
    let root = try root("people", scene)
    let leaf = people > 15 ? try scene.leaves(below: root)[4] : root
    let result = try copying(self.root("one", scene), over: leaf, scene).salvage(withModel: false)
    #expect(result.rows["none"] == [])
    #expect(scene.falseRows(result) == 0)
    #expect(result.rows["one"] == scene.truth["one"])
    #expect(!result.report.isComplete)
  }

  @Test(
    "Over a leaf of a table WITHOUT ROWID: the rows that were there are lost, and none of another table is there",
    arguments: ["named", "keyed"])
  func keyedLeaf(from table: String) throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE keyed (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID;
        CREATE TABLE named (k TEXT PRIMARY KEY, v TEXT, n INTEGER) WITHOUT ROWID
        """
    ) { db in
      for index in 1...300 {
        try db.execute(
          sql: "INSERT INTO keyed VALUES (?, ?)",
          arguments: ["key \(1000 + index)", Data(repeating: UInt8(index & 255), count: 30)])
        try db.execute(
          sql: "INSERT INTO named VALUES (?, ?, ?)", arguments: ["name \(1000 + index)", "value \(index)", index])
      }
    }
    let from = try scene.leaves(below: root(table, scene))[2]
    let leaves = try scene.leaves(below: root("named", scene))
    for over in [leaves[0], leaves[4], leaves[leaves.count - 1]] {
      let result = try copying(from, over: over, scene).salvage(withModel: false)
      #expect(scene.falseRows(result) == 0)
      #expect(result.rows["keyed"] == scene.truth["keyed"])
      #expect(!result.report.isComplete && result.report.lost > 0, "\(result.report.lost)")
      #expect(result.report.doubtful == 0)
    }
  }

  @Test("The last leaf of a table over that of another of its shape: nothing tells which is the copy")
  func lastLeaf() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: ["first", "second"].map { "CREATE TABLE \($0) (id INTEGER PRIMARY KEY, name TEXT, v REAL)" }
        .joined(separator: ";\n")
    ) { db in
      for index in 1...300 {
        for table in ["first", "second"] {
          try db.execute(
            sql: "INSERT INTO \(table) VALUES (?, ?, ?)",
            arguments: [index, "\(table.prefix(5)) \(index)", Double(index) + 0.5])
        }
      }
    }
    let last = try ["first", "second"].map { try scene.leaves(below: root($0, scene))[0] }
    let result = try copying(last[0], over: last[1], scene).salvage(withModel: false)
    #expect(scene.falseRows(result) <= Int(result.report.doubtful))
    #expect(!result.report.isComplete)
  }

  @Test("Leaves that an app's older copy of a table still has in common with it are no damage")
  func olderCopy() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);
        CREATE TABLE former (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);
        CREATE TABLE keys (k TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
        CREATE TABLE formerKeys (k TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID
        """
    ) { db in
      for index in 1...300 {
        for table in ["notes", "former"] {
          try db.execute(sql: "INSERT INTO \(table) VALUES (?, ?, ?)", arguments: [index, "note \(index)", index])
        }
        for table in ["keys", "formerKeys"] {
          try db.execute(sql: "INSERT INTO \(table) VALUES (?, ?)", arguments: ["key \(1000 + index)", index])
        }
      }
      try db.execute(sql: "UPDATE notes SET n = n + 7 WHERE id % 40 = 1; UPDATE keys SET n = n + 7 WHERE n % 40 = 1")
    }
    let result = try scene.salvage(withModel: false)
    #expect(result.rows.filter { scene.truth[$0.key] != nil } == scene.truth)
    #expect(result.report.isComplete && result.report.doubtful == 0 && result.report.lost == 0)
  }

  // MARK: The list of tables

  /// A store whose list of tables takes several pages, with a table of as many columns as the list has, and those pages.
  private static func listed() throws -> (scene: PlainScene, list: [UInt32]) {
    let five = "CREATE TABLE five (id INTEGER PRIMARY KEY, kind INTEGER, version INTEGER, weight REAL, name TEXT)"
    let others = (1...40).map { "CREATE TABLE table\($0) (id INTEGER PRIMARY KEY, text TEXT, number INTEGER)" }
    let schema = ([five] + others).joined(separator: ";\n")
    let scene = try PlainScene(pragmas: "PRAGMA page_size = 1024", schema: schema) { db in
      for index in 1...40 { try db.execute(sql: "INSERT INTO table\(index) (text) VALUES ('one')") }
      for index in 1...12 {
        try db.execute(
          sql: "INSERT INTO five VALUES (?, 7, 1, ?, ?)", arguments: [index, Double(index) + 0.5, "name \(index)"])
      }
    }
    let page = Array(scene.main[0..<1024])
    func number(at offset: Int, _ length: Int) -> UInt32 {
      page[offset..<(offset + length)].reduce(0) { $0 << 8 | UInt32($1) }
    }
    try #require(page[100] == 5)
    let list = (0..<Int(number(at: 103, 2))).map { number(at: Int(number(at: 112 + 2 * $0, 2)), 4) }
    return (scene, list + [number(at: 108, 4)])
  }

  @Test(
    "Over the first page of the file, which is no table's: nothing of the page that it is a copy of is missing",
    arguments: ["five", "table7", "first of the list", "last of the list"], [true, false])
  func firstPage(name: String, withModel: Bool) throws {
    let (scene, list) = try Self.listed()
    let page: UInt32?
    switch name {
    case "first of the list": page = list.first
    case "last of the list": page = list.last
    default: page = try root(name, scene)
    }
    let damaged = copying(try #require(page), over: 1, scene)
    let result = try damaged.salvage(withModel: withModel)
    #expect(scene.missingRows(result) == 0 && scene.falseRows(result) == 0)
    #expect(result.report.unplacedRows == 0 && result.report.recovered == 52 && !result.report.isComplete)
    #expect(result.report.pages.runs.first?.state == .damaged && result.report.pages.runs.first?.owner == nil)
    #expect(result.report.causes.map(\.code).contains(.staleFirstPage))
  }

  @Test("Over a page of the list of tables: the rows are those of the table, or fit none that is known")
  func listPage() throws {
    let (scene, list) = try Self.listed()
    for page in list {
      let damaged = try copying(root("five", scene), over: page, scene)
      let known = try damaged.salvage(withModel: true)
      #expect(known.rows["five"] == scene.truth["five"] && scene.falseRows(known) == 0, "page \(page)")
      let result = try damaged.salvage(withModel: false)
      #expect(result.rows["five"] == scene.truth["five"] || result.report.unplacedRows >= 12, "page \(page)")
      #expect(!known.report.isComplete && !result.report.isComplete && result.report.mayLackTables)
    }
  }

  // MARK: Trees

  @Test("The root of a tree over that of another of the same shape")
  func innerRoot() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024", schema: "\(Self.pairs("one")); \(Self.pairs("two"))"
    ) { db in
      for index in 1...800 {
        try db.execute(sql: "INSERT INTO one VALUES (?, ?)", arguments: [index, 4000 - index])
        try db.execute(sql: "INSERT INTO two VALUES (?, ?)", arguments: [index * 3, index])
      }
    }
    let result = try copying(root("two", scene), over: root("one", scene), scene).salvage(withModel: false)
    #expect(scene.falseRows(result) == 0)
    #expect(result.rows["two"] == scene.truth["two"])
  }

  @Test("The metadata of a Core Data store over the only page of an entity", arguments: [true, false])
  func metadata(withModel: Bool) throws {
    let scene = try SalvageScene(
      seed: 83, books: 3, finish: ["UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_NAME = 'Book'"])
    let tables = try SQLiteFormat.Database(main: MemoryBytes(scene.main)).schema().tables
    func range(_ name: String) throws -> Range<Int> {
      let start = (Int(try #require(tables.first { $0.name == name }).rootPage) - 1) * SalvageScene.pageSize
      return start..<(start + SalvageScene.pageSize)
    }
    for name in ["Z_METADATA", "Z_PRIMARYKEY"] {
      let (from, over) = (try range(name), try range("ZBOOK"))
      let result = try scene.changing { $0.main.replaceSubrange(over, with: scene.main[from]) }
        .salvage(withModel: withModel)
      #expect(scene.falseRows(result) == 0, "\(name)")
      #expect(result.rows["ZBOOK"] == [], "\(name)")
      #expect(scene.missingRows(result, of: ["ZREADER", "Z_1READERS", "NOTES", "WORDS"]) == 0, "\(name)")
      #expect(!result.report.isComplete && result.report.lost == 3, "\(name): \(result.report.lost)")
    }
  }

  @Test("Roots of an entity and of the history that were exchanged: each row is of the entity whose number it has")
  func exchangedRoots() throws {
    let scene = try SalvageScene(
      seed: 84, books: 40,
      finish: [
        "CREATE TABLE ATRANSACTIONSTRING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR)",
        "INSERT INTO ATRANSACTIONSTRING VALUES (1, 16003, 1, 'com.example.app'), (2, 16003, 1, 'app')",
      ])
    let exchanged = try exchangingRoots("ATRANSACTIONSTRING", "ZREADER", scene.main, in: scene.folder)
    let result = try scene.changing { $0.main = exchanged }.salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result, of: ["ZBOOK", "ZREADER", "Z_1READERS"]) == 0)
  }

  /// The store with the root pages of two tables exchanged in its list of tables.
  private func exchangingRoots(
    _ first: String, _ second: String, _ main: [UInt8], in folder: TemporaryFolder
  ) throws -> [UInt8] {
    let path = try folder.write(main, to: "Exchanged.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA writable_schema = 1")
      let roots = try [first, second].map { name in
        try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [name])
      }
      for (name, root) in zip([second, first], roots) {
        try db.execute(sql: "UPDATE sqlite_master SET rootpage = ? WHERE name = ?", arguments: [root, name])
      }
    }
    try queue.close()
    return try FileSystem().contents(of: path, limit: 1 << 28)
  }

  @Test(
    "Roots of tables that were exchanged: a table has the rows of its index",
    arguments: [(20, 200), (200, 200), (600, 20)])
  func exchangedTables(birches: Int, inlets: Int) throws {
    let scene = try Self.trees(birches, inlets)
    let exchanged = try exchangingRoots("birch", "inlet", scene.main, in: scene.folder)
    let result = try scene.changing { $0.main = exchanged }.salvage(withModel: false)
    #expect(result.rows["birch"] == scene.truth["birch"] && result.rows["inlet"] == scene.truth["inlet"])
    #expect(!result.report.isComplete && result.report.doubtful == 0)
    #expect(result.report.remarks.contains { $0.contains("birch") && $0.contains("inlet") }, "\(result.report.remarks)")
  }

  @Test("Where the indexes are alike, their roots may have been exchanged instead: the rows are doubtful")
  func exchangedTablesOrIndexes() throws {
    let scene = try Self.trees(200, 300, "CREATE UNIQUE INDEX i2 ON inlet (title, amount, id)")
    let exchanged = try exchangingRoots("birch", "inlet", scene.main, in: scene.folder)
    let result = try scene.changing { $0.main = exchanged }.salvage(withModel: false)
    #expect(scene.falseRows(result) <= Int(result.report.doubtful))
    #expect(!result.report.isComplete)
  }

  private static func trees(_ birches: Int, _ inlets: Int, _ others: String...) throws -> PlainScene {
    let schema = [
      "CREATE TABLE birch (id INTEGER PRIMARY KEY, title TEXT, amount INTEGER, created TEXT)",
      "CREATE TABLE inlet (id INTEGER PRIMARY KEY, title TEXT, amount REAL, created TEXT)",
      "CREATE UNIQUE INDEX i1 ON birch (title, amount, id)",
    ]
    return try PlainScene(
      pragmas: "PRAGMA page_size = 1024", schema: (schema + others).joined(separator: ";\n")
    ) { db in
      for index in 1...birches {
        try db.execute(
          sql: "INSERT INTO birch VALUES (?, ?, ?, '2026')", arguments: [index, "birch \(index)", index * 31])
      }
      for index in 1...inlets {
        try db.execute(
          sql: "INSERT INTO inlet VALUES (?, ?, ?, '2025')", arguments: [index, "inlet \(index)", Double(index) / 7])
      }
    }
  }

  @Test("Rows of an earlier time that none of their indexes has are doubtful")
  func earlier() throws {
    func scene(isLater: Bool) throws -> PlainScene {
      try PlainScene(
        pragmas: "PRAGMA page_size = 4096",
        schema: """
          CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);
          CREATE INDEX items_name ON items (name); CREATE INDEX items_n ON items (n)
          """
      ) { db in
        for index in 1...30 {
          try db.execute(sql: "INSERT INTO items VALUES (?, ?, ?)", arguments: [index, "item \(index)", index])
        }
        if isLater { try db.execute(sql: "UPDATE items SET name = 'Ware ' || id, n = id + 500") }
      }
    }
    let (before, later) = (try scene(isLater: false), try scene(isLater: true))
    let page = later.range(of: try root("items", later))
    let result = try later.changing { $0.main.replaceSubrange(page, with: before.main[page]) }.salvage(withModel: false)
    #expect(Int(result.report.doubtful) >= later.falseRows(result))
    #expect(later.falseRows(result) == 30)
    #expect(!result.report.isComplete)
  }

  @Test("Tables of a sound store that hold the same rows keep them", arguments: [true, false])
  func sound(withModel: Bool) throws {
    // The types of a copy need not be those of its original, and SQLite keeps text in a column for binary data as it is.
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE words (word TEXT, sense TEXT, note TEXT); CREATE TABLE former (a BLOB, b BLOB, c BLOB);
        CREATE TABLE latter (word TEXT, sense TEXT, note TEXT);
        \(Self.pairs("one")); \(Self.pairs("two"))
        """
    ) { db in
      for index in 1...300 {
        try db.execute(
          sql: "INSERT INTO words VALUES (?, ?, ?)", arguments: ["word \(index)", "sense", "note \(index)"])
        for table in ["one", "two"] {
          try db.execute(sql: "INSERT INTO \(table) VALUES (?, ?)", arguments: [index, 1000 - index])
        }
      }
      try db.execute(sql: "INSERT INTO former SELECT * FROM words; INSERT INTO latter SELECT * FROM words")
    }
    let result = try scene.salvage(withModel: withModel)
    #expect(result.rows.filter { scene.truth[$0.key] != nil } == scene.truth)
    #expect(result.report.isComplete && result.report.doubtful == 0 && result.report.lost == 0)
  }
}
