import GRDB
import Platform
import SQLiteFormat
import TestSupport
import Testing

@Suite("Seeded damage: no crash, no hang, no memory eaten")
struct MutationTests {
  /// Small stores with everything in them.
  static func originals() throws -> [StoreFixture.Files] {
    let plain = try StoreFixture(
      "PRAGMA page_size = 512", "PRAGMA auto_vacuum = 2", "CREATE TABLE t(k INTEGER PRIMARY KEY, a, b, c, d)",
      "CREATE TABLE w(a, b, c, d, PRIMARY KEY (a, b)) WITHOUT ROWID", "CREATE INDEX i ON t(b)", StoreFixture.insert(40),
      "INSERT OR IGNORE INTO w SELECT ifnull(a, k), b, c, d FROM t", StoreFixture.insert(1, from: 100, longest: 4000),
      "DELETE FROM t WHERE k % 3 = 0")
    let log = try StoreFixture(
      "PRAGMA page_size = 512", "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0",
      "CREATE TABLE t(a, b, c, d)",
      StoreFixture.insert(20), "PRAGMA wal_checkpoint(RESTART)", StoreFixture.insert(5, from: 30),
      "DELETE FROM t WHERE d = 1")
    let journal = try StoreFixture(
      "PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d)", StoreFixture.insert(60), "PRAGMA cache_size = 2")
    let hot = try journal.queue.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN; UPDATE t SET d = 9")
      let files = try journal.files()
      try db.execute(sql: "ROLLBACK")
      return files
    }
    return [try plain.files(), try log.files(), hot]
  }

  @Test("All functions on damaged stores")
  func mutations() throws {
    let originals = try Self.originals()
    #expect(try originals.allSatisfy { try Exercise.everything($0) > 10 })
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    let count = mutationCount(usually: 150)
    print("SQLiteFormat mutations: \(count) from seed \(first)")
    for seed in first..<(first + UInt64(count)) {
      var mutation = Mutation(seed: seed)
      var files = originals[Int(seed % UInt64(originals.count))]
      switch seed / 3 % 3 {
      case 0 where files.log != nil: files.log = files.log.map { mutation.apply(to: $0) }
      case 0 where files.journal != nil: files.journal = files.journal.map { mutation.apply(to: $0) }
      case 1:
        files.main = mutation.apply(to: files.main)
        files.log = files.log.map { mutation.apply(to: $0) }
        files.journal = files.journal.map { mutation.apply(to: $0) }
      default: files.main = mutation.apply(to: files.main)
      }
      let time = try processorTime { try Exercise.everything(files) }
      #expect(time < .seconds(1), "seed \(seed): \(time)")
    }
  }

  @Test("Thousands of pointers to one long cell give it once")
  func sharedCell() throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 65536", "CREATE TABLE t(a)", "INSERT INTO t VALUES (zeroblob(60000))")
    var files = try fixture.files()
    let pointer = files.main[(65536 + 8)..<(65536 + 10)]
    files.main.replaceSubrange((65536 + 3)..<(65536 + 5), with: [0x07, 0xd0])
    for index in 0..<2000 {
      files.main.replaceSubrange((65536 + 8 + 2 * index)..<(65536 + 10 + 2 * index), with: pointer)
    }
    let database = try files.open()
    var cursor = try database.rows(root: 2)
    var rows = 0
    while try cursor.next() != nil { rows += 1 }
    #expect(rows == 1)
    #expect(cursor.findings.count(of: .cellsOverlap) == 1999)
    #expect(try database.scanTables().rows == 1)
    #expect(try database.checkIntegrity().findings.contains(.cellsOverlap))
  }

  @Test("One tree is no two tables")
  func sharedRoot() throws {
    let fixture = try StoreFixture(
      "CREATE TABLE t(a)", "CREATE TABLE u(a)", "INSERT INTO t VALUES (1)", "PRAGMA writable_schema = ON",
      "UPDATE sqlite_schema SET rootpage = 2")
    let database = try fixture.files().open()
    let schema = try database.schema()
    #expect(schema.entries.map(\.rootPage) == [2, 0])
    #expect(schema.findings.contains(.schemaRootInvalid))
    #expect(try database.checkIntegrity().findings.contains(.pageNeverUsed))
  }

  @Test("Any bytes at all, as page, cell, record and statement")
  func noise() {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    print("SQLiteFormat noise from seed \(first)")
    for seed in first..<(first + UInt64(mutationCount(usually: 100))) {
      var generator = SeededGenerator(seed: seed)
      let size = [512, 1024].randomElement(using: &generator) ?? 512
      var bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) }
      bytes[0] = [2, 5, 10, 13].randomElement(using: &generator) ?? 13
      bytes[3] = UInt8.random(in: 0...1, using: &generator)
      let geometry = PayloadGeometry(usableSize: size)
      if let page = BTreePage(bytes, number: 3, geometry: geometry) {
        _ = page.children
        _ = page.freeblocks
        for index in 0..<page.cellCount {
          if let cell = page.cell(at: index) { _ = page.localRecord(of: cell, encoding: .utf16BigEndian)?.values }
        }
        for offset in 0..<size {
          if let cell = Cell(bytes.span, kind: page.kind, at: offset, geometry: geometry) {
            #expect(cell.localPayload.upperBound <= size)
          }
        }
      }
      for start in stride(from: 0, to: size, by: 64) {
        guard let record = Record(payload: bytes[start...], encoding: .utf16LittleEndian) else { continue }
        #expect(record.values.count == record.columnCount)
        _ = record.serialTypes
        _ = record.values.compactMap(\.string)
      }
      _ = FreelistTrunk(bytes, usableSize: size)
      _ = PointerMapEntry(for: 50, in: bytes.span, mapPage: 2)
      let text = "CREATE TABLE t(" + String(decoding: bytes.map { $0 & 0x7f }, as: UTF8.self)
      _ = TableDefinition(sql: text)
      _ = IndexDefinition(sql: text.replacing("TABLE t", with: "INDEX i ON t"))
    }
  }
}
