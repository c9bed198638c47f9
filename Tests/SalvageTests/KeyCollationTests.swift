import GRDB
import Salvage
import TestSupport
import Testing

@Suite("Keys and indexes with collations")
struct KeyCollationTests {
  /// Tables without rowids, and an index of each, of which SQLite keeps columns of the key by the collations of both.
  static let schemas = [
    "CREATE TABLE t (k TEXT PRIMARY KEY, name TEXT, n INTEGER) WITHOUT ROWID; CREATE INDEX i ON t (k COLLATE NOCASE)",
    "CREATE TABLE t (k TEXT PRIMARY KEY, name TEXT, n INTEGER) WITHOUT ROWID; CREATE INDEX i ON t (k COLLATE Binary, n)",
    "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY, name TEXT, n INTEGER) WITHOUT ROWID; CREATE INDEX i ON t (k, n)",
    """
    CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY, name TEXT, n INTEGER) WITHOUT ROWID;
    CREATE INDEX i ON t (k COLLATE BINARY, n)
    """,
    "CREATE TABLE t (k TEXT, name TEXT, n INTEGER, PRIMARY KEY (k), UNIQUE (k COLLATE RTRIM, n)) WITHOUT ROWID",
    """
    CREATE TABLE t (k TEXT COLLATE NOCASE, name TEXT, n INTEGER, PRIMARY KEY (k COLLATE BINARY)) WITHOUT ROWID;
    CREATE INDEX i ON t (K, n)
    """,
    """
    CREATE TABLE t (k TEXT, name TEXT, n INTEGER, PRIMARY KEY (k, k COLLATE NOCASE)) WITHOUT ROWID;
    CREATE INDEX i ON t (k COLLATE NOCASE); CREATE INDEX j ON t (name)
    """,
  ]

  @Test("A sound table comes back whole, and its indexes are its own", arguments: schemas)
  func sound(schema: String) throws {
    let isCaseFolded = schema.contains("COLLATE NOCASE PRIMARY KEY")
    let scene = try PlainScene(pragmas: "PRAGMA page_size = 1024", schema: schema) { db in
      for index in 0..<1200 {
        let word = "Word \(index * 7919 % 1200) and more"
        try db.execute(sql: "INSERT INTO t VALUES (?, ?, ?)", arguments: [word, "name \(index)", index])
        guard !isCaseFolded else { continue }
        try db.execute(
          sql: "INSERT INTO t VALUES (?, ?, ?)", arguments: [word.uppercased(), "another name \(index)", -index])
      }
    }
    let result = try scene.salvage(withModel: false)
    #expect(result.rows["t"] == scene.truth["t"])
    #expect(result.report.isComplete, "\(result.report.remarks)")
    #expect(result.report.causes.isEmpty)
    #expect(result.report.lost == 0 && result.report.doubtful == 0)
    #expect(result.report.unplacedRows == 0 && result.report.unplacedEntries == 0)
  }
}
