import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// The lists that keep a salvage's memory small, held against plain arrays.
@Suite("Compact lists")
struct CompactListTests {
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
