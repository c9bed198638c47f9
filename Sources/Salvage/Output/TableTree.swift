import Platform
internal import SQLiteFormat

/// Builds a table b-tree from ascending rows, leaves first.
///
/// Memory: two or three bytes per leaf.
struct TableTree {
  private let pages: NewPages
  private let root: UInt32
  private let geometry: PayloadGeometry
  private let pageSize: Int

  private var leaf: NewLeaf
  private var firstKey: Int64 = 0

  /// First overflow pages of the current leaf, awaiting its number.
  private var chains: [UInt32] = []

  private var leaves = AscendingNumbers()
  private var lastKeys = AscendingNumbers()

  private(set) var last: Int64?

  private var chunk: [UInt8]
  private var lookup: [UInt8] = []

  /// Starts with an empty root page made by SQLite.
  init(_ pages: NewPages, root: UInt32) {
    self.pages = pages
    self.root = root
    pageSize = pages.pageSize
    geometry = PayloadGeometry(usableSize: pageSize)
    leaf = NewLeaf(pageSize: pageSize)
    chunk = leaf.bytes
  }

  /// Adds a row with a rowid larger than all before.
  @inline(__always)
  mutating func add(_ record: Span<UInt8>, rowid: Int64) throws {
    let length = record.count
    let local = geometry.localLength(of: length, onTableLeaf: true)
    let head = Varint.length(of: Int64(length)) &+ Varint.length(of: rowid)
    let size = max(4, head &+ local &+ (local < length ? 4 : 0))
    if 8 &+ 2 &* (leaf.cellCount &+ 1) &+ size > leaf.contentStart { try endLeaf() }
    var overflow: UInt32 = 0
    if local < length { overflow = try addChain(record, from: local) }
    leaf.contentStart &-= size
    var offset = leaf.bytes.set(varint: Int64(length), at: leaf.contentStart)
    offset = leaf.bytes.set(varint: rowid, at: offset)
    leaf.bytes.copy(record, from: 0, count: local, at: offset)
    if local < length { leaf.bytes.set(overflow, at: offset &+ local) }
    leaf.bytes.set(short: leaf.contentStart, at: 8 &+ 2 &* leaf.cellCount)
    if leaf.cellCount == 0 { firstKey = rowid }
    leaf.cellCount &+= 1
    last = rowid
  }

  /// Writes an overflow chain; returns its first page.
  private mutating func addChain(_ record: Span<UInt8>, from start: Int) throws -> UInt32 {
    let first = pages.upcoming
    var page = first
    var before: UInt32 = 0
    var offset = start
    while offset < record.count {
      let count = min(pageSize &- 4, record.count &- offset)
      let next = offset &+ count < record.count ? pages.following(page) : 0
      chunk.set(next, at: 0)
      chunk.copy(record, from: offset, count: count, at: 4)
      for index in (4 &+ count)..<max(4 &+ count, pageSize) { chunk[index] = 0 }
      _ = try pages.add(chunk)
      if page != first { try pages.setPointer(page, .overflowNext, parent: before) }
      before = page
      page = next
      offset &+= count
    }
    chains.append(first)
    return first
  }

  private mutating func endLeaf() throws {
    leaf.seal(.tableLeaf)
    let number = try pages.add(leaf.bytes)
    for page in chains { try pages.setPointer(page, .overflowFirst, parent: number) }
    chains.removeAll(keepingCapacity: true)
    leaves.append(Int64(number))
    lastKeys.append(last ?? 0)
    leaf.clear()
  }

  // MARK: The pages above

  mutating func writeInteriorPages() throws {
    guard last != nil else { return }
    if leaves.count == 0 {
      leaf.seal(.tableLeaf)
      for page in chains { try pages.setPointer(page, .overflowFirst, parent: root) }
      try pages.replace(root, with: leaf.bytes)
      return
    }
    if leaf.cellCount > 0 { try endLeaf() }
    var numbers = leaves.makeIterator()
    var keys = lastKeys.makeIterator()
    var level = try addLevel {
      guard let number = numbers.next(), let key = keys.next() else { return nil }
      return (UInt32(truncatingIfNeeded: number), key)
    }
    while !level.isEmpty {
      var children = level.makeIterator()
      level = try addLevel { children.next() }
    }
  }

  private typealias Child = (number: UInt32, key: Int64)

  /// Writes a level of interior pages with at least two children each.
  ///
  /// - Returns: the children of the next level; empty if the root sufficed.
  private func addLevel(_ next: () -> Child?) throws -> [Child] {
    var written: [Child] = []
    // A page is held back in case the next one needs its last child.
    var before: [Child] = []
    var current: [Child] = []
    var used = 12
    while let child = next() {
      // The right-most child has no cell.
      if let last = current.last {
        let size = 6 + Varint.length(of: last.key)
        if used + size > pageSize {
          if !before.isEmpty { written.append(try addInterior(before)) }
          before = current
          current.removeAll(keepingCapacity: true)
          used = 12
        } else {
          used += size
        }
      }
      current.append(child)
    }
    if before.isEmpty {
      try pages.replace(root, with: interior(current))
      for child in current { try pages.setPointer(child.number, .child, parent: root) }
      return []
    }
    if current.count == 1, let last = before.popLast() { current.insert(last, at: 0) }
    written.append(try addInterior(before))
    written.append(try addInterior(current))
    return written
  }

  private func addInterior(_ children: [Child]) throws -> Child {
    let number = try pages.add(interior(children))
    for child in children { try pages.setPointer(child.number, .child, parent: number) }
    return (number, children.last?.key ?? 0)
  }

  private func interior(_ children: [Child]) -> [UInt8] {
    var page = [UInt8](repeating: 0, count: pageSize)
    var content = pageSize
    var count = 0
    for child in children.dropLast() {
      content -= 4 + Varint.length(of: child.key)
      page.set(child.number, at: content)
      _ = page.set(varint: child.key, at: content + 4)
      page.set(short: content, at: 12 + 2 * count)
      count += 1
    }
    page[0] = PageKind.tableInterior.rawValue
    page.set(short: count, at: 3)
    page.set(short: content, at: 5)
    page.set(children.last?.number ?? 0, at: 8)
    return page
  }

  // MARK: Looking rows up

  mutating func record(_ rowid: Int64) throws -> [UInt8]? {
    guard let last, rowid <= last else { return nil }
    if leaf.cellCount > 0, rowid >= firstKey { return try record(rowid, leaf.bytes, count: leaf.cellCount) }
    let place = lastKeys.place(notBelow: rowid)
    guard place < leaves.count else { return nil }
    if lookup.isEmpty { lookup = [UInt8](repeating: 0, count: pageSize) }
    try pages.read(UInt32(truncatingIfNeeded: leaves[place]), into: &lookup)
    return try record(rowid, lookup, count: lookup.span.uint16(at: 3) ?? 0)
  }

  private func record(_ rowid: Int64, _ page: [UInt8], count: Int) throws -> [UInt8]? {
    let bytes = page.span
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      guard var offset = bytes.uint16(at: 8 + 2 * middle),
        let length = Varint.read(bytes, at: &offset, before: pageSize),
        let key = Varint.read(bytes, at: &offset, before: pageSize)
      else { return nil }
      if key < rowid {
        low = middle + 1
      } else if key > rowid {
        high = middle
      } else {
        let local = geometry.localLength(of: Int(length), onTableLeaf: true)
        var record = Array(page[offset..<(offset + local)])
        var next = local < Int(length) ? bytes.uint32(at: offset + local) ?? 0 : 0
        var part = [UInt8](repeating: 0, count: pageSize)
        while next != 0, record.count < Int(length) {
          try pages.read(next, into: &part)
          record += part[4..<min(pageSize, 4 + Int(length) - record.count)]
          next = part.span.uint32(at: 0) ?? 0
        }
        return record
      }
    }
    return nil
  }
}

/// A list of nondecreasing numbers, in one or two bytes each where close together.
package struct AscendingNumbers {
  private static let countPerMark = 64

  private var bytes: [UInt8] = []

  /// Every 64th number, with the offset of the next difference.
  private var marks: [(number: Int64, offset: Int)] = []

  package private(set) var count = 0
  private var last: Int64 = 0

  package init() {}

  /// Appends a number not below the last.
  package mutating func append(_ number: Int64) {
    if count % Self.countPerMark == 0 {
      marks.append((number, bytes.count))
    } else {
      // An overflowing difference wraps back on addition.
      let distance = number &- last
      let start = bytes.count
      bytes.append(contentsOf: repeatElement(0, count: Varint.length(of: distance)))
      _ = bytes.set(varint: distance, at: start)
    }
    last = number
    count += 1
  }

  package subscript(place: Int) -> Int64 {
    let mark = marks[place / Self.countPerMark]
    var (number, offset) = mark
    for _ in 0..<(place % Self.countPerMark) { number &+= step(&offset) }
    return number
  }

  private func step(_ offset: inout Int) -> Int64 { Varint.read(bytes.span, at: &offset, before: bytes.count) ?? 0 }

  /// The index of the first number at or above a limit, or the count.
  package func place(notBelow limit: Int64) -> Int {
    let low = marks.partitioningIndex { $0.number >= limit }
    guard low > 0 else { return 0 }
    let first = (low - 1) * Self.countPerMark
    var (number, offset) = marks[low - 1]
    for place in first..<min(count, first + Self.countPerMark) {
      if place > first { number &+= step(&offset) }
      if number >= limit { return place }
    }
    return min(count, first + Self.countPerMark)
  }

  package func makeIterator() -> Iterator { Iterator(numbers: self) }

  package struct Iterator: IteratorProtocol {
    fileprivate let numbers: AscendingNumbers
    private var place = 0
    private var offset = 0
    private var number: Int64 = 0

    fileprivate init(numbers: AscendingNumbers) { self.numbers = numbers }

    package mutating func next() -> Int64? {
      guard place < numbers.count else { return nil }
      if place % AscendingNumbers.countPerMark == 0 {
        number = numbers.marks[place / AscendingNumbers.countPerMark].number
      } else {
        number &+= numbers.step(&offset)
      }
      place += 1
      return number
    }
  }
}
