import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Tables with everything that SQLite lets a schema declare; SQLite makes the stores and tells what they hold.
@Suite("Each table is made on its own, as it was declared")
struct TableTests {
  /// A store that SQLite made, and what a salvage made of it.
  private struct Outcome {
    let folder: TemporaryFolder
    let store: DatabaseQueue
    let out: DatabaseQueue
    let report: SalvageReport

    /// The rows of a table as SQLite reads them from the store and from the result, which may have them under another name.
    func rows(_ table: String, _ columns: String = "*", as name: String? = nil) throws -> (before: Rows, after: Rows) {
      (try TableTests.rows(store, table, columns), try TableTests.rows(out, name ?? table, columns))
    }

    /// The statement that declares something, in the store and in the result.
    func declarations(_ name: String) throws -> (before: String?, after: String?) {
      let sql = "SELECT sql FROM sqlite_master WHERE name = ?"
      return (
        try store.read { try String.fetchOne($0, sql: sql, arguments: [name]) },
        try out.read { try String.fetchOne($0, sql: sql, arguments: [name]) }
      )
    }

    /// The remark on a table.
    func remark(on name: String) -> String? { report.remarks.first { $0.contains(name) } }
  }

  private typealias Rows = [[DatabaseValue]: Int]

  private static func rows(_ queue: DatabaseQueue, _ table: String, _ columns: String) throws -> Rows {
    try queue.read { database in
      var rows: Rows = [:]
      let cursor = try Row.fetchCursor(database, sql: "SELECT \(columns) FROM \"\(table)\"")
      while let row = try cursor.next() { rows[row.map { $0.1 }, default: 0] += 1 }
      return rows
    }
  }

  /// Makes a store, and salvages it.
  private func salvage(
    raw: Bool = false, deleted: Bool = false, damage: String? = nil, _ make: (Database) throws -> Void
  ) throws -> Outcome {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: path.string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA secure_delete = 0; BEGIN")
      try make(database)
      try database.execute(sql: "COMMIT")
    }
    try queue.close()
    if let damage {
      // In a connection that has no virtual table open.
      let queue = try DatabaseQueue(path: path.string)
      try queue.writeWithoutTransaction { try $0.execute(sql: damage) }
      try queue.close()
    }
    let out = folder.appending("Out.sqlite")
    let options = Salvager.Options(findsDeleted: deleted)
    let report =
      try raw
      ? Salvager().salvageRaw(path, to: out, options: options) : Salvager().salvage(path, to: out, options: options)
    return Outcome(
      folder: folder, store: try DatabaseQueue(path: path.string), out: try DatabaseQueue(path: out.string),
      report: report)
  }

  /// Changes what the schema says of a table that has its rows already.
  private func redeclare(_ database: Database, _ table: String, _ sql: String) throws {
    try database.execute(sql: "PRAGMA writable_schema = 1")
    try database.execute(sql: "UPDATE sqlite_master SET sql = ? WHERE name = ?", arguments: [sql, table])
    try database.execute(sql: "PRAGMA writable_schema = 0")
  }

  private func fill(_ database: Database, _ table: String, count: Int) throws {
    for number in 1...count {
      try database.execute(
        sql: "INSERT INTO \(table) (id, a) VALUES (?, ?)", arguments: [number, "row \(number) of \(table)"])
    }
  }

  // MARK: Dropped tables

  @Test("Rows of two dropped tables with the same columns are found, each under its table's name")
  func droppedTables() throws {
    let names = ["one", "two"]
    let outcome = try salvage(raw: true, deleted: true) { database in
      try database.execute(
        sql: "CREATE TABLE kept (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO kept VALUES (1, 'here')")
      for name in names {
        try database.execute(
          sql: "CREATE TABLE \(name) (id INT NOT NULL, name TEXT NOT NULL, surname TEXT NULL, a INT NULL, b FLOAT NULL)"
        )
        for number in 1...10 {
          try database.execute(
            sql: "INSERT INTO \(name) VALUES (?, ?, ?, ?, ?)",
            arguments: [
              50_000 + number, "Name \(number)", "Surname \(number) of \(name)", number * 1_000_003,
              Double(number) + 0.25,
            ])
        }
      }
      // What was never written to the file leaves nothing there.
      try database.execute(sql: "COMMIT; BEGIN; DROP TABLE one; DROP TABLE two")
    }
    for name in names {
      let surnames = try outcome.out.read { database in
        try String.fetchAll(database, sql: "SELECT surname FROM lazaret_deleted_\(name) ORDER BY id")
      }
      #expect(surnames == (1...10).map { "Surname \($0) of \(name)" })
    }
  }

  // MARK: Declarations that convert

  @Test("Values that SQLite converts are set aside as they stood, and the new store passes its check")
  func convertedValues() throws {
    let outcome = try salvage { database in
      try database.execute(
        sql:
          "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB, b BLOB); CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER)")
      try database.execute(sql: "INSERT INTO u VALUES (1, 7), (2, 'seven')")
      for number in 1...200 {
        let isOdd = number % 2 == 1
        try database.execute(
          sql: "INSERT INTO t VALUES (?, ?, ?)",
          arguments: [
            number, isOdd ? number.databaseValue : "00\(number)".databaseValue,
            isOdd ? "text \(number)".databaseValue : number.databaseValue,
          ])
      }
      try redeclare(database, "t", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b VARCHAR)")
    }
    try outcome.out.read { database throws in
      #expect(try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"])
      let whole = "SELECT count(*) FROM t WHERE a = id AND typeof(a) = 'integer' AND typeof(b) = 'text'"
      #expect(try Int.fetchOne(database, sql: whole) == 200)
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM u") == 2)
    }
    let aside = try DatabaseQueue(path: outcome.folder.appending("Out.sqlite-set-aside").string)
    try aside.read { database in
      let rows = try Row.fetchAll(database, sql: "SELECT lazaret_key, a, b FROM lazaret_converted_t ORDER BY 1")
      let values = rows.map { row in [row[0], row[1], row[2]] as [DatabaseValue] }
      let expected = (1...100).map { half in
        [(2 * half).databaseValue, "00\(2 * half)".databaseValue, (2 * half).databaseValue]
      }
      #expect(values == expected)
      #expect(try !database.tableExists("lazaret_converted_u"))
    }
    #expect(
      outcome.report.remarks.contains { $0.contains("t has values of another kind") && $0.contains("200 of them") })
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  // MARK: Declarations that are refused

  @Test("A declaration that SQLite refuses costs neither its table nor others a row, and SQLite's words are told")
  func refusedDeclaration() throws {
    let outcome = try salvage { database in
      try database.execute(
        sql:
          "CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT UNIQUE); CREATE TABLE bad (id INTEGER PRIMARY KEY, a TEXT)"
      )
      try fill(database, "good", count: 300)
      try fill(database, "bad", count: 300)
      // SQLite reads a check of a function that it lacks, and does not make a table with one.
      try redeclare(
        database, "bad", "CREATE TABLE bad (id INTEGER PRIMARY KEY, a TEXT CHECK (ofTheApp(a) > 0))")
    }
    for table in ["good", "bad"] {
      let (before, after) = try outcome.rows(table)
      #expect(before.count == 300)
      #expect(after == before, "\(table)")
    }
    let (declared, made) = try outcome.declarations("good")
    #expect(made == declared)
    #expect(try #require(outcome.remark(on: "bad")).contains("no such function: ofTheApp"))
    #expect(outcome.remark(on: "good") == nil)
    #expect(!outcome.report.isComplete)
    #expect(outcome.report.lost == 0)
  }

  @Test("A check that takes far more steps than a salvage may is left out and told", .timeLimit(.minutes(5)))
  func costlyCheck() throws {
    let terms = repeatElement("b", count: 200).joined(separator: "+")
    let sums = repeatElement("(\(terms))", count: 250).joined(separator: "+")
    let check = repeatElement("(\(sums))", count: 3).joined(separator: "+")
    let outcome = try salvage { database in
      try database.execute(
        sql: """
          CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT CHECK (a <> ''));
          CREATE TABLE slow (id INTEGER PRIMARY KEY, a TEXT, b INTEGER DEFAULT 1)
          """)
      try fill(database, "good", count: 100)
      try fill(database, "slow", count: 1000)
      try redeclare(
        database, "slow",
        "CREATE TABLE slow (id INTEGER PRIMARY KEY, a TEXT, b INTEGER DEFAULT 1, CHECK (\(check) > 0))")
    }
    for table in ["good", "slow"] {
      let (before, after) = try outcome.rows(table)
      #expect(before.count == (table == "good" ? 100 : 1000))
      #expect(after == before, "\(table)")
    }
    let (declared, made) = try outcome.declarations("good")
    #expect(made == declared)
    #expect(try outcome.declarations("slow").after?.contains("CHECK") == false)
    #expect(try #require(outcome.remark(on: "slow")).contains("it takes too long"))
    #expect(!outcome.report.isComplete)
  }

  @Test(
    "Checks that make long values, or take long in a single call, are left out and told, and cost no row",
    .timeLimit(.minutes(3)),
    arguments: [
      "CHECK (length(hex(zeroblob(140000000))) > 0)",
      "CHECK (instr(zeroblob(100000000), zeroblob(50000000) || x'01') IS NOT 1)",
      "CHECK (length(printf('%.2000000000c%.2000000000c', 'x', 'y')) IS NOT 1)",
      "CHECK (length(format('%*d', 2000000000, id)) IS NOT 1)",
      "CHECK (hex(zeroblob(30000)) NOT LIKE '\(String(repeating: "%0_", count: 8000))1')",
    ])
  func hostileCheck(check: String) throws {
    let outcome = try salvage { database in
      try database.execute(
        sql: """
          CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT CHECK (a LIKE 'row %'));
          CREATE INDEX goods ON good (lower(a)) WHERE instr(a, '1') > 0;
          CREATE TABLE bad (id INTEGER PRIMARY KEY, a TEXT)
          """)
      try fill(database, "good", count: 100)
      try fill(database, "bad", count: 100)
      try redeclare(database, "bad", "CREATE TABLE bad (id INTEGER PRIMARY KEY, a TEXT, \(check))")
    }
    for table in ["good", "bad"] {
      let (before, after) = try outcome.rows(table)
      #expect(before.count == 100)
      #expect(after == before, "\(table)")
    }
    let (declared, made) = try outcome.declarations("good")
    #expect(made == declared)
    #expect(try outcome.declarations("bad").after?.contains("CHECK") == false)
    #expect(outcome.remark(on: "bad") != nil)
    #expect(outcome.remark(on: "goods") == nil)
    #expect(!outcome.report.isComplete)
  }

  @Test(
    "What printf makes of long values stays in columns, checks and unique indexes",
    arguments: [
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g TEXT AS (printf('%s%s%s', a, a, a)) STORED)",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g TEXT AS (printf(substr(a, 1, 0))) STORED)",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, CHECK (printf('%s%s%s', a, a, a) IS NOT NULL))",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT); CREATE UNIQUE INDEX u ON t (ifnull(format('%s%s%s', a, a, a), 1))",
    ])
  func longFormats(schema: String) throws {
    let outcome = try salvage { database in
      try database.execute(sql: schema)
      for number in 1...6 {
        try database.execute(
          sql: "INSERT INTO t (id, a) VALUES (?, ?)",
          arguments: [number, "\(number)" + String(repeating: "a", count: 30_000)])
      }
    }
    let (before, after) = try outcome.rows("t")
    #expect(before.count == 6)
    #expect(after == before)
    for name in ["t", "u"] {
      let (declared, made) = try outcome.declarations(name)
      #expect(made == declared)
    }
    #expect(try outcome.out.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"])
    #expect(outcome.report.isComplete)
  }

  @Test("A trigger on a view without its table costs no row")
  func viewWithoutTable() throws {
    let outcome = try salvage(
      damage: "PRAGMA writable_schema = 1; DELETE FROM sqlite_master WHERE name = 'issue'"
    ) { database in
      try database.execute(
        sql: """
          CREATE TABLE issue (id INTEGER PRIMARY KEY, a TEXT);
          CREATE TABLE project (id INTEGER PRIMARY KEY, a TEXT);
          CREATE VIEW issues AS SELECT * FROM issue WHERE a <> '';
          CREATE TRIGGER added INSTEAD OF INSERT ON issues BEGIN INSERT INTO issue (a) VALUES (new.a); END
          """)
      try fill(database, "issue", count: 100)
      try fill(database, "project", count: 100)
    }
    let (before, after) = try outcome.rows("project")
    #expect(before.count == 100)
    #expect(after == before)
    for name in ["issues", "added"] {
      let (declared, made) = try outcome.declarations(name)
      #expect(made == declared)
    }
  }

  @Test("Types that are no words come back", arguments: [false, true])
  func oddTypes(raw: Bool) throws {
    let outcome = try salvage(raw: raw) { database in
      try database.execute(
        sql: """
          CREATE TABLE odd (id INTEGER PRIMARY KEY, 'a' TEXT"abc,", [b c] "x) y", d DECIMAL(10,5));
          CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT)
          """)
      try fill(database, "odd", count: 50)
      try fill(database, "good", count: 50)
      try database.execute(sql: "UPDATE odd SET \"b c\" = id * 2, d = id / 3.0")
    }
    for table in ["odd", "good"] {
      let (before, after) = try outcome.rows(table)
      #expect(before.count == 50)
      #expect(after == before, "\(table)")
    }
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test("Tables of more than a thousand columns come back beside others", arguments: [false, true])
  func manyColumns(raw: Bool) throws {
    let columns = (0..<1200).map { "c\($0)" }
    let outcome = try salvage(raw: raw) { database in
      try database.execute(
        sql:
          "CREATE TABLE wide (\(columns.joined(separator: ", "))); CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT)")
      for row in 0..<5 {
        let values = columns.indices.map { "\(row * 10_000 + $0)" }.joined(separator: ", ")
        try database.execute(sql: "INSERT INTO wide VALUES (\(values))")
      }
      try fill(database, "good", count: 100)
    }
    let (before, after) = try outcome.rows("wide")
    #expect(before.count == 5)
    #expect(after == before)
    let good = try outcome.rows("good")
    #expect(good.after == good.before)
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test("A table with a name that rows as found need themselves gets another one, and keeps it in a rebuilt store")
  func namesOfTheResult() throws {
    func make(_ database: Database) throws {
      try database.execute(
        sql: """
          CREATE TABLE lazaret_evidence (id INTEGER PRIMARY KEY, a TEXT); CREATE TABLE found_1 (id INTEGER PRIMARY KEY, a TEXT)
          """)
      try fill(database, "lazaret_evidence", count: 40)
      try fill(database, "found_1", count: 40)
    }
    let rebuilt = try salvage(make)
    for table in ["lazaret_evidence", "found_1"] {
      let (before, after) = try rebuilt.rows(table)
      #expect(before.count == 40)
      #expect(after == before, "\(table)")
    }
    let raw = try salvage(raw: true, make)
    let names = try raw.out.read { database in
      try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'found%'")
    }
    let tables = try names.map { try Self.rows(raw.out, $0, "*") }
    for table in ["lazaret_evidence", "found_1"] {
      let before = try Self.rows(raw.store, table, "*")
      #expect(tables.contains(before), "\(table)")
    }
    #expect(!raw.report.isComplete)
    #expect(raw.remark(on: "lazaret_evidence") != nil)
  }

  // MARK: Generated columns and constraints

  private func makeGenerated(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE g (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n > 0), twice INTEGER AS (n * 2) VIRTUAL,
          a TEXT COLLATE NOCASE UNIQUE, joined TEXT AS (a || n) STORED, r REAL DEFAULT 1.5) STRICT;
        CREATE INDEX byTwice ON g (twice);
        CREATE TABLE log (what TEXT);
        CREATE TRIGGER noted AFTER INSERT ON g BEGIN INSERT INTO log VALUES (new.a); END
        """)
    for number in 1...200 {
      try database.execute(
        sql: "INSERT INTO g (id, n, a, r) VALUES (?, ?, ?, ?)",
        arguments: [number, number * 3, "name \(number)", Double(number) / 7])
    }
  }

  @Test("Generated columns, STRICT, constraints and triggers come back as they were declared")
  func generatedColumns() throws {
    let outcome = try salvage(makeGenerated)
    let columns = "id, n, twice, a, joined, r"
    let (before, after) = try outcome.rows("g", columns)
    #expect(before.count == 200)
    #expect(after == before)
    let log = try outcome.rows("log")
    #expect(log.after == log.before)
    for name in ["g", "byTwice", "noted"] {
      let (declared, made) = try outcome.declarations(name)
      #expect(declared != nil)
      #expect(made == declared)
    }
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test("Rows as found have the values of stored columns, and no column where nothing is stored")
  func generatedColumnsAsFound() throws {
    let outcome = try salvage(raw: true, makeGenerated)
    let (before, after) = try outcome.rows("g", "id, n, a, joined, r")
    #expect(before.count == 200)
    #expect(after == before)
    let columns = try outcome.out.read { try String.fetchAll($0, sql: "SELECT name FROM pragma_table_xinfo('g')") }
    #expect(columns == ["id", "n", "a", "joined", "r"])
  }

  // MARK: Virtual tables

  private func makeIndexes(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE VIRTUAL TABLE texts USING fts5(title, body); CREATE VIRTUAL TABLE older USING fts4(body);
        CREATE VIRTUAL TABLE boxes USING rtree(id, minX, maxX);
        CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT)
        """)
    for number in 1...120 {
      let word = number % 3 == 0 ? "harbor" : "island"
      try database.execute(sql: "INSERT INTO texts VALUES (?, ?)", arguments: ["title \(number)", "a \(word)"])
      try database.execute(sql: "INSERT INTO older VALUES (?)", arguments: ["a \(word) \(number)"])
      try database.execute(sql: "INSERT INTO boxes VALUES (?, ?, ?)", arguments: [number, number, number + 5])
    }
    try fill(database, "good", count: 50)
  }

  @Test("Full-text and R-tree indexes are made again, and find what they found", arguments: [false, true])
  func virtualTables(raw: Bool) throws {
    let outcome = try salvage(raw: raw, makeIndexes)
    for query in [
      "SELECT rowid FROM texts WHERE texts MATCH 'harbor' ORDER BY 1",
      "SELECT rowid FROM older WHERE older MATCH 'harbor' ORDER BY 1",
      "SELECT id FROM boxes WHERE minX < 40 AND maxX > 20 ORDER BY 1",
    ] {
      let before = try outcome.store.read { try Int.fetchAll($0, sql: query) }
      #expect(before.count >= 20, "\(query)")
      #expect(try outcome.out.read { try Int.fetchAll($0, sql: query) } == before, "\(query)")
    }
    try outcome.out.write { database in
      try database.execute(sql: "INSERT INTO texts (texts) VALUES ('integrity-check')")
      #expect(try String.fetchOne(database, sql: "SELECT rtreecheck('boxes')") == "ok")
    }
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test(
    "A virtual table of a module that only the app has stays as it is declared, and is told of",
    arguments: [false, true])
  func unknownModule(raw: Bool) throws {
    let outcome = try salvage(raw: raw) { database in
      try makeIndexes(database)
      try database.execute(sql: "PRAGMA writable_schema = 1")
      try database.execute(
        sql: """
          INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)
          VALUES ('table', 'odd', 'odd', 0, 'CREATE VIRTUAL TABLE odd USING ofTheApp(a)')
          """)
      try database.execute(sql: "PRAGMA writable_schema = 0")
    }
    #expect(!outcome.report.isComplete)
    let remark = try #require(outcome.remark(on: "odd"))
    #expect(remark.contains("ofTheApp") || remark.contains("oftheapp"))
    let odd = try outcome.declarations("odd")
    #expect(odd.after == odd.before)
    #expect(try outcome.declarations("texts").after != nil)
    let good = try outcome.rows("good")
    #expect(good.after == good.before)
    #expect(good.before.count == 50)
  }

  @Test("A full-text index whose bytes ask for more memory than there is keeps nothing back", arguments: [false, true])
  func absurdIndex(raw: Bool) throws {
    // The numbers of levels and segments are in this row.
    let damage = "UPDATE texts_data SET block = X'000000002A0A7F0FDBC8E7428EC6E8' WHERE id = 10"
    let outcome = try salvage(raw: raw, damage: damage, makeIndexes)
    // Its content is whole, so that a new store has a new index.
    #expect((outcome.remark(on: "texts") != nil) == raw)
    let query = "SELECT count(*) FROM texts WHERE texts MATCH 'harbor'"
    if !raw { #expect(try outcome.out.read { try Int.fetchOne($0, sql: query) } == 40) }
    for table in ["good", "texts_content", "older_content", "boxes_rowid"] {
      let rows = try outcome.rows(table)
      #expect(rows.before.count >= 50)
      #expect(rows.after == rows.before, "\(table)")
    }
    #expect(try outcome.declarations("older").after != nil)
  }

  @Test("A full-text index that contradicts its content is told with --raw, and drawn up anew in a rebuilt store")
  func damagedIndex() throws {
    func make(_ database: Database) throws {
      try makeIndexes(database)
      try database.execute(sql: "UPDATE texts_content SET c1 = 'a lagoon' WHERE id <= 10")
    }
    let rebuilt = try salvage(make)
    let query = "SELECT count(*) FROM texts WHERE texts MATCH 'lagoon'"
    #expect(try rebuilt.out.read { try Int.fetchOne($0, sql: query) } == 10)
    #expect(rebuilt.report.isComplete, "\(rebuilt.report.remarks)")
    let raw = try salvage(raw: true, make)
    #expect(!raw.report.isComplete)
    #expect(raw.remark(on: "texts") != nil)
    #expect(try raw.declarations("texts").after == nil)
    let content = try raw.rows("texts_content")
    #expect(content.after == content.before)
  }

  @Test("The rows of a full-text table are counted once, and its index pages never")
  func countedRows() throws {
    let outcome = try salvage(makeIndexes)
    #expect(outcome.report.entities.map(\.name).sorted() == ["boxes", "good", "older", "texts"])
    #expect(outcome.report.entities.map(\.recovered).sorted() == [50, 120, 120, 120])
  }

  @Test("An R-tree whose nodes are damaged is made anew from the entries that are left, to the bit")
  func damagedTree() throws {
    let outcome = try salvage(
      damage: "DELETE FROM boxes_parent; UPDATE places_node SET data = zeroblob(8) WHERE nodeno = 1"
    ) { database in
      try database.execute(
        sql: """
          CREATE VIRTUAL TABLE boxes USING rtree(id, minX, maxX, minY, maxY, +note, +number);
          CREATE VIRTUAL TABLE places USING rtree_i32(id, minX, maxX)
          """)
      for number in 1...400 {
        let x = Double((number * 7919) % 1000 - 500) * 1.37e3 / Double(number)
        try database.execute(
          sql: "INSERT INTO boxes VALUES (?, ?, ?, ?, ?, ?, ?)",
          arguments: [number * 5_000_000_000 - 7, x, x + 3, -x, -x + 0.1, "box \(number)", number])
        try database.execute(
          sql: "INSERT INTO places VALUES (?, ?, ?)", arguments: [number - 200, -number * 1000, number])
      }
    }
    let boxes = try outcome.rows("boxes")
    #expect(boxes.after == boxes.before && boxes.before.count == 400)
    #expect(try outcome.out.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM places") } == 400)
    for table in ["boxes", "places"] {
      #expect(try outcome.out.read { try String.fetchOne($0, sql: "SELECT rtreecheck('\(table)')") } == "ok")
    }
  }

  @Test("What an R-tree lost with its nodes is counted as lost, and the rest as what the module returns")
  func lostNodes() throws {
    let outcome = try salvage(damage: "DELETE FROM boxes_node WHERE nodeno <> 1") { database in
      try makeIndexes(database)
      for number in 121...900 {
        try database.execute(sql: "INSERT INTO boxes VALUES (?, ?, ?)", arguments: [number, number, number + 5])
      }
    }
    let left = try #require(try outcome.out.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM boxes") })
    let account = try #require(outcome.report.entities.first { $0.table == "boxes" })
    #expect(left < 900 && account.recovered == left && account.lost == 900 - left)
    #expect(!outcome.report.isComplete)
  }

  @Test("A virtual table whose module keeps a damaged index costs no other table, and comes back from its content")
  func damagedModule() throws {
    let outcome = try salvage { database in
      try database.execute(
        sql: "CREATE VIRTUAL TABLE f USING fts5(body); CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT)")
      try fill(database, "good", count: 50)
      for number in 1...50 { try database.execute(sql: "INSERT INTO f VALUES (?)", arguments: ["word\(number)"]) }
      try database.execute(sql: "UPDATE f_data SET block = X'000000000101010001010111' WHERE id = 10")
      try redeclare(database, "f_data", "CREATE TABLE 'f_data'(id INTEGER PRIMARX KEY, block BLOB)")
    }
    let good = try outcome.rows("good")
    #expect(good.after == good.before && good.before.count == 50)
    #expect(try outcome.out.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM f WHERE f MATCH 'word7'") } == 1)
  }

  @Test(
    "Where the tables behind a full-text index are listed no more, its pages are no rows, and the app can write",
    arguments: [false, true])
  func unlistedShadows(raw: Bool) throws {
    let outcome = try salvage(
      raw: raw,
      damage: "PRAGMA writable_schema = 1; DELETE FROM sqlite_master WHERE name LIKE 'found@_%' ESCAPE '@'"
    ) { database in
      try database.execute(
        sql: """
          CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT); CREATE VIRTUAL TABLE found USING fts5(a);
          CREATE TRIGGER added AFTER INSERT ON good BEGIN INSERT INTO found (rowid, a) VALUES (new.id, new.a); END
          """)
      try fill(database, "good", count: 2000)
    }
    #expect(try outcome.out.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM good") } == 2000)
    #expect(
      try outcome.out.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM good WHERE typeof(a) <> 'text'") } == 0)
    #expect(outcome.report.entities.allSatisfy { $0.lost < 10_000 })
    guard !raw else { return }
    try outcome.out.write { try $0.execute(sql: "INSERT INTO good (a) VALUES ('later')") }
  }

  // MARK: What only the app can make

  @Test("Collations, functions and text in double quotes of the app's stay in the declarations, word for word")
  func declarationsOfApp() throws {
    let declared = [
      "sorted": "CREATE TABLE sorted (id INTEGER PRIMARY KEY, a TEXT COLLATE localized NOT NULL, UNIQUE (a))",
      "computed":
        "CREATE TABLE computed (id INTEGER PRIMARY KEY, a TEXT CHECK (sort_key(a) NOT NULL), k TEXT AS (sort_key(a)) STORED, UNIQUE (k))",
      "quoted": "CREATE TABLE quoted (id INTEGER PRIMARY KEY, a TEXT DEFAULT \"new\", CHECK (a <> \"bad\"))",
      "quotedIndex": "CREATE INDEX quotedIndex ON quoted (a) WHERE a <> \"done\"",
    ]
    let plain = [
      "sorted": "CREATE TABLE sorted (id INTEGER PRIMARY KEY, a TEXT UNIQUE)",
      "computed": "CREATE TABLE computed (id INTEGER PRIMARY KEY, a TEXT, k TEXT UNIQUE)",
      "quoted": "CREATE TABLE quoted (id INTEGER PRIMARY KEY, a TEXT)",
      "quotedIndex": "CREATE INDEX quotedIndex ON quoted (a) WHERE a <> 'done'",
    ]
    let outcome = try salvage { database in
      for (_, sql) in plain.sorted(by: { $0.key > $1.key && $0.key != "quotedIndex" }) where !sql.contains("INDEX") {
        try database.execute(sql: sql)
      }
      try database.execute(sql: plain["quotedIndex"] ?? "")
      for table in ["sorted", "computed", "quoted"] { try fill(database, table, count: 100) }
      try database.execute(sql: "UPDATE computed SET k = 'key of ' || a")
      for (name, sql) in declared { try redeclare(database, name, sql) }
    }
    for (name, sql) in declared { #expect(try outcome.declarations(name).after == sql) }
    for table in ["sorted", "computed", "quoted"] {
      // A store with generated columns of the app's is read without them.
      let columns = table == "computed" ? "id, a" : "*"
      let rows = try outcome.rows(table, columns)
      #expect(rows.after == rows.before && rows.before.count == 100, "\(table)")
    }
    let keys = try outcome.rows("computed", "k")
    #expect(keys.after == keys.before && keys.before.count == 100)
    #expect(!outcome.report.isComplete)
    #expect(outcome.remark(on: "localized") != nil && outcome.remark(on: "computed") != nil)
  }

  @Test("An index that the app fills in its own way stays, and one on a function of the app's is told of")
  func indexesOfApp() throws {
    let outcome = try salvage { database in
      try database.execute(
        sql: """
          CREATE TABLE good (id INTEGER PRIMARY KEY, a TEXT); CREATE INDEX own ON good (a) WHERE 0;
          CREATE INDEX keyed ON good (a)
          """)
      try fill(database, "good", count: 50)
      try redeclare(database, "own", "CREATE INDEX own ON good (vector_of(a))")
      try redeclare(database, "keyed", "CREATE INDEX keyed ON good (sort_key(a))")
    }
    let own = try outcome.declarations("own")
    #expect(own.after == own.before && own.after != nil)
    #expect(outcome.remark(on: "keyed") != nil)
    #expect(try outcome.out.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM good NOT INDEXED") } == 50)
  }

  @Test(
    "A store of another encoding whose tables all have textual keys is made as it was",
    arguments: ["UTF-16le", "UTF-16be"])
  func otherEncoding(encoding: String) throws {
    let outcome = try salvage { database in
      try database.execute(sql: "COMMIT; PRAGMA encoding = '\(encoding)'; BEGIN")
      try database.execute(sql: "CREATE TABLE words (id TEXT PRIMARY KEY, a TEXT)")
      try fill(database, "words", count: 50)
    }
    let rows = try outcome.rows("words")
    #expect(rows.after == rows.before && rows.before.count == 50)
    #expect(try outcome.out.read { try String.fetchOne($0, sql: "PRAGMA encoding") } == encoding)
  }

  // MARK: Keys

  @Test(
    "Rows keep their keys however a table declares them",
    arguments: [
      "id INTEGER PRIMARY KEY AUTOINCREMENT, a", "id INTEGER, a, PRIMARY KEY (id AUTOINCREMENT)",
      "\"id\" INTEGER, a, PRIMARY KEY(\"id\" AUTOINCREMENT)",
      "id INTEGER, a, CONSTRAINT k PRIMARY KEY (id ASC AUTOINCREMENT)",
      "id INTEGER, a, PRIMARY KEY (id DESC)", "id INTEGER, a, PRIMARY KEY (id COLLATE NOCASE)",
      "id \"INTEGER\", a, PRIMARY KEY ([id])", "id INTEGER, a, PRIMARY KEY ('id')", "id INTEGER, a, PRIMARY KEY ((id))",
      "id INTEGER PRIMARY KEY DESC, a", "id INT PRIMARY KEY, a", "id INTEGER PRIMARY KEY ON CONFLICT REPLACE, a",
    ])
  func keys(columns: String) throws {
    let outcome = try salvage { database in
      try database.execute(sql: "CREATE TABLE t (\(columns))")
      for id in [5, 10, 20, 400] {
        try database.execute(sql: "INSERT INTO t VALUES (?, ?)", arguments: [id, "row \(id)"])
      }
    }
    let rows = try outcome.rows("t", "rowid, *")
    #expect(rows.after == rows.before && rows.before.count == 4)
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test("No key is given twice: the highest that were given come back, the greater of both")
  func sequences() throws {
    let outcome = try salvage { database in
      try database.execute(
        sql: """
          CREATE TABLE good (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT);
          CREATE TABLE empty (id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE low (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT)
          """)
      try fill(database, "good", count: 400)
      try fill(database, "low", count: 40)
      try database.execute(
        sql:
          "DELETE FROM good WHERE id > 100; INSERT INTO empty VALUES (77); DELETE FROM empty; UPDATE sqlite_sequence SET seq = 3 WHERE name = 'low'"
      )
    }
    let given = try outcome.out.read { database in
      try Row.fetchAll(database, sql: "SELECT name, seq FROM sqlite_sequence ORDER BY name").map {
        "\($0[0] as String) \($0[1] as Int)"
      }
    }
    #expect(given == ["empty 77", "good 400", "low 40"])
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test("Rows that are older than a column have its default as SQLite reads it", arguments: [false, true])
  func defaults(raw: Bool) throws {
    let literals = [
      "1.50", "-1.50", "+1.5", "1e3", "0x10", "'1.50'", "'0x10'", "' 5 '", "'5x'", "true", "9223372036854775808", "abc",
      ".5", "x'31'", "NULL", "(7)", "'inf'",
    ]
    let types = ["INTEGER", "TEXT", "BLOB", "", "REAL", "NUMERIC"]
    let outcome = try salvage(raw: raw) { database in
      try database.execute(sql: "CREATE TABLE old (id INTEGER PRIMARY KEY, a TEXT)")
      try fill(database, "old", count: 20)
      var number = 0
      for literal in literals {
        // SQLite has the number there, and makes text of it in every other row.
        for type in types where literal != "true" || type != "TEXT" {
          number += 1
          try database.execute(sql: "ALTER TABLE old ADD COLUMN c\(number) \(type) DEFAULT \(literal)")
        }
      }
    }
    let rows = try outcome.rows("old")
    #expect(rows.before.count == 20)
    for (before, after) in zip(
      rows.before.keys.sorted { "\($0[0])" < "\($1[0])" }, rows.after.keys.sorted { "\($0[0])" < "\($1[0])" })
    {
      let wrong = zip(before, after).enumerated().filter { $0.element.0 != $0.element.1 }
      #expect(wrong.isEmpty, "\(wrong.prefix(3).map { "c\($0.offset - 1): \($0.element)" })")
    }
    #expect(outcome.report.isComplete, "\(outcome.report.remarks)")
  }

  @Test("Deleted rows have their keys where these are still known")
  func deletedKeys() throws {
    let outcome = try salvage(raw: true, deleted: true) { database in
      try database.execute(sql: "CREATE TABLE notes (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c REAL)")
      try fill(database, "notes", count: 3000)
      try database.execute(sql: "UPDATE notes SET b = 'note ' || id, c = id / 7.0; COMMIT; BEGIN")
      try database.execute(sql: "DELETE FROM notes WHERE id BETWEEN 500 AND 2500")
    }
    let rows = try outcome.out.read { try Row.fetchAll($0, sql: "SELECT id, a FROM lazaret_deleted_notes") }
    let known = rows.filter { $0["id"] != nil }
    #expect(known.count > 100, "\(rows.count)")
    for row in known { #expect(row["a"] == "row \(row["id"] as Int) of notes") }
  }
}
