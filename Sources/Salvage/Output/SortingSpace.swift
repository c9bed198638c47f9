package import Platform
import SQLiteFormat
package import SystemPackage

/// The memory and the file of sorted runs, shared by a store's sorters.
///
/// At six megabytes, all entries are sorted and spilled to disk.
package final class SortingSpace {
  package struct Entry: Hashable {
    var one: UInt64

    /// The second column's key, or else the rowid.
    var two: UInt64

    /// The rowid if there are two columns.
    var three: UInt64

    package var sorter: Int

    package init(one: UInt64, two: UInt64, three: UInt64 = 0, sorter: Int = 0) {
      self.one = one
      self.two = two
      self.three = three
      self.sorter = sorter
    }

    @inline(__always)
    package func isBefore(_ other: Entry) -> Bool {
      if one != other.one { return one < other.one }
      if two != other.two { return two < other.two }
      return three < other.three
    }
  }

  /// One sorter's sorted entries on disk.
  typealias Run = (offset: Int64, count: Int)

  /// The most entries in memory, at 32 bytes each plus eight for sorting.
  static let entryLimit = 1 << 17
  private let limit: Int

  private static let pieceLength = 1 << 18

  private let path: FilePath
  private let fileSystem: FileSystem
  private var entries: [Entry] = []
  private var end: Int64 = 0

  /// Per sorter: numbers per entry on disk, runs, and range in `order`.
  private var widths: [Int] = []
  private var runs: [[Run]] = []
  private var places: [Range<Int>] = []

  private var order: [UInt32] = []
  private var isSorted = false

  package init(_ path: FilePath, in fileSystem: FileSystem, limit: Int = SortingSpace.entryLimit) {
    self.limit = limit
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Registers a sorter with one or two columns.
  package func join(width: Int) -> Int {
    widths.append(width + 1)
    runs.append([])
    return widths.count - 1
  }

  /// Adds an entry; spills to disk first if memory is full.
  @inline(__always)
  package func add(_ entry: Entry) throws {
    if entries.count >= limit { try spill() }
    Self.append(entry, to: &entries, limit)
  }

  @inline(__always)
  private static func append(_ entry: Entry, to entries: inout [Entry], _ limit: Int) {
    if entries.isEmpty { entries.reserveCapacity(limit) }
    entries.append(entry)
  }

  /// Sorts the entries in memory; no additions may follow.
  private func settle() {
    guard !isSorted else { return }
    places = SortingOrder.sort(entries, sorters: widths.count, into: &order)
    isSorted = true
  }

  private func spill() throws {
    let file = end == 0 ? try fileSystem.create(path) : try fileSystem.update(path)
    let places = SortingOrder.sort(entries, sorters: widths.count, into: &order)
    var bytes = [UInt8](repeating: 0, count: Self.pieceLength)
    var used = 0
    for (sorter, range) in places.enumerated() where !range.isEmpty {
      runs[sorter].append((end + Int64(used), range.count))
      let length = 8 * widths[sorter]
      for place in range {
        if used + length > bytes.count {
          try file.write(bytes[..<used], at: end)
          end += Int64(used)
          used = 0
        }
        Self.encode(entries[Int(order[place])], length, into: &bytes, at: used)
        used += length
      }
    }
    try file.write(bytes[..<used], at: end)
    end += Int64(used)
    entries.removeAll(keepingCapacity: true)
  }

  package func entries(of sorter: Int) throws -> SortedEntries {
    settle()
    let file = runs[sorter].isEmpty ? nil : try fileSystem.open(path)
    return try SortedEntries(
      self, file, runs: runs[sorter], numbers: widths[sorter], inMemory: sorter < places.count ? places[sorter] : 0..<0)
  }

  func entry(at place: Int) -> Entry { entries[Int(order[place])] }

  func clear() {
    entries = []
    order = []
    places = []
    runs = []
    widths = []
  }

  // MARK: Bytes

  @inline(__always)
  private static func encode(_ entry: Entry, _ length: Int, into bytes: inout [UInt8], at start: Int) {
    var span = bytes.mutableSpan
    put(entry.one, into: &span, at: start)
    put(entry.two, into: &span, at: start &+ 8)
    if length == 24 { put(entry.three, into: &span, at: start &+ 16) }
  }

  @inline(__always)
  private static func put(_ number: UInt64, into bytes: inout MutableSpan<UInt8>, at start: Int) {
    guard start >= 0, start &+ 8 <= bytes.count else { return }
    for index in 0..<8 { bytes[start &+ index] = UInt8(truncatingIfNeeded: number &>> UInt64(56 &- 8 &* index)) }
  }
}

/// Sorts entries by sorter and keys, stably; they arrive in rowid order.
enum SortingOrder {
  /// The least number for radix sort; fewer are compared.
  private static let fewest = 2048

  private typealias Entry = SortingSpace.Entry

  /// Sorts; returns each sorter's range.
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

  /// Radix-sorts by one number, 16 bits at a time.
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
      for place in range { starts[Int((number(entries[Int(order[place])]) >> shift) & 0xffff) + 1] += 1 }
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

/// Merges a sorter's entries from disk and memory, at about ten kilobytes per run.
package struct SortedEntries {
  private typealias Entry = SortingSpace.Entry

  private struct Source {
    var offset: Int64
    var left: Int
    var isOnDisk: Bool
    var block: [Entry] = []
    var place = 0
  }

  private let space: SortingSpace
  private let file: ReadableFile?

  /// The numbers in an entry on disk: two or three.
  private let numbers: Int
  private var sources: [Source] = []

  /// A min-heap of the sources' first entries.
  private var heads: [(entry: SortingSpace.Entry, source: Int)] = []
  private var bytes: [UInt8]

  private static let blockCount = 384

  init(
    _ space: SortingSpace, _ file: ReadableFile?, runs: [SortingSpace.Run], numbers: Int, inMemory: Range<Int>
  ) throws {
    self.space = space
    self.file = file
    self.numbers = numbers
    bytes = [UInt8](repeating: 0, count: file == nil ? 0 : 8 * numbers * Self.blockCount)
    for run in runs { sources.append(Source(offset: run.offset, left: run.count, isOnDisk: true)) }
    sources.append(Source(offset: Int64(inMemory.lowerBound), left: inMemory.count, isOnDisk: false))
    for source in sources.indices {
      if let entry = try advance(source) { heads.append((entry, source)) }
    }
    for place in stride(from: heads.count / 2, through: 0, by: -1) { sink(from: place) }
  }

  @inline(__always)
  package mutating func next() throws -> SortingSpace.Entry? {
    guard let head = heads.first else { return nil }
    if let entry = try advance(head.source) {
      heads[0].entry = entry
    } else {
      heads[0] = heads[heads.count - 1]
      heads.removeLast()
    }
    if heads.count > 1 { sink(from: 0) }
    return head.entry
  }

  private mutating func sink(from start: Int) {
    var place = start
    while true {
      var least = 2 * place + 1
      guard least < heads.count else { return }
      if least + 1 < heads.count, heads[least + 1].entry.isBefore(heads[least].entry) { least += 1 }
      guard heads[least].entry.isBefore(heads[place].entry) else { return }
      heads.swapAt(place, least)
      place = least
    }
  }

  @inline(__always)
  private mutating func advance(_ source: Int) throws -> Entry? {
    if sources[source].place == sources[source].block.count {
      guard sources[source].left > 0 else { return nil }
      try fill(source)
    }
    let entry = sources[source].block[sources[source].place]
    sources[source].place &+= 1
    return entry
  }

  private mutating func fill(_ number: Int) throws {
    let count = min(sources[number].left, Self.blockCount)
    let offset = sources[number].offset
    var block: [Entry] = []
    swap(&block, &sources[number].block)
    block.removeAll(keepingCapacity: true)
    sources[number].place = 0
    sources[number].left -= count
    if sources[number].isOnDisk, let file {
      let length = 8 * numbers
      try read(count * length, at: offset, file)
      sources[number].offset += Int64(count * length)
      let span = bytes.span
      for place in 0..<count {
        let start = place * length
        block.append(
          Entry(
            one: Self.number(span, at: start), two: Self.number(span, at: start + 8),
            three: numbers == 3 ? Self.number(span, at: start + 16) : 0))
      }
    } else {
      for place in 0..<count { block.append(space.entry(at: Int(offset) + place)) }
      sources[number].offset += Int64(count)
    }
    sources[number].block = block
  }

  private mutating func read(_ length: Int, at offset: Int64, _ file: ReadableFile) throws {
    guard try file.read(at: offset, length: length, into: &bytes) == length else {
      throw FileError(.inputOutput, operation: "sort an index", path: file.path)
    }
  }

  @inline(__always)
  private static func number(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
    UInt64(bitPattern: bytes.signedInteger(at: start, length: 8) ?? 0)
  }
}
