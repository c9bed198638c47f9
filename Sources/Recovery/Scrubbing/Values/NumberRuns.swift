/// Different whole numbers, those that follow each other together, in the memory that the runs take and not the numbers.
///
/// What is put in waits until there is enough of it to be worth a merge, so that the numbers of rows that an index holds in
/// another order than theirs come together too.
package struct NumberRuns: Sendable {
  /// The runs, in order and apart from each other.
  package private(set) var runs: [ClosedRange<Int64>] = []

  private var waiting: [ClosedRange<Int64>] = []

  private let limit: Int

  /// The numbers that found no room.
  package private(set) var leftOut: Int64 = 0

  /// The runs that wait before they are merged, at the least.
  private static let leastWaiting = 1 << 14

  /// No numbers, and room for so many runs.
  package init(limit: Int) { self.limit = limit }

  /// Puts a number in.
  package mutating func insert(_ number: Int64) {
    if let last = waiting.last {
      if last.contains(number) { return }
      if last.upperBound < Int64.max, number == last.upperBound + 1 {
        waiting[waiting.count - 1] = last.lowerBound...number
        return
      }
    }
    insert(number...number)
  }

  private mutating func insert(_ run: ClosedRange<Int64>) {
    if waiting.count >= max(Self.leastWaiting, runs.count / 4) { settle() }
    waiting.append(run)
  }

  /// Puts in what is in another one, which is empty then.
  package mutating func take(_ other: inout NumberRuns) {
    settle()
    other.settle()
    leftOut += other.leftOut
    swap(&waiting, &other.runs)
    other = NumberRuns(limit: limit)
    settle()
  }

  /// Merges what waits into the runs.
  package mutating func settle() {
    guard !waiting.isEmpty else { return }
    waiting.sort { $0.lowerBound < $1.lowerBound }
    var merged: [ClosedRange<Int64>] = []
    var (first, second) = (0, 0)
    while first < runs.count || second < waiting.count {
      let isFirst =
        second == waiting.count || first < runs.count && runs[first].lowerBound <= waiting[second].lowerBound
      let next = isFirst ? runs[first] : waiting[second]
      if isFirst { first += 1 } else { second += 1 }
      guard let last = merged.last, last.upperBound == Int64.max || next.lowerBound <= last.upperBound + 1 else {
        if merged.count < limit { merged.append(next) } else { leftOut += 1 }
        continue
      }
      merged[merged.count - 1] = last.lowerBound...max(last.upperBound, next.upperBound)
    }
    runs = merged
    waiting.removeAll(keepingCapacity: waiting.count <= Self.leastWaiting)
  }
}
