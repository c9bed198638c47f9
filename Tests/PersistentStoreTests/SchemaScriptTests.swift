import GRDB
import PersistentStore
import Platform
import SystemPackage
import Testing

@Suite struct SchemaScriptTests {
  private static let schema = """
    -- The notes of an app
    PRAGMA foreign_keys = OFF;
    BEGIN TRANSACTION;
    CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL, "odd name" REAL); /* inner ; comment */
    ;; -- a lone comment
    ;
    CREATE TABLE tag (name TEXT PRIMARY KEY, note INTEGER REFERENCES note(id)) WITHOUT ROWID;
    CREATE INDEX byBody ON note (body, id);
    CREATE TRIGGER touch AFTER INSERT ON note BEGIN UPDATE note SET body = 'x;y'; SELECT 1; END;
    CREATE VIEW bodies AS SELECT body FROM note;
    INSERT INTO tag VALUES ('a;b', NULL);
    PRAGMA main.user_version = 7;
    COMMIT;
    """

  @Test func createsAPlainStore() throws {
    let bytes = try StoreCreation.bytes(of: SchemaScript(Self.schema))
    #expect(Array(bytes[18..<20]) == [2, 2])
    let folder = try ScratchFolder()
    let queue = try DatabaseQueue(path: folder.write(bytes).string)
    try queue.read { (database) throws in
      #expect(try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"])
      #expect(try Int.fetchOne(database, sql: "PRAGMA user_version") == 7)
      #expect(try String.fetchAll(database, sql: "SELECT name FROM tag") == ["a;b"])
      #expect(try SQLSchema(database).differences(to: SQLSchema(SchemaScript(Self.schema))).isEmpty)
    }
    try queue.close()
    #expect(try StoreCreation.bytes(of: SchemaScript(Self.schema)) == bytes)
  }

  @Test(arguments: [
    "ATTACH 'x.db' AS x", "CREATE TABLE a (b); ATTACH ':memory:' AS x", "DETACH main", "VACUUM INTO 'copy.db'",
    "VACUUM", "SELECT load_extension('x')", "PRAGMA writable_schema = ON", "PRAGMA main.writable_schema = 1",
    "/* x */ PRAGMA -- y\n writable_schema = 1", "PRAGMA \"writable_schema\" = 1", "PRAGMA temp_store_directory = '/'",
    "EXPLAIN PRAGMA writable_schema=1", "SAVEPOINT x", "CREATE TABLE a (b); INSERT INTO a SELECT load_extension('x')",
    "CREATE TABLE a (b", "garbage", "CREATE TABLE a (b); CREATE TABLE a (b)",
    "CREATE TABLE a (b); INSERT INTO a VALUES (?)",
    "CREATE VIRTUAL TABLE a USING nothing(b)", "", "-- nothing", "CREATE TABLE sqlite_x (a)", "PRAGMA user_version = 1",
  ])
  func refuses(text: String) throws {
    let error = #expect(throws: PersistentStoreError.self) { try StoreCreation.bytes(of: SchemaScript(text)) }
    #expect(error?.code == "schema-script-refused")
    #expect(error?.isEnvironmental == false)
  }

  @Test func namesTheStatementAndItsLineButNoValues() throws {
    let text = "-- one\nCREATE TABLE a (b);\n\nINSERT INTO a VALUES ('secret' 'value');"
    let error = #expect(throws: PersistentStoreError.self) { try SQLSchema(SchemaScript(text)) }
    #expect(error?.detail.contains("statement 2 (line 4)") == true)
    #expect(error?.description.contains("secret") == false)
    #expect(error?.description.contains("value'") == false)
  }

  @Test(
    .timeLimit(.minutes(5)),
    arguments: [
      """
      CREATE TABLE a (b); INSERT INTO a WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c
      """,
      "CREATE TABLE a (b); INSERT INTO a VALUES (zeroblob(2000000000))",
      "CREATE TABLE a (b); INSERT INTO a VALUES (hex(zeroblob(15000000)))",
      """
      CREATE TABLE a (b); INSERT INTO a VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10);
      INSERT INTO a SELECT 1 FROM a AS a, a AS b, a AS c, a AS d, a AS e, a AS f, a AS g, a AS h, a AS i
      """,
      "CREATE TABLE a (b CHECK (b" + String(repeating: "+(1", count: 5000) + String(repeating: ")", count: 5001) + ")",
    ])
  func endsWhatWouldNotEnd(text: String) {
    #expect(throws: PersistentStoreError.self) { try StoreCreation.bytes(of: SchemaScript(text)) }
  }

  @Test func refusesWhatIsNoText() throws {
    #expect(throws: PersistentStoreError.self) { try SchemaScript(bytes: [0xFF, 0xFE, 0x41]) }
    #expect(throws: PersistentStoreError.self) { try SchemaScript("CREATE TABLE a (b);\0") }
    #expect(throws: PersistentStoreError.self) { try SchemaScript(String(repeating: " ", count: 5 << 20)) }
    #expect(
      try SchemaScript(bytes: [0xEF, 0xBB, 0xBF] + Array("CREATE TABLE a (b)".utf8)).text == "CREATE TABLE a (b)")
  }

  @Test func comparesSchemas() throws {
    let old = try SQLSchema(
      SchemaScript("CREATE TABLE a (x INTEGER, y TEXT, z); CREATE UNIQUE INDEX i ON a (x); CREATE TABLE b (c)"))
    let new = try SQLSchema(
      SchemaScript("CREATE TABLE A (Y text, X REAL, w); CREATE INDEX j ON a (x); CREATE TABLE d (c)"))
    #expect(old.differences(to: old).isEmpty)
    #expect(
      old.differences(to: new) == [
        .otherType(table: "a", column: "x", expected: "INTEGER", found: "REAL"),
        .missingColumn(table: "a", column: "z"), .unexpectedColumn(table: "a", column: "w"),
        .missingIndex(table: "a", columns: ["X"], isUnique: true),
        .unexpectedIndex(table: "a", columns: ["X"], isUnique: false),
        .missingTable("b"), .unexpectedTable("d"),
      ])
    #expect(old.tables["a"]?.columns.map(\.name) == ["x", "y", "z"])
    #expect(old.indexes["i"]?.isUnique == true)
  }
}
