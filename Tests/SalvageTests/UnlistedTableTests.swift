import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Tables whose row in the list of tables is gone while their pages are whole")
struct UnlistedTableTests {
  /// The bytes of a database after statements were executed on it.
  private func executing(_ statements: String..., on bytes: [UInt8]) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let path = try folder.write(bytes, to: "Changed.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { db in
      for statement in statements { try db.execute(sql: statement) }
    }
    try queue.close()
    return try FileSystem().contents(of: path, limit: 1 << 28)
  }

  private func forgetting(_ table: String, in bytes: [UInt8]) throws -> [UInt8] {
    try executing(
      "PRAGMA writable_schema = 1", "DELETE FROM sqlite_master WHERE type = 'table' AND name = '\(table)'", on: bytes)
  }

  private func plain() throws -> PlainScene {
    try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE kv (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;
        CREATE TABLE note (t TEXT, n INTEGER);
        CREATE TABLE alike (id INTEGER PRIMARY KEY, name TEXT)
        """
    ) { db in
      for index in 1...400 {
        try db.execute(sql: "INSERT INTO person VALUES (?, ?)", arguments: [index, "person \(index)"])
        try db.execute(sql: "INSERT INTO kv VALUES (?, ?)", arguments: ["key \(index)", "value \(index)"])
        try db.execute(sql: "INSERT INTO note VALUES (?, ?)", arguments: ["note \(index)", index])
        try db.execute(sql: "INSERT INTO alike VALUES (?, ?)", arguments: [index, "alike \(index)"])
      }
    }
  }

  @Test(
    "Without a model their rows are set aside, and no number is exact", arguments: ["kv", "note", "alike"],
    [true, false])
  func withoutModel(table: String, deleted: Bool) throws {
    let scene = try plain()
    let damaged = try forgetting(table, in: scene.main)
    let result = try scene.changing { $0.main = damaged }.salvage(withModel: false, deleted: deleted)
    for other in scene.truth.keys where other != table { #expect(result.rows[other] == scene.truth[other], "\(other)") }
    #expect(result.rows["lazaret_lost_and_found"]?.count == 400)
    #expect(result.report.unplacedRows + result.report.unplacedEntries == 400)
    #expect(!result.report.isComplete && result.report.mayLackTables)
    #expect(result.report.count.percent == nil && result.report.count.hasUnknown)
    #expect(!result.report.count.words.contains("(100 %)"), "\(result.report.count.words)")
  }

  @Test("With a model that has them their rows are theirs", arguments: ["kv", "note"])
  func withModel(table: String) throws {
    let scene = try plain()
    let damaged = try forgetting(table, in: scene.main)
    let result = try scene.changing { $0.main = damaged }.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(!result.report.isComplete)
  }

  @Test("An entity's rows are found by its model, or the store's own", arguments: [true, false])
  func entity(withModel: Bool) throws {
    let scene = try SalvageScene(seed: 91, books: 60)
    for table in ["ZREADER", "Z_1READERS"] {
      let damaged = try forgetting(table, in: scene.main)
      let result = try scene.changing { $0.main = damaged }.salvage(withModel: withModel)
      #expect(scene.missingRows(result) == 0, "\(table)")
      #expect(scene.falseRows(result) == 0, "\(table)")
      #expect(!result.report.isComplete, "\(table)")
    }
  }

  @Test("An entity to whose records keys were given and whose table is gone has unknown losses")
  func dropped() throws {
    let scene = try SalvageScene(seed: 92, books: 60)
    for (highest, isLost) in [(200, true), (0, false)] {
      let damaged = try executing(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = \(highest) WHERE Z_NAME = 'Reader'", "DROP TABLE ZREADER", on: scene.main)
      let report = try scene.changing { $0.main = damaged }.salvage().report
      let account = try #require(report.entities.first { $0.name == "Reader" })
      #expect(account.isLostExact == !isLost, "\(highest)")
      if isLost { #expect(!report.isComplete && report.count.percent == nil) }
    }
  }

  @Test(
    "Of a table of pairs that is gone nothing tells how many are lost, but none are where a side never had a record")
  func droppedPairs() throws {
    let scene = try SalvageScene(seed: 93, books: 60)
    for (highest, isLost) in [(200, true), (0, false)] {
      let damaged = try executing(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = 60 WHERE Z_NAME = 'Book'",
        "UPDATE Z_PRIMARYKEY SET Z_MAX = \(highest) WHERE Z_NAME = 'Reader'", "DROP TABLE Z_1READERS", on: scene.main)
      let report = try scene.changing { $0.main = damaged }.salvage().report
      #expect(report.count.pairs.isLostExact == !isLost && report.count.pairs.lost == 0, "\(highest)")
      if isLost { #expect(!report.isComplete && report.count.percent != 100, "\(report.count.words)") }
    }
  }

  @Test("An entity whose table and whose note of its keys are gone has unknown losses")
  func unnoted() throws {
    let scene = try SalvageScene(seed: 94, books: 60)
    let damaged = try executing(
      "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Reader'", "DROP TABLE ZREADER", on: scene.main)
    let report = try scene.changing { $0.main = damaged }.salvage().report
    let account = try #require(report.entities.first { $0.name == "Reader" })
    #expect(!account.isLostExact && !report.isComplete && report.count.percent == nil)
  }

  @Test("A sound store whose free pages have the rows of a dropped table is complete", arguments: [true, false])
  func sound(deleted: Bool) throws {
    let scene = try plain()
    let dropped = try executing("DROP TABLE note", "DROP TABLE kv", "DELETE FROM alike", on: scene.main)
    let result = try scene.changing { $0.main = dropped }.salvage(withModel: false, deleted: deleted)
    #expect(result.report.isComplete && !result.report.mayLackTables)
    #expect(result.report.unplacedRows == 0 && result.report.unplacedEntries == 0)
    #expect(result.rows["person"] == scene.truth["person"])
    #expect(result.rows["alike"] == [])
  }

  @Test("An index that the list of tables lacks is none of a table")
  func index() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX tName ON t (name)"
    ) { db in
      for index in 1...300 { try db.execute(sql: "INSERT INTO t VALUES (?, ?)", arguments: [index, "row \(index)"]) }
    }
    let damaged = try executing(
      "PRAGMA writable_schema = 1", "DELETE FROM sqlite_master WHERE name = 'tName'", on: scene.main)
    let result = try scene.changing { $0.main = damaged }.salvage()
    #expect(result.rows["t"] == scene.truth["t"])
    #expect(result.report.unplacedEntries == 0 && !result.report.mayLackTables)
  }
}
