import GRDB
import Platform
import SQLiteFormat
import Salvage
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

  @Test(
    "Several garbled bytes of the type lose no key, and are damage",
    arguments: ["INTEGERIpMS\u{F9}\u{D8}ry KEY", "INTEGER pQ\u{E9}\u{14}\u{E8}\u{DD}\u{13} KEY"])
  func garbled(text: String) throws {
    let scene = try scene("id INTEGER PRIMARY KEY")
    let type = text.unicodeScalars.map { UInt8($0.value) }
    let statement = Array("INTEGER PRIMARY KEY".utf8)
    let place = try #require(
      scene.main.indices.first { scene.main[$0...].prefix(statement.count).elementsEqual(statement) })
    try #require(type.count == statement.count)
    let damaged = scene.changing { $0.main.replaceSubrange(place..<(place + type.count), with: type) }
    #expect(try damaged.salvage(withModel: false).rows["person"] == scene.truth["person"])
    #expect(try SQLiteFormat.Database(main: MemoryBytes(damaged.main)).schema().findings.hasDamage)
  }

  @Test("A first column without a value stays so where its declaration is whole")
  func empty() throws {
    let scene = try PlainScene(schema: "CREATE TABLE person (note TEXT, big INTEGER UNSIGNED, name TEXT)") { database in
      try database.execute(sql: "INSERT INTO person (name) VALUES ('one'), ('two')")
    }
    #expect(try scene.salvage(withModel: false).rows["person"] == scene.truth["person"])
  }

  @Test(
    "The damaged key of a table without rowids swaps no values, sets no row aside, and makes all rows doubtful",
    arguments: [(3, 8), (8, 2)])
  func withoutRowids(offset: Int, bit: UInt8) throws {
    let scene = try PlainScene(
      schema: "CREATE TABLE pair (a INTEGER, b INTEGER, PRIMARY KEY (b DESC, a)) WITHOUT ROWID"
    ) { database in
      for number in 0..<600 {
        try database.execute(
          sql: "INSERT INTO pair VALUES (?, ?)", arguments: [number * 37 % 400, number * 91 % 599])
      }
    }
    let statement = Array("b DESC, a".utf8)
    let place = try #require(
      scene.main.indices.first { scene.main[$0...].prefix(statement.count).elementsEqual(statement) })
    let result = try scene.changing { $0.main[place + offset] ^= bit }.salvage(withModel: false)
    #expect(result.rows["pair"] == scene.truth["pair"])
    let account = try #require(result.report.entities.first { $0.table == "pair" })
    #expect(account.recovered == 600 && account.doubts == [.columnOrder: 600])
  }
}
