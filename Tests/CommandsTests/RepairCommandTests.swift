import Foundation
import GRDB
import SystemPackage
import TestSupport
import Testing

/// `lazaret repair` as its users run it.
struct RepairCommandTests {
  /// A store of the current version with two records, changed by SQL.
  private func makeStore(_ desk: Desk, _ statements: String...) throws -> String {
    try desk.makeStore()
    try change(
      desk.store,
      [
        "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME, ZCOLOR) VALUES (1, 1, 1, 'one', 'red'), (7, 1, 1, 'two', NULL)",
        "UPDATE Z_PRIMARYKEY SET Z_MAX = 7",
      ] + statements)
    return desk.store
  }

  private func change(_ store: String, _ statements: [String]) throws {
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { database in
      for statement in statements { try database.execute(sql: statement) }
      try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
  }

  private func rows(_ sql: String, _ store: String) throws -> [String] {
    let queue = try DatabaseQueue(path: store)
    defer { try? queue.close() }
    return try queue.read { try String.fetchAll($0, sql: sql) }
  }

  private func object(_ output: String) throws -> [String: Any] { try #require(try json(output) as? [String: Any]) }

  @Test func aDryRunSaysWhatTheRepairDoes() throws {
    let desk = try Desk()
    let store = try makeStore(
      desk, "ALTER TABLE ZCAR DROP COLUMN ZCOLOR", "DROP INDEX Z_Car_UNIQUE_name", "DELETE FROM Z_PRIMARYKEY")
    let before = try FolderContents(of: desk.folder.path)
    let dry = try desk.lazaret("repair", store, "--model", desk.model, "--dry-run", "--json")
    #expect(dry.status == 0, "\(dry.errors)")
    #expect(try FolderContents(of: desk.folder.path) == before)
    let wet = try desk.lazaret("repair", store, "--model", desk.model, "--json")
    #expect(wet.status == 0, "\(wet.errors)")
    let (plan, outcome) = (try object(dry.output), try object(wet.output))
    #expect(plan["dryRun"] as? Bool == true && outcome["dryRun"] as? Bool == false)
    let changes = try #require(outcome["changes"] as? [[String: Any]])
    #expect(changes.compactMap { $0["kind"] as? String } == ["column", "primary-key-row", "unique-index"])
    #expect(changes as NSArray == (plan["changes"] as? [[String: Any]] ?? []) as NSArray)
    #expect(outcome["version"] as? String == "V2" && outcome["rows"] as? Int == 2)
    #expect(try rows("SELECT Z_PK || ZNAME || ifnull(ZCOLOR, '-') FROM ZCAR ORDER BY 1", store) == ["1one-", "7two-"])
    #expect(try rows("SELECT Z_ENT || Z_NAME || Z_MAX FROM Z_PRIMARYKEY", store) == ["1Car7"])
    let backup = try #require(outcome["backup"] as? String)
    #expect(try rows("SELECT Z_PK || ZNAME FROM ZCAR ORDER BY 1", backup) == ["1one", "7two"])
    let inspected = try object(try desk.lazaret("inspect", store, "--model", desk.model, "--json").output)
    #expect(inspected["verdict"] as? String == "compatible")
  }

  @Test func aStoreThatLacksNothingIsLeftAlone() throws {
    let desk = try Desk()
    let store = try makeStore(desk)
    let before = try FolderContents(of: desk.folder.path)
    let result = try desk.lazaret("repair", store, "--model", desk.model)
    #expect(result.status == 0 && result.output.contains("there is nothing to repair"), "\(result.output)")
    #expect(try FolderContents(of: desk.folder.path) == before)
  }

  /// Both records were in it: an empty table in its place is no store that is as it was.
  @Test func aTableThatHadRecordsIsNotPlainlyRepaired() throws {
    let desk = try Desk()
    let store = try makeStore(desk, "DROP TABLE ZCAR")
    for option in ["--dry-run", "--quiet"] {
      #expect(try desk.lazaret("repair", store, "--model", desk.model, "--dry-run", option).status == 2)
    }
    let result = try desk.lazaret("repair", store, "--model", desk.model, "--json")
    #expect(result.status == 2, "\(result.errors)")
    let left = try #require(try object(result.output)["leftOut"] as? [[String: Any]])
    #expect(left.compactMap { $0["kind"] as? String } == ["lost-records"])
    #expect((left.first?["text"] as? String)?.contains("likely lost, 7 at most") == true, "\(left)")
    #expect(try rows("SELECT count(*) || '' FROM ZCAR", store) == ["0"])
    // Afterwards nothing shows it: nothing is claimed of what was not looked at.
    let inspected = try desk.lazaret("inspect", store, "--model", desk.model)
    #expect(inspected.status == 0 && !inspected.output.contains("Nothing needs to be done."), "\(inspected.output)")
    #expect(inspected.output.contains("what they refer to was not looked at"), "\(inspected.output)")
  }

  @Test func anIndexThatCannotBeAddedIsTheExitCode() throws {
    let desk = try Desk()
    let store = try makeStore(
      desk, "DROP INDEX Z_Car_UNIQUE_name", "UPDATE ZCAR SET ZNAME = 'same'", "DELETE FROM Z_PRIMARYKEY")
    let result = try desk.lazaret("repair", store, "--model", desk.model)
    #expect(result.status == 2, "\(result.errors)")
    #expect(
      result.output.contains("is left out: 2 records have values that others have too (1, 7)"), "\(result.output)")
    #expect(try rows("SELECT Z_PK || ZNAME FROM ZCAR ORDER BY 1", store) == ["1same", "7same"])
  }

  /// A record without its mandatory name; the pages and the schema are as they should be.
  @Test func whatTheRecordsContradictIsNotFollowedByNothingToDo() throws {
    let desk = try Desk()
    let model = Desk.contents(["name"], isUnique: false).replacing(" optional=\"YES\"", with: "")
    try desk.folder.write(model, to: "Strict.xcdatamodel/contents")
    try desk.makeStore(model: "Strict.xcdatamodel")
    try change(
      desk.store, ["INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)", "UPDATE Z_PRIMARYKEY SET Z_MAX = 1"])
    for model in [["--model", "Strict.xcdatamodel"], []] {
      let full = try desk.run(["inspect", desk.store] + model)
      #expect(full.status == 0, "\(full.output)")
      let result = try desk.run(["inspect", desk.store, "--check", "data"] + model)
      #expect(result.status == 2 && result.output.contains("missing-value: 1 row of table ZCAR"), "\(result.output)")
      #expect(result.output.contains("lazaret repair --data"))
      #expect(!result.output.contains("Nothing needs to be done") && !result.output.contains("Nothing wrong"))
      let quiet = try desk.run(["inspect", desk.store, "--check", "data", "--quiet"] + model)
      #expect(quiet.status == 2 && quiet.errors.contains("contradict its model"), "\(quiet.errors)")
    }
  }

  @Test func recordsThatCannotBeCheckedAreToldWhereThatWasAskedFor() throws {
    let desk = try Desk()
    let store = try makeStore(desk, "DROP TABLE Z_MODELCACHE")
    let unknown = try desk.lazaret("inspect", store, "--check", "data")
    #expect(unknown.status == 2 && unknown.output.contains("The records were not checked: the store carries no model"))
    let told = try object(try desk.lazaret("inspect", store, "--check", "data", "--json").output)
    #expect(told["data"] == nil && (told["dataNotChecked"] as? String)?.contains("no model") == true)
    let known = try desk.lazaret("inspect", store, "--check", "data", "--model", desk.model)
    #expect(known.status == 0 && !known.output.contains("not checked"), "\(known.output)")
    try change(desk.folder.appending("Plain.sqlite").string, ["CREATE TABLE cars (id INTEGER PRIMARY KEY)"])
    let plain = try desk.lazaret("inspect", "Plain.sqlite", "--check", "data")
    #expect(plain.status == 2 && plain.output.contains("not a Core Data store"), "\(plain.output)")
    // Unasked, it is nothing to tell.
    #expect(try desk.lazaret("inspect", "Plain.sqlite").status == 0)
  }

  /// The repair itself, on a private copy, is what the look's advice is held against.
  @Test(
    "A repair is advised where it is not refused, and else a salvage",
    arguments: [
      (["UPDATE ZCAR SET Z_ENT = 9", "UPDATE Z_PRIMARYKEY SET Z_ENT = 9"], true),
      (["UPDATE ZCAR SET Z_ENT = 9", "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY)"], true),
      (
        [
          "UPDATE ZCAR SET Z_ENT = 9", "UPDATE Z_PRIMARYKEY SET Z_ENT = 9",
          "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY)",
        ], false
      ),
      (["DROP TABLE ZCAR", "CREATE VIEW ZCAR AS SELECT 1 AS Z_PK"], false),
    ])
  func advice(_ statements: [String], _ isRepaired: Bool) throws {
    let desk = try Desk()
    let store = try makeStore(desk)
    try change(store, statements)
    let inspected = try object(try desk.lazaret("inspect", store, "--model", desk.model, "--json").output)
    #expect(inspected["verdict"] as? String == "repairable")
    let hint = try #require((inspected["reason"] as? [String: Any])?["hint"] as? String)
    let dry = try desk.lazaret("repair", store, "--model", desk.model, "--dry-run")
    #expect((dry.status == 0) == isRepaired, "\(dry.errors)")
    #expect(hint.hasPrefix("Have it repaired") == isRepaired, "\(hint)")
    #expect(hint.contains("Have it salvaged") == !isRepaired, "\(hint)")
  }

  @Test func whatIsNotRepairedIsToldWithTheWayOut() throws {
    let desk = try Desk()
    let plain = try desk.lazaret("repair", try makeStore(desk), "--model", desk.folder.appending("Cars.sql").string)
    #expect(plain.status == 64 && plain.errors.contains("lists what it lacks"), "\(plain.errors)")
    let missing = try desk.lazaret("repair", "Stores/None.sqlite", "--model", desk.model)
    #expect(missing.status == 1 && missing.errors.contains("[file-not-found]"), "\(missing.errors)")
    try change(desk.store, ["DROP TABLE ZCAR", "CREATE VIEW ZCAR AS SELECT 1 AS Z_PK"])
    let refused = try desk.lazaret("repair", desk.store, "--model", desk.model, "--json")
    #expect(refused.status == 1)
    let error = try #require(try object(refused.errors)["error"] as? [String: Any])
    #expect(error["code"] as? String == "repair-refused")
  }
}
