import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// How many pages a store has by its header, once its end is cut off.
enum StatedCount: CaseIterable {
  /// The number that it had, and valid.
  case asItWas

  /// Zeros, as SQLite before 3.7.0 left them.
  case zeros

  /// The number that it had, no longer valid for a single wrong bit.
  case invalid

  /// The number of the pages that are left, and valid.
  case asCut

  /// The bytes of a store of which only the first pages are left.
  func cut(_ main: [UInt8], to pages: Int) -> [UInt8] {
    var bytes = Array(main.prefix(pages * 4096))
    switch self {
    case .asItWas: break
    case .zeros: for place in 28..<32 { bytes[place] = 0 }
    case .invalid: bytes[95] ^= 4
    case .asCut: for place in 0..<4 { bytes[28 + place] = UInt8(pages >> (24 - 8 * place) & 0xff) }
    }
    return bytes
  }
}

@Suite("Stores whose end is cut off, whatever their header says of it")
struct CutMatrixTests {
  typealias Rows = Set<[DatabaseValue]>

  /// Holds a report against the rows that the whole store has and the result lacks.
  ///
  /// - Parameter causes: one of them is to be named if rows are missing.
  private func hold(
    _ report: SalvageReport, _ rows: [String: Rows], against truth: [String: Rows], _ place: String,
    causes: Set<DamageCause.Code> = [.truncated]
  ) {
    let entities = Dictionary(report.entities.map { ($0.table, $0) }) { first, _ in first }
    var isMissing = false
    for (table, whole) in truth {
      let missing = whole.subtracting(rows[table] ?? []).count
      guard missing > 0 else { continue }
      isMissing = true
      guard let entity = entities[table] else {
        #expect(report.mayLackTables, "\(place): nothing is said of \(table), which had \(whole.count) rows")
        continue
      }
      #expect(
        entity.hasLosses || entity.doubtful > 0 || entity.keptApart > 0, "\(place): \(missing) of \(table) are lost")
      #expect(!entity.isLostExact || Int(entity.lost) == missing, "\(place): \(entity.lost) of \(missing) of \(table)")
    }
    if isMissing {
      #expect(!report.isComplete, "\(place): complete")
      #expect(!report.count.words.hasPrefix("All ") && !report.count.words.hasPrefix("It held"), "\(place)")
      #expect(report.causes.contains { causes.contains($0.code) }, "\(place): \(report.causes.map(\.code))")
      #expect(!report.causes.contains { $0.code == .misplacedPages || $0.code == .pageCopies }, "\(place)")
    }
  }

  /// The numbers of pages to which a store is cut: the last few, and some of every part of it.
  private func lengths(_ count: Int) -> [Int] {
    Set([1, 2, 3, 4, 5, 6, count / 4, count / 2, count * 3 / 4, count - 8, count - 5, count - 3, count - 2, count - 1])
      .filter { $0 > 0 && $0 < count }.sorted()
  }

  @Test("Of a store of Core Data's, with and without its model", arguments: StatedCount.allCases)
  func coreData(_ stated: StatedCount) throws {
    let scene = try SalvageScene(seed: 81, books: 400)
    for withModel in [true, false] {
      for length in lengths(scene.pageCount) {
        var cut = scene
        cut.main = stated.cut(scene.main, to: length)
        let result = try cut.salvage(withModel: withModel)
        hold(
          result.report, result.rows, against: scene.truth,
          "\(length) of \(scene.pageCount) pages, \(stated), \(withModel ? "with" : "without") model")
      }
    }
  }

  /// A database of tables of every kind, the pages of which are mixed.
  private func plain() throws -> PlainScene {
    try PlainScene(
      schema: """
        CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE b (at INTEGER, kind TEXT, data TEXT);
        CREATE INDEX kinds ON b (kind, at);
        CREATE TABLE pairs (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
        CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT);
        CREATE TABLE late (x);
        """
    ) { db in
      for index in 1...900 {
        try db.execute(sql: "INSERT INTO a VALUES (?, ?)", arguments: [index, "a row with the name \(index)"])
        try db.execute(sql: "INSERT INTO b VALUES (?, ?, ?)", arguments: [index, "kind \(index % 7)", "data \(index)"])
        if index % 3 == 0 {
          try db.execute(sql: "INSERT INTO pairs VALUES (?, ?)", arguments: ["key of the pair \(index)", index])
          try db.execute(sql: "INSERT INTO numbered (text) VALUES (?)", arguments: ["text of the row \(index)"])
        }
      }
      for index in 1...400 { try db.execute(sql: "INSERT INTO late VALUES (?)", arguments: ["late row \(index)"]) }
    }
  }

  @Test("Of a plain database, with and without its schema", arguments: StatedCount.allCases)
  func plain(_ stated: StatedCount) throws {
    let scene = try plain()
    for withModel in [true, false] {
      for length in 1..<(scene.main.count / 4096) {
        let result = try scene.changing { $0.main = stated.cut(scene.main, to: length) }.salvage(withModel: withModel)
        hold(
          result.report, result.rows, against: scene.truth,
          "\(length) of \(scene.main.count / 4096) pages, \(stated), \(withModel ? "with" : "without") schema")
      }
    }
  }

  @Test("Of a plain database with a long hole in place of its end", arguments: StatedCount.allCases)
  func hole(_ stated: StatedCount) throws {
    let scene = try plain()
    let count = scene.main.count / 4096
    for length in stride(from: 2, through: count, by: 5) {
      let cut = scene.changing { $0.main = stated.cut(scene.main, to: length) }
      let result = try cut.changing { $0.hole = 80 << 20 }.salvage()
      // Up to 15 pages of the hole are read.
      hold(
        result.report, result.rows, against: scene.truth, "\(length) of \(count) pages and a hole, \(stated)",
        causes: [.truncated, .zeroedPages])
      #expect(try result.rows == cut.salvage().rows, "\(length) of \(count) pages, \(stated)")
    }
  }

  @Test("A store that is whole is complete, whatever its header says of its pages", arguments: StatedCount.allCases)
  func whole(_ stated: StatedCount) throws {
    let plain = try plain()
    let whole = plain.changing { $0.main = stated.cut(plain.main, to: plain.main.count / 4096) }
    #expect(try whole.salvage(withModel: false).report.isComplete)
    let scene = try SalvageScene(seed: 82, books: 200)
    var copy = scene
    copy.main = stated.cut(scene.main, to: scene.pageCount)
    #expect(try copy.salvage().report.isComplete)
  }

  @Test("A store that was cut off in free pages only has lost nothing", arguments: StatedCount.allCases)
  func freePages(_ stated: StatedCount) throws {
    var kept = 0
    let scene = try PlainScene(schema: "CREATE TABLE a (x TEXT); CREATE TABLE b (x TEXT)") { db in
      for index in 1...600 { try db.execute(sql: "INSERT INTO a VALUES (?)", arguments: ["row \(index) of the first"]) }
      kept = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      for index in 1...600 { try db.execute(sql: "INSERT INTO b VALUES (?)", arguments: ["row \(index) of the other"]) }
      try db.execute(sql: "DELETE FROM b")
    }
    #expect(kept > 4 && scene.main.count / 4096 > kept + 2)
    let result = try scene.changing { $0.main = stated.cut(scene.main, to: kept) }.salvage(withModel: false)
    #expect(result.rows["a"] == scene.truth["a"])
    for entity in result.report.entities { #expect(!entity.hasLosses && entity.isLostExact, "\(entity.name)") }
    // Where the header says that the file was longer, what is missing may be said all the same.
    #expect(result.report.isComplete || stated == .asItWas)
  }

  @Test("Of a store of which only the first page is left, none of the others is said not to be missed")
  func firstPage() throws {
    let scene = try plain()
    let report = try scene.changing { $0.main = StatedCount.asItWas.cut(scene.main, to: 1) }.salvage(withModel: false)
      .report
    #expect(report.causes.map(\.code) == [.truncated])
    #expect(report.count.hasUnknown && !report.isComplete)
  }

  @Test("Numbers of pages that the header makes up are grouped, and one page is one")
  func statedWords() throws {
    let scene = try PlainScene(schema: "CREATE TABLE a (x)") { db in try db.execute(sql: "DROP TABLE a") }
      .changing { $0.main = Array($0.main.prefix(4096)) }
    let report = try scene.changing { scene in
      for (place, byte) in [UInt8(0xd0), 0, 0, 0].enumerated() { scene.main[28 + place] = byte }
    }.salvage(withModel: false).report
    let cause = try #require(report.causes.first { $0.code == .headerContradicted })
    #expect(cause.words.contains("there are 3,489,660,928 pages; there is 1, and"), "\(cause.words)")
  }

  @Test("A sound list of tables without any is whole, and one beside pages with rows is not")
  func noTables() throws {
    let scene = try PlainScene(schema: "CREATE TABLE a (x)") { db in
      for index in 1...900 { try db.execute(sql: "INSERT INTO a VALUES (?)", arguments: ["row \(index) of a table"]) }
    }
    let path = try scene.folder.write(scene.main, to: "Dropped.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in try db.execute(sql: "DROP TABLE a") }
    try queue.close()
    let dropped = try FileSystem().contents(of: path, limit: 1 << 24)
    let report = try scene.changing { $0.main = dropped }.salvage(withModel: false).report
    #expect(report.isComplete && report.remarks.isEmpty && report.causes.isEmpty && !report.mayLackTables)
    // The first page of the emptied store before the pages of the full one.
    let mixed = scene.changing { $0.main = Array(dropped.prefix(4096)) + $0.main.dropFirst(4096) }
    #expect(try !mixed.salvage(withModel: false).report.isComplete)
  }
}
