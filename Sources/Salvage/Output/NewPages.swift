internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// Appends pages to a new database made by SQLite, in long writes.
///
/// Pointer maps fill as trees grow, a few in memory; their page numbers and the lock-byte page's are skipped.
final class NewPages {
  let pageSize: Int

  private let path: FilePath
  private let fileSystem: FileSystem
  private let layout: PageLayout
  private let file: WritableFile
  private var reader: ReadableFile?

  private var next: UInt32

  /// Unwritten pages from `runStart` on.
  private var run: [UInt8] = []
  private var runStart: UInt32

  private var maps: NewPointerMaps?

  private static let runLength = 1 << 19

  /// Opens a database made by SQLite and unused by any process.
  init(_ path: FilePath, pageSize: Int, hasPointerMaps: Bool, in fileSystem: FileSystem) throws(FileError) {
    self.path = path
    self.fileSystem = fileSystem
    self.pageSize = pageSize
    layout = PageLayout(pageSize: pageSize, usableSize: pageSize)
    let made = try fileSystem.open(path)
    let count = UInt32(clamping: made.count / Int64(pageSize))
    file = try fileSystem.update(path)
    next = count + 1
    runStart = next
    run.reserveCapacity(Self.runLength + pageSize)
    if hasPointerMaps { maps = NewPointerMaps(layout, pageSize: pageSize, pageCount: count) }
  }

  var upcoming: UInt32 { usable(from: next) }

  func following(_ page: UInt32) -> UInt32 { usable(from: page + 1) }

  private func usable(from number: UInt32) -> UInt32 {
    var number = number
    while number == layout.lockBytePage || maps != nil && layout.isPointerMap(number) { number += 1 }
    return number
  }

  func add(_ page: [UInt8]) throws -> UInt32 {
    let number = upcoming
    while next < number {
      run.append(contentsOf: repeatElement(0, count: pageSize))
      next += 1
    }
    run.append(contentsOf: page)
    next = number + 1
    if run.count >= Self.runLength { try flush() }
    return number
  }

  func setPointer(_ page: UInt32, _ kind: PointerMapEntry.Kind, parent: UInt32) throws {
    guard maps != nil, page < next else { return }
    if let map = maps?.absentMap(of: page) {
      var bytes = [UInt8](repeating: 0, count: pageSize)
      if maps?.isOnDisk(map) == true {
        _ = try readable(map)?.read(at: offset(of: map), length: pageSize, into: &bytes)
      }
      while let old = maps?.makeRoom(before: runStart) { try file.write(old.bytes, at: offset(of: old.page)) }
      maps?.take(map, bytes)
    }
    maps?.set(page, kind, parent: parent)
  }

  private func offset(of page: UInt32) -> Int64 { Int64(page - 1) * Int64(pageSize) }

  private func readable(_ page: UInt32) throws(FileError) -> ReadableFile? {
    if (reader?.count ?? 0) < offset(of: page) + Int64(pageSize) { reader = try fileSystem.open(path) }
    return reader
  }

  /// Overwrites a page made by SQLite.
  func replace(_ page: UInt32, with bytes: [UInt8]) throws { try file.write(bytes, at: offset(of: page)) }

  func read(_ page: UInt32, into buffer: inout [UInt8]) throws {
    if page >= runStart {
      let start = Int(page - runStart) * pageSize
      guard start + pageSize <= run.count else { return }
      for index in 0..<pageSize { buffer[index] = run[start + index] }
      return
    }
    _ = try readable(page)?.read(at: offset(of: page), length: pageSize, into: &buffer)
  }

  private func flush() throws {
    guard !run.isEmpty else { return }
    try file.write(run, at: offset(of: runStart))
    // Early writeback leaves less for the final sync.
    file.beginWriting(at: offset(of: runStart), length: Int64(run.count))
    run.removeAll(keepingCapacity: true)
    runStart = next
  }

  /// Writes the rest, the pointer maps and the page count, so that SQLite can open the database.
  func writePageCount() throws {
    try flush()
    let count = next - 1
    while let map = maps?.removeFirst() { try replace(map.page, with: map.bytes) }
    var bytes = [UInt8](repeating: 0, count: 4)
    bytes.set(count, at: 0)
    // "In-header database size" (SQLite file format, 1.3.9).
    try file.write(bytes, at: 28)
    reader = nil
  }
}

/// A b-tree leaf in the making, with cells from its end downwards.
struct NewLeaf {
  var bytes: [UInt8]
  var cellCount = 0
  var contentStart: Int

  init(pageSize: Int) {
    bytes = [UInt8](repeating: 0, count: pageSize)
    contentStart = pageSize
  }

  /// Writes the header, and clears leftovers of the previous leaf.
  mutating func seal(_ kind: PageKind) {
    bytes[0] = kind.rawValue
    bytes.set(short: 0, at: 1)
    bytes.set(short: cellCount, at: 3)
    bytes.set(short: contentStart, at: 5)
    bytes[7] = 0
    for index in (8 + 2 * cellCount)..<max(8 + 2 * cellCount, contentStart) { bytes[index] = 0 }
  }

  mutating func clear() {
    cellCount = 0
    contentStart = bytes.count
  }
}

extension Array where Element == UInt8 {
  @inline(__always)
  mutating func copy(_ source: Span<UInt8>, from start: Int, count: Int, at offset: Int) {
    let bytes = source.extracting(start..<(start &+ count))
    var target = mutableSpan
    guard offset >= 0, offset <= target.count &- count else { return }
    for index in bytes.indices { target[offset &+ index] = bytes[index] }
  }

  mutating func set(_ value: UInt32, at offset: Int) {
    self[offset] = UInt8(truncatingIfNeeded: value >> 24)
    self[offset + 1] = UInt8(truncatingIfNeeded: value >> 16)
    self[offset + 2] = UInt8(truncatingIfNeeded: value >> 8)
    self[offset + 3] = UInt8(truncatingIfNeeded: value)
  }

  /// Writes a big-endian 16-bit number; 65536 becomes 0.
  mutating func set(short value: Int, at offset: Int) {
    self[offset] = UInt8(truncatingIfNeeded: value >> 8)
    self[offset + 1] = UInt8(truncatingIfNeeded: value)
  }

  mutating func set(varint value: Int64, at offset: Int) -> Int {
    let bits = UInt64(bitPattern: value)
    if bits < 0x80 {
      self[offset] = UInt8(truncatingIfNeeded: bits)
      return offset + 1
    }
    let length = Varint.length(of: value)
    var rest = bits
    var index = length - 1
    if length == 9 {
      self[offset + 8] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
      index = 7
    }
    while index >= 0 {
      let isLast = index == length - 1
      self[offset + index] = UInt8(truncatingIfNeeded: rest & 0x7f) | (isLast ? 0 : 0x80)
      rest >>= 7
      index -= 1
    }
    return offset + length
  }
}

/// The pointer maps of a growing database: recent ones in memory, others on disk.
struct NewPointerMaps {
  private static let limit = 1 << 19

  private let layout: PageLayout
  private let pageSize: Int
  private let maximumCount: Int

  /// The maps in memory, and their order of arrival.
  private var maps: [UInt32: [UInt8]] = [:]
  private var queue: [UInt32] = []

  private var written = PageSet()

  private var recent: UInt32 = 0
  private var bytes: [UInt8] = []

  init(_ layout: PageLayout, pageSize: Int, pageCount: UInt32) {
    self.layout = layout
    self.pageSize = pageSize
    maximumCount = max(4, Self.limit / pageSize)
    for page in stride(from: UInt32(2), through: pageCount, by: 1) where layout.isPointerMap(page) {
      _ = written.insert(page)
    }
  }

  /// The map of a page, if it is not in memory.
  func absentMap(of page: UInt32) -> UInt32? {
    guard let map = layout.pointerMapPage(for: page), map != recent, maps[map] == nil else { return nil }
    return map
  }

  func isOnDisk(_ map: UInt32) -> Bool { written.contains(map) }

  /// Evicts the oldest map if there are too many; the caller must write it.
  ///
  /// - Parameter limit: maps from this page on stay, as pending writes would overwrite them.
  mutating func makeRoom(before limit: UInt32) -> (page: UInt32, bytes: [UInt8])? {
    guard queue.count >= maximumCount, let place = queue.firstIndex(where: { $0 < limit }) else { return nil }
    return remove(place)
  }

  mutating func take(_ map: UInt32, _ bytes: [UInt8]) {
    maps[map] = bytes
    queue.append(map)
  }

  mutating func removeFirst() -> (page: UInt32, bytes: [UInt8])? { queue.isEmpty ? nil : remove(0) }

  private mutating func remove(_ place: Int) -> (page: UInt32, bytes: [UInt8]) {
    let map = queue.remove(at: place)
    putBack()
    _ = written.insert(map)
    return (map, maps.removeValue(forKey: map) ?? [UInt8](repeating: 0, count: pageSize))
  }

  private mutating func putBack() {
    if recent != 0 { maps[recent] = bytes }
    recent = 0
    bytes = []
  }

  mutating func set(_ page: UInt32, _ kind: PointerMapEntry.Kind, parent: UInt32) {
    guard let map = layout.pointerMapPage(for: page), page > map else { return }
    if map != recent {
      putBack()
      guard let found = maps[map] else { return }
      // A second reference would copy the whole map on each entry.
      maps[map] = []
      bytes = found
      recent = map
    }
    let offset = 5 * Int(page - map - 1)
    guard offset + 5 <= bytes.count else { return }
    bytes[offset] = kind.rawValue
    bytes.set(parent, at: offset + 1)
  }
}
