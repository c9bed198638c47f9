import GRDB
import Platform
import Salvage
import TestSupport
import Testing

@Suite("Pages whose cell pointers or sectors were written over")
struct LostPointerTests {
  /// Tables of both kinds, with or without free space on their pages.
  private static func scene(hasGaps: Bool) throws -> PlainScene {
    try PlainScene(
      schema: """
        CREATE TABLE notes (id INTEGER PRIMARY KEY, number INTEGER, size REAL, text TEXT);
        CREATE TABLE tags (name TEXT PRIMARY KEY, weight INTEGER, text TEXT) WITHOUT ROWID
        """
    ) { db in
      for index in 1...900 {
        let text = String(repeating: "note \(index) ", count: 1 + index * 7919 % 9)
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?, ?)", arguments: [index, index * 37, Double(index) / 7, text])
        if index % 2 == 0 {
          try db.execute(
            sql: "INSERT INTO tags VALUES (?, ?, ?)", arguments: ["tag \(index * 31 % 900)", index, text])
        }
      }
      if hasGaps {
        try db.execute(
          sql: "DELETE FROM notes WHERE id % 13 = 5; UPDATE notes SET text = text || 'longer' WHERE id % 17 = 3")
      }
    }
  }

  /// The leaves of a file, and how many cells each has.
  private static func leaves(_ scene: PlainScene) -> [(offset: Int, cells: Int)] {
    stride(from: scene.pageSize, to: scene.main.count, by: scene.pageSize)
      .filter { scene.main[$0] == 13 || scene.main[$0] == 10 }
      .map { ($0, Int(scene.main[$0 + 3]) << 8 | Int(scene.main[$0 + 4])) }
  }

  @Test(
    "No row is lost with all of the pointers, as none is with the header too", arguments: [false, true], [0, 0xff, nil])
  func pointers(hasGaps: Bool, fill: UInt8?) throws {
    let scene = try Self.scene(hasGaps: hasGaps)
    var generator = SeededGenerator(seed: 3)
    for (page, step) in [(0, 1), (1, 2), (1, 3)] {
      let result = try scene.changing { damaged in
        for (index, leaf) in Self.leaves(scene).enumerated() where index % 3 == page {
          for byte in stride(from: 0, to: 2 * leaf.cells, by: 2 * step) {
            damaged.main[leaf.offset + 8 + byte] = fill ?? UInt8.random(in: 0...255, using: &generator)
            damaged.main[leaf.offset + 9 + byte] = fill ?? UInt8.random(in: 0...255, using: &generator)
          }
        }
      }.salvage(withModel: false)
      // Beside pointers that are left, a row whose cell is like another's beginning may be taken for a part of it.
      let isTold = step > 1 && scene.missingRows(result) == 1 && !result.report.isComplete
      #expect(scene.missingRows(result) == 0 || isTold, "every pointer of \(step)")
      #expect(scene.falseRows(result) == 0, "every pointer of \(step)")
    }
  }

  @Test("A row that runs into a sector that was written over is doubtful")
  func sectors() throws {
    let scene = try Self.scene(hasGaps: false)
    let line = Array("The quick brown fox jumps over the lazy dog. ".utf8)
    var falseRows = 0
    for leaf in Self.leaves(scene) {
      for sector in 2..<7 {
        let result = try scene.changing { damaged in
          for index in 0..<512 { damaged.main[leaf.offset + sector * 512 + index] = line[index % line.count] }
        }.salvage(withModel: false)
        let wrong = scene.falseRows(result)
        falseRows += wrong
        let doubtful = result.report.entities.reduce(0) { $0 + Int($1.doubtful) }
        #expect(wrong <= doubtful, "sector \(sector) of the page at \(leaf.offset)")
      }
    }
    #expect(falseRows > 20)
  }

  @Test("A wrong number of cells on the first page loses nothing that the page's loss does not")
  func firstPageCount() throws {
    let scene = try PlainScene(
      schema: (1...60).map {
        "CREATE TABLE table_with_a_long_name_\($0) (id INTEGER PRIMARY KEY, text TEXT, number INTEGER)"
      }
      .joined(separator: ";")
    ) { db in
      for table in 1...60 {
        for index in 1...3 {
          try db.execute(
            sql: "INSERT INTO table_with_a_long_name_\(table) VALUES (?, ?, ?)",
            arguments: [index, "row \(index)", table])
        }
      }
    }
    #expect(scene.main[100] == 5)
    let without = try scene.changing { for index in 0..<4096 { $0.main[index] = 0 } }.salvage()
    for count in [0, 1, Int(scene.main[104]) - 1, Int(scene.main[104]) + 1, 60, 255] {
      let result = try scene.changing { $0.main[104] = UInt8(count) }.salvage()
      #expect(scene.missingRows(result) <= scene.missingRows(without), "\(count)")
      #expect(scene.falseRows(result) == 0, "\(count)")
      let alone = try scene.changing { $0.main[104] = UInt8(count) }.salvage(withModel: false)
      #expect(scene.missingRows(alone) == 0 && scene.falseRows(alone) == 0, "\(count)")
    }
  }
}
