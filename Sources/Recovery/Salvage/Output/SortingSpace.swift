internal import PageRecovery
package import StoreFiles
package import SystemPackage

/// What all sorters of a store share: the memory that entries take until they are sorted, and the file of sorted runs.
///
/// Memory is six megabytes, however many entries there are: when it is full, all entries go to the disk, sorted.
package final class SortingSpace {
  /// An entry of an index as numbers, and whose it is.
  package struct Entry: Hashable {
    /// The key of the first column.
    package var one: UInt64

    /// The key of the second column, or the rowid where there is none.
    package var two: UInt64

    /// The rowid where there are two columns.
    package var three: UInt64

    /// Whose it is.
    package var sorter: Int

    /// An entry; that of one column has no third number.
    package init(one: UInt64, two: UInt64, three: UInt64 = 0, sorter: Int = 0) {
      self.one = one
      self.two = two
      self.three = three
      self.sorter = sorter
    }

    /// Whether it comes before another entry of the same index.
    @inline(__always)
    package func isBefore(_ other: Entry) -> Bool {
      if one != other.one { return one < other.one }
      if two != other.two { return two < other.two }
      return three < other.three
    }
  }

  /// Entries of one sorter in their order, on the disk.
  struct Run {
    let offset: Int64
    let count: Int
  }

  /// The entries that are in memory at most; each takes 32 bytes, and eight more when they are sorted.
  package static let entryLimit = 1 << 17
  private let limit: Int

  private static let pieceLength = 1 << 18

  private let path: FilePath
  private let fileSystem: FileSystem
  private var entries: [Entry] = []
  private var end: Int64 = 0

  /// The number of numbers in an entry of each sorter on the disk; the runs of each; the place of its entries in `order`.
  private var widths: [Int] = []
  private var runs: [[Run]] = []
  private var places: [Range<Int>] = []

  /// The entries in memory in their order, those of one sorter behind another's.
  private var order: [UInt32] = []
  private var isSorted = false

  /// Runs are written into a file of that name, which is made where it is needed.
  package init(_ path: FilePath, in fileSystem: FileSystem, limit: Int = SortingSpace.entryLimit) {
    self.limit = limit
    self.path = path
    self.fileSystem = fileSystem
  }

  /// A number for a new sorter whose entries have keys of one or two columns.
  package func join(width: Int) -> Int {
    widths.append(width + 1)
    runs.append([])
    return widths.count - 1
  }

  /// Takes an entry.
  @inline(__always)
  package func add(_ entry: Entry) throws(SalvageError) {
    if entries.count >= limit { try spill() }
    Self.append(entry, to: &entries, limit)
  }

  @inline(__always)
  private static func append(_ entry: Entry, to entries: inout [Entry], _ limit: Int) {
    if entries.isEmpty { entries.reserveCapacity(limit) }
    entries.append(entry)
  }

  /// Sorts what is in memory; nothing is added from now on.
  private func settle() {
    guard !isSorted else { return }
    places = SortingOrder.sort(entries, sorters: widths.count, into: &order)
    isSorted = true
  }

  private func spill() throws(SalvageError) {
    try wrapping(SalvageError.init) { () throws(FileError) in
      let file = end == 0 ? try fileSystem.create(path) : try fileSystem.update(path)
      let places = SortingOrder.sort(entries, sorters: widths.count, into: &order)
      var bytes = [UInt8](repeating: 0, count: Self.pieceLength)
      var used = 0
      for (sorter, range) in places.enumerated() where !range.isEmpty {
        runs[sorter].append(Run(offset: end + Int64(used), count: range.count))
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
    }
    entries.removeAll(keepingCapacity: true)
  }

  /// The entries of a sorter in their order.
  package func entries(of sorter: Int) throws(SalvageError) -> SortedEntries {
    settle()
    let file: ReadableFile?
    do throws(FileError) {
      file = runs[sorter].isEmpty ? nil : try fileSystem.open(path)
    } catch {
      throw SalvageError(error)
    }
    return try SortedEntries(
      self, file, runs: runs[sorter], numbers: widths[sorter],
      inMemory: sorter < places.count ? places[sorter] : 0..<0)
  }

  /// An entry in memory, by its place in the order.
  func entry(at place: Int) -> Entry { entries[Int(order[place])] }

  /// Gives the memory back; nothing is asked for any more.
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
