import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Which table a page belongs to is decided by evidence, and likeness is never certain")
struct PlacementTests {
  /// What a salvage made of bytes.
  private struct Outcome {
    let report: SalvageReport
    let rows: [String: PlainScene.Rows]

    /// The notes on pages: the table, the certainty, what led to the page and the reason.
    let notes: [(table: String, certainty: String, foundBy: String, reason: String)]

    func certainties(_ table: String) -> Set<String> { Set(notes.filter { $0.table == table }.map(\.certainty)) }
  }

  private func salvage(_ main: [UInt8]) throws -> Outcome {
    let folder = try TemporaryFolder()
    let path = try folder.write(main, to: "Store.sqlite")
    let output = folder.appending("Out.sqlite")
    let report = try Salvager().salvageRaw(path, to: output, model: nil)
    let queue = try DatabaseQueue(path: output.string)
    let (rows, notes) = try queue.read { db in
      let notes = try Row.fetchAll(
        db, sql: "SELECT \"table\", certainty, found_by, coalesce(reason, '') FROM lazaret_pages")
      return (
        try PlainScene.tables(db),
        notes.map {
          (table: $0[0] as String, certainty: $0[1] as String, foundBy: $0[2] as String, reason: $0[3] as String)
        }
      )
    }
    try queue.close()
    return Outcome(report: report, rows: rows, notes: notes)
  }

  /// A store on small pages with a list of entities, tables of entities that have names, and what other statements make.
  private static func scene(
    entities: [String], _ others: String..., fill: (GRDB.Database) throws -> Void
  ) throws -> PlainScene {
    let list = "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)"
    let tables = entities.map {
      "CREATE TABLE \($0) (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR)"
    }
    let schema = ([list] + tables + others).joined(separator: ";\n")
    return try PlainScene(pragmas: "PRAGMA page_size = 1024", schema: schema, fill: fill)
  }

  /// What SQLite reads from a sound store.
  private func tables(_ main: [UInt8]) throws -> [String: PlainScene.Rows] {
    let folder = try TemporaryFolder()
    let path = try folder.write(main, to: "Sound.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    let rows = try queue.read { db in try PlainScene.tables(db) }
    try queue.close()
    return rows
  }

  private static let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"

  /// The tables of a persistent history, in which deleted records keep text and numbers.
  private static let history = [
    """
    CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER, \
    ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB, ZTOMBSTONE0 BLOB, ZTOMBSTONE1 BLOB)
    """,
    """
    CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, \
    ZBUNDLEIDTS INTEGER, ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, \
    ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB)
    """,
    "CREATE TABLE ATRANSACTIONSTRING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR)",
    """
    \(numbers) INSERT INTO ACHANGE SELECT i, 16001, 1, i % 3, 1, i, 1 + i / 4, NULL,
    CASE WHEN i % 5 < 4 THEN 'title ' || i END, CASE WHEN i % 5 < 4 THEN i * 3 END FROM n
    """,
    """
    \(numbers) INSERT INTO ATRANSACTION SELECT i, 16002, 1, NULL, 1, NULL, 2, 7e8 + i + 0.5, NULL, NULL, NULL, NULL, NULL
    FROM n WHERE i <= 100
    """,
    "INSERT INTO ATRANSACTIONSTRING VALUES (1, 16003, 1, 'com.example.app'), (2, 16003, 1, 'app')",
  ]

  private static let historyTables = ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"]

  @Test("Core Data's own tables are told by their rows where the list of tables is lost")
  func ownTables() throws {
    let scene = try SalvageScene(seed: 71, books: 40, finish: Self.history)
    let truth = try tables(scene.main)
    var main = scene.main
    for index in 0..<SalvageScene.pageSize { main[index] = 0 }
    let outcome = try salvage(main)
    for table in Self.historyTables + ["Z_METADATA", "Z_PRIMARYKEY"] {
      let rows = try #require(outcome.rows[table], "\(table)")
      #expect(rows == truth[table], "\(table)")
      #expect(!rows.isEmpty)
    }
    // What only its content tells is never certain.
    for table in Self.historyTables { #expect(outcome.certainties(table) == ["probable"], "\(table)") }
  }

  @Test("A change keeps values of any class, also where the page that led to it is lost")
  func tombstones() throws {
    let scene = try Self.scene(entities: [], Self.history.prefix(3).joined(separator: ";")) { db in
      for statement in Self.history.dropFirst(3) { try db.execute(sql: statement) }
    }
    let root = try #require(scene.innerPages(of: "ACHANGE").first)
    let result = try scene.overwriting([root]).salvage(withModel: false)
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.unplacedRows == 0)
  }

  /// The kind and the names in the row of the schema, or the beginning of its statement.
  @Test(
    "Rows of a table whose definition is lost go to no other table of its shape",
    arguments: ["tablethirdthird", "third (a INTEGER"])
  func lostDefinition(_ lost: String) throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 4096",
      schema: """
        CREATE TABLE one (a INTEGER, b INTEGER); CREATE TABLE two (a INTEGER, b INTEGER);
        CREATE TABLE third (a INTEGER, b INTEGER)
        """
    ) { db in
      for index in 1...50 {
        try db.execute(sql: "INSERT INTO one VALUES (?, 7)", arguments: [index])
        try db.execute(sql: "INSERT INTO third VALUES (?, 9)", arguments: [index])
      }
    }
    let words = Array(lost.utf8)
    let start = try #require((0..<4000).first { Array(scene.main[$0..<($0 + words.count)]) == words })
    let damaged = scene.changing { for index in 0..<words.count { $0.main[start + index] = UInt8(ascii: "x") } }
    let outcome = try salvage(damaged.main)
    #expect(outcome.rows["one"] == scene.truth["one"])
    #expect(outcome.rows["two"] == [])
    #expect(outcome.report.unplacedRows == 50)
    #expect(outcome.rows["lazaret_lost_and_found"]?.count == 50)
    // Which tables they fit is told with them.
    let note = try #require(outcome.notes.first { $0.table == "lazaret_lost_and_found" })
    #expect(note.certainty == "doubtful")
    #expect(note.reason.contains("one") && note.reason.contains("two"))
  }

  @Test("A root that the list of tables names is not given to a table that its rows are like")
  func namedRoot() throws {
    let scene = try Self.scene(entities: ["ZTHING"], "CREATE TABLE links (id INTEGER PRIMARY KEY, target)") { db in
      for index in 1...600 {
        try db.execute(sql: "INSERT INTO ZTHING VALUES (?, 1, 1, ?)", arguments: [index, "thing \(index)"])
      }
      for index in 1...40 { try db.execute(sql: "INSERT INTO links VALUES (?, ?)", arguments: [index, 1 + index % 9]) }
    }
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first { $0.name == "ZTHING" }).rootPage
    let leaf = try #require(try database.bTreePage(root)).children.compactMap(\.self)[3]
    // Only where something is damaged is each page looked at closely.
    let result = try scene.overwriting([leaf]).salvage(withModel: false)
    #expect(result.rows["links"] == scene.truth["links"])
    #expect(scene.falseRows(result) == 0)
  }

  @Test("Entity numbers tell tables of one shape apart where the store lists them, without any model")
  func listedEntities() throws {
    let scene = try Self.scene(entities: ["ZCAT", "ZDOG"]) { db in
      // A puppy is a dog, and its rows are in the same table.
      try db.execute(
        sql: "INSERT INTO Z_PRIMARYKEY VALUES (1, 'Cat', 0, 500), (2, 'Dog', 0, 500), (3, 'Puppy', 2, 0)")
      for index in 1...500 {
        try db.execute(sql: "INSERT INTO ZCAT VALUES (?, 1, 1, ?)", arguments: [index, "animal \(index)"])
        try db.execute(
          sql: "INSERT INTO ZDOG VALUES (?, ?, 1, ?)", arguments: [index, 2 + index % 2, "animal \(index * 3)"])
      }
    }
    let roots = try ["ZCAT", "ZDOG"].map { try #require(scene.innerPages(of: $0).first) }
    let result = try scene.overwriting(roots).salvage(withModel: false)
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.unplacedRows == 0)
  }

  @Test("A list of entities that contradicts sound rows costs none of them")
  func contradictedList() throws {
    let scene = try Self.scene(entities: ["ZCAT"], "CREATE TABLE plain (a TEXT, b TEXT)") { db in
      try db.execute(sql: "INSERT INTO Z_PRIMARYKEY VALUES (4, 'Cat', 0, 500)")
      for index in 1...500 {
        try db.execute(sql: "INSERT INTO ZCAT VALUES (?, 1, 1, ?)", arguments: [index, "animal \(index)"])
        try db.execute(sql: "INSERT INTO plain VALUES (?, 'text')", arguments: ["line \(index)"])
      }
    }
    let root = try #require(scene.innerPages(of: "plain").first)
    let result = try scene.overwriting([root]).salvage(withModel: false)
    #expect(result.rows["ZCAT"] == scene.truth["ZCAT"])
    #expect(scene.falseRows(result) == 0)
  }
}
