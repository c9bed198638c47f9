import GRDB
import SQLiteFormat
import TestSupport
import Testing

@Suite("Pages by themselves")
struct PageTests {
  @Test("Payloads are divided as the format says")
  func geometry() {
    // Worked from the formulas by hand for U = 4096: X = 4061 and 1002, M = 489.
    let page = PayloadGeometry(usableSize: 4096)
    #expect(page.maximumTableLocal == 4061 && page.maximumIndexLocal == 1002 && page.minimumLocal == 489)
    #expect(page.localLength(of: 4061, onTableLeaf: true) == 4061)
    #expect(page.localLength(of: 4062, onTableLeaf: true) == 489)
    #expect(page.localLength(of: 4092 + 489, onTableLeaf: true) == 489)
    #expect(page.localLength(of: 5000, onTableLeaf: true) == 908)
    #expect(page.localLength(of: 1003, onTableLeaf: false) == 489)
    #expect(page.overflowPageCount(of: 4061, onTableLeaf: true) == 0)
    #expect(page.overflowPageCount(of: 4062, onTableLeaf: true) == 1)
    #expect(page.overflowPageCount(of: 489 + 4092 + 1, onTableLeaf: true) == 1)
    #expect(page.overflowPageCount(of: 100_000, onTableLeaf: true) == 24)
    #expect(PayloadGeometry(usableSize: 480).minimumLocal == 35)
  }

  @Test("Free blocks are the bytes of deleted cells")
  func freeblocks() throws {
    let fixture = try StoreFixture(
      "CREATE TABLE t(a)",
      "INSERT INTO t SELECT printf('%0100d', value) FROM (SELECT 1 value UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5)",
      "DELETE FROM t WHERE rowid IN (2, 4)")
    let database = try fixture.files().open()
    let found = try database.bTreePage(2)
    let page = try #require(found)
    #expect(page.kind == .tableLeaf && page.cellCount == 3)
    let (blocks, isSound) = page.freeblocks
    #expect(isSound)
    #expect(blocks.count == 2)
    #expect(blocks.allSatisfy { $0.count == 105 || $0.count == 104 })
    #expect(page.unallocatedSpace?.lowerBound == 8 + 6)
    #expect(page.unallocatedSpace?.upperBound == page.contentStart)
  }

  @Test("A page is read without a database around it")
  func barePage() throws {
    let fixture = try StoreFixture("CREATE TABLE t(a, b, c, d)", StoreFixture.insert(10, longest: 40))
    let files = try fixture.files()
    let bytes = Array(files.main[4096..<8192])
    let page = try #require(BTreePage(bytes, number: 0, geometry: PayloadGeometry(usableSize: 4096)))
    #expect(page.cellCount == 10)
    let rowids = (0..<10).compactMap { page.cell(at: $0)?.rowid }
    #expect(rowids == Array(1...10))
    let cell = try #require(page.cell(at: 4))
    #expect(page.localRecord(of: cell, encoding: .utf8)?.values[0] == .text(EncodedText("é5")))
    #expect(Cell(bytes.span, kind: .tableLeaf, at: cell.offset, geometry: page.geometry) == cell)
    #expect(Cell(bytes.span, kind: .tableLeaf, at: 4095, geometry: page.geometry) == nil)
    #expect(Cell(bytes.span, kind: .tableLeaf, at: -1, geometry: page.geometry) == nil)
    #expect(BTreePage(Array(bytes.dropLast()), number: 0, geometry: page.geometry) == nil)
    #expect(BTreePage([], number: 1, geometry: page.geometry) == nil)
    #expect(BTreePage([UInt8](repeating: 7, count: 4096), number: 9, geometry: page.geometry) == nil)
  }

  @Test("Pointer-map and lock-byte pages are where the format puts them")
  func layout() {
    let layout = PageLayout(pageSize: 4096, usableSize: 4096)
    #expect(layout.lockBytePage == 262_145)
    #expect(layout.pointerMapEntries == 819)
    #expect(layout.pointerMapPage(for: 1) == nil)
    #expect(layout.pointerMapPage(for: 2) == 2 && layout.isPointerMap(2))
    #expect(layout.pointerMapPage(for: 821) == 2)
    #expect(layout.pointerMapPage(for: 822) == 822)
    #expect(PageLayout(pageSize: 65536, usableSize: 65536).lockBytePage == 16385)
    #expect(PageLayout(pageSize: 512, usableSize: 512).lockBytePage == 2_097_153)
    _ = layout.pointerMapPage(for: .max)
    // With pages of 1024 bytes a pointer map would fall on the lock-byte page; it moves one on.
    let small = PageLayout(pageSize: 1024, usableSize: 1024)
    #expect(small.lockBytePage == 1_048_577)
    #expect(small.pointerMapPage(for: 1_048_577) == 1_048_578)
    #expect(small.pointerMapPage(for: 1_048_600) == 1_048_578)
    #expect(small.pointerMapPage(for: 1_048_576) == 1_048_372)
  }
}
