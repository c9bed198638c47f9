import GRDB
import TestSupport
import Testing

@Suite("Headers that lie")
struct HeaderLieTests {
  /// A store of few pages, most of them empty or with little on them.
  private func scene(_ pragmas: String, rows: Int) throws -> PlainScene {
    try PlainScene(
      pragmas: pragmas,
      schema: """
        CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE empty (id INTEGER PRIMARY KEY, note TEXT);
        CREATE INDEX names_name ON names (name)
        """
    ) { db in
      for index in 1...rows {
        try db.execute(sql: "INSERT INTO names VALUES (?, ?)", arguments: [index, "名前 \(index) Ägypten"])
      }
    }
  }

  @Test("The page size is that of the pages, whatever the header says", arguments: [512, 1024, 4096, 16384])
  func pageSizes(size: Int) throws {
    for rows in [1, 12, 700] {
      let scene = try scene("PRAGMA page_size = \(size)", rows: rows)
      for shift in 9...16 where 1 << shift != size {
        let stated = 1 << shift == 65536 ? 1 : 1 << shift
        let result = try scene.changing {
          $0.main[16] = UInt8(stated >> 8)
          $0.main[17] = UInt8(stated & 0xff)
        }.salvage()
        #expect(scene.missingRows(result) == 0, "\(size) with \(rows) rows, stated as \(1 << shift)")
        #expect(scene.falseRows(result) == 0, "\(size) with \(rows) rows, stated as \(1 << shift)")
      }
    }
  }

  @Test(
    "The encoding is that of the schema's words, whatever the header says",
    arguments: [("UTF-8", 1), ("UTF-16le", 2), ("UTF-16be", 3)])
  func encodings(name: String, number: UInt8) throws {
    let scene = try scene("PRAGMA encoding = '\(name)'", rows: 3)
    for stated in [UInt8(1), 2, 3] where stated != number {
      for withModel in [false, true] {
        let result = try scene.changing { $0.main[59] = stated }.salvage(withModel: withModel)
        #expect(scene.missingRows(result) == 0, "\(name) stated as \(stated)")
        #expect(scene.falseRows(result) == 0, "\(name) stated as \(stated)")
      }
    }
  }

  @Test(
    "A single wrong bit of the header or behind it costs no row and makes none false",
    arguments: ["", "PRAGMA encoding = 'UTF-16le'", "PRAGMA page_size = 1024", "PRAGMA auto_vacuum = FULL", "rowids"])
  func singleBits(pragmas: String) throws {
    let options = pragmas == "rowids" ? " WITHOUT ROWID" : ""
    let scene = try PlainScene(
      pragmas: pragmas == "rowids" ? "" : pragmas,
      schema: """
        CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT, size REAL)\(options);
        CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT);
        CREATE INDEX names_name ON names (name)
        """
    ) { db in
      for index in 1...150 {
        let text = "名前 \(index) " + String(repeating: "Ägypten ", count: index % 7)
        try db.execute(sql: "INSERT INTO names VALUES (?, ?, ?)", arguments: [index, text, Double(index) / 3])
      }
      for index in 1...4 {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?)", arguments: [index, String(repeating: "note \(index) ", count: 900)])
      }
    }
    let isLong = environment("LAZARET_LONG") != nil
    for byte in 0..<124 {
      for bit in 0..<8 where isLong || byte == 20 || (byte * 5) % 8 == bit {
        let result = try scene.changing { $0.main[byte] ^= 1 << UInt8(bit) }.salvage(withModel: false)
        #expect(scene.missingRows(result) == 0, "bit \(bit) of byte \(byte)")
        #expect(scene.falseRows(result) == 0, "bit \(bit) of byte \(byte)")
      }
    }
  }

  @Test("The reserved bytes are those of the pages, whatever the header says", arguments: [0, 8, 32] as [UInt8])
  func reservedBytes(count: UInt8) throws {
    let scene = try PlainScene(
      schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)", reservedBytes: count
    ) { db in
      for index in 1...300 {
        let text = String(repeating: "note \(index) ", count: index % 40 == 0 ? 900 : 5)
        try db.execute(sql: "INSERT INTO notes VALUES (?, ?)", arguments: [index, text])
      }
    }
    for stated in [0, 1, 8, 32, 255] as [UInt8] {
      let result = try scene.changing { $0.main[20] = stated }.salvage(withModel: false)
      #expect(scene.missingRows(result) == 0, "\(count) stated as \(stated)")
      #expect(scene.falseRows(result) == 0, "\(count) stated as \(stated)")
    }
  }
}
