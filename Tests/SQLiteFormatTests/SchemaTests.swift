import GRDB
import SQLiteFormat
import TestSupport
import Testing

@Suite("Statements of the schema")
struct SchemaTests {
  /// Statements that are read as SQLite reads them.
  static let statements = [
    "CREATE TABLE t(a)", "create table \"a\"\"b\" (\"x\"\"y\" , [z z] , `q`, 'single')",
    "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, b VARCHAR(255) DEFAULT 'x,)''(', c DECIMAL ( 10 , 5 ))",
    "CREATE TABLE t(a -- comment, with a comma\n, b /* and ( another */ INT, c \"double precision\" UNIQUE)",
    "CREATE TABLE t(a INT CONSTRAINT n NOT NULL CHECK (a > (1 + 2)), b TEXT COLLATE NOCASE REFERENCES u(x) ON DELETE CASCADE)",
    "CREATE TABLE t(a, b, PRIMARY KEY (b COLLATE NOCASE DESC, a), UNIQUE (a), CHECK (a IN (1, 2)), FOREIGN KEY (a) REFERENCES t(a))",
    "CREATE TABLE t(a INT DEFAULT (1 + 2), b DEFAULT -5.5, c DEFAULT +7, d DEFAULT CURRENT_TIME, e DEFAULT 0x10)",
    "CREATE TABLE t(a INT, b AS (a || ',' || (a)), c TEXT GENERATED ALWAYS AS (upper(a)) STORED NOT NULL, d)",
    "CREATE TABLE t(a TEXT, b INTEGER, PRIMARY KEY(a, b)) WITHOUT ROWID",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB) STRICT",
    "CREATE TABLE t(id INT, PRIMARY KEY(id)) STRICT, WITHOUT ROWID",
    "CREATE TABLE t(ключ INTEGER PRIMARY KEY, 値 TEXT, \"🚗\" REAL)",
    "CREATE TABLE [select](\"from\" TEXT, \"primary\" INT)",
    "CREATE TABLE t(a UNSIGNED BIG INT, b FLOATING POINT, c CHARINT, d STRING, e BLOBTEXT, f)",
    "CREATE TABLE t AS SELECT 1 AS one, 'x' AS \"two words\"", "CREATE TABLE main.t(a, b)",
    "CREATE TABLE IF NOT EXISTS t(a)",
    "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPRICE DECIMAL, ZDATE TIMESTAMP, ZNAME VARCHAR )",
    "CREATE TABLE t(a INTEGER, b, CONSTRAINT k PRIMARY KEY (a))", "CREATE TABLE t(a INTEGER PRIMARY KEY DESC)",
    "CREATE TABLE t(\"\" TEXT, b)", "CREATE TABLE t(\"id\" INTEGER, b, PRIMARY KEY(\"id\" AUTOINCREMENT))",
    "CREATE TABLE t(a REFERENCES u(x) ON DELETE SET DEFAULT NOT NULL, b INTEGER, CONSTRAINT k PRIMARY KEY((b) DESC))",
  ]

  @Test("Names, types, keys and generated columns are those that SQLite tells of", arguments: statements)
  func tables(statement: String) throws {
    let fixture = try StoreFixture("CREATE TABLE u(x PRIMARY KEY)", statement)
    let schema = try fixture.files().open().schema()
    #expect(schema.findings.isEmpty)
    let entry = try #require(schema.tables.first { $0.name != "u" })
    let definition = try #require(entry.tableDefinition)
    let table = SQLiteContent.literal(entry.name)
    let rows = try fixture.queue.read { try GRDB.Row.fetchAll($0, sql: "SELECT * FROM pragma_table_xinfo(\(table))") }
    #expect(definition.columns.map(\.name) == rows.map { $0["name"] })
    for (column, row) in zip(definition.columns, rows) {
      // SQLite takes GENERATED ALWAYS off the type; white space inside parentheses is its own affair.
      let type: String = row["type"]
      #expect(column.declaredType.filter { !$0.isWhitespace } == type.filter { !$0.isWhitespace }, "\(column.name)")
      #expect(column.isPrimaryKey == (row["pk"] as Int > 0), "\(column.name)")
      let hidden: Int = row["hidden"]
      #expect(column.generation == (hidden == 2 ? .virtual : hidden == 3 ? .stored : nil), "\(column.name)")
      if hidden == 0, column.isNotNull { #expect(row["notnull"] as Int == 1, "\(column.name)") }
    }
    let listed = try fixture.queue.read {
      try GRDB.Row.fetchOne($0, sql: "SELECT * FROM pragma_table_list(\(table)) WHERE schema = 'main'")
    }
    #expect(definition.isWithoutRowid == (listed?["wr"] as Int? == 1))
    #expect(definition.isStrict == (listed?["strict"] as Int? == 1))
    #expect(isSame(definition.name, entry.name))
  }

  private func isSame(_ first: String, _ second: String) -> Bool { first == second }

  /// Tables for whose keys and constraints SQLite makes indexes.
  static let constrained = [
    "CREATE TABLE t(a INTEGER UNIQUE, b TEXT PRIMARY KEY, c)", "CREATE TABLE t(b PRIMARY KEY, a UNIQUE, c UNIQUE)",
    "CREATE TABLE t(b TEXT PRIMARY KEY, a INTEGER UNIQUE, c TEXT UNIQUE) WITHOUT ROWID",
    "CREATE TABLE t(b TEXT UNIQUE PRIMARY KEY, a INTEGER UNIQUE, c TEXT, UNIQUE (a))",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c TEXT, UNIQUE (a), UNIQUE (b, c)) WITHOUT ROWID",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c TEXT UNIQUE) WITHOUT ROWID",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c, UNIQUE (a), UNIQUE (c, b), UNIQUE (b, c))",
    "CREATE TABLE t(a, b COLLATE NOCASE, c, UNIQUE (b), UNIQUE (b COLLATE BINARY), UNIQUE (b COLLATE nocase), UNIQUE (c))",
    "CREATE TABLE t(a INTEGER PRIMARY KEY DESC, b UNIQUE, c)",
  ]

  @Test("The indexes that SQLite makes by itself have the columns that it tells of", arguments: constrained)
  func automaticIndexes(statement: String) throws {
    let fixture = try StoreFixture(statement)
    let definition = try #require(try fixture.files().open().schema().table(named: "t")?.tableDefinition)
    let indexes = definition.automaticIndexes
    let listed = try fixture.queue.read { try String.fetchAll($0, sql: "SELECT name FROM pragma_index_list('t')") }
    #expect(listed.count == indexes.count)
    for name in listed {
      let number = try #require(name.split(separator: "_").last.flatMap { Int($0) })
      let columns = try fixture.queue.read {
        try String.fetchAll($0, sql: "SELECT name FROM pragma_index_info(?) ORDER BY seqno", arguments: [name])
      }
      try #require(indexes.indices.contains(number - 1), "\(name)")
      #expect(indexes[number - 1].map(\.name) == columns, "\(name)")
    }
  }

  @Test("Indexes: names, uniqueness, columns, order, collation, condition")
  func indexes() throws {
    let fixture = try StoreFixture(
      "CREATE TABLE t(a, \"b c\", d)", "CREATE UNIQUE INDEX \"i 1\" ON t(a, \"b c\" COLLATE NOCASE DESC)",
      "CREATE INDEX i2 ON t (lower(a), d ASC, a || d DESC) WHERE d IS NOT NULL AND a > ')'")
    let schema = try fixture.files().open().schema()
    let first = try #require(schema.indexes.first?.indexDefinition)
    #expect(first.name == "i 1" && first.tableName == "t" && first.isUnique && !first.isPartial)
    #expect(first.columns.map(\.name) == ["a", "b c"])
    #expect(first.columns.map(\.isDescending) == [false, true])
    #expect(first.columns.map(\.collation) == [nil, "NOCASE"])
    let second = try #require(schema.indexes.last?.indexDefinition)
    #expect(!second.isUnique)
    #expect(second.columns.map(\.name) == [nil, "d", nil])
    #expect(second.columns.map(\.isDescending) == [false, false, true])
    #expect(second.condition == "d IS NOT NULL AND a > ')'")
  }

  @Test("Virtual tables, views, triggers and automatic indexes are told apart")
  func kinds() throws {
    let fixture = try StoreFixture(
      "CREATE TABLE t(a UNIQUE)", "CREATE VIEW v AS SELECT * FROM t", "CREATE VIRTUAL TABLE f USING fts5(x, y)",
      "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END")
    let schema = try fixture.files().open().schema()
    #expect(schema.table(named: "F")?.tableDefinition?.module == "fts5")
    #expect(schema.table(named: "f")?.rootPage == 0)
    #expect(schema.entries.filter { $0.kind == .view }.map(\.name) == ["v"])
    #expect(schema.entries.filter { $0.kind == .trigger }.map(\.tableName) == ["t"])
    let automatic = try #require(schema.indexes(ofTable: "T").first)
    #expect(automatic.sql == nil && automatic.indexDefinition == nil && automatic.rootPage > 1)
  }

  @Test("A schema of many pages is read whole")
  func manyPages() throws {
    let fixture = try StoreFixture("PRAGMA page_size = 512")
    for index in 0..<120 {
      try fixture.run("CREATE TABLE table_\(index)(a, b, c, \(String(repeating: "d", count: index * 9 + 1)))")
    }
    let schema = try fixture.files().open().schema()
    #expect(schema.tables.count == 120)
    #expect(schema.findings.isEmpty)
    #expect(schema.tables.allSatisfy { $0.tableDefinition?.columns.count == 4 })
  }

  @Test(
    "What is no statement of its kind is refused, and nothing else",
    arguments: [
      "", "CREATE", "CREATE TABLE", "CREATE TABLE t", "CREATE VIEW v AS SELECT 1", "SELECT 1", "CREATE TABLE (((",
    ])
  func refused(sql: String) {
    #expect(TableDefinition(sql: sql) == nil)
    #expect(IndexDefinition(sql: sql) == nil)
  }

  @Test("Cut statements are read as far as they go")
  func cut() {
    let whole =
      "CREATE TABLE \"t\"(a INTEGER PRIMARY KEY, b VARCHAR(20) DEFAULT 'x', /* c */ d AS (a + 1), UNIQUE (b)) STRICT"
    for count in 0...whole.count {
      let part = String(whole.prefix(count))
      if let definition = TableDefinition(sql: part) { #expect(definition.columns.count <= 4) }
      _ = IndexDefinition(sql: part.replacing("TABLE", with: "INDEX"))
    }
  }

  @Test(
    "Affinity follows SQLite's five rules",
    arguments: [
      ("INT", Affinity.integer), ("CHARINT", .integer), ("VARCHAR(9)", .text), ("clob", .text), ("", .blob),
      ("BLOB", .blob), ("FLOAT", .real), ("DOUBLE PRECISION", .real), ("real", .real), ("FLOATING POINT", .integer),
      ("TIMESTAMP", .numeric), ("DECIMAL", .numeric), ("STRING", .numeric),
    ])
  func affinity(type: String, affinity: Affinity) {
    #expect(Affinity(declaredType: type) == affinity)
  }
}
