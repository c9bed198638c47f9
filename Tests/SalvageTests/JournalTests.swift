import Foundation
import GRDB
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Transactions that did not end")
struct JournalTests {
  /// A database in the middle of a transaction that has already changed the file, and its journal.
  private func scene(words: Int = 12) throws -> PlainScene {
    var random = SeededGenerator(seed: 3)
    var scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT)"
    ) { db in
      for index in 1...500 {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?)",
          arguments: [index, "old \(index)", SalvageScene.words(&random, words)])
      }
    }
    let path = try scene.folder.write(scene.main, to: "Hot.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    let (main, journal) = try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 5; PRAGMA cache_spill = 5; BEGIN")
      try db.execute(sql: "UPDATE notes SET title = 'not committed ' || id, body = body || body WHERE id % 3 = 0")
      let files = (
        try FileSystem().contents(of: path, limit: 1 << 26),
        try FileSystem().contents(of: StoreFileSet(main: path).path(of: .journal), limit: 1 << 26)
      )
      try db.execute(sql: "ROLLBACK")
      return files
    }
    try queue.close()
    scene.main = main
    scene.journal = journal
    return scene
  }

  @Test("A hot journal is undone, and what it undid is kept apart where deleted rows are asked for")
  func hot() throws {
    let scene = try scene()
    let result = try scene.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(result.rows["lazaret_other_notes"] == nil)
    let all = try scene.salvage(deleted: true)
    #expect(scene.missingRows(all) == 0)
    #expect(scene.falseRows(all) == 0)
    let apart = try #require(all.rows["lazaret_other_notes"])
    #expect(apart.contains { $0.contains { String.fromDatabaseValue($0)?.hasPrefix("not committed") == true } })
  }

  @Test("A journal that was cut is undone as far as it goes, and rows of the rest are doubtful", arguments: [2, 4, 6])
  func cut(eighths: Int) throws {
    let scene = try scene()
    let result = try scene.changing { damaged in
      damaged.journal.map { damaged.journal = Array($0.prefix($0.count * eighths / 8)) }
    }.salvage()
    let report = result.report
    #expect(!report.isComplete)
    #expect(report.remarks.contains { $0.contains("records of the rollback journal are gone or damaged") })
    #expect(!report.causes.contains { $0.code == .foreignJournal })
    let notes = try #require(report.entities.first { $0.table == "notes" })
    #expect(notes.doubts[.unfinishedTransaction] ?? 0 >= Int64(scene.falseRows(result)))
    let without = try scene.changing { $0.journal = nil }.salvage()
    #expect(scene.missingRows(result) <= scene.missingRows(without))
  }

  @Test("A journal whose count was wiped is undone whole")
  func wipedCount() throws {
    let scene = try scene()
    let result = try scene.changing { $0.journal?.replaceSubrange(8..<12, with: [0, 0, 0, 0]) }.salvage()
    #expect(scene.missingRows(result) == 0 && scene.falseRows(result) == 0)
  }

  @Test("A journal whose header is destroyed or missing is undone by what its records say", arguments: [512, 0])
  func noHeader(zeros: Int) throws {
    let scene = try scene()
    let result = try scene.changing { damaged in
      damaged.journal?.replaceSubrange(0..<512, with: [UInt8](repeating: 0, count: zeros))
    }.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(!result.report.isComplete)
  }

  @Test("Without its journal, rows behind the end of the database are not live")
  func missing() throws {
    let scene = try scene()
    let pages = scene.main.count / scene.pageSize
    let counted = scene.main[28..<32].reduce(0) { $0 << 8 | Int($1) }
    #expect(pages > counted, "the transaction has made the file longer")
    let result = try scene.changing { $0.journal = nil }.salvage()
    #expect(!result.report.isComplete)
    #expect(result.report.remarks.contains { $0.contains("longer than the database") })
    #expect(result.rows["lazaret_other_notes"]?.isEmpty == false)
    // Rows that the transaction has not touched are all there, from free space where it has moved them.
    let live = result.rows["notes"] ?? []
    #expect(live.count <= 500)
    // Which of them have values of the transaction cannot be told.
    let notes = try #require(result.report.entities.first { $0.table == "notes" })
    #expect(notes.doubtful == notes.recovered)
  }

  @Test("Long values that were not committed are compared with the live ones as far as they are there")
  func longValues() throws {
    let scene = try scene(words: 180)
    let place = try TemporaryFolder()
    let path = try place.write(scene.main, to: "Store.sqlite")
    try place.write(try #require(scene.journal), to: "Store.sqlite-journal")
    let report = try Salvager().salvage(
      path, to: place.appending("Out.sqlite"), model: .sqlite(try SchemaScript(scene.schema)),
      options: .init(findsDeleted: true))
    #expect(report.entities.first { $0.name == "notes" }?.recovered == 500)
    #expect(report.entities.first { $0.name == "notes" }?.keptApart ?? 0 > 0)
  }
}
