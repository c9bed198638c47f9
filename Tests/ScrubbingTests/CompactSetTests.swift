import Platform
import SupportBundle
import TestSupport
import Testing

/// The sets that hold what is noted of a store's values in little memory, beside those of the standard library.
struct CompactSetTests {
  private static func numbers(_ count: Int, seed: UInt64) -> [UInt64] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map { _ in UInt64.random(in: 1 ... .max, using: &random) }
  }

  @Test(arguments: [1000, 150_000, 900_000])
  func aSetOfFingerprintsHasWhatWasPutInAndNothingElse(_ count: Int) {
    let members = Self.numbers(count, seed: 7)
    var set = FingerprintSet(salt: 42)
    let areNew = members.allSatisfy { set.insert($0) }
    #expect(areNew)
    #expect(set.count == count)
    let isAnyNew = members.contains { set.insert($0) }
    #expect(!isAnyNew)
    for isSealed in [false, true] {
      if isSealed { set.seal() }
      #expect(set.count == count)
      #expect(members.allSatisfy { set.contains($0) })
      #expect(!Self.numbers(100_000, seed: 8).contains { set.contains($0) })
    }
    // Five bytes for each, beside a table that is there in any case.
    #expect(set.memory < 5 * count + 400_000)
  }

  @Test(arguments: [(2000, 3000), (600_000, 600_000), (600_000, 1000), (1000, 600_000)])
  func aSetTakesInAnother(_ first: Int, _ second: Int) {
    let members = Self.numbers(first + second, seed: 9)
    let shared = min(first, second) / 2
    for limit in [Int.max, first + 100] {
      var set = FingerprintSet()
      var other = FingerprintSet()
      for member in members[..<first] { set.insert(member) }
      for member in members[(first - shared)...] { other.insert(member) }
      let left = set.take(&other, upTo: limit)
      #expect(other.count == 0)
      #expect(!members.contains { other.contains($0) })
      #expect(set.count == min(limit, first + second))
      #expect(left == Int64(max(0, first + second - limit)))
      #expect(members[..<first].allSatisfy { set.contains($0) })
      #expect(members.count { set.contains($0) } == set.count)
    }
  }

  @Test func runsOfNumbersAreThoseOfTheNumbers() {
    var random = SeededGenerator(seed: 3)
    let far = (0..<500).map { _ in Int64.random(in: -1_000_000_000...1_000_000_000, using: &random) }
    let near: [Int64] = Array(1...60_000)
    let edges: [Int64] = [.max, .max - 1, .min]
    let numbers = (near + far + edges).shuffled(using: &random)
    var (first, second) = (NumberRuns(limit: 100_000), NumberRuns(limit: 100_000))
    for number in numbers[..<40_000] { first.insert(number) }
    for number in numbers[30_000...] { second.insert(number) }
    first.take(&second)
    var expected: [ClosedRange<Int64>] = []
    for number in Set(numbers).sorted() {
      if let last = expected.last, last.upperBound + 1 == number {
        expected[expected.count - 1] = last.lowerBound...number
      } else {
        expected.append(number...number)
      }
    }
    #expect(first.runs == expected)
    #expect(first.leftOut == 0)
    second.settle()
    #expect(second.runs.isEmpty)
  }

  @Test func runsThatFindNoRoomAreCounted() {
    var runs = NumberRuns(limit: 10)
    for number in stride(from: Int64(0), to: 100, by: 2) { runs.insert(number) }
    runs.settle()
    #expect(runs.runs.count == 10)
    #expect(runs.leftOut == 40)
  }

  @Test func shortNumbersAreThoseThatWerePutIn() {
    var random = SeededGenerator(seed: 5)
    let numbers = (0..<5000).map { _ in Int32.random(in: -999_999...999_999, using: &random) } + [999_999, -999_999]
    var (first, second) = (ShortNumbers(), ShortNumbers())
    for number in numbers[..<40] { first.insert(number) }
    #expect(first.sorted() == Set(numbers[..<40]).sorted())
    for number in numbers[20...] { second.insert(number) }
    first.formUnion(second)
    // What has more digits is not among them.
    first.insert(1_000_000)
    first.insert(.min)
    #expect(first.sorted() == Set(numbers).sorted())
    #expect(first.count == Set(numbers).count)
    #expect(first.contains(999_999) && !first.contains(1_000_000))
  }

  @Test func differentNumbersAreInOrderAndBounded() {
    var random = SeededGenerator(seed: 6)
    let numbers = (0..<50_000).map { _ in Int64.random(in: 0...20_000, using: &random) }
    var different = DifferentNumbers<Int64>()
    let haveRoom = numbers.allSatisfy { different.insert($0, limit: 1_000_000) }
    #expect(haveRoom)
    different.settle()
    #expect(different.numbers == Set(numbers).sorted())
    var bounded = DifferentNumbers<Int64>()
    let accepted = (Int64(0)..<100_000).count { bounded.insert($0, limit: 10_000) }
    #expect((10_000...15_000).contains(accepted))
    #expect(bounded.numbers.count == accepted)
  }
}
