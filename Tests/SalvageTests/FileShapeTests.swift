import GRDB
import Platform
import Salvage
import TestSupport
import Testing

@Suite("Stores of every shape")
struct FileShapeTests {
  static let schema = """
    CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, score REAL, body TEXT);
    CREATE TABLE words (word TEXT PRIMARY KEY, uses INTEGER, sense TEXT) WITHOUT ROWID;
    CREATE TABLE loose (a, b, c)
    """

  /// Rows of all three tables, some of them on overflow pages; texts of one, two and three bytes a character.
  static func scene(
    _ pragmas: String, rows: Int = 300, longEvery: Int = 40, seed: UInt64 = 1
  ) throws -> PlainScene {
    var random = SeededGenerator(seed: seed)
    return try PlainScene(pragmas: pragmas, schema: schema) { db in
      for index in 1...rows {
        let length = index % longEvery == 0 ? 900 : Int.random(in: 2...12, using: &random)
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?, ?)",
          arguments: [
            index, SalvageScene.words(&random, 2), Double(index) / 8, SalvageScene.words(&random, length),
          ])
        try db.execute(
          sql: "INSERT INTO words VALUES (?, ?, ?)",
          arguments: ["\(SalvageScene.words(&random, 1))-\(index)", index, SalvageScene.words(&random, 5)])
        try db.execute(
          sql: "INSERT INTO loose VALUES (?, ?, ?)",
          arguments: [index * 3, SalvageScene.words(&random, 2), index % 2 == 0 ? nil : 0.5])
      }
    }
  }

  @Test(
    "Every page size, whole and without its header",
    arguments: [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
  func pageSizes(size: Int) throws {
    let scene = try Self.scene("PRAGMA page_size = \(size)", rows: size > 8192 ? 2000 : 300)
    for damaged in [scene, scene.changing { for index in 0..<100 { $0.main[index] = 0 } }] {
      let result = try damaged.salvage()
      #expect(scene.missingRows(result) == 0, "\(size)")
      #expect(scene.falseRows(result) == 0, "\(size)")
    }
    let half = scene.changing { $0.main.removeLast($0.main.count / 3 + 100) }
    let result = try half.salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.remarks.contains { $0.contains("cut off") })
  }

  @Test(
    "Every encoding, with a header that is right, zeroed or wrong", arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func encodings(name: String) throws {
    let scene = try Self.scene("PRAGMA encoding = '\(name)'")
    var changes: [(String, PlainScene)] = [
      ("whole", scene), ("zeroed", scene.changing { for index in 0..<100 { $0.main[index] = 0 } }),
    ]
    for number in UInt8(1)...3 { changes.append(("claims \(number)", scene.changing { $0.main[59] = number })) }
    for (words, damaged) in changes {
      let result = try damaged.salvage()
      #expect(scene.missingRows(result) == 0, "\(name), \(words)")
      #expect(scene.falseRows(result) == 0, "\(name), \(words)")
    }
  }

  @Test("A header that claims another page size is not believed", arguments: [512, 1024, 2048, 8192, 16384])
  func wrongPageSize(size: Int) throws {
    let scene = try Self.scene("PRAGMA page_size = 4096", rows: 900)
    let result = try scene.changing {
      $0.main[16] = UInt8(size >> 8)
      $0.main[17] = UInt8(size & 255)
    }.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
  }

  @Test("Auto-vacuum, whole and with page 1 lost")
  func autoVacuum() throws {
    for mode in ["FULL", "INCREMENTAL"] {
      let scene = try Self.scene("PRAGMA page_size = 512; PRAGMA auto_vacuum = \(mode)", rows: 600)
      for damaged in [scene, scene.changing { for index in 0..<100 { $0.main[index] = 0 } }, scene.overwriting([1])] {
        let result = try damaged.salvage()
        #expect(scene.missingRows(result) == 0)
        #expect(scene.falseRows(result) == 0)
      }
    }
  }

  @Test("Bytes before the store, any number of them", arguments: [1, 7, 511, 1000, 4096, 4097, 70001])
  func prefix(length: Int) throws {
    var random = SeededGenerator(seed: UInt64(length))
    let scene = try Self.scene("PRAGMA page_size = 4096")
    let junk = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
    let result = try scene.changing { $0.main = junk + $0.main }.salvage()
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.remarks.contains { $0.contains("begins at byte \(length)") })
  }

  @Test("Of several databases in a file the first is taken, and the others are told of")
  func several() throws {
    let first = try Self.scene("PRAGMA page_size = 4096", seed: 1)
    let second = try Self.scene("PRAGMA page_size = 4096", seed: 2)
    let both = first.changing { $0.main += second.main }
    let result = try both.salvage()
    #expect(first.missingRows(result) == 0)
    #expect(first.falseRows(result) == 0)
    #expect(result.report.remarks.contains("another database begins at byte \(first.main.count) of the file"))
    // Where none begins at the file's beginning, the one that Core Data wrote goes before the others.
    let books = try SalvageScene(seed: 3, books: 100)
    let mixed = books.changing { $0.main = [UInt8](repeating: 0x5a, count: 700) + first.main + $0.main }
    let salvaged = try mixed.salvage()
    #expect(books.missingRows(salvaged, of: ["ZBOOK", "ZREADER", "Z_1READERS"]) == 0)
    #expect(books.falseRows(salvaged) == 0)
    #expect(salvaged.report.remarks.contains("another database begins at byte 700 of the file"))
  }

  @Test("Of several databases in a file the one is taken that the schema fits, or that begins where the caller says")
  func chosen() throws {
    let first = try Self.scene("PRAGMA page_size = 4096", seed: 1)
    let second = try PlainScene(schema: "CREATE TABLE boats (id INTEGER PRIMARY KEY, name TEXT, length REAL)") { db in
      for index in 1...200 {
        try db.execute(
          sql: "INSERT INTO boats VALUES (?, ?, ?)", arguments: [index, "boat \(index)", Double(index) / 3])
      }
    }
    let both = second.changing { $0.main = first.main + second.main }
    // The scene gives the schema of the second one.
    let fitting = try both.salvage()
    #expect(second.missingRows(fitting) == 0)
    #expect(second.falseRows(fitting) == 0)
    #expect(fitting.report.remarks.contains("another database begins at byte 0 of the file"))
    let folder = try TemporaryFolder()
    let path = try folder.write(both.main, to: "Both.sqlite")
    func tables(at offset: Int64) throws -> [String] {
      let output = folder.appending("Out \(offset).sqlite")
      let report = try Salvager().salvageRaw(path, to: output, options: .init(offset: offset))
      return report.entities.filter { $0.recovered > 0 }.compactMap(\.table).sorted()
    }
    #expect(try tables(at: Int64(first.main.count)) == ["boats"])
    #expect(try tables(at: 0) == first.truth.filter { !$0.value.isEmpty }.keys.sorted())
    let error = #expect(throws: SalvageError.self) { try tables(at: 4096) }
    #expect(error?.kind == .nothingFound)
    #expect(try FileSystem().status(of: folder.appending("Out 4096.sqlite")) == nil)
  }

  @Test("Text that is not valid stays text, byte for byte")
  func invalidText() throws {
    let scene = try PlainScene(schema: Self.schema) { db in
      for index in 1...50 {
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, CAST(x'c3\(index % 2 == 0 ? "28" : "a4")ff41' AS TEXT), 1.5, 'x')",
          arguments: [index])
      }
    }
    let result = try scene.salvage()
    let texts = try DatabaseQueue().read { db in
      try Int.fetchOne(db, sql: "SELECT hex(CAST(x'c328ff41' AS TEXT)) = 'C328FF41'")
    }
    #expect(texts == 1)
    #expect(result.report.entities.first { $0.table == "notes" }?.recovered == 50)
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
  }
}
