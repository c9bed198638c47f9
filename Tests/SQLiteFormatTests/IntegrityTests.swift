import GRDB
import Platform
import SQLiteFormat
import TestSupport
import Testing

@Suite("The full check")
struct IntegrityTests {
  private func sound() throws -> StoreFixture.Files {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 512", "PRAGMA auto_vacuum = 2", "CREATE TABLE t(a, b, c, d)", "CREATE INDEX i ON t(b)",
      "CREATE INDEX part ON t(a) WHERE d = 1", StoreFixture.insert(300),
      StoreFixture.insert(2, from: 900, longest: 5000),
      "DELETE FROM t WHERE rowid % 4 = 0")
    return try fixture.files()
  }

  private func check(_ files: StoreFixture.Files) throws -> IntegrityReport {
    try files.open().checkIntegrity()
  }

  /// A page of the wanted use; the last one that fits, so that it is no root.
  private func page(
    _ use: PageOwnership.Use, in report: IntegrityReport, root: UInt32? = nil,
    where fits: (UInt32) -> Bool = { _ in true }
  ) throws -> UInt32 {
    let ownership = report.ownership
    let found = (1...ownership.pageCount).last {
      ownership.use(of: $0) == use && (root == nil || ownership.root(of: $0) == root) && fits($0)
    }
    return try #require(found)
  }

  @Test("A sound database has every page accounted for")
  func accounting() throws {
    let report = try check(sound())
    #expect(report.findings.items.map(\.description) == [])
    let ownership = report.ownership
    #expect(ownership.count(of: .none) == 0 && ownership.count(of: .damaged) == 0)
    #expect(ownership.count(of: .pointerMap) >= 2)
    #expect(ownership.count(of: .freelistLeaf) + ownership.count(of: .freelistTrunk) == report.freelistCount)
    let table = try #require(report.trees.first { $0.name == "t" })
    #expect(table.rows == 227 && table.depth >= 2 && table.overflowPages > 15)
    let pages = report.trees.reduce(0) { $0 + $1.pages + $1.overflowPages }
    #expect(pages + ownership.count(of: .pointerMap) + report.freelistCount == Int(ownership.pageCount))
    #expect(try report.ownership.root(of: page(.overflow, in: report)) == table.root)
  }

  @Test("Each kind of damage is called by its name")
  func damages() throws {
    let files = try sound()
    let report = try check(files)
    let table = try #require(report.trees.first { $0.name == "t" }).root
    let database = try files.open()
    let leaf = try page(.leaf, in: report, root: table) { number in
      // Rowids of two bytes, and room for a third cell's damage.
      (try? database.bTreePage(number)).map { $0.cellCount >= 2 && ($0.cell(at: 0)?.rowid ?? 0) > 127 } ?? false
    }
    let overflow = try page(.overflow, in: report) { files.main[(Int($0) - 1) * 512 + 3] != 0 }
    let trunk = try page(.freelistTrunk, in: report)
    let interior = try page(.interior, in: report, root: table)
    func place(_ page: UInt32) -> Int { (Int(page) - 1) * 512 }
    func expect(_ kind: Finding.Kind, _ line: Int = #line, _ change: (inout [UInt8]) -> Void) throws {
      var damaged = files
      change(&damaged.main)
      let report = try check(damaged)
      #expect(report.findings.contains(kind), "line \(line): \(report.findings.items.map(\.description))")
      #expect(!report.isSound)
    }
    try expect(.pageKindWrong) { $0[place(leaf)] = 0 }
    try expect(.pageKindWrong) { $0[place(leaf)] = 10 }
    try expect(.pageHeaderInvalid) { $0[place(leaf) + 3] = 0x40 }
    try expect(.indexCountDiffers) { $0[place(leaf)] = 0 }
    try expect(.cellPointerInvalid) { $0[place(leaf) + 8] = 0xff }
    try expect(.cellInvalid) { bytes in
      let cell = Int(bytes[place(leaf) + 8]) << 8 | Int(bytes[place(leaf) + 9])
      // A payload of four gibibytes.
      bytes.replaceSubrange((place(leaf) + cell)..<(place(leaf) + cell + 5), with: [0x90, 0x80, 0x80, 0x80, 0])
    }
    try expect(.cellsOverlap) { bytes in
      bytes[place(leaf) + 10] = bytes[place(leaf) + 8]
      bytes[place(leaf) + 11] = bytes[place(leaf) + 9]
    }
    try expect(.fragmentCountWrong) { $0[place(leaf) + 7] ^= 3 }
    try expect(.freeblockInvalid) { bytes in
      bytes[place(leaf) + 1] = 1
      bytes[place(leaf) + 2] = 0xf0
      bytes.replaceSubrange((place(leaf) + 0x1f0)..<(place(leaf) + 0x1f4), with: [0, 9, 0, 3])
    }
    try expect(.overflowTooShort) { $0.replaceSubrange(place(overflow)..<(place(overflow) + 4), with: [0, 0, 0, 0]) }
    try expect(.pageUsedTwice) { bytes in
      let own = [0, 0, UInt8(overflow >> 8), UInt8(overflow & 0xff)]
      bytes.replaceSubrange(place(overflow)..<(place(overflow) + 4), with: own)
    }
    try expect(.pageNeverUsed) { $0.replaceSubrange(place(overflow)..<(place(overflow) + 4), with: [0, 0, 0, 0]) }
    try expect(.freelistCountWrong) { $0[39] ^= 1 }
    try expect(.freelistTrunkInvalid) { $0[place(trunk) + 4] = 1 }
    try expect(.pageOutOfRange) { $0[place(interior) + 8] = 1 }
    try expect(.pageUsedTwice) { bytes in
      let child = place(interior) + (Int(bytes[place(interior) + 12]) << 8 | Int(bytes[place(interior) + 13]))
      bytes.replaceSubrange((place(interior) + 8)..<(place(interior) + 12), with: bytes[child..<(child + 4)])
    }
    try expect(.pointerMapWrong) { $0[512] = 2 }
    try expect(.largestRootWrong) { $0[55] = 77 }
    try expect(.fileTooShort) { $0.removeLast(600) }
    try expect(.pageMissing) { $0.removeLast(600) }
    try expect(.rowidOrder) { bytes in
      // Two cells of equal length change places.
      let first = Array(bytes[(place(leaf) + 8)..<(place(leaf) + 10)])
      bytes.replaceSubrange(
        (place(leaf) + 8)..<(place(leaf) + 10), with: bytes[(place(leaf) + 10)..<(place(leaf) + 12)])
      bytes.replaceSubrange((place(leaf) + 10)..<(place(leaf) + 12), with: first)
    }
    try expect(.recordMalformed) { bytes in
      let cell = Int(bytes[place(leaf) + 8]) << 8 | Int(bytes[place(leaf) + 9])
      // Payload length and rowid take two bytes each here; then comes the header's length.
      let start = place(leaf) + cell + (bytes[place(leaf) + cell] < 0x80 ? 1 : 2) + 2
      bytes[start + 1] = 10
    }
  }

  @Test("A leaf that hangs too high is seen")
  func uneven() throws {
    var files = try sound()
    let report = try check(files)
    let table = try #require(report.trees.first { $0.name == "t" })
    guard table.depth >= 3 else {
      Issue.record("the tree is too flat")
      return
    }
    // The root's right-most child becomes that child's own right-most child.
    let root = (Int(table.root) - 1) * 512 + 8
    let inner = (Int(files.main[root + 2]) * 256 + Int(files.main[root + 3]) - 1) * 512 + 8
    files.main.replaceSubrange(root..<(root + 4), with: files.main[inner..<(inner + 4)])
    #expect(try check(files).findings.contains(.treeUneven))
  }

  @Test("The walk goes on behind a damaged page, and tells where it was")
  func walkGoesOn() throws {
    var files = try sound()
    let report = try check(files)
    let table = try #require(report.trees.first { $0.name == "t" })
    let leaf = try page(.leaf, in: report, root: table.root)
    files.main[(Int(leaf) - 1) * 512] = 0xee
    var cursor = try files.open().rows(root: table.root)
    var rows = 0
    while try cursor.next() != nil { rows += 1 }
    #expect(rows < table.rows && rows > table.rows - 20)
    #expect(cursor.findings.items == [Finding(.pageKindWrong, page: leaf, root: table.root, found: 0xee)])
    let counted = try files.open().countRows(root: table.root)
    #expect(counted.count == rows)
    #expect(counted.findings.contains(.pageKindWrong))
  }

  @Test("A tree that bites its tail ends")
  func cycle() throws {
    var files = try sound()
    let report = try check(files)
    let table = try #require(report.trees.first { $0.name == "t" })
    let interior = (Int(try page(.interior, in: report, root: table.root)) - 1) * 512
    files.main.replaceSubrange((interior + 8)..<(interior + 12), with: [0, 0, 0, UInt8(table.root)])
    var cursor = try files.open().rows(root: table.root)
    var rowids: Set<Int64> = []
    while let row = try cursor.next() { #expect(rowids.insert(row.rowid).inserted) }
    #expect(rowids.count < table.rows)
    #expect(cursor.findings.contains(.pageUsedTwice))
    #expect(try files.open().countRows(root: table.root).findings.contains(.pageUsedTwice))
  }

  @Test("Progress is told, and can stop the check")
  func progress() throws {
    let fixture = try StoreFixture("PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d)", StoreFixture.insert(2000))
    let database = try fixture.files().open()
    var steps: [Int] = []
    _ = try database.checkIntegrity { done, total in
      steps.append(done)
      #expect(total == Int(database.highestPage) && done <= total)
      return true
    }
    #expect(steps.count > 5 && steps == steps.sorted() && steps.last == Int(database.highestPage))
    do {
      _ = try database.checkIntegrity { done, _ in done < 100 }
      Issue.record("it was not cancelled")
    } catch {
      #expect(error.kind == .cancelled)
    }
  }

  @Test("Findings are counted beyond those that are kept")
  func bounded() throws {
    var files = try sound()
    for page in stride(from: 2, to: files.main.count / 512, by: 1) { files.main[page * 512] = 0xaa }
    let report = try files.open().checkIntegrity(findingLimit: 3)
    #expect(report.findings.items.count == 3)
    #expect(report.findings.total > 3)
  }
}
