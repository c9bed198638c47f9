internal import SQLiteFormat

/// Builds an index b-tree from ascending entries too short for overflow pages.
///
/// Memory: one entry per leaf.
struct IndexTree {
  private let pages: NewPages
  private let root: UInt32
  private let pageSize: Int

  private var leaf: NewLeaf

  /// The written leaves, and the concatenated entries between them.
  private var leaves: [UInt32] = []
  private var dividers: [UInt8] = []
  private var dividerStarts: [Int] = []

  /// Starts with an empty root page made by SQLite.
  init(_ pages: NewPages, root: UInt32) {
    self.pages = pages
    self.root = root
    pageSize = pages.pageSize
    leaf = NewLeaf(pageSize: pageSize)
  }

  /// Adds an entry larger than all before.
  ///
  /// - Parameter count: the record's bytes, at most 127.
  mutating func add(_ record: [UInt8], count: Int) throws {
    let size = max(4, 1 + count)
    if 8 + 2 * (leaf.cellCount + 1) + size > leaf.contentStart { try endLeaf() }
    leaf.contentStart -= size
    leaf.bytes[leaf.contentStart] = UInt8(truncatingIfNeeded: count)
    leaf.bytes.copy(record.span, from: 0, count: count, at: leaf.contentStart + 1)
    leaf.bytes.set(short: leaf.contentStart, at: 8 + 2 * leaf.cellCount)
    leaf.cellCount += 1
  }

  /// Writes a full leaf; its last entry becomes the divider.
  private mutating func endLeaf() throws {
    let start = leaf.contentStart
    let count = Int(leaf.bytes[start])
    dividerStarts.append(dividers.count)
    dividers.append(contentsOf: leaf.bytes[start..<(start + 1 + count)])
    leaf.contentStart += max(4, 1 + count)
    leaf.cellCount -= 1
    leaf.seal(.indexLeaf)
    leaves.append(try pages.add(leaf.bytes))
    leaf.clear()
  }

  mutating func writeInteriorPages() throws {
    leaf.seal(.indexLeaf)
    if leaves.isEmpty {
      if leaf.cellCount > 0 { try pages.replace(root, with: leaf.bytes) }
      return
    }
    leaves.append(try pages.add(leaf.bytes))
    var children = leaves
    var between = Array(dividerStarts.indices)
    while true {
      let groups = groups(children.count, between)
      var numbers: [UInt32] = []
      var above: [Int] = []
      for group in groups {
        let page = interior(children[group], between[group.lowerBound..<(group.upperBound - 1)])
        let number: UInt32
        if groups.count == 1 {
          number = root
          try pages.replace(root, with: page)
        } else {
          number = try pages.add(page)
        }
        for child in children[group] { try pages.setPointer(child, .child, parent: number) }
        numbers.append(number)
        if group.upperBound < children.count { above.append(between[group.upperBound - 1]) }
      }
      if groups.count == 1 { return }
      children = numbers
      between = above
    }
  }

  /// Divides children among pages, at least two each.
  private func groups(_ count: Int, _ between: [Int]) -> [Range<Int>] {
    var groups: [Range<Int>] = []
    var start = 0
    var used = 12
    for index in 1..<count {
      let size = 2 + 4 + 1 + Int(dividers[dividerStarts[between[index - 1]]])
      if index > start, used + size > pageSize {
        groups.append(start..<index)
        start = index
        used = 12
      } else if index > start {
        used += size
      }
    }
    groups.append(start..<count)
    if let only = groups.last, only.count == 1, groups.count > 1 {
      let before = groups[groups.count - 2]
      groups[groups.count - 2] = before.lowerBound..<(before.upperBound - 1)
      groups[groups.count - 1] = (only.lowerBound - 1)..<only.upperBound
    }
    return groups
  }

  private func interior(_ children: ArraySlice<UInt32>, _ entries: ArraySlice<Int>) -> [UInt8] {
    var page = [UInt8](repeating: 0, count: pageSize)
    var content = pageSize
    var count = 0
    for (child, entry) in zip(children, entries) {
      let start = dividerStarts[entry]
      let length = 1 + Int(dividers[start])
      content -= 4 + length
      page.set(child, at: content)
      for index in 0..<length { page[content + 4 + index] = dividers[start + index] }
      page.set(short: content, at: 12 + 2 * count)
      count += 1
    }
    page[0] = PageKind.indexInterior.rawValue
    page.set(short: count, at: 3)
    page.set(short: content, at: 5)
    page.set(children.last ?? 0, at: 8)
    return page
  }
}

/// Sorts a numeric index in memory or in runs on disk.
///
/// An entry has one or two keys and the rowid, as unsigned numbers in SQLite's order.
struct EntrySorter {
  enum Keys {
    case integers

    case numbers
  }

  private let space: SortingSpace
  private let keys: Keys

  let width: Int

  private let number: Int

  /// Whether all entries were accepted; otherwise SQLite builds the index.
  private(set) var isUsable = true

  init(_ space: SortingSpace, keys: Keys, width: Int) {
    self.space = space
    self.keys = keys
    self.width = width
    number = space.join(width: width)
  }

  private static let sign: UInt64 = 1 << 63

  private static func number(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ sign }

  /// The sort key of a value; nil if unsupported.
  @inline(__always)
  func key(_ code: Int64, _ bytes: Span<UInt8>, at offset: Int, _ width: Int) -> UInt64? {
    let integer: Int64
    switch code {
    case 0: return 0
    case 8: integer = 0
    case 9: integer = 1
    case 1...6:
      guard let value = bytes.signedInteger(at: offset, length: width) else { return nil }
      integer = value
    case 7:
      guard case .numbers = keys, let bits = bytes.signedInteger(at: offset, length: 8) else { return nil }
      return Self.number(Double(bitPattern: UInt64(bitPattern: bits)))
    default: return nil
    }
    switch keys {
    case .integers: return integer == .min ? nil : Self.number(integer)
    case .numbers:
      guard abs(integer >> 53) == 0 || integer >> 53 == -1 else { return nil }
      return Self.number(Double(integer))
    }
  }

  private static func number(_ value: Double) -> UInt64? {
    let bits = value.bitPattern
    guard !value.isNaN, bits != sign else { return nil }
    return bits & sign == 0 ? bits | sign : ~bits
  }

  /// Adds an entry; a nil key makes the sorter unusable.
  @inline(__always)
  mutating func add(_ one: UInt64?, _ two: UInt64?, rowid: Int64) throws {
    guard isUsable else { return }
    guard let one, width == 1 || (one != 0 && two ?? 0 != 0) else {
      isUsable = false
      return
    }
    let row = Self.number(rowid)
    try space.add(
      SortingSpace.Entry(one: one, two: width == 1 ? row : two ?? 0, three: width == 1 ? 0 : row, sorter: number))
  }

  // MARK: Writing

  /// Writes the index; returns false, without writing, if a unique key repeats.
  func write(to tree: IndexTree, isUnique: Bool) throws -> Bool {
    if isUnique, try hasTwins() { return false }
    var tree = tree
    var record = [UInt8](repeating: 0, count: 64)
    var entries = try space.entries(of: number)
    while let entry = try entries.next() {
      let count = encode(entry.one, entry.two, entry.three, &record)
      try tree.add(record, count: count)
    }
    try tree.writeInteriorPages()
    return true
  }

  private func hasTwins() throws -> Bool {
    var entries = try space.entries(of: number)
    guard var before = try entries.next() else { return false }
    while let entry = try entries.next() {
      if entry.one == before.one, width == 1 || entry.two == before.two { return true }
      before = entry
    }
    return false
  }

  // MARK: Records

  private func encode(_ one: UInt64, _ two: UInt64, _ three: UInt64, _ record: inout [UInt8]) -> Int {
    let headerLength = 2 + width
    record[0] = UInt8(headerLength)
    var body = headerLength
    append(one, isKey: true, at: 1, &body, &record)
    append(two, isKey: width == 2, at: 2, &body, &record)
    if width == 2 { append(three, isKey: false, at: 3, &body, &record) }
    return body
  }

  private func append(_ number: UInt64, isKey: Bool, at header: Int, _ body: inout Int, _ record: inout [UInt8]) {
    if isKey, number == 0 {
      record[header] = 0
      return
    }
    var integer = Int64(bitPattern: number ^ Self.sign)
    if isKey, case .numbers = keys {
      let bits = number & Self.sign != 0 ? number ^ Self.sign : ~number
      let value = Double(bitPattern: bits)
      if let exact = Int64(exactly: value), abs(exact) < 1 << 47 {
        integer = exact
      } else {
        record[header] = 7
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
          record[body] = UInt8(truncatingIfNeeded: bits >> shift)
          body += 1
        }
        return
      }
    }
    let width: Int
    switch integer {
    case 0:
      record[header] = 8
      return
    case 1:
      record[header] = 9
      return
    case -128...127: (record[header], width) = (1, 1)
    case -32768...32767: (record[header], width) = (2, 2)
    case -8_388_608...8_388_607: (record[header], width) = (3, 3)
    case -2_147_483_648...2_147_483_647: (record[header], width) = (4, 4)
    case -140_737_488_355_328...140_737_488_355_327: (record[header], width) = (5, 6)
    default: (record[header], width) = (6, 8)
    }
    for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
      record[body] = UInt8(truncatingIfNeeded: integer >> Int64(shift))
      body += 1
    }
  }
}
