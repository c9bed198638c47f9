internal import PageRecovery
internal import SQLiteFormat
internal import StoreFiles

/// Goes through the entries of a sorter in their order: those of its runs on the disk and those in memory, merged.
///
/// Memory is some ten kilobytes for each run.
package struct SortedEntries {
  private typealias Entry = SortingSpace.Entry

  /// Entries that lie in their order, while they are read.
  private struct Source {
    var offset: Int64
    var left: Int
    var isOnDisk: Bool
    var block: [Entry] = []
    var place = 0
  }

  private let space: SortingSpace
  private let file: ReadableFile?

  /// The numbers of an entry on the disk: two or three.
  private let numbers: Int
  private var sources: [Source] = []

  /// The first entry of each source that has any, as a heap: none comes before the one above it.
  private var heads: [(entry: SortingSpace.Entry, source: Int)] = []
  private var bytes: [UInt8]

  /// The entries of a source that are in memory at once.
  private static let blockCount = 384

  init(
    _ space: SortingSpace, _ file: ReadableFile?, runs: [SortingSpace.Run], numbers: Int, inMemory: Range<Int>
  ) throws(SalvageError) {
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

  /// The next entry; nil at the end.
  @inline(__always)
  package mutating func next() throws(SalvageError) -> SortingSpace.Entry? {
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
  private mutating func advance(_ source: Int) throws(SalvageError) -> Entry? {
    if sources[source].place == sources[source].block.count {
      guard sources[source].left > 0 else { return nil }
      try fill(source)
    }
    let entry = sources[source].block[sources[source].place]
    sources[source].place &+= 1
    return entry
  }

  private mutating func fill(_ number: Int) throws(SalvageError) {
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

  private mutating func read(_ length: Int, at offset: Int64, _ file: ReadableFile) throws(SalvageError) {
    try wrapping(SalvageError.init) { () throws(FileError) in
      guard try file.read(at: offset, length: length, into: &bytes) == length else {
        throw FileError(.inputOutput, operation: "sort an index", path: file.path)
      }
    }
  }

  @inline(__always)
  private static func number(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
    UInt64(bitPattern: bytes.signedInteger(at: start, length: 8) ?? 0)
  }
}
