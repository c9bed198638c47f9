import Foundation
import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Tables whose pages are written past SQLite, as SQLite sees them.
@Suite("Pages of rebuilt tables")
struct RebuiltPageTests {
  /// Rows of all sizes and classes, some longer than several pages.
  private static func fill(_ queue: DatabaseQueue, rows: Int, pageSize: Int, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          BEGIN; CREATE TABLE things (id INTEGER PRIMARY KEY, number INTEGER, amount REAL, words TEXT, bytes BLOB, any);
          CREATE TABLE loose (a, b INTEGER NOT NULL); CREATE TABLE none (a TEXT); CREATE TABLE one (a TEXT);
          INSERT INTO one VALUES ('x'); CREATE INDEX byNumber ON things (number, words)
          """)
      var key: Int64 = -5
      for _ in 0..<rows {
        key += Int64.random(in: 1...3, using: &random)
        if Int.random(in: 0..<50, using: &random) == 0 { key += 1 << Int64.random(in: 7...30, using: &random) }
        let size = Int.random(in: 0..<20, using: &random) == 0 ? Int.random(in: 0...(4 * pageSize), using: &random) : 20
        try database.execute(
          sql: "INSERT INTO things VALUES (?, ?, ?, ?, ?, ?)",
          arguments: [
            key, Int64.random(in: -1...1, using: &random) << Int64.random(in: 0...62, using: &random),
            Bool.random(using: &random) ? Double(key) : 0.5, String(repeating: "é", count: size / 2),
            Self.bytes(size, &random),
            Bool.random(using: &random) ? nil : "t",
          ])
        try database.execute(sql: "INSERT INTO loose VALUES (?, ?)", arguments: [size, key])
      }
      try database.execute(sql: "COMMIT")
    }
  }

  /// Bytes that are no lost sector: those are zeros.
  private static func bytes(_ count: Int, _ random: inout SeededGenerator) -> Data {
    Data((0..<count).map { _ in UInt8.random(in: 1...255, using: &random) })
  }

  /// No table of it can be written directly, and the new store has the encoding all the same.
  @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func aStoreOfTextualKeysAloneKeepsItsEncoding(encoding: String) throws {
    let folder = try TemporaryFolder()
    let store = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA encoding = '\(encoding)'; CREATE TABLE t (k TEXT PRIMARY KEY, v);
          CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
          WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO t SELECT 'key ' || i, 'ä' FROM n;
          INSERT INTO w SELECT * FROM t
          """)
    }
    try queue.close()
    let out = folder.appending("Out.sqlite")
    #expect(try Salvager().salvage(store, to: out).isComplete)
    let rebuilt = try DatabaseQueue(path: out.string)
    let told = try rebuilt.read { database in
      try [
        "PRAGMA encoding", "PRAGMA integrity_check", "SELECT count(*) FROM t WHERE v = 'ä'", "SELECT count(*) FROM w",
      ]
      .map { try String.fetchOne(database, sql: $0) }
    }
    #expect(told == [encoding, "ok", "400", "400"])
    try rebuilt.close()
  }

  @Test(
    arguments: [512, 1024, 4096, 65536], [(UInt64(1), 0, "UTF-8"), (2, 1, "UTF-8"), (3, 2, "UTF-16le")])
  func equalsItself(pageSize: Int, shape: (seed: UInt64, vacuum: Int, encoding: String)) throws {
    let folder = try TemporaryFolder()
    let store = folder.appending("Store.sqlite")
    var configuration = Configuration()
    configuration.prepareDatabase { database in
      try database.execute(
        sql:
          "PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(shape.vacuum); PRAGMA encoding = '\(shape.encoding)'")
    }
    let queue = try DatabaseQueue(path: store.string, configuration: configuration)
    try Self.fill(queue, rows: 1500, pageSize: pageSize, seed: shape.seed)
    try queue.close()
    let out = folder.appending("Out.sqlite")
    let report = try Salvager().salvage(store, to: out)
    #expect(report.isComplete, "seed \(shape.seed): \(report.remarks)")
    let rebuilt = try DatabaseQueue(path: out.string)
    try rebuilt.writeWithoutTransaction { database in
      let check = try String.fetchAll(database, sql: "PRAGMA integrity_check")
      #expect(check == ["ok"], "seed \(shape.seed)")
      let size = try Int.fetchOne(database, sql: "PRAGMA page_size")
      #expect(size == pageSize)
      let vacuum = try Int.fetchOne(database, sql: "PRAGMA auto_vacuum")
      #expect(vacuum == shape.vacuum)
      try database.execute(sql: "ATTACH DATABASE ? AS old", arguments: [store.string])
      for table in ["things", "loose", "none", "one"] {
        for (first, second) in [("main", "old"), ("old", "main")] {
          let missing = try Int.fetchOne(
            database,
            sql:
              "SELECT count(*) FROM (SELECT rowid, * FROM \(first).\(table) EXCEPT SELECT rowid, * FROM \(second).\(table))"
          )
          #expect(missing == 0, "\(table), seed \(shape.seed)")
        }
      }
      // What SQLite does with it later finds every page in its place.
      try database.execute(
        sql: "DETACH old; DELETE FROM things WHERE id % 3 = 0; INSERT INTO loose SELECT id, id FROM things")
      try database.execute(sql: "PRAGMA incremental_vacuum; UPDATE things SET words = words || 'and more'")
      let later = try String.fetchAll(database, sql: "PRAGMA integrity_check")
      #expect(later == ["ok"], "seed \(shape.seed), later")
    }
    try rebuilt.close()
  }
}
