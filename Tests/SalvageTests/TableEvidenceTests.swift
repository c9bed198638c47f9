import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import TestSupport
import Testing

@Suite("Which of two tables of the same shape a page belongs to")
struct TableEvidenceTests {
  /// Two tables with the same columns and the same rowids, filled in turn so that their pages lie mixed.
  private func twins(_ pragmas: String) throws -> PlainScene {
    var random = SeededGenerator(seed: 4)
    return try PlainScene(
      pragmas: "PRAGMA page_size = 512; \(pragmas)",
      schema: """
        CREATE TABLE visits (at REAL, place INTEGER, mark BLOB);
        CREATE TABLE sales (at REAL, place INTEGER, mark BLOB)
        """
    ) { db in
      for index in 1...3000 {
        let mark = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        try db.execute(
          sql: "INSERT INTO visits VALUES (?, ?, ?)",
          arguments: [6e8 + Double(index), Int.random(in: 1...50, using: &random), Data(mark)])
        try db.execute(
          sql: "INSERT INTO sales VALUES (?, ?, ?)",
          arguments: [7e8 + Double(index), Int.random(in: 4000...5000, using: &random), Data(mark.prefix(12))])
      }
    }
  }

  @Test("Values tell, where some pages of both are known")
  func values() throws {
    let scene = try twins("")
    // One inner page below the root of each.
    let lost = try ["visits", "sales"].map { table in
      try #require(scene.innerPages(of: table).dropFirst().first)
    }
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) == 0)
  }

  @Test("Pointer maps tell, where nothing else does")
  func pointerMaps() throws {
    let scene = try twins("PRAGMA auto_vacuum = FULL")
    let lost = try ["visits", "sales"].map { try #require(scene.innerPages(of: $0).first) }
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) == 0)
  }

  @Test("Foreign keys tell, where no page of either is known")
  func foreignKeys() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 512; PRAGMA foreign_keys = 0",
      schema: """
        CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
        CREATE TABLE friends (one INTEGER REFERENCES people(id), other INTEGER REFERENCES people(id));
        CREATE TABLE roads (one INTEGER, other INTEGER, FOREIGN KEY (one) REFERENCES towns(id),
          FOREIGN KEY (other) REFERENCES towns(id))
        """
    ) { db in
      for index in 1...400 {
        try db.execute(sql: "INSERT INTO people VALUES (?, 'somebody')", arguments: [index])
        try db.execute(sql: "INSERT INTO towns VALUES (?, 'somewhere', 5)", arguments: [index + 5000])
        try db.execute(sql: "INSERT INTO friends VALUES (?, ?)", arguments: [index, 401 - index])
        try db.execute(sql: "INSERT INTO roads VALUES (?, ?)", arguments: [index + 5000, 5401 - index])
      }
    }
    let lost = try ["friends", "roads"].map { try #require(scene.innerPages(of: $0).first) }
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) == 0)
  }

  @Test("Indexes that have the rows tell, where the values are alike")
  func indexes() throws {
    var random = SeededGenerator(seed: 8)
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 512",
      schema: """
        CREATE TABLE one (a INTEGER, b INTEGER); CREATE TABLE two (a INTEGER, b INTEGER);
        CREATE INDEX one_a ON one (a); CREATE INDEX two_a ON two (a)
        """
    ) { db in
      for _ in 1...500 {
        for table in ["one", "two"] {
          try db.execute(
            sql: "INSERT INTO \(table) VALUES (?, 7)", arguments: [Int.random(in: 1...100_000, using: &random)])
        }
      }
    }
    let lost = try ["one", "two"].map { try #require(scene.innerPages(of: $0).first) }
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.unplacedRows == 0)
  }

  @Test("Where nothing tells, a page goes to no table")
  func nothing() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 512",
      schema: "CREATE TABLE one (a INTEGER, b INTEGER); CREATE TABLE two (a INTEGER, b INTEGER)"
    ) { db in
      for index in 1...500 {
        try db.execute(sql: "INSERT INTO one VALUES (?, 7)", arguments: [index])
        try db.execute(sql: "INSERT INTO two VALUES (?, 7)", arguments: [index])
      }
    }
    let lost = try ["one", "two"].map { try #require(scene.innerPages(of: $0).first) }
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.unplacedRows == 1000)
  }

  @Test("Pages of an index that stand in the tree of a table without rowids are none of its rows")
  func indexPages() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE pairs (b INTEGER, a TEXT, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
        CREATE TABLE keys (k TEXT PRIMARY KEY, v BLOB, n INTEGER) WITHOUT ROWID;
        CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, note TEXT);
        CREATE INDEX items_name ON items (name)
        """
    ) { db in
      for index in 1...1500 {
        try db.execute(sql: "INSERT INTO pairs VALUES (?, ?, ?)", arguments: [index, "word \(index % 90)", "sense"])
        try db.execute(sql: "INSERT INTO keys VALUES (?, ?, ?)", arguments: ["key \(index)", Data([1, 2]), index])
        try db.execute(sql: "INSERT INTO items VALUES (?, ?, ?)", arguments: [index, "item \(index)", "a note"])
      }
    }
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let schema = try database.schema()
    func root(_ name: String) throws -> UInt32 { try #require(schema.entries.first { $0.name == name }).rootPage }
    func copying(_ from: UInt32, to: UInt32) -> PlainScene {
      scene.changing { $0.main.replaceSubrange(scene.range(of: to), with: scene.main[scene.range(of: from)]) }
    }
    let leaves = try scene.leaves(below: root("pairs"))
    let foreign = try scene.leaves(below: root("items_name"))
    // Where nothing else is damaged, a page with the right number of fields is not looked at closely.
    let hit = try scene.leaves(below: root("items"))[7]
    let result = try copying(foreign[3], to: leaves[5]).overwriting([hit]).salvage()
    #expect(scene.falseRows(result) == 0)
    // The root of one tree over that of the other.
    let other = try copying(root("pairs"), to: root("keys")).salvage()
    #expect(scene.falseRows(other) == 0)
  }

  @Test("Pages whose first sector is lost go to their table by their rows, where what led to them is lost too")
  func tornPages() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, score REAL, title TEXT, note TEXT)"
    ) { db in
      for index in 1...4000 {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?, ?)",
          arguments: [index, Double(index) / 7, "title \(index)", "a note"])
      }
    }
    let inner = try #require(scene.innerPages(of: "notes").dropFirst().first)
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let children = try #require(try database.bTreePage(inner)).children.compactMap(\.self)
    let result = try scene.changing { damaged in
      for page in [inner, children[4], children[9]] {
        for index in damaged.range(of: page).prefix(512) { damaged.main[index] = 0 }
      }
    }.salvage()
    #expect(scene.falseRows(result) == 0)
    // Some thirty rows are on a page, and half of them are left.
    let missing = scene.missingRows(result)
    #expect(missing > 0 && missing <= 44, "\(missing)")
  }

  @Test("What a lost inner page of a table without rowids held is told as it is")
  func lostInnerRows() throws {
    let scene = try FileShapeTests.scene("PRAGMA page_size = 1024", rows: 400)
    let root = try #require(
      SQLiteFormat.Database(main: MemoryBytes(scene.main)).schema().entries.first { $0.name == "words" }
    ).rootPage
    let result = try scene.overwriting([root]).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(Int(result.report.lost) == scene.missingRows(result))
  }
}
