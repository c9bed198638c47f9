import GRDB
import SQLiteFormat
import Salvage
import StoreFiles
import TestSupport
import Testing

@Suite("Long values whose pages are damaged or have changed places")
struct LongValueTests {
  /// Rows with values of one to six overflow pages, each page full.
  private func scene(_ pragmas: String = "", seed: UInt64 = 1) throws -> PlainScene {
    var random = SeededGenerator(seed: seed)
    // As many different words as a short page of prose has.
    let vocabulary = (0..<80).map { _ in
      String(
        (0..<Int.random(in: 3...9, using: &random)).map { _ in "aeiounrstlmdkgb".randomElement(using: &random) ?? "a" })
    }
    func words(_ count: Int) -> String {
      (0..<count).map { _ in vocabulary.randomElement(using: &random) ?? "" }.joined(separator: " ")
    }
    return try PlainScene(
      pragmas: "PRAGMA page_size = 1024; \(pragmas)",
      schema: "CREATE TABLE texts (id INTEGER PRIMARY KEY, title TEXT, body TEXT, note TEXT)"
    ) { db in
      for index in 1...400 {
        let length = index % 4 == 0 ? 200 * Int.random(in: 1...5, using: &random) : 6
        try db.execute(
          sql: "INSERT INTO texts VALUES (?, ?, ?, ?)",
          arguments: [
            index, words(3), words(length), words(4),
          ])
      }
    }
  }

  /// The overflow pages of each row, in their order.
  private func chains(_ scene: PlainScene) throws -> [[UInt32]] {
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    var result: [[UInt32]] = []
    let root = try #require(try database.schema().tables.first).rootPage
    for leaf in try scene.leaves(below: root) {
      guard let page = try database.bTreePage(leaf) else { continue }
      for index in 0..<page.cellCount {
        guard var next = page.cell(at: index)?.overflowPage else { continue }
        var chain: [UInt32] = []
        while next > 0 {
          chain.append(next)
          let range = scene.range(of: next)
          next = scene.main[range.prefix(4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        result.append(chain)
      }
    }
    return result
  }

  @Test("Exchanged pages are put back, or their rows are not live", arguments: [UInt64](1...4))
  func exchanged(seed: UInt64) throws {
    let scene = try scene(seed: seed)
    var random = SeededGenerator(seed: seed)
    var damaged = scene
    let chains = try chains(scene).shuffled(using: &random)
    // Two pairs within chains, and two pairs of last pages.
    let long = chains.filter { $0.count > 2 }
    let pairs: [(UInt32?, UInt32?)] = [
      (long[0][1], long[1][0]), (long[2][0], long[3][1]), (long[4].last, long[5].last), (long[6].last, long[7].last),
    ]
    for (one, other) in pairs { damaged = damaged.swapping(try #require(one), try #require(other)) }
    let result = try damaged.salvage()
    #expect(scene.falseRows(result) == 0, "seed \(seed)")
    #expect(scene.missingRows(result) <= 1, "seed \(seed)")
  }

  @Test("A row whose chain is destroyed is kept apart, and no other row takes the rest of it", arguments: ["", "FULL"])
  func destroyed(vacuum: String) throws {
    let scene = try scene(vacuum.isEmpty ? "" : "PRAGMA auto_vacuum = \(vacuum)")
    let chains = try chains(scene)
    let long = chains.filter { $0.count > 2 }
    let lost = [long[0][0], long[3][1], try #require(long[6].last)]
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) == 3)
    #expect(result.rows["lazaret_other_texts"]?.count == 3)
    #expect(result.report.lost == 3)
    #expect(!result.report.isComplete)
  }

  @Test("Two rows that claim the same pages are never both certain")
  func sharedPages() throws {
    let scene = try scene()
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first).rootPage
    // A row is made to lead to another one's pages: the number behind its local payload is changed.
    var places: [Int] = []
    for leaf in try scene.leaves(below: root) {
      guard let page = try database.bTreePage(leaf) else { continue }
      for index in 0..<page.cellCount {
        if let cell = page.cell(at: index), cell.overflowPage != nil {
          places.append(scene.range(of: leaf).lowerBound + cell.localPayload.upperBound)
        }
      }
    }
    let damaged = scene.changing { damaged in
      damaged.main.replaceSubrange(places[1]..<(places[1] + 4), with: scene.main[places[0]..<(places[0] + 4)])
    }
    let result = try damaged.salvage()
    #expect(scene.missingRows(result) <= 2)
    #expect(scene.falseRows(result) == 0)
    #expect(!result.report.isComplete)
  }
}

extension PlainScene {
  /// The leaves of a table's tree.
  func leaves(below root: UInt32) throws -> [UInt32] {
    let database = try SQLiteFormat.Database(main: MemoryBytes(main))
    var result: [UInt32] = []
    var waiting = [root]
    while let page = waiting.popLast() {
      guard let node = try database.bTreePage(page) else { continue }
      if node.kind.isLeaf { result.append(page) } else { waiting += node.children.compactMap(\.self) }
    }
    return result
  }
}
