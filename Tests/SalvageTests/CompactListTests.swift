import Salvage
import StoreFiles
import SystemPackage
import TestSupport
import Testing

/// The lists that keep a salvage's memory small, held against plain arrays.
@Suite("Compact lists")
struct CompactListTests {
  @Test("Page keys are what was set, near and far apart, in any order", arguments: [1, 2, 3, 4] as [UInt64])
  func pageKeys(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var plain = [[Int64]](repeating: [0, 0], count: 1000)
    var keys = PageKeys(count: plain.count)
    for _ in 0..<3000 {
      let page = Int.random(in: plain.indices, using: &random)
      let first: Int64
      switch Int.random(in: 0..<40, using: &random) {
      case 0: first = .random(in: .min ... .max, using: &random)
      case 1: first = .min
      case 2: first = .max
      // The one whose base would be 0, and its neighbours.
      case 3: first = 1 << 35 - 1 + .random(in: -1...1, using: &random)
      case 4: first = 0
      default: first = Int64(page) * 40 + .random(in: -20...20, using: &random)
      }
      let last: Int64
      switch Int.random(in: 0..<40, using: &random) {
      case 0: last = .random(in: .min ... .max, using: &random)
      case 1: last = first &- 1
      case 2: last = first &+ 1 << 28
      default: last = first &+ .random(in: 0...500, using: &random)
      }
      // Some groups have near keys only.
      plain[page] = page % 256 < 128 ? [Int64(page) * 40, Int64(page) * 40 + 39] : [first, last]
      keys.set(page, first: plain[page][0], last: plain[page][1])
    }
    for (page, pair) in plain.enumerated() {
      #expect(keys[page].first == pair[0] && keys[page].last == pair[1], "page \(page), seed \(seed)")
    }
  }

  @Test("Ascending numbers are found by place and by size", arguments: [1, 2, 3] as [UInt64])
  func numbers(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var plain: [Int64] = [.min, -5]
    for _ in 0..<1000 {
      let step: Int64 = Int.random(in: 0..<100, using: &random) == 0 ? 1 << 40 : .random(in: 0...200, using: &random)
      plain.append((plain.last ?? 0) + step)
    }
    plain.append(.max)
    var list = AscendingNumbers()
    for number in plain { list.append(number) }
    #expect(list.count == plain.count)
    var iterator = list.makeIterator()
    var copy: [Int64] = []
    while let number = iterator.next() { copy.append(number) }
    #expect(copy == plain)
    for place in plain.indices {
      #expect(list[place] == plain[place])
      for limit in [plain[place], plain[place] &- 1, plain[place] &+ 1] {
        let expected = plain.firstIndex { $0 >= limit } ?? plain.count
        #expect(list.place(notBelow: limit) == expected, "seed \(seed)")
      }
    }
    #expect(AscendingNumbers().place(notBelow: 0) == 0)
  }

  @Test("Entries are sorted, in memory and on the disk", arguments: [10, 3000, 7000, 100_000])
  func sorting(limit: Int) throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(seed: UInt64(limit))
    let space = SortingSpace(folder.appending("Sorting"), in: FileSystem(), limit: limit)
    let sorters = [space.join(width: 1), space.join(width: 2), space.join(width: 1), space.join(width: 2)]
    var plain = sorters.map { _ in [SortingSpace.Entry]() }
    for row in 1...(limit == 10 ? 300 : 20_000) as ClosedRange<UInt64> {
      for sorter in [0, 1, 3] {
        let key = sorter == 3 ? UInt64.random(in: 0...UInt64.max, using: &random) : .random(in: 0...500, using: &random)
        let isWide = sorter != 0
        let entry = SortingSpace.Entry(
          one: key, two: isWide ? .random(in: 0...3, using: &random) : row, three: isWide ? row : 0,
          sorter: sorters[sorter])
        plain[sorter].append(entry)
        try space.add(entry)
      }
    }
    for sorter in sorters.indices {
      let expected = plain[sorter].sorted { $0.isBefore($1) }
      // It can be gone through more than once.
      for _ in 0..<2 {
        var entries = try space.entries(of: sorters[sorter])
        var found: [SortingSpace.Entry] = []
        while var entry = try entries.next() {
          entry.sorter = sorters[sorter]
          found.append(entry)
        }
        #expect(found == expected, "sorter \(sorter)")
      }
    }
  }
}
