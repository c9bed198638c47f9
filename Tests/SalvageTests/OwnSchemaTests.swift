import GRDB
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Sound stores whose tables were changed past the model; SQLite tells what they hold.
@Suite("Sound stores whose tables are not as their model has them")
struct OwnSchemaTests {
  /// A store that was changed, and what a salvage made of it.
  private struct Outcome {
    let scene: RebuildScene
    let changed: FilePath
    let out: FilePath
    let report: SalvageReport

    /// The columns that both stores have in a table.
    func common(_ table: String, _ other: String? = nil) throws -> [String] {
      let there = Set(try OwnSchemaTests.columns(out, table))
      return try OwnSchemaTests.columns(changed, other ?? table).filter(there.contains)
    }

    /// The rows that SQLite reads from a table of the changed store.
    func before(_ table: String, _ columns: [String]) throws -> Set<[DatabaseValue]> {
      try OwnSchemaTests.rows(changed, table, columns)
    }

    /// The rows that SQLite reads from a table of the result.
    func after(_ table: String, _ columns: [String]) throws -> Set<[DatabaseValue]> {
      try OwnSchemaTests.rows(out, table, columns)
    }

    /// What was set aside of a table's columns.
    func aside(_ table: String, _ column: String) throws -> Int {
      let path = try #require(report.rebuild?.setAsideFile)
      let queue = try DatabaseQueue(path: path.string)
      return try queue.read { database in
        try Int.fetchOne(database, sql: "SELECT count(\(column)) FROM lazaret_columns_\(table)") ?? 0
      }
    }
  }

  private static func columns(_ store: FilePath, _ table: String) throws -> [String] {
    try DatabaseQueue(path: store.string).read { database in
      try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
    }
  }

  private static func rows(_ store: FilePath, _ table: String, _ columns: [String]) throws -> Set<[DatabaseValue]> {
    try DatabaseQueue(path: store.string).read { database in
      let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
      return Set(try Row.fetchAll(database, sql: "SELECT \(list) FROM \"\(table)\"").map { row in row.map { $0.1 } })
    }
  }

  private static let tables = ["ZFLAG", "ZPERSON", "ZPORT", "ZSHIP"]

  /// Changes a generated store by SQLite, and salvages it.
  private func salvage(_ change: (DatabaseQueue) throws -> Void) throws -> Outcome {
    let scene = try RebuildScene(seed: 61)
    let queue = try DatabaseQueue(path: scene.store.string)
    try change(queue)
    try queue.close()
    let out = scene.folder.appending("Out.sqlite")
    let report = try Salvager().salvage(
      scene.store, to: out, model: .coreData(scene.bundle), options: .init(migrates: false))
    return Outcome(scene: scene, changed: scene.store, out: out, report: report)
  }

  private func salvage(by statements: String...) throws -> Outcome {
    try salvage { queue in
      try queue.writeWithoutTransaction { database in
        for statement in statements { try database.execute(sql: statement) }
      }
    }
  }

  /// Nothing is lost, doubtful, cut or explained, and all tables have the rows that SQLite reads from the store.
  private func expectAllIsThere(_ outcome: Outcome, but left: Set<String> = []) throws {
    let report = outcome.report
    #expect(report.lost == 0)
    #expect(report.doubtful == 0)
    #expect(report.causes == [], "\(report.causes.map(\.words))")
    let rebuild = try #require(report.rebuild)
    #expect(rebuild.referencesCut == [])
    #expect(rebuild.setAside == [])
    #expect(rebuild.conflicts == [])
    let joins = try StoreLayout(RebuildScene.model()).joinTables.map(\.name)
    for table in Self.tables + joins where !left.contains(table) {
      let columns = try outcome.common(table)
      let before = try outcome.before(table, columns)
      #expect(try outcome.after(table, columns) == before, "\(table)")
      #expect(!before.isEmpty, "\(table)")
    }
  }

  /// Makes a table again with other declarations.
  private func remake(
    _ table: String, _ queue: DatabaseQueue, options: String = "", _ declaration: (String, String) -> String
  ) throws {
    try queue.writeWithoutTransaction { database in
      let columns = try Row.fetchAll(database, sql: "SELECT name, type FROM pragma_table_info(?)", arguments: [table])
        .map { ($0[0] as String, $0[1] as String) }
      let list = columns.map { declaration($0.0, $0.1) }.joined(separator: ", ")
      let names = columns.map(\.0).joined(separator: ", ")
      try database.execute(
        sql: """
          CREATE TABLE made_anew (\(list))\(options); INSERT INTO made_anew (\(names)) SELECT \(names) FROM \(table);
          DROP TABLE \(table); ALTER TABLE made_anew RENAME TO \(table)
          """)
    }
  }

  // MARK: Columns

  @Test("Columns that the tables lack are empty in the result, and told of")
  func droppedColumns() throws {
    let outcome = try salvage(
      by: "ALTER TABLE ZPERSON DROP COLUMN ZBORN", "ALTER TABLE ZSHIP DROP COLUMN ZTONS",
      "ALTER TABLE ZSHIP DROP COLUMN ZLOG")
    try expectAllIsThere(outcome)
    #expect(outcome.report.isComplete)
    #expect(outcome.report.remarks.contains { $0.contains("ZPERSON") && $0.contains("ZBORN") })
    #expect(try outcome.after("ZPERSON", ["ZBORN"]) == [[.null]])
    let damaged = try RebuildScene(seed: 61)
    let before = try Self.rows(damaged.store, "ZPERSON", ["Z_PK", "ZNAME"])
    #expect(try outcome.after("ZPERSON", ["Z_PK", "ZNAME"]) == before)
  }

  @Test("A save count that the table lacks is made")
  func droppedSaveCount() throws {
    let outcome = try salvage(by: "ALTER TABLE ZPORT DROP COLUMN Z_OPT")
    try expectAllIsThere(outcome)
    #expect(try outcome.after("ZPORT", ["Z_OPT"]) == [[1.databaseValue]])
  }

  @Test("A column of the app's own is set aside with every value, those of older rows too, and told of")
  func addedColumn() throws {
    let outcome = try salvage(
      by: "ALTER TABLE ZPORT ADD COLUMN ZHARBOR VARCHAR DEFAULT 'north'",
      "UPDATE ZPORT SET ZHARBOR = 'south' WHERE Z_PK % 3 = 0")
    try expectAllIsThere(outcome)
    #expect(!outcome.report.isComplete)
    #expect(outcome.report.remarks.contains { $0.contains("ZPORT") && $0.contains("ZHARBOR") })
    #expect(try outcome.aside("ZPORT", "ZHARBOR") == outcome.before("ZPORT", ["Z_PK"]).count)
  }

  @Test("A column that was made again has its default where the rows are older")
  func defaults() throws {
    let outcome = try salvage(
      by: "ALTER TABLE ZSHIP DROP COLUMN ZLOG", "ALTER TABLE ZSHIP ADD COLUMN ZLOG VARCHAR DEFAULT 'empty'",
      "UPDATE ZSHIP SET ZLOG = 'full' WHERE Z_PK % 2 = 0")
    try expectAllIsThere(outcome)
    #expect(try outcome.after("ZSHIP", ["ZLOG"]) == [["empty".databaseValue], ["full".databaseValue]])
    #expect(outcome.report.isComplete)
  }

  @Test("A renamed column is read in its place, and told of")
  func renamedColumn() throws {
    let outcome = try salvage(by: "ALTER TABLE ZSHIP RENAME COLUMN ZLOG TO ZDIARY")
    try expectAllIsThere(outcome)
    #expect(try outcome.after("ZSHIP", ["Z_PK", "ZLOG"]) == outcome.before("ZSHIP", ["Z_PK", "ZDIARY"]))
    #expect(outcome.report.remarks.contains { $0.contains("ZDIARY") && $0.contains("ZLOG") })
  }

  @Test("Columns can stand in any order")
  func order() throws {
    let outcome = try salvage { queue in
      for table in ["ZPERSON", "ZSHIP"] { try LostSchema.reorder(table, queue) { $0.reversed() } }
    }
    try expectAllIsThere(outcome)
    #expect(outcome.report.isComplete)
  }

  // MARK: Types

  @Test("Declared types are the store's, and values of other kinds are kept")
  func types() throws {
    let outcome = try salvage { queue in
      try remake("ZPORT", queue) { name, type in
        name == "Z_PK" ? "\(name) INTEGER PRIMARY KEY" : "\(name) \(name == "ZNAME" ? "BLOB" : type)"
      }
      try remake("ZSHIP", queue) { name, type in
        name == "Z_PK" ? "\(name) INTEGER PRIMARY KEY" : "\(name) \(name == "ZTONS" ? "VARCHAR" : type)"
      }
      try queue.write { try $0.execute(sql: "UPDATE ZSHIP SET ZTONS = 'tons of ' || Z_PK") }
    }
    try expectAllIsThere(outcome)
  }

  @Test("Values that their columns are not declared for are kept where SQLite reads them")
  func oddValues() throws {
    let outcome = try salvage(
      by: "UPDATE ZPERSON SET ZBORN = 'a day' WHERE Z_PK % 5 = 0",
      "UPDATE ZSHIP SET ZLOG = x'010203' WHERE Z_PK % 4 = 0")
    try expectAllIsThere(outcome)
  }

  @Test("A single value of another kind makes its row doubtful, and costs none")
  func oneOddValue() throws {
    let outcome = try salvage(by: "UPDATE ZSHIP SET ZLOG = x'010203' WHERE Z_PK = 5")
    #expect(outcome.report.lost == 0)
    #expect(outcome.report.causes == [])
    #expect(outcome.report.doubtful == 1)
    let columns = try outcome.common("ZSHIP")
    #expect(try outcome.after("ZSHIP", columns) == outcome.before("ZSHIP", columns))
  }

  @Test("STRICT tables, tables without rowids and keys that are no rowids are read as they are")
  func kindsOfTables() throws {
    let strict = try salvage { queue in
      try remake("ZPERSON", queue, options: " STRICT") { name, type in
        let kind = type == "VARCHAR" ? "TEXT" : type == "TIMESTAMP" ? "REAL" : type
        return "\(name) \(kind)\(name == "Z_PK" ? " PRIMARY KEY" : "")"
      }
    }
    try expectAllIsThere(strict)
    let withoutRowids = try salvage { queue in
      try remake("ZPORT", queue, options: " WITHOUT ROWID") { "\($0) \($1)\($0 == "Z_PK" ? " PRIMARY KEY" : "")" }
    }
    try expectAllIsThere(withoutRowids)
    let otherKey = try salvage { queue in
      try remake("ZPORT", queue) { $0 == "Z_PK" ? "Z_PK INT PRIMARY KEY" : "\($0) \($1)" }
      try queue.write { try $0.execute(sql: "UPDATE ZPORT SET rowid = rowid + 1000") }
    }
    try expectAllIsThere(otherKey)
  }

  // MARK: Tables

  @Test("A renamed table is known by the entity numbers of its rows")
  func renamedTable() throws {
    let outcome = try salvage(by: "ALTER TABLE ZPORT RENAME TO ZHARBOR")
    try expectAllIsThere(outcome, but: ["ZPORT"])
    let columns = try outcome.common("ZPORT", "ZHARBOR")
    #expect(try outcome.after("ZPORT", columns) == outcome.before("ZHARBOR", columns))
    #expect(columns.count == 4)
    #expect(outcome.report.remarks.contains { $0.contains("ZHARBOR") && $0.contains("ZPORT") })
  }

  @Test("A table that the store lacks costs no other table anything, and is told of")
  func missingTable() throws {
    let outcome = try salvage(by: "DROP TABLE ZFLAG")
    try expectAllIsThere(outcome, but: ["ZFLAG"])
    #expect(outcome.report.remarks.contains { $0.contains("lacks tables") && $0.contains("ZFLAG") })
  }

  @Test("A join table keeps its pairs, and what else it has is set aside")
  func joinTable() throws {
    let join = try #require(try StoreLayout(RebuildScene.model()).joinTables.first)
    let outcome = try salvage(by: "ALTER TABLE \(join.name) ADD COLUMN ZNOTE VARCHAR DEFAULT 'a pair'")
    try expectAllIsThere(outcome)
    let pairs = try outcome.before(join.name, [join.sourceColumn, join.destinationColumn]).count
    #expect(try outcome.aside(join.name, "ZNOTE") == pairs)
  }

  @Test("A join table that lacks one of its sides gives no pairs, which are set aside and counted")
  func halfJoinTable() throws {
    let join = try #require(try StoreLayout(RebuildScene.model()).joinTables.first)
    let outcome = try salvage(
      by: "CREATE TABLE half AS SELECT \(join.sourceColumn) FROM \(join.name)", "DROP TABLE \(join.name)",
      "ALTER TABLE half RENAME TO \(join.name)")
    #expect(outcome.report.lost == 0)
    #expect(outcome.report.causes == [])
    let queue = try DatabaseQueue(path: outcome.changed.string)
    let count = try queue.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM \(join.name)") }
    #expect(outcome.report.referencesCut == count)
    #expect(try outcome.after(join.name, [join.sourceColumn]).isEmpty)
  }

  @Test("Tables of the app's own are copied whatever their names begin with")
  func ownTables() throws {
    let outcome = try salvage(
      by: "CREATE TABLE ZMINE (Z_PK INTEGER PRIMARY KEY, ZA VARCHAR, ZB BLOB)",
      "INSERT INTO ZMINE VALUES (1, 'one', 'text'), (2, NULL, 2.5), (3, 'three', x'03')")
    try expectAllIsThere(outcome)
    #expect(try outcome.after("ZMINE", ["Z_PK", "ZA", "ZB"]) == outcome.before("ZMINE", ["Z_PK", "ZA", "ZB"]))
  }

  @Test("Metadata with a column more is read, and so is the store's version")
  func metadata() throws {
    let outcome = try salvage(
      by: "ALTER TABLE Z_METADATA ADD COLUMN ZNOTE VARCHAR", "UPDATE Z_METADATA SET ZNOTE = 'x'")
    try expectAllIsThere(outcome)
    #expect(outcome.report.rebuild?.basis == .versionHashes)
    #expect(try outcome.aside("Z_METADATA", "ZNOTE") == 1)
  }

  // MARK: Entity numbers

  @Test(
    "Where a table has rows of one entity alone, its number is put right",
    arguments: [
      "ALTER TABLE ZPORT DROP COLUMN Z_ENT", "UPDATE ZPORT SET Z_ENT = 4711 WHERE Z_PK % 2 = 0",
      "UPDATE ZPORT SET Z_ENT = NULL",
    ])
  func soleEntity(change: String) throws {
    let outcome = try salvage(by: change)
    try expectAllIsThere(outcome, but: ["ZPORT"])
    let columns = try outcome.common("ZPORT").filter { $0 != "Z_ENT" }
    #expect(try outcome.after("ZPORT", columns) == outcome.before("ZPORT", columns))
    let number = try #require(try StoreLayout(RebuildScene.model()).entity(named: "Port")?.number)
    #expect(try outcome.after("ZPORT", ["Z_ENT"]) == [[number.databaseValue]])
    #expect(outcome.report.rebuild?.corrected.contains { $0.property == "Z_ENT" } == true)
  }

  // MARK: Definitions that contradict their rows

  @Test(
    "Where the definition contradicts the rows, the model stands in for it",
    arguments: [("ZLOG VARCHAR, ", ""), ("ZLOG VARCHAR, ", "ZLOG VARCHAR- "), ("ZTONS INTEGER", "ZT,NS INTEGER")])
  func contradictions(change: (from: String, to: String)) throws {
    let original = try RebuildScene(seed: 61)
    let outcome = try salvage(
      by: "PRAGMA writable_schema = 1",
      "UPDATE sqlite_master SET sql = replace(sql, '\(change.from)', '\(change.to)') WHERE name = 'ZSHIP'")
    #expect(outcome.report.lost == 0)
    #expect(outcome.report.causes == [])
    let columns = try Self.columns(original.store, "ZSHIP")
    #expect(try outcome.after("ZSHIP", columns) == Self.rows(original.store, "ZSHIP", columns))
    #expect(outcome.report.referencesCut == 0)
  }
}
