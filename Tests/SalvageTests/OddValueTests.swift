import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

/// SQLite lets any value stand in any column, and reads it: so does a salvage.
@Suite("Rows whose values are not of the kinds that their columns are declared for")
struct OddValueTests {
  /// Changes the declaration of a table that has rows already.
  private static func redeclare(_ table: String, _ old: String, _ new: String, _ db: GRDB.Database) throws {
    try db.execute(sql: "PRAGMA writable_schema = 1")
    try db.execute(
      sql: "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?", arguments: [old, new, table])
    try db.execute(sql: "PRAGMA schema_version = 77; PRAGMA writable_schema = 0")
  }

  /// Rows whose numbers are compared as text, which a column of text makes of them.
  private func asText(_ rows: PlainScene.Rows?) -> Set<[String]> {
    Set(
      (rows ?? []).map { row in
        row.map { value in
          switch value.storage {
          case .null: "NULL"
          case .int64(let number): "\(number)"
          case .double(let number): "\(number)"
          case .string(let text): text
          case .blob(let data): data.map { "\($0)" }.joined(separator: ",")
          }
        }
      })
  }

  private func expectWhole(_ scene: PlainScene, _ result: PlainScene.Result, _ tables: String...) {
    for table in tables {
      #expect(asText(result.rows[table]) == asText(scene.truth[table]), "\(table)")
      #expect(scene.truth[table]?.isEmpty == false)
    }
    #expect(result.report.causes == [], "\(result.report.causes.map(\.words))")
    #expect(result.report.lost == 0)
    #expect(result.report.doubtful == 0)
    #expect(result.report.unplacedRows == 0)
    #expect(result.report.isComplete)
  }

  @Test("In a sound store they are as certain as any, be they a few or all", arguments: [1, 3, 50])
  func oddClasses(every step: Int) throws {
    let scene = try PlainScene(schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB, b BLOB, c BLOB)") { db in
      for index in 1...500 {
        let isOdd = index % step == 0
        try db.execute(
          sql: "INSERT INTO t (a, b, c) VALUES (?, ?, ?)",
          arguments: [
            isOdd ? index.databaseValue : "text \(index)".databaseValue,
            isOdd ? (Double(index) / 4).databaseValue : "more".databaseValue,
            isOdd && index % 2 == 0 ? index.databaseValue : .null,
          ])
      }
      try Self.redeclare("t", "a BLOB, b BLOB, c BLOB", "a TEXT, b TEXT NOT NULL, c TEXT", db)
    }
    expectWhole(scene, try scene.salvage(withModel: false), "t")
  }

  @Test("A column of a STRICT table that takes anything does so, with rowids and without")
  func anything() throws {
    let scene = try PlainScene(
      schema: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, a ANY, i INT) STRICT;
        CREATE TABLE w (k TEXT PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID
        """
    ) { db in
      for index in 1...400 {
        let values: [DatabaseValue] = [
          .null, index.databaseValue, (Double(index) + 0.25).databaseValue, "word \(index)".databaseValue,
          Data([1, 2, UInt8(index % 256)]).databaseValue,
        ]
        try db.execute(sql: "INSERT INTO t (a, i) VALUES (?, ?)", arguments: [values[index % 5], index])
        try db.execute(sql: "INSERT INTO w VALUES (?, ?)", arguments: ["key \(index)", values[index % 5]])
      }
    }
    let result = try scene.salvage()
    expectWhole(scene, result, "t", "w")
    #expect(result.rows["t"] == scene.truth["t"])
    #expect(result.rows["w"] == scene.truth["w"])
  }

  @Test("Where something else is damaged they are in their table, and doubtful")
  func inDamagedStore() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB, b BLOB);
        CREATE TABLE other (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, d TEXT)
        """
    ) { db in
      for index in 1...500 {
        try db.execute(
          sql: "INSERT INTO t (a, b) VALUES (?, 'more')",
          arguments: [index % 10 == 0 ? index.databaseValue : "text \(index)".databaseValue])
        try db.execute(sql: "INSERT INTO other VALUES (?, 'a', 'b', 'c', 'd')", arguments: [index])
      }
      try Self.redeclare("t", "a BLOB, b BLOB", "a TEXT, b TEXT", db)
    }
    let root = try #require(
      SQLiteFormat.Database(main: MemoryBytes(scene.main)).schema().table(named: "other")
    ).rootPage
    let hit = try #require(scene.leaves(below: root).dropFirst(3).first)
    let result = try scene.overwriting([hit]).salvage(withModel: false)
    #expect(asText(result.rows["t"]) == asText(scene.truth["t"]))
    #expect(result.report.entities.first { $0.table == "t" }?.doubts == [.unusualValue: 50])
    #expect(result.report.lost > 0)
  }

  @Test("A row with more fields than its table has columns is in lost and found, with all of them")
  func tooManyFields() throws {
    let scene = try PlainScene(schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT)") { db in
      for index in 1...10 {
        try db.execute(sql: "INSERT INTO t (a, b) VALUES (?, 'b')", arguments: ["row \(index)"])
      }
      try db.execute(sql: "ALTER TABLE t ADD COLUMN c TEXT")
      for index in 11...20 {
        try db.execute(sql: "INSERT INTO t (a, b, c) VALUES (?, 'b', 'the third')", arguments: ["row \(index)"])
      }
      try Self.redeclare("t", ", c TEXT", "", db)
    }
    let result = try scene.salvage(withModel: false)
    #expect(result.rows["t"]?.count == 10)
    #expect(result.report.lost == 0)
    #expect(result.report.unplacedRows == 10)
    #expect(!result.report.isComplete)
    let apart = try #require(result.rows["lazaret_lost_and_found"])
    #expect(apart.count == 10)
    #expect(apart.allSatisfy { $0.contains("the third".databaseValue) })
  }

  @Test("Serial types that SQLite keeps for itself are read as NULL, as it does, and the rest of the row is there")
  func reservedTypes() throws {
    let scene = try PlainScene(schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c BLOB)") { db in
      for index in 1...20 {
        try db.execute(sql: "INSERT INTO t VALUES (?, 1, ?, x'0102')", arguments: [index, "text \(index)"])
      }
    }
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first).rootPage
    let page = try #require(try database.bTreePage(root))
    var damaged = scene
    for (index, code) in [(3, UInt8(10)), (8, UInt8(11))] {
      // The length of the header, then the types of the key and of the first column.
      let place = scene.range(of: root).lowerBound + (try #require(page.cell(at: index))).localPayload.lowerBound + 2
      try #require(scene.main[place] == 9)
      damaged.main[place] = code
    }
    let folder = try TemporaryFolder()
    let copy = try folder.write(damaged.main, to: "Copy.sqlite")
    let read = try DatabaseQueue(path: copy.string).read { try PlainScene.tables($0) }
    let result = try damaged.salvage()
    #expect(result.rows["t"] == read["t"])
    #expect(read["t"]?.count { $0.contains(.null) } == 2)
    #expect(result.report.lost == 0)
    #expect(result.report.doubtful == 2)
  }

  @Test("Text that is not valid makes a row doubtful where it is rare", arguments: [1, 200])
  func invalidText(rows: Int) throws {
    let scene = try PlainScene(schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)") { db in
      for index in 1...400 {
        let text = index <= rows ? "CAST(x'c328ff41' AS TEXT)" : "'valid'"
        try db.execute(sql: "INSERT INTO t VALUES (?, \(text))", arguments: [index])
      }
    }
    let result = try scene.salvage()
    #expect(result.rows["t"]?.count == 400)
    #expect(result.report.doubtful == (rows == 1 ? 1 : 0))
    #expect(result.report.isComplete == (rows != 1))
  }
}
