import Platform
import Salvage
import TestSupport
import Testing

/// The list that keeps the keys of pages small, held against a plain array.
@Suite("Page keys")
struct PageKeyTests {
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
}
