import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import TestSupport
import Testing

@Suite("Whose a page is, by the order of evidence")
struct EvidenceOrderTests {
  private func root(_ name: String, _ scene: PlainScene) throws -> UInt32 {
    let schema = try SQLiteFormat.Database(main: MemoryBytes(scene.main)).schema()
    return try #require(schema.entries.first { $0.name == name }).rootPage
  }

  private func zeroing(_ pages: [UInt32], _ scene: PlainScene) -> PlainScene {
    scene.changing { changed in
      for page in pages {
        changed.main.replaceSubrange(scene.range(of: page), with: repeatElement(0, count: scene.pageSize))
      }
    }
  }

  /// The page of the list of tables that has a statement.
  private func listPage(with statement: String, _ scene: PlainScene) throws -> UInt32 {
    let words = Array(statement.utf8)
    return try #require(
      scene.leaves(below: 1).first { page in
        let bytes = scene.main[scene.range(of: page)]
        return bytes.indices.contains { bytes[$0...].starts(with: words) }
      })
  }

  @Test("Rows that lack values go to the table that columns were added to, and whole rows to theirs")
  func shortRows() throws {
    let scene = try PlainScene(
      schema: """
        CREATE TABLE a (id INTEGER PRIMARY KEY, x TEXT);
        CREATE TABLE b (id INTEGER PRIMARY KEY, p TEXT, r INT)
        """
    ) { db in
      for id in 0..<400 {
        try db.execute(sql: "INSERT INTO a VALUES (?, ?)", arguments: [id, "alpha text number \(id)"])
        try db.execute(sql: "INSERT INTO b VALUES (?, ?, ?)", arguments: [id, "beta words of row \(id)", id])
      }
      try db.execute(sql: "ALTER TABLE a ADD COLUMN y INT DEFAULT 42; ALTER TABLE a ADD COLUMN z TEXT DEFAULT 'd'")
      for id in 400..<700 {
        try db.execute(sql: "INSERT INTO a VALUES (?, ?, ?, 'zz')", arguments: [id, "alpha text number \(id)", id])
      }
    }
    let result = try zeroing([root("a", scene), root("b", scene)], scene).salvage(withModel: false)
    #expect(scene.falseRows(result) == 0 && scene.missingRows(result) == 0)
  }

  @Test(
    "A table of which one column has no type keeps its pages where another table lost one", arguments: [true, false])
  func untypedColumn(hasKey: Bool) throws {
    let key = hasKey ? "CREATE TABLE meta (key TEXT PRIMARY KEY, value);" : ""
    let scene = try PlainScene(
      schema: """
        CREATE TABLE f (id INTEGER PRIMARY KEY, parent INT, v);
        CREATE TABLE a (x TEXT, y INT, v TEXT);
        CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT); \(key)
        """
    ) { db in
      for id in 1...1500 {
        try db.execute(sql: "INSERT INTO f VALUES (?, ?, ?)", arguments: [id, id / 3, "v \(id)"])
        try db.execute(sql: "INSERT INTO a VALUES (?, ?, ?)", arguments: ["x \(id)", id, "w \(id)"])
        try db.execute(sql: "INSERT INTO item (name) VALUES (?)", arguments: ["item \(id)"])
        if hasKey { try db.execute(sql: "INSERT INTO meta VALUES (?, ?)", arguments: ["key \(id)", "value \(id)"]) }
      }
    }
    for table in ["a", "item"] {
      let leaf = try scene.leaves(below: root(table, scene))[3]
      let result = try zeroing([leaf], scene).salvage(withModel: false)
      #expect(scene.falseRows(result) == 0)
      for other in scene.truth.keys where other != table {
        #expect(result.rows[other] == scene.truth[other], "\(other)")
      }
    }
  }

  @Test(
    "The entries of an index never fill a table without rowids, and its own rows come back", arguments: [true, false])
  func entries(isExpression: Bool) throws {
    let index =
      isExpression ? "CREATE INDEX lower_name ON person (lower(name))" : "CREATE INDEX by_name ON person (name)"
    let scene = try PlainScene(
      schema: """
        CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, age INT); \(index);
        CREATE TABLE tag (name TEXT PRIMARY KEY, weight INT) WITHOUT ROWID
        """
    ) { db in
      for id in 1...2000 {
        try db.execute(sql: "INSERT INTO person VALUES (?, ?, ?)", arguments: [id, "Person \(id)", id % 90])
      }
      for id in 1...3 { try db.execute(sql: "INSERT INTO tag VALUES (?, ?)", arguments: ["tag \(id)", id]) }
    }
    // Nothing is left of the list of tables.
    let result = try zeroing([1], scene).salvage()
    #expect(scene.falseRows(result) == 0 && scene.missingRows(result) == 0)
  }

  @Test("Two roots that were exchanged are found by what their rows cannot be")
  func exchangedRoots() throws {
    let scene = try PlainScene(
      schema: """
        CREATE TABLE one (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
        CREATE TABLE two (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, d TEXT)
        """
    ) { db in
      for id in 1...900 {
        try db.execute(sql: "INSERT INTO one VALUES (?, ?, 'b')", arguments: [id, "one \(id)"])
        try db.execute(sql: "INSERT INTO two VALUES (?, ?, 'b', 'c', 'd')", arguments: [id, "two \(id)"])
      }
    }
    let result = try scene.swapping(root("one", scene), root("two", scene)).salvage(withModel: false)
    #expect(scene.falseRows(result) == 0 && scene.missingRows(result) == 0)
  }

  @Test("A table that is whole from its root takes no page of a table that the list of tables has lost")
  func wholeTree() throws {
    // The list of tables fills several pages, so that one of them can be lost.
    let others = (1...60).map { "CREATE TABLE other\($0) (id INTEGER PRIMARY KEY, text TEXT, number INTEGER);" }
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE feed (id INTEGER PRIMARY KEY, name TEXT, size REAL); \(others.joined())"
        + "CREATE TABLE scene (id INTEGER PRIMARY KEY, name TEXT, size REAL)"
    ) { db in
      for id in 1...300 {
        try db.execute(sql: "INSERT INTO scene VALUES (?, ?, ?)", arguments: [id, "scene \(id)", 0.5])
      }
    }
    let lost = try listPage(with: "CREATE TABLE scene", scene)
    let result = try zeroing([lost], scene).salvage(withModel: false)
    #expect(result.rows["feed"] == [] && !result.report.isComplete)
  }

  @Test("A bit of a declaration leaves every value in its column", arguments: 0..<40)
  func declaration(bit: Int) throws {
    let scene = try PlainScene(schema: "CREATE TABLE person (id INTEGER PRIMARY KEY, born INT, name TEXT, size REAL)") {
      db in
      for id in 1...50 {
        try db.execute(sql: "INSERT INTO person VALUES (?, ?, ?, ?)", arguments: [id, id, "name \(id)", 0.5])
      }
    }
    let words = Array("CREATE TABLE person (id".utf8)
    let place = try #require(scene.main.indices.first { scene.main[$0...].starts(with: words) })
    // The words before the name of the table.
    let result = try scene.changing { $0.main[place + bit / 3 % 12] ^= 1 << (bit % 6) }.salvage(withModel: false)
    let rows = result.rows["person"] ?? []
    #expect(rows == scene.truth["person"])
  }

  @Test("A comma of a declaration that is damaged makes the columns doubtful, and loses no value")
  func comma() throws {
    let scene = try PlainScene(schema: "CREATE TABLE person (id INTEGER PRIMARY KEY, born INT, name TEXT, size REAL)") {
      db in
      for id in 1...50 {
        try db.execute(sql: "INSERT INTO person VALUES (?, ?, ?, ?)", arguments: [id, id, "name \(id)", 0.5])
      }
    }
    let words = Array(", name TEXT".utf8)
    let place = try #require(scene.main.indices.first { scene.main[$0...].starts(with: words) })
    let result = try scene.changing { $0.main[place] = UInt8(ascii: "l") }.salvage(withModel: false)
    let rows = try #require(result.rows["person"])
    #expect(Set(rows.map { Set($0) }) == Set(try #require(scene.truth["person"]).map { Set($0) }))
    #expect(result.report.doubtful == 50 && !result.report.isComplete)
  }

  @Test("Pages that only led to others are no lost rows")
  func innerPages() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE t1 (id INTEGER PRIMARY KEY, a INT, b TEXT); CREATE TABLE t2 (id INTEGER PRIMARY KEY, a TEXT, b INT);
        CREATE TABLE t3 (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c INT); CREATE TABLE t4 (id INTEGER PRIMARY KEY, a INT);
        CREATE TABLE t5 (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, d REAL)
        """
    ) { db in
      for id in 1...900 {
        for values in [
          "t1 VALUES (?, 5, 'b')", "t2 VALUES (?, 'a', 6)", "t3 VALUES (?, 'a', 'b', 7)", "t4 VALUES (?, 8)",
        ] {
          try db.execute(sql: "INSERT INTO \(values)", arguments: [id * 7])
        }
        try db.execute(sql: "INSERT INTO t5 VALUES (?, 'a', 'b', 'c', 9.5)", arguments: [id * 7])
      }
    }
    let roots = try (1...5).map { try root("t\($0)", scene) }
    let result = try zeroing(roots, scene).salvage(withModel: false)
    #expect(result.report.recovered == 4500 && result.report.lost == 0)
  }

  @Test("A page keeps its table where the first of its cells was overwritten, and so does a page of the list of tables")
  func overwrittenSectors() throws {
    let others = (1...40).map { "CREATE TABLE other\($0) (id INTEGER PRIMARY KEY, text TEXT, number INTEGER);" }
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 4096",
      schema: others.joined() + "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, number INT)"
    ) { db in
      for id in (1...90).reversed() {
        try db.execute(sql: "INSERT INTO note VALUES (?, ?, ?)", arguments: [id, "title \(id)", id])
      }
    }
    // The first row was written last, so that its cell is the lowest one.
    let leaf = try root("note", scene)
    let start = scene.range(of: leaf).lowerBound
    let first = Int(scene.main[start + 8]) << 8 | Int(scene.main[start + 9])
    var random = SeededGenerator(seed: 7)
    let result = try scene.changing { changed in
      for index in 0..<200 { changed.main[start + first + index] = UInt8.random(in: 1...255, using: &random) }
    }.salvage(withModel: false)
    #expect(try #require(result.rows["note"]).count > 70 && result.report.unplacedRows == 0)

    let list = try #require(scene.leaves(below: 1).first { $0 > 1 })
    let lost = try scene.changing { changed in
      let range = changed.range(of: list)
      for index in range.suffix(512) { changed.main[index] = UInt8.random(in: 1...255, using: &random) }
    }.salvage(withModel: false)
    // Most statements of that page are still there.
    #expect(lost.report.entities.count > 30)
  }

  @Test("Two pages of one table have no rowid in common: one of them is that of another")
  func sharedKeys() throws {
    let scene = try PlainScene(
      schema: "CREATE TABLE a (id INTEGER PRIMARY KEY, n NUMERIC); CREATE TABLE b (p INT, q REAL)"
    ) { db in
      for id in 1...3 {
        try db.execute(sql: "INSERT INTO a VALUES (?, ?)", arguments: [id, Double(id) + 0.25])
        try db.execute(sql: "INSERT INTO b VALUES (?, ?)", arguments: [id * 1000, Double(id) + 0.5])
      }
    }
    let result = try zeroing([1], scene).salvage()
    #expect(result.rows["a"] == scene.truth["a"] && result.rows["b"] == scene.truth["b"])
  }

  @Test("A leaf of a full-text index and the only page of a table that were exchanged go back")
  func exchangedLeaves() throws {
    let scene = try PlainScene(
      schema: """
        CREATE TABLE engine (id INTEGER PRIMARY KEY, c TEXT, x TEXT DEFAULT 'd');
        CREATE TABLE wide (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, d TEXT);
        CREATE VIRTUAL TABLE words USING fts5(title, body)
        """
    ) { db in
      for id in 1...4 { try db.execute(sql: "INSERT INTO engine VALUES (?, ?, 'x')", arguments: [id, "engine \(id)"]) }
      for id in 1...300 {
        try db.execute(
          sql: "INSERT INTO words VALUES (?, ?)", arguments: ["title \(id)", "a body of some words \(id)"])
      }
    }
    let leaf = try #require(scene.leaves(below: root("words_content", scene)).first)
    let result = try scene.swapping(root("engine", scene), leaf).salvage(withModel: false)
    let isMarked = result.report.doubtful > 0 || !result.report.isComplete
    #expect(result.rows["engine"] == scene.truth["engine"] || isMarked)
  }

  @Test("The sizes of a full-text index are no rows of an empty table, though its root leads to them")
  func exchangedSizes() throws {
    let scene = try PlainScene(
      schema:
        "CREATE TABLE empty (id INTEGER PRIMARY KEY, t TEXT, b BLOB); CREATE VIRTUAL TABLE words USING fts5(title)"
    ) { db in
      for id in 1...100 { try db.execute(sql: "INSERT INTO words VALUES (?)", arguments: ["title \(id)"]) }
    }
    let result = try scene.swapping(root("empty", scene), root("words_docsize", scene)).salvage(withModel: false)
    #expect(result.rows["empty"] == [])
  }

  @Test("Rows of a table that the list has lost are not certain in another that they fit")
  func unlistedTwin() throws {
    let others = (1...60).map { "CREATE TABLE other\($0) (id INTEGER PRIMARY KEY, text TEXT, number INTEGER);" }
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE feed (id INTEGER PRIMARY KEY, name TEXT, size REAL, x TEXT); \(others.joined())"
        + "CREATE TABLE scene (id INTEGER PRIMARY KEY, name TEXT, size REAL, y TEXT)"
    ) { db in
      for id in 1...300 {
        try db.execute(sql: "INSERT INTO feed VALUES (?, ?, ?, 'x')", arguments: [id, "feed \(id)", 0.5])
        try db.execute(sql: "INSERT INTO scene VALUES (?, ?, ?, 'y')", arguments: [id + 300, "scene \(id)", 0.5])
      }
    }
    let lost = try listPage(with: "CREATE TABLE scene", scene)
    // The last leaf of the other is lost too, so that it has room for more.
    let last = try #require(scene.leaves(below: root("feed", scene)).last)
    let result = try zeroing([lost, last], scene).salvage(withModel: false)
    #expect(scene.falseRows(result) <= result.report.doubtful)
  }
}
