import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Rows out of damaged stores")
struct DamageTests {
  static let seeds: [UInt64] = [1, 2]

  @Test("An undamaged store equals itself, with and without its model", arguments: seeds)
  func undamaged(seed: UInt64) throws {
    let scene = try SalvageScene(seed: seed)
    for withModel in [true, false] {
      let result = try scene.salvage(withModel: withModel)
      #expect(result.rows == scene.truth)
      #expect(result.report.isComplete)
      #expect(result.report.lost == 0)
      #expect(result.report.entities.first { $0.name == "Book" }?.recovered == 1500)
    }
  }

  @Test("A destroyed header, page 1, roots and inner pages cost no row", arguments: seeds)
  func wayIn(seed: UInt64) throws {
    let scene = try SalvageScene(seed: seed)
    var random = SeededGenerator(seed: seed)
    func noise() -> UInt8 { UInt8.random(in: 0...255, using: &random) }
    let leaf = Int(try #require(scene.pages(ofKind: [13]).last) - 1) * SalvageScene.pageSize
    let cases: [(String, SalvageScene)] = [
      ("header zeroed", scene.changing { for index in 0..<100 { $0.main[index] = 0 } }),
      ("page 1 zeroed", scene.overwriting([1]) { 0 }),
      ("page 1 random", scene.overwriting([1], noise)),
      (
        "page 1 stale",
        scene.changing { $0.main.replaceSubrange(0..<4096, with: scene.main[leaf..<(leaf + 4096)]) }
      ),
      ("first sector lost", scene.changing { for index in 0..<512 { $0.main[index] = 0 } }),
      ("inner pages of tables", scene.overwriting(scene.pages(ofKind: [5]), noise)),
      ("junk before", scene.changing { $0.main.insert(contentsOf: (0..<1000).map { _ in noise() }, at: 0) }),
      (
        "embedded",
        scene.changing {
          $0.main.insert(contentsOf: (0..<28672).map { _ in noise() }, at: 0)
          $0.main += (0..<9000).map { _ in noise() }
        }
      ),
    ]
    for (name, damaged) in cases {
      // The tables that the model does not know need the schema, which is on page 1.
      let isSchemaLost = name.hasPrefix("page 1")
      let known = ["ZBOOK", "ZREADER", "Z_1READERS"]
      for withModel in [true, false] {
        let result = try damaged.salvage(withModel: withModel)
        #expect(scene.missingRows(result, of: isSchemaLost ? known : SalvageScene.tables) == 0, "\(name), seed \(seed)")
        #expect(scene.falseRows(result) == 0, "\(name), seed \(seed)")
      }
    }
  }

  @Test(
    "Pages that are zeroed, random, cut off or torn cost their own rows, and no false row comes up", arguments: seeds)
  func pages(seed: UInt64) throws {
    let scene = try SalvageScene(seed: seed)
    var random = SeededGenerator(seed: seed &+ 99)
    func noise() -> UInt8 { UInt8.random(in: 0...255, using: &random) }
    for share in [0.01, 0.1, 0.25] {
      let hit = scene.somePages(share, &random)
      for (name, damaged) in [
        ("zeroed", scene.overwriting(hit) { 0 }), ("random", scene.overwriting(hit, noise)),
        ("torn", scene.tearing(hit, &random)),
      ] {
        let result = try damaged.salvage()
        let survivors = try scene.survivors(hit: Set(hit))
        #expect(result.count >= survivors, "\(name) \(share), seed \(seed)")
        #expect(scene.falseRows(result) == 0, "\(name) \(share), seed \(seed)")
        #expect(!result.report.isComplete)
      }
    }
    let half = scene.changing { $0.main.removeLast($0.main.count / 2 + 77) }
    let lost = Set((UInt32(half.main.count / 4096) + 1)...UInt32(scene.pageCount))
    let result = try half.salvage()
    #expect(try result.count >= scene.survivors(hit: lost), "cut, seed \(seed)")
    #expect(scene.falseRows(result) == 0)
  }

  @Test("Pages that changed places are put back", arguments: seeds)
  func swapped(seed: UInt64) throws {
    let scene = try SalvageScene(seed: seed)
    var random = SeededGenerator(seed: seed)
    let result = try scene.swapping(scene.somePages(0.06, &random).shuffled(using: &random)).salvage()
    #expect(scene.falseRows(result) == 0)
    #expect(scene.missingRows(result) <= 3, "seed \(seed)")
  }

  @Test("A row of another table's entity is kept apart, and counted")
  func unknownEntity() throws {
    let scene = try SalvageScene(seed: 2, books: 100, finish: ["UPDATE ZBOOK SET Z_ENT = 2 WHERE Z_PK = 7"])
    let result = try scene.salvage()
    #expect(result.rows["ZBOOK"]?.count == 99)
    #expect(result.apart["lazaret_other_ZBOOK"] == 1)
    #expect(result.report.lost == 0 && result.report.entities.map(\.setAside).reduce(0, +) == 1)
    #expect(!result.report.isComplete)
  }

  @Test("One flipped bit never costs more than a few rows", arguments: seeds)
  func flippedBits(seed: UInt64) throws {
    let scene = try SalvageScene(seed: seed, books: 200)
    var random = SeededGenerator(seed: seed)
    for _ in 0..<mutationCount(usually: 12) {
      let place = Int.random(in: 0..<4096, using: &random)
      let damaged = scene.changing { $0.main[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
      let result = try damaged.salvage()
      #expect(scene.missingRows(result, of: ["ZBOOK", "ZREADER", "Z_1READERS"]) <= 2, "byte \(place), seed \(seed)")
    }
  }

  @Test("Any damage ends in a result or an error, never in a crash or a hang")
  func mutations() throws {
    let scene = try SalvageScene(seed: 5, books: 150)
    for seed in 0..<UInt64(mutationCount(usually: 40)) {
      var mutation = Mutation(seed: seed)
      let damaged = scene.changing { $0.main = mutation.apply(to: $0.main) }
      do {
        _ = try damaged.salvage(deleted: seed % 2 == 0)
      } catch let error as SalvageError {
        #expect(error.kind == .nothingFound, "seed \(seed)")
      }
    }
  }
}
