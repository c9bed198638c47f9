import GRDB
import Platform
import SQLiteFormat
import Salvage
import TestSupport
import Testing

@Suite("Pages that nothing leads to and that may be free")
struct FreePageTests {
  /// A table that was made anew with its columns in another order: the pages of the old one are free, and still have its rows.
  ///
  /// The page that lists the free pages is the last one that the old table gave back.
  private func scene() throws -> PlainScene {
    try PlainScene(schema: "CREATE TABLE old (id INTEGER PRIMARY KEY, title TEXT, body TEXT)") { db in
      for index in 1...20 {
        try db.execute(
          sql: "INSERT INTO old VALUES (?, ?, ?)",
          arguments: [index, "title \(index)", String(repeating: "body \(index) ", count: 100)])
      }
      try db.execute(
        sql: """
          CREATE TABLE posts (id INTEGER PRIMARY KEY, body TEXT, title TEXT);
          INSERT INTO posts SELECT id, body, title FROM old;
          DROP TABLE old
          """)
    }
  }

  @Test("Where the list of free pages is gone, rows that fit a lost table are doubtful")
  func staleRows() throws {
    let scene = try scene()
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first { $0.name == "posts" }).rootPage
    let trunk = scene.main[32..<36].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    #expect(trunk > 0 && trunk != root)
    // The root, every page behind it, and the list of free pages.
    let last = UInt32(scene.main.count / scene.pageSize)
    let result = try scene.overwriting([trunk] + Array(root...last)).salvage(withModel: false)
    let found = result.rows["posts"] ?? []
    let stale = found.subtracting(scene.truth["posts"] ?? []).count
    let posts = try #require(result.report.entities.first { $0.table == "posts" })
    #expect(stale > 0, "the store is not what this test is about")
    #expect(Int(posts.doubtful) >= stale, "\(posts.doubtful) of \(stale) rows of another time are told")
    #expect(posts.doubts.keys.contains(.foundByContent))
  }

  @Test("Where the list of free pages is whole, such rows are none of the table's")
  func knownFreePages() throws {
    let scene = try scene()
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first { $0.name == "posts" }).rootPage
    let result = try scene.overwriting([root]).salvage(withModel: false)
    #expect(scene.falseRows(result) == 0)
  }
}
