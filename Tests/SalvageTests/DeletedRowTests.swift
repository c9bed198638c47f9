import GRDB
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Deleted rows")
struct DeletedRowTests {
  @Test("Rows deleted here and there are found in free space, and kept apart")
  func scattered() throws {
    let scene = try SalvageScene(seed: 8, finish: ["DELETE FROM ZBOOK WHERE Z_PK % 11 = 3"])
    let plain = try scene.salvage()
    #expect(plain.rows == scene.truth)
    #expect(plain.apart.keys.allSatisfy { $0 == "lazaret_evidence" })
    let result = try scene.salvage(deleted: true)
    #expect(result.rows == scene.truth)
    // 137 were deleted, three of them long ones whose overflow pages may be used again.
    let found = result.apart["lazaret_deleted_ZBOOK"] ?? 0
    #expect(found >= 118 && found <= 137, "\(found)")
  }

  @Test("Whole pages of deleted rows are read, even where the header with their list is lost")
  func ranges() throws {
    let scene = try SalvageScene(seed: 9, finish: ["DELETE FROM ZBOOK WHERE Z_PK BETWEEN 300 AND 800"])
    for damaged in [scene, scene.overwriting([1]) { 0 }] {
      let result = try damaged.salvage(deleted: true)
      #expect(scene.falseRows(result) == 0)
      #expect(scene.missingRows(result, of: ["ZBOOK"]) == 0)
      #expect(result.apart["lazaret_deleted_ZBOOK"] ?? 0 >= 450)
    }
  }

  @Test("A dropped table's rows are deleted rows, not live ones")
  func dropped() throws {
    let scene = try SalvageScene(seed: 10, finish: ["DELETE FROM ZBOOK"])
    let result = try scene.salvage(deleted: true)
    #expect(result.rows["ZBOOK"] == [])
    #expect(result.apart["lazaret_deleted_ZBOOK"] ?? 0 >= 1350)
  }

  @Test("What SQLite left behind where it moved rows is not called deleted when their own pages are lost")
  func movedRows() throws {
    var random = SeededGenerator(seed: 12)
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, score REAL, title TEXT, body TEXT)"
    ) { db in
      for index in (1...900).shuffled(using: &random) {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?, ?)",
          arguments: [index, Double(index) / 7, "title \(index)", SalvageScene.words(&random, 5)])
      }
    }
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first).rootPage
    let leaves = try scene.leaves(below: root)
    let lost = stride(from: 1, to: leaves.count, by: 3).map { leaves[$0] }
    let result = try scene.overwriting(lost).salvage(deleted: true)
    #expect(scene.falseRows(result) == 0)
    #expect((result.rows["lazaret_other_notes"]?.count ?? 0) > 0)
    // Nothing was deleted; where the rowid is lost too, a copy cannot be told from a deleted row.
    let called = result.rows["lazaret_deleted_notes"]?.count ?? 0
    #expect(called * 10 < scene.missingRows(result), "\(called)")
  }
}
