import Foundation
import GRDB
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
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

  @Test(
    "A row whose chain is destroyed keeps its other values, and no other row takes the rest", arguments: ["", "FULL"])
  func destroyed(vacuum: String) throws {
    let scene = try scene(vacuum.isEmpty ? "" : "PRAGMA auto_vacuum = \(vacuum)")
    let chains = try chains(scene)
    let long = chains.filter { $0.count > 2 }
    let lost = [long[0][0], long[3][1], try #require(long[6].last)]
    let result = try scene.overwriting(lost).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) == 3)
    #expect(result.rows["lazaret_other_texts"]?.count == 3)
    // The rows themselves are there, so that references to them live.
    #expect(result.rows["texts"]?.count == 400)
    #expect(result.parts.count("texts") == 3)
    #expect(result.report.lost == 0)
    let account = try #require(result.report.entities.first { $0.table == "texts" })
    #expect(account.doubts == [.longValue: 3])
    // What was found of a row that is there is no row beside it.
    #expect(account.keptApart == 3 && account.keptParts == 3 && account.rowsSetAside == 0)
    #expect(!result.report.reservations.contains { $0.contains("set aside") })
    let copy = try JSONDecoder().decode(SalvageReport.self, from: JSONEncoder().encode(result.report))
    #expect(copy.entities.first { $0.table == "texts" }?.rowsSetAside == 0)
    #expect(!result.report.isComplete)
  }

  @Test("Chains that cross each other are followed where every one of them is whole")
  func crossing() throws {
    let scene = try scene()
    let chains = try chains(scene)
    let places = try pointers(scene)
    // Two neighbours of other lengths, each in the order of its pages, get each other's first page.
    let index = try #require(
      chains.indices.dropLast().first { index in
        let (one, other) = (chains[index], chains[index + 1])
        return one.count > 1 && other.count > 1 && one.count != other.count && one[1] == one[0] + 1
          && other[1] == other[0] + 1
      })
    let (first, second) = (chains[index][0], chains[index + 1][0])
    let crossed = scene.swapping(first, second).changing { crossed in
      for (place, page) in [(places[index], second), (places[index + 1], first)] {
        for byte in 0..<4 { crossed.main[place + byte] = UInt8(truncatingIfNeeded: page >> UInt32(24 - 8 * byte)) }
      }
    }
    let folder = try TemporaryFolder()
    let copy = try folder.write(crossed.main, to: "Copy.sqlite")
    let (check, read) = try DatabaseQueue(path: copy.string).read { db in
      (try String.fetchOne(db, sql: "PRAGMA integrity_check"), try PlainScene.tables(db))
    }
    try #require(check == "ok")
    try #require(read == scene.truth)
    let result = try crossed.salvage()
    #expect(result.rows["texts"] == scene.truth["texts"])
    #expect(result.report.causes == [])
    #expect(result.report.isComplete)
  }

  @Test("What the last page of a long value leads to costs nothing of it", arguments: [2, 1 << 30] as [UInt32])
  func leadingOn(next: UInt32) throws {
    let scene = try scene()
    let last = try #require(try chains(scene).first { $0.count > 2 }?.last)
    let damaged = scene.changing { damaged in
      let start = scene.range(of: last).lowerBound
      for byte in 0..<4 { damaged.main[start + byte] = UInt8(truncatingIfNeeded: next >> UInt32(24 - 8 * byte)) }
    }
    let result = try damaged.salvage()
    #expect(result.rows["texts"] == scene.truth["texts"])
    #expect(result.report.lost == 0)
    #expect(result.report.entities.first { $0.table == "texts" }?.doubts == [.longValue: 1])
  }

  @Test("Two rows that claim the same pages are never both certain")
  func sharedPages() throws {
    let scene = try scene()
    // A row is made to lead to another one's pages: the number behind its local payload is changed.
    let places = try pointers(scene)
    let damaged = scene.changing { damaged in
      damaged.main.replaceSubrange(places[1]..<(places[1] + 4), with: scene.main[places[0]..<(places[0] + 4)])
    }
    let result = try damaged.salvage()
    #expect(scene.missingRows(result) <= 2)
    #expect(scene.falseRows(result) == 0)
    #expect(!result.report.isComplete)
  }

  /// Rows with binary values that end somewhere on their last page, which is zeros behind that.
  private func binaryScene() throws -> PlainScene {
    var random = SeededGenerator(seed: 6)
    return try PlainScene(
      pragmas: "PRAGMA page_size = 1024", schema: "CREATE TABLE images (id INTEGER PRIMARY KEY, image BLOB)"
    ) { db in
      // With 2010 to 2119 bytes too many would stay in the row itself, and the last page is filled in part; others fill theirs.
      for index in 1...300 {
        let length = index % 3 == 0 ? Int.random(in: 3150...3900, using: &random) : 2010 + index % 110
        let image = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
        try db.execute(sql: "INSERT INTO images VALUES (?, ?)", arguments: [index, Data(image)])
      }
    }
  }

  /// Chains whose last page the value does not fill, with the bytes that it has there.
  private func partlyFilled(_ scene: PlainScene) throws -> [(chain: [UInt32], used: Int)] {
    try chains(scene).compactMap { chain in
      guard let last = chain.last else { return nil }
      let page = Array(scene.main[scene.range(of: last)])
      guard let end = page.lastIndex(where: { $0 != 0 }), end < 1010 else { return nil }
      return (chain, end - 3)
    }
  }

  @Test("Last pages of binary values that were exchanged are known by what is behind the value")
  func binaryEnds() throws {
    let scene = try binaryScene()
    let ends = try partlyFilled(scene).sorted { $0.used < $1.used }
    let (first, last) = (try #require(ends.first), try #require(ends.last))
    #expect(first.used + 60 < last.used)
    // Another pair within chains shows that pages have changed places.
    let long = try chains(scene).filter { $0.count > 2 }
    var damaged = scene.swapping(try #require(first.chain.last), try #require(last.chain.last))
    damaged = damaged.swapping(long[0][0], long[1][1])
    let result = try damaged.salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) <= 2)
  }

  @Test("A last page that was written over with a copy of another gives no false row")
  func copiedEnds() throws {
    let scene = try binaryScene()
    let long = try chains(scene).filter { $0.count > 2 }
    let ends = try long.suffix(6).map { try #require($0.last) }
    var damaged = scene.swapping(long[0][0], long[1][1])
    for (from, to) in [(ends[0], ends[1]), (ends[2], ends[3]), (ends[4], ends[5])] {
      damaged.main.replaceSubrange(damaged.range(of: to), with: scene.main[scene.range(of: from)])
    }
    let result = try damaged.salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) <= 6)
    #expect(!result.report.isComplete)
  }

  @Test("Where nothing tells whose pages are, neither row is live; pointer maps tell", arguments: ["", "FULL"])
  func sharedBinaryPages(vacuum: String) throws {
    var random = SeededGenerator(seed: 7)
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024; PRAGMA auto_vacuum = \(vacuum.isEmpty ? "NONE" : vacuum)",
      schema: "CREATE TABLE images (id INTEGER PRIMARY KEY, image BLOB)"
    ) { db in
      for index in 1...40 {
        let image = (0..<2100).map { _ in UInt8.random(in: 0...255, using: &random) }
        try db.execute(sql: "INSERT INTO images VALUES (?, ?)", arguments: [index, Data(image)])
      }
    }
    let places = try pointers(scene)
    let damaged = scene.changing { damaged in
      damaged.main.replaceSubrange(places[20]..<(places[20] + 4), with: scene.main[places[3]..<(places[3] + 4)])
    }
    let result = try damaged.salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) == (vacuum.isEmpty ? 2 : 1))
    #expect(result.rows["lazaret_other_images"]?.count == (vacuum.isEmpty ? 2 : 1))
    #expect(!result.report.isComplete)
  }

  /// Where the numbers of the first overflow pages stand.
  private func pointers(_ scene: PlainScene) throws -> [Int] {
    let database = try SQLiteFormat.Database(main: MemoryBytes(scene.main))
    let root = try #require(try database.schema().tables.first).rootPage
    var places: [Int] = []
    for leaf in try scene.leaves(below: root) {
      guard let page = try database.bTreePage(leaf) else { continue }
      for index in 0..<page.cellCount {
        if let cell = page.cell(at: index), cell.overflowPage != nil {
          places.append(scene.range(of: leaf).lowerBound + cell.localPayload.upperBound)
        }
      }
    }
    return places
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
