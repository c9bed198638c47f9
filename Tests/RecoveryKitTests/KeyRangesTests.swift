import Foundation
import Platform
import Salvage
import TestSupport
import Testing

@Suite("Sets of rowids as ranges")
struct KeyRangesTests {
  @Test("What ranges do is what sets do", arguments: [UInt64(1), 2, 3, 4, 5])
  func equalsSets(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    func some() -> Set<Int64> { Set((0..<60).map { _ in Int64.random(in: -40...80, using: &random) }) }
    for _ in 0..<50 {
      let (one, other) = (some(), some())
      let (left, right) = (KeyRanges(one), KeyRanges(other))
      #expect(left.count == Int64(one.count), "seed \(seed)")
      #expect((-50...90).allSatisfy { left.contains($0) == one.contains($0) }, "seed \(seed)")
      #expect(left.subtracting(right) == KeyRanges(one.subtracting(other)), "seed \(seed)")
      #expect(left.intersection(right) == KeyRanges(one.intersection(other)), "seed \(seed)")
      #expect(left.union(right) == KeyRanges(one.union(other)), "seed \(seed)")
    }
  }

  @Test("The smallest and largest rowids do no harm")
  func extremes() throws {
    let all = KeyRanges(ranges: [Int64.min...Int64.max])
    #expect(all.count == .max)
    #expect(all.subtracting(KeyRanges([.min, 0, .max])).ranges == [(.min + 1)...(-1), 1...(.max - 1)])
    #expect(KeyRanges([.max, .max - 1]).words() == "\(Int64.max - 1), \(Int64.max)")
    let text = try JSONEncoder().encode(KeyRanges([1, 2, 3, 9]))
    #expect(String(decoding: text, as: UTF8.self) == "[[1,3],[9,9]]")
    #expect(try JSONDecoder().decode(KeyRanges.self, from: text) == KeyRanges([1, 2, 3, 9]))
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(KeyRanges.self, from: Data("[[3,1]]".utf8)) }
  }

  @Test("The words name the first ones")
  func words() {
    #expect(KeyRanges([17, 18, 40, 71]).words() == "17, 18, 40, 71")
    #expect(KeyRanges([1, 2, 3, 9]).words() == "1–3, 9")
    #expect(KeyRanges(stride(from: Int64(0), to: 40, by: 2)).words(limit: 3) == "0, 2, 4 and 17 more")
    #expect(KeyRanges().words() == "")
  }
}
