/// The order of entries in memory: those of one sorter behind another's, each sorter's by their keys.
///
/// Entries come in the order of their rowids, and what is equal stays in its order.
enum SortingOrder {
  /// Fewer are compared with one another instead of being put into places by their digits.
  private static let fewest = 2048

  private typealias Entry = SortingSpace.Entry

  /// Sorts; returns the places of each sorter's entries.
  static func sort(_ entries: [SortingSpace.Entry], sorters: Int, into order: inout [UInt32]) -> [Range<Int>] {
    var counts = [Int](repeating: 0, count: sorters + 1)
    for entry in entries { counts[entry.sorter + 1] += 1 }
    for sorter in 0..<sorters { counts[sorter + 1] += counts[sorter] }
    let ranges = (0..<sorters).map { counts[$0]..<counts[$0 + 1] }
    if order.count != entries.count { order = [UInt32](repeating: 0, count: entries.count) }
    for (index, entry) in entries.enumerated() {
      order[counts[entry.sorter]] = UInt32(truncatingIfNeeded: index)
      counts[entry.sorter] += 1
    }
    var other: [UInt32] = []
    for range in ranges where range.count > 1 {
      if range.count < fewest {
        order[range].sort { one, two in
          let (first, second) = (entries[Int(one)], entries[Int(two)])
          return first.isBefore(second) || !second.isBefore(first) && one < two
        }
        continue
      }
      if other.isEmpty { other = order }
      sort(range, &order, &other, entries, by: \.two)
      sort(range, &order, &other, entries, by: \.one)
    }
    return ranges
  }

  /// Sorts by one number, sixteen bits at a time.
  @inline(__always)
  private static func sort(
    _ range: Range<Int>, _ order: inout [UInt32], _ other: inout [UInt32], _ entries: [Entry],
    by number: (Entry) -> UInt64
  ) {
    let some = number(entries[Int(order[range.lowerBound])])
    var differing: UInt64 = 0
    var isAscending = true
    var before: UInt64 = 0
    for place in range {
      let key = number(entries[Int(order[place])])
      differing |= key ^ some
      if key < before { isAscending = false }
      before = key
    }
    guard !isAscending else { return }
    var starts = [Int32](repeating: 0, count: 65537)
    for shift in stride(from: UInt64(0), through: 48, by: 16) where (differing >> shift) & 0xffff != 0 {
      for digit in starts.indices { starts[digit] = 0 }
      for place in range {
        starts[Int((number(entries[Int(order[place])]) >> shift) & 0xffff) + 1] += 1
      }
      for digit in 1...65536 { starts[digit] += starts[digit - 1] }
      for place in range {
        let digit = Int((number(entries[Int(order[place])]) >> shift) & 0xffff)
        other[range.lowerBound + Int(starts[digit])] = order[place]
        starts[digit] += 1
      }
      for place in range { order[place] = other[place] }
    }
  }
}
