import GRDB
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("What is lost with the end of a file")
struct CutTailTests {
  static let schema = """
    CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE events (at INTEGER, kind TEXT, data TEXT);
    CREATE TABLE pairs (a TEXT, b INTEGER, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
    CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT);
    """

  /// A store that is cut off behind the pages of `items`; the roots of all tables but `late` are before them.
  private func cut() throws -> PlainScene {
    var kept = 0
    let scene = try PlainScene(schema: Self.schema) { db in
      for index in 1...300 {
        try db.execute(sql: "INSERT INTO items VALUES (?, ?)", arguments: [index, "item \(index) with a name"])
      }
      kept = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      for index in 1...150 {
        let text = "\(index) " + String(repeating: "x", count: 60)
        try db.execute(sql: "INSERT INTO events VALUES (?, 'kind', ?)", arguments: [index, text])
        try db.execute(sql: "INSERT INTO pairs VALUES (?, ?, ?)", arguments: ["key \(index)", index, text])
      }
      for index in 1...300 {
        try db.execute(
          sql: "INSERT INTO numbered (text) VALUES (?)", arguments: ["\(index)" + String(repeating: "y", count: 40)])
      }
      try db.execute(sql: "CREATE TABLE late (x)")
      for index in 1...20 { try db.execute(sql: "INSERT INTO late VALUES (?)", arguments: [index]) }
    }
    return scene.changing { $0.main = Array($0.main.prefix(kept * 4096)) }
  }

  @Test("Pages that a table's tree leads to are lost pages of that table, also behind the end of the file")
  func estimates() throws {
    let scene = try cut()
    let result = try scene.salvage(withModel: false)
    let entities = Dictionary(uniqueKeysWithValues: result.report.entities.map { ($0.name, $0) })
    #expect(result.rows["items"] == scene.truth["items"])
    let events = try #require(entities["events"])
    #expect(events.recovered == 0 && events.lostBasis == .estimate)
    #expect((110...220).contains(events.lost), "\(events.lost) of 150")
    // Without rowids the size of the rows on inner pages tells.
    let pairs = try #require(entities["pairs"])
    #expect(pairs.lostBasis == .estimate && pairs.recovered + pairs.lost >= 50 && pairs.lost <= 450, "\(pairs.lost)")
    // The highest rowid that SQLite gave is the end of the last gap.
    let numbered = try #require(entities["numbered"])
    #expect(numbered.lost == 300, "\(numbered.lost)")
    // None of them is known by its key; all were given keys up to that one.
    #expect(numbered.lostKeys.isEmpty && !numbered.areLostKeysComplete)
    #expect(numbered.lostKeysEstimated.ranges == [1...300])
    let codes = result.report.causes.map(\.code)
    #expect(codes.contains(.truncated))
    #expect(!codes.contains(.misplacedPages) && !codes.contains(.contradictingPages), "\(codes)")
  }

  @Test("The pages that are missing from the end have one number", arguments: [0, 100])
  func missingPages(rest: Int) throws {
    let scene = try cut().changing { $0.main += [UInt8](repeating: 0, count: rest) }
    // The number of pages is at byte 28 of the header, big-endian.
    let stated = scene.main[28..<32].reduce(0) { $0 << 8 | Int($1) }
    // Of one page a part is there.
    let missing = stated - (scene.main.count + 4095) / 4096
    let report = try scene.salvage(withModel: false).report
    let cause = try #require(report.causes.first { $0.code == .truncated })
    #expect(cause.words.hasPrefix("\(missing) of \(stated) pages are missing"), "\(cause.words)")
    let remark = "the file is cut off: \(missing) pages are missing from its end"
    #expect(report.remarks.contains(remark), "\(report.remarks)")
  }

  @Test("Of a table of which nothing is left the number is unknown, and is said to be")
  func unknown() throws {
    let scene = try cut()
    let report = try scene.salvage(withModel: false).report
    let late = try #require(report.entities.first { $0.name == "late" })
    #expect(late.lost == 0 && late.recovered == 0)
    #expect(late.lostBasis == .unknown && !late.isLostExact && late.hasLosses)
    #expect(late.count.lostNumber == "unknown" && !late.count.isComplete)
    #expect(!report.isComplete && report.count.hasUnknown)
    #expect(report.count.words.contains("an unknown number more may be lost"))
  }

  @Test("A table without a page that is lost has lost nothing, though another table has")
  func others() throws {
    let scene = try cut()
    let items = try #require(try scene.salvage().report.entities.first { $0.name == "items" })
    #expect(items.lost == 0 && items.lostBasis == .none)
  }
}

@Suite("A model that fits no row, and another database's log")
struct ForeignEvidenceTests {
  private func made() throws -> PlainScene {
    try PlainScene(schema: "CREATE TABLE events (at INTEGER, kind TEXT, data TEXT)") { db in
      for index in 1...3000 {
        try db.execute(sql: "INSERT INTO events VALUES (?, 'kind', ?)", arguments: [index, "data of \(index)"])
      }
    }
  }

  @Test("Without the list of tables a schema that fits no row is refused, and one that fits is not")
  func unfitRows() throws {
    let scene = try made().changing { scene in
      for place in 0..<4096 { scene.main[place] = 0 }
    }
    #expect(try scene.salvage().rows["events"] == scene.truth["events"])
    let place = try TemporaryFolder()
    let path = try place.write(scene.main, to: "Store.sqlite")
    let other = SalvageModel.sqlite(try SchemaScript("CREATE TABLE other (a INTEGER PRIMARY KEY)"))
    let error = #expect(throws: SalvageError.self) {
      try Salvager().salvage(path, to: place.appending("Out.sqlite"), model: other)
    }
    #expect(error?.kind == .unfitModel)
    #expect(try FileSystem().status(of: place.appending("Out.sqlite")) == nil)
  }

  @Test(
    "The records of a store with another database's log are recovered, and the log is told of",
    arguments: [true, false])
  func foreignLog(withModel: Bool) throws {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.appending("Other.sqlite").string)
    let log = try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE planets (name TEXT)")
      for index in 1...40 {
        let name = "\(index) " + String(repeating: "x", count: 400)
        try db.execute(sql: "INSERT INTO planets VALUES (?)", arguments: [name])
      }
      return try FileSystem().contents(of: folder.appending("Other.sqlite-wal"), limit: 1 << 24)
    }
    try queue.close()
    let scene = try made().changing { $0.log = log }
    let result = try scene.salvage(withModel: withModel)
    #expect(result.rows["events"] == scene.truth["events"])
    #expect(result.rows["planets"] == nil)
    #expect(result.report.causes.contains { $0.code == .foreignLog })
    #expect(result.report.remarks.contains { $0.contains("another database") && $0.contains("left out") })
  }
}
