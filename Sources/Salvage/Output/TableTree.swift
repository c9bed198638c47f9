internal import SQLiteFormat

/// The b-tree of a table, built from its rows in ascending order: full leaves first, then the pages above them.
///
/// Memory is twelve bytes for each leaf.
final class TableTree {
  private let pages: NewPages
  private let root: UInt32
  private let geometry: PayloadGeometry
  private let pageSize: Int

  /// The leaf that is being filled.
  private var leaf: [UInt8]
  private var cellCount = 0
  private var contentStart: Int
  private var firstKey: Int64 = 0

  /// The first overflow pages of the leaf's rows, whose pointers are set when the leaf has its number.
  private var chains: [UInt32] = []

  /// The leaves that are written: their numbers and the largest rowid of each.
  private var leaves: [UInt32] = []
  private var lastKeys: [Int64] = []

  /// The largest rowid so far; nil where there is no row.
  private(set) var last: Int64?

  private var chunk: [UInt8]
  private var lookup: [UInt8] = []

  /// A tree whose root is an empty page that SQLite made.
  init(_ pages: NewPages, root: UInt32) {
    self.pages = pages
    self.root = root
    pageSize = pages.pageSize
    geometry = PayloadGeometry(usableSize: pageSize)
    leaf = [UInt8](repeating: 0, count: pageSize)
    chunk = leaf
    contentStart = pageSize
  }

  /// Adds a row; its rowid is larger than every one before.
  @inline(__always)
  func add(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) {
    let local = geometry.localLength(of: length, onTableLeaf: true)
    let head = Varint.length(of: Int64(length)) &+ Varint.length(of: rowid)
    let size = max(4, head &+ local &+ (local < length ? 4 : 0))
    if 8 &+ 2 &* (cellCount &+ 1) &+ size > contentStart { try endLeaf() }
    var overflow: UInt32 = 0
    if local < length { overflow = try addChain(bytes, from: start &+ local, to: start &+ length) }
    contentStart &-= size
    var offset = leaf.set(varint: Int64(length), at: contentStart)
    offset = leaf.set(varint: rowid, at: offset)
    Self.copy(bytes, from: start, count: local, into: &leaf, at: offset)
    if local < length { leaf.set(overflow, at: offset &+ local) }
    leaf.set(short: contentStart, at: 8 &+ 2 &* cellCount)
    if cellCount == 0 { firstKey = rowid }
    cellCount &+= 1
    last = rowid
  }

  @inline(__always)
  private static func copy(
    _ source: Span<UInt8>, from start: Int, count: Int, into target: inout [UInt8], at offset: Int
  ) {
    let bytes = source.extracting(start..<(start &+ count))
    var span = target.mutableSpan
    for index in 0..<count { span[offset &+ index] = bytes[index] }
  }

  /// Writes the rest of a long row; returns the number of its first page.
  private func addChain(_ bytes: Span<UInt8>, from start: Int, to end: Int) throws(SalvageError) -> UInt32 {
    let first = pages.upcoming
    var page = first
    var before: UInt32 = 0
    var offset = start
    while offset < end {
      let count = min(pageSize &- 4, end &- offset)
      let next = offset &+ count < end ? pages.following(page) : 0
      chunk.set(next, at: 0)
      Self.copy(bytes, from: offset, count: count, into: &chunk, at: 4)
      for index in (4 &+ count)..<max(4 &+ count, pageSize) { chunk[index] = 0 }
      _ = try pages.add(chunk)
      if page != first { pages.setPointer(page, .overflowNext, parent: before) }
      before = page
      page = next
      offset &+= count
    }
    chains.append(first)
    return first
  }

  private func sealLeaf() {
    leaf[0] = PageKind.tableLeaf.rawValue
    leaf.set(short: 0, at: 1)
    leaf.set(short: cellCount, at: 3)
    leaf.set(short: contentStart, at: 5)
    leaf[7] = 0
    // What the page held before is not carried along.
    for index in (8 + 2 * cellCount)..<max(8 + 2 * cellCount, contentStart) { leaf[index] = 0 }
  }

  private func endLeaf() throws(SalvageError) {
    sealLeaf()
    let number = try pages.add(leaf)
    for page in chains { pages.setPointer(page, .overflowFirst, parent: number) }
    chains.removeAll(keepingCapacity: true)
    leaves.append(number)
    lastKeys.append(last ?? 0)
    cellCount = 0
    contentStart = pageSize
  }

  // MARK: The pages above

  /// Writes what is left, and the pages above the leaves; the tree is whole then.
  func finish() throws(SalvageError) {
    guard last != nil else { return }
    if leaves.isEmpty {
      sealLeaf()
      for page in chains { pages.setPointer(page, .overflowFirst, parent: root) }
      try pages.replace(root, with: leaf)
      return
    }
    if cellCount > 0 { try endLeaf() }
    var level = leaves
    var keys = lastKeys
    while true {
      let groups = Self.groups(keys, pageSize: pageSize)
      var numbers: [UInt32] = []
      var highest: [Int64] = []
      for group in groups {
        let page = interior(level[group], keys[group])
        let number: UInt32
        if groups.count == 1 {
          number = root
          try pages.replace(root, with: page)
        } else {
          number = try pages.add(page)
        }
        for child in level[group] { pages.setPointer(child, .child, parent: number) }
        numbers.append(number)
        highest.append(keys[group.upperBound - 1])
      }
      if groups.count == 1 { return }
      level = numbers
      keys = highest
    }
  }

  /// Divides children among pages; no page has fewer than two.
  private static func groups(_ keys: [Int64], pageSize: Int) -> [Range<Int>] {
    var groups: [Range<Int>] = []
    var start = 0
    var used = 12
    for index in keys.indices {
      // The last child of a page has no cell.
      if index > start {
        let size = 6 + Varint.length(of: keys[index - 1])
        if used + size > pageSize {
          groups.append(start..<index)
          start = index
          used = 12
        } else {
          used += size
        }
      }
    }
    groups.append(start..<keys.count)
    if let only = groups.last, only.count == 1, groups.count > 1 {
      let before = groups[groups.count - 2]
      groups[groups.count - 2] = before.lowerBound..<(before.upperBound - 1)
      groups[groups.count - 1] = (only.lowerBound - 1)..<only.upperBound
    }
    return groups
  }

  private func interior(_ children: ArraySlice<UInt32>, _ keys: ArraySlice<Int64>) -> [UInt8] {
    var page = [UInt8](repeating: 0, count: pageSize)
    var content = pageSize
    var count = 0
    for (child, key) in zip(children.dropLast(), keys) {
      content -= 4 + Varint.length(of: key)
      page.set(child, at: content)
      _ = page.set(varint: key, at: content + 4)
      page.set(short: content, at: 12 + 2 * count)
      count += 1
    }
    page[0] = PageKind.tableInterior.rawValue
    page.set(short: count, at: 3)
    page.set(short: content, at: 5)
    page.set(children.last ?? 0, at: 8)
    return page
  }

  // MARK: Looking rows up

  /// The record of a row; nil where there is none with that rowid.
  func record(_ rowid: Int64) throws(SalvageError) -> [UInt8]? {
    guard let last, rowid <= last else { return nil }
    if cellCount > 0, rowid >= firstKey { return try record(rowid, leaf, count: cellCount) }
    var low = 0
    var high = lastKeys.count
    while low < high {
      let middle = (low + high) / 2
      if lastKeys[middle] < rowid { low = middle + 1 } else { high = middle }
    }
    guard low < leaves.count else { return nil }
    if lookup.isEmpty { lookup = [UInt8](repeating: 0, count: pageSize) }
    try pages.read(leaves[low], into: &lookup)
    return try record(rowid, lookup, count: lookup.span.uint16(at: 3) ?? 0)
  }

  private func record(_ rowid: Int64, _ page: [UInt8], count: Int) throws(SalvageError) -> [UInt8]? {
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
