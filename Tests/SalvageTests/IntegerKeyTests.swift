import GRDB
import TestSupport
import Testing

@Suite("Columns that were INTEGER PRIMARY KEY, in statements that say so no more")
struct IntegerKeyTests {
  private func scene(_ key: String, _ constraint: String = "") throws -> PlainScene {
    try PlainScene(schema: "CREATE TABLE person (\(key), name TEXT NOT NULL DEFAULT ('?')\(constraint))") { database in
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 800)
          INSERT INTO person (id, name) SELECT i * 3, 'name ' || i FROM n
          """)
    }
  }

  @Test(
    "One flipped bit of the type loses no key",
    arguments: [("id INTEGER PRIMARY KEY", ""), ("id integer", ", PRIMARY KEY (id)")])
  func flipped(key: String, constraint: String) throws {
    let scene = try scene(key, constraint)
    let statement = Array("id integer".utf8)
    let place = try #require(
      scene.main.indices.first { start in
        zip(statement, scene.main[start...].prefix(statement.count).map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 })
          .allSatisfy(==) && scene.main.count - start > statement.count
      })
    let damaged = scene.changing { $0.main[place + statement.count - 1] ^= 0x0A }
    for withModel in [true, false] {
      let result = try damaged.salvage(withModel: withModel)
      // The rowid, the key and the name of each row, as SQLite read them before.
      #expect(result.rows["person"] == scene.truth["person"], "with model: \(withModel)")
    }
  }

  @Test("A key without a value in any row stays one where the schema has its index")
  func own() throws {
    let scene = try PlainScene(schema: "CREATE TABLE person (id TEXT PRIMARY KEY, name TEXT)") { database in
      try database.execute(sql: "INSERT INTO person (name) VALUES ('one'), ('two')")
    }
    #expect(try scene.salvage(withModel: false).rows["person"] == scene.truth["person"])
  }
}
