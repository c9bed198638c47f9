import GRDB
import Salvage
import TestSupport
import Testing

@Suite("Files into which bytes were put, or from which some were taken")
struct ShiftedPageTests {
  private static func scene(_ pragmas: String = "") throws -> PlainScene {
    try PlainScene(
      pragmas: pragmas,
      schema: """
        CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, size REAL);
        CREATE TABLE tags (name TEXT PRIMARY KEY, weight INTEGER) WITHOUT ROWID
        """
    ) { db in
      for index in 1...900 {
        let text = String(repeating: "note \(index) ", count: 2 + index * 7919 % 12)
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?)", arguments: [index, text, Double(index) / 7])
        if index % 3 == 0 {
          try db.execute(sql: "INSERT INTO tags VALUES (?, ?)", arguments: ["tag \(index * 31 % 900)", index])
        }
      }
    }
  }

  @Test(
    "Nothing is lost but what is at the place, wherever it is", arguments: [1, 2, 15, 100, 511, 512, 3000],
    [true, false])
  func bytes(count: Int, isInserted: Bool) throws {
    for pragmas in ["", "PRAGMA page_size = 1024; PRAGMA encoding = 'UTF-16le'"] {
      let scene = try Self.scene(pragmas)
      let size = scene.pageSize
      for part in 1...7 {
        let place = size + (scene.main.count - size - count) * part / 8
        let result = try scene.changing {
          if isInserted {
            $0.main.insert(contentsOf: repeatElement(0x61, count: count), at: place)
          } else {
            $0.main.removeSubrange(place..<(place + count))
          }
        }.salvage(withModel: false)
        let words = "\(count) bytes at \(place) with pages of \(size)"
        // As many rows as the removed bytes touch, at least 20 bytes each, and one at either end.
        #expect(scene.missingRows(result) <= 2 + (isInserted ? 0 : count / 20), "\(words)")
        #expect(scene.falseRows(result) <= Int(result.report.entities.reduce(0) { $0 + $1.doubtful }), "\(words)")
        let codes = result.report.causes.map(\.code)
        #expect(codes.contains(.shiftedPages) && !codes.contains(.truncated), "\(words): \(codes)")
      }
    }
  }

  @Test("Whole pages taken out or put in cost at most their own rows, and no row comes unmarked into another table")
  func wholePages() throws {
    let scene = try PlainScene(
      schema: (0..<6).map { "CREATE TABLE t\($0) (id INTEGER PRIMARY KEY, name TEXT, size REAL)" }.joined(
        separator: ";")
    ) { db in
      for (table, count) in [20, 600, 20, 400, 3, 500].enumerated() {
        for id in 1...count {
          try db.execute(
            sql: "INSERT INTO t\(table) VALUES (?, ?, ?)",
            arguments: [id, "t\(table), row \(id) of many", Double(id) / 7])
        }
      }
    }
    let size = scene.pageSize
    let count = scene.main.count / size
    for (page, pages) in [(3, 1), (5, 1), (9, 1), (14, 2), (count - 4, 1), (count - 6, 3)] {
      let removed = try scene.changing { $0.main.removeSubrange(((page - 1) * size)..<((page - 1 + pages) * size)) }
        .salvage(withModel: false)
      let doubtful = Int(removed.report.entities.reduce(0) { $0 + $1.doubtful })
      #expect(scene.falseRows(removed) <= doubtful, "\(pages) from page \(page)")
      let codes = Set(removed.report.causes.map(\.code))
      #expect(codes.contains(.shiftedPages) && codes.isDisjoint(with: [.zeroedPages, .misplacedPages]), "\(codes)")
      if page > 8 { #expect(scene.missingRows(removed) <= 130 * pages, "\(pages) from page \(page)") }
      let inserted = try scene.changing {
        $0.main.insert(contentsOf: repeatElement(0x61, count: pages * size), at: (page - 1) * size)
      }.salvage(withModel: false)
      #expect(scene.falseRows(inserted) <= Int(inserted.report.entities.reduce(0) { $0 + $1.doubtful }), "\(page)")
      #expect(inserted.report.causes.map(\.code) == [.shiftedPages], "\(page)")
      if page > 8 { #expect(scene.missingRows(inserted) == 0, "\(pages) before page \(page)") }
    }
  }

  @Test("Bytes that are missing from the first page cost nothing")
  func firstPage() throws {
    let scene = try Self.scene()
    let result = try scene.changing { $0.main.removeSubrange(1020..<1035) }.salvage(withModel: false)
    #expect(scene.missingRows(result) == 0 && scene.falseRows(result) == 0)
    #expect(result.report.causes.map(\.code) == [.shiftedPages])
  }

  @Test("As many bytes taken out as were put in elsewhere")
  func sameLength() throws {
    let scene = try Self.scene()
    let size = scene.pageSize
    let result = try scene.changing {
      $0.main.removeSubrange((9 * size + 700)..<(9 * size + 707))
      $0.main.insert(contentsOf: [1, 2, 3, 4, 5, 6, 7], at: 4 * size + 900)
    }.salvage(withModel: false)
    #expect(scene.missingRows(result) <= 3)
    #expect(scene.falseRows(result) <= Int(result.report.entities.reduce(0) { $0 + $1.doubtful }))
  }

  @Test("A carriage return before each line feed costs nothing")
  func lineEnds() throws {
    let scene = try Self.scene()
    let result = try scene.changing { damaged in
      damaged.main = damaged.main.flatMap { $0 == 0x0a ? [0x0d, 0x0a] : [$0] }
    }.salvage(withModel: false)
    #expect(scene.missingRows(result) == 0 && scene.falseRows(result) == 0)
    #expect(result.report.causes.map(\.code) == [.shiftedPages])
  }

  @Test("Values with line ends of Windows are no sign of it, and a sound file is read as it is")
  func soundLineEnds() throws {
    let scene = try PlainScene(schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)") { db in
      for index in 20...60 {
        try db.execute(sql: "INSERT INTO notes VALUES (?, ?)", arguments: [index, "one\r\ntwo\r\n"])
      }
    }
    for bytes in [[], [UInt8](repeating: 0x61, count: 100)] {
      let result = try scene.changing { $0.main += bytes }.salvage(withModel: false)
      #expect(scene.missingRows(result) == 0 && scene.falseRows(result) == 0)
    }
  }
}
