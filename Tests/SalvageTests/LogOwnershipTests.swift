import GRDB
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Whose a log or a journal is")
struct LogOwnershipTests {
  static let schema = "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT)"

  /// The files of a store, and the rows of its table at each time; the words of each store are its own.
  private struct Files {
    var main: [UInt8]?
    var log: [UInt8]?
    var journal: [UInt8]?

    /// The rows of the main file by itself.
    var filed: PlainScene.Rows = []

    /// The rows with the log, or without the transaction that the journal is of.
    var rows: PlainScene.Rows = []
  }

  private func add(_ rows: ClosedRange<Int>, of name: String, seed: UInt64, to db: GRDB.Database) throws {
    var random = SeededGenerator(seed: seed)
    for index in rows {
      let count = Int.random(in: 3...20, using: &random)
      try db.execute(
        sql: "INSERT INTO notes VALUES (?, ?, ?)",
        arguments: [index, "\(name) title \(index)", "\(name) \(SalvageScene.words(&random, count))"])
    }
  }

  private func rows(_ db: GRDB.Database) throws -> PlainScene.Rows {
    try #require(try PlainScene.tables(db)["notes"])
  }

  private func bytes(_ path: FilePath) throws -> [UInt8] { try FileSystem().contents(of: path, limit: 1 << 26) }

  /// A store that has half of its rows in its log, which changes a third of the others.
  private func logged(_ name: String, seed: UInt64) throws -> Files {
    let folder = try TemporaryFolder()
    let path = folder.appending("Logged.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }  // It is read whole by then.
    return try queue.writeWithoutTransaction { db in
      var files = Files()
      try db.execute(
        sql: "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; \(Self.schema); BEGIN")
      try add(1...600, of: name, seed: seed, to: db)
      try db.execute(sql: "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
      files.filed = try rows(db)
      try db.execute(sql: "BEGIN; UPDATE notes SET title = '\(name) changed ' || id WHERE id <= 200")
      try add(601...1200, of: name, seed: seed + 1, to: db)
      try db.execute(sql: "COMMIT")
      files.rows = try rows(db)
      files.main = try bytes(path)
      files.log = try bytes(StoreFileSet(main: path).path(of: .wal))
      return files
    }
  }

  /// A later state of such a store, and its log of before the last checkpoint.
  private func withOlderLog(_ name: String, seed: UInt64) throws -> Files {
    var files = try logged(name, seed: seed)
    let folder = try TemporaryFolder()
    let path = try folder.write(try #require(files.main), to: "Later.sqlite")
    try folder.write(try #require(files.log), to: "Later.sqlite-wal")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE); BEGIN")
      try db.execute(sql: "UPDATE notes SET title = '\(name) changed again ' || id WHERE id <= 100")
      try add(1201...1500, of: name, seed: seed + 2, to: db)
      try db.execute(sql: "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
      files.filed = try rows(db)
      files.rows = files.filed
    }
    files.main = try bytes(path)
    try queue.close()
    return files
  }

  /// A store in the middle of a transaction that writes to every page of its table, with its hot journal; or at rest.
  private func journalled(_ name: String, seed: UInt64, atRest: Bool = false) throws -> Files {
    let folder = try TemporaryFolder()
    let path = folder.appending("Journalled.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }  // It is read whole by then.
    return try queue.writeWithoutTransaction { db in
      var files = Files()
      try db.execute(sql: "PRAGMA page_size = 1024; PRAGMA journal_mode = DELETE; \(Self.schema); BEGIN")
      try add(1...600, of: name, seed: seed, to: db)
      try db.execute(sql: "COMMIT")
      files.filed = try rows(db)
      files.rows = files.filed
      if !atRest {
        try db.execute(sql: "PRAGMA cache_size = 5; PRAGMA cache_spill = 5; BEGIN")
        try db.execute(sql: "UPDATE notes SET title = 'not committed ' || id, body = body || title")
      }
      files.main = try bytes(path)
      guard !atRest else { return files }
      files.journal = try bytes(StoreFileSet(main: path).path(of: .journal))
      try db.execute(sql: "ROLLBACK")
      return files
    }
  }

  private func salvage(_ files: Files) throws -> (report: SalvageReport, rows: PlainScene.Rows) {
    let place = try TemporaryFolder()
    let path = place.appending("Store.sqlite")
    if let main = files.main { try place.write(main, to: "Store.sqlite") }
    if let log = files.log { try place.write(log, to: "Store.sqlite-wal") }
    if let journal = files.journal { try place.write(journal, to: "Store.sqlite-journal") }
    let results = try TemporaryFolder()
    let output = results.appending("Out.sqlite")
    let report = try Salvager().salvageRaw(path, to: output, model: .sqlite(try SchemaScript(Self.schema)))
    let queue = try DatabaseQueue(path: output.string)
    defer { try? queue.close() }  // It is read whole by then.
    return (report, try queue.read { db in try rows(db) })
  }

  /// What can become of a main file so that it says nothing any more.
  enum Loss: String, CaseIterable {
    case blank, random, cut, empty, missing

    func applied(to main: [UInt8]) -> [UInt8]? {
      switch self {
      case .blank: return Array(repeating: 0, count: main.count)
      case .random:
        var random = SeededGenerator(seed: 5)
        return main.map { _ in UInt8.random(in: 0...255, using: &random) }
      case .cut: return Array(main.prefix(main.count / 10))
      case .empty: return []
      case .missing: return nil
      }
    }
  }

  @Test("A main file that says nothing contradicts nothing: all rows of its log come back", arguments: Loss.allCases)
  func ownLog(loss: Loss) throws {
    var files = try logged("Own", seed: 1)
    files.main = loss.applied(to: try #require(files.main))
    let (report, rows) = try salvage(files)
    let logged = files.rows.subtracting(files.filed)
    #expect(logged.count == 800)
    #expect(logged.isSubset(of: rows))
    #expect(rows.isSubset(of: files.rows))
    #expect(!report.causes.contains { $0.code == .foreignLog || $0.code == .staleLog })
    #expect(!report.isComplete)
    #expect(report.remarks.contains { $0.contains("is from its write-ahead log") } == (loss != .cut))
  }

  @Test("A main file that says nothing is salvaged from its hot journal", arguments: Loss.allCases)
  func ownJournal(loss: Loss) throws {
    var files = try journalled("Own", seed: 2)
    files.main = loss.applied(to: try #require(files.main))
    let (report, rows) = try salvage(files)
    #expect(rows.isSubset(of: files.rows))
    #expect(rows.count > files.rows.count / 2)
    // The beginning of the file that is left was rewritten by the transaction: that its journal is another store's is possible.
    #expect(!report.causes.contains { $0.code == .foreignJournal && ($0.confidence != .possible || loss != .cut) })
    #expect(report.remarks.contains { $0.contains("is from its rollback journal") } == (loss != .cut))
  }

  @Test("Where a log alone is left, how many records are lost of an entity without a page in it is unknown")
  func entityWithoutPages() throws {
    var scene = try SalvageScene(seed: 5, finish: ["UPDATE ZBOOK SET ZPAGES = ZPAGES + 1"], keepsLog: true)
    scene.main = []
    let result = try scene.salvage()
    #expect(result.rows["ZREADER"] ?? [] == [])
    let reader = try #require(result.report.entities.first { $0.name == "Reader" })
    #expect(reader.lost > 0 || reader.lostBasis == .unknown)
    #expect(!reader.isLostExact)
  }

  @Test("The log of a store of the same schema is left out where its trees lead to pages with other keys")
  func siblingLog() throws {
    var files = try logged("Own", seed: 1)
    files.log = try logged("Sibling", seed: 50).log
    var main = try #require(files.main)
    for place in 0..<1024 { main[place] = 0 }
    files.main = main
    let (report, rows) = try salvage(files)
    #expect(rows.isSubset(of: files.filed))
    #expect(rows.count > 500)
    #expect(report.causes.contains { $0.code == .foreignLog })
    #expect(!report.isComplete)
  }

  @Test("An earlier log of a store is not laid over its later file")
  func olderLog() throws {
    let files = try withOlderLog("Own", seed: 1)
    let (report, rows) = try salvage(files)
    #expect(rows == files.filed)
    #expect(report.doubtful == 0)
    #expect(report.causes.contains { $0.code == .foreignLog })
    #expect(!report.isComplete)
  }

  @Test("What a damaged file lacks is taken from its earlier log, and every row of that is doubtful")
  func olderLogFills() throws {
    var files = try withOlderLog("Own", seed: 1)
    var main = try #require(files.main)
    for place in 2048..<(40 * 1024) { main[place] = 0 }
    files.main = main
    let (report, rows) = try salvage(files)
    let alone = try salvage(Files(main: main))
    #expect(rows.count > alone.rows.count)
    #expect(report.doubtful >= Int64(rows.subtracting(files.filed).count))
    let reasons = report.entities.reduce(0) { $0 + ($1.doubts[.contradictedLog] ?? 0) }
    #expect(reasons > 0)
    #expect(report.remarks.contains { $0.contains("older than the database") })
  }

  /// An earlier copy of a store, the log of a later state of it, and the rows that only that has.
  private func withLaterLog() throws -> (files: Files, later: PlainScene.Rows) {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }  // It is read whole by then.
    return try queue.writeWithoutTransaction { db in
      try db.execute(
        sql:
          "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; \(Self.schema); CREATE INDEX byTitle ON notes (title); BEGIN"
      )
      try add(1...1000, of: "Early", seed: 1, to: db)
      try db.execute(sql: "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
      var files = Files(main: try bytes(path), filed: try rows(db))
      try db.execute(sql: "DELETE FROM notes WHERE id % 3 = 0; PRAGMA wal_checkpoint(TRUNCATE)")
      for round in 0..<20 {
        try db.execute(sql: "BEGIN")
        try add((2000 + round * 20)...(2019 + round * 20), of: "Later", seed: 2, to: db)
        try db.execute(sql: "COMMIT")
      }
      files.rows = try rows(db)
      files.log = try bytes(StoreFileSet(main: path).path(of: .wal))
      return (files, files.rows.subtracting(files.filed))
    }
  }

  @Test("The log of a later state is not mixed with an earlier copy of the file: each is read by itself")
  func laterLog() throws {
    let (files, later) = try withLaterLog()
    let (report, rows) = try salvage(files)
    #expect(rows == files.filed)
    #expect(report.doubtful == 0 && !report.isComplete)
    #expect(report.remarks.contains { $0.contains("another state of the store") })
    // The log alone, under the name of a store.
    let alone = try salvage(Files(main: files.log))
    #expect(later.isSubset(of: alone.rows) && alone.rows.isSubset(of: files.rows))
    #expect(!alone.report.causes.contains { $0.code == .embedded })
  }

  @Test("Another store's journal beside a store at rest is not undone")
  func siblingJournal() throws {
    var files = try journalled("Own", seed: 3, atRest: true)
    files.journal = try journalled("Sibling", seed: 60).journal
    let (report, rows) = try salvage(files)
    #expect(rows == files.rows)
    #expect(report.causes.contains { $0.code == .foreignJournal })
    #expect(!report.isComplete)
  }

  @Test("Another store's journal beside a damaged file is undone, and no row of it is certain")
  func siblingJournalOfDamaged() throws {
    var files = try journalled("Own", seed: 3, atRest: true)
    files.journal = try journalled("Sibling", seed: 60).journal
    files.main = Loss.cut.applied(to: try #require(files.main))
    let (report, rows) = try salvage(files)
    #expect(report.doubtful >= Int64(rows.subtracting(files.rows).count))
    #expect(report.causes.contains { $0.code == .foreignJournal })
    #expect(!report.isComplete)
  }
}
