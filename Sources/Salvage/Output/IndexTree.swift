internal import SQLiteFormat

/// Builds an index b-tree from ascending entries too short for overflow pages.
///
/// Memory: one entry per leaf.
struct IndexTree {
  private let pages: NewPages
  private let root: UInt32
  private let pageSize: Int

  private var leaf: [UInt8]
  private var cellCount = 0
  private var contentStart: Int

  /// The written leaves, and the concatenated entries between them.
  private var leaves: [UInt32] = []
  private var dividers: [UInt8] = []
  private var dividerStarts: [Int] = []

  /// Starts with an empty root page made by SQLite.
  init(_ pages: NewPages, root: UInt32) {
    self.pages = pages
    self.root = root
    pageSize = pages.pageSize
    leaf = [UInt8](repeating: 0, count: pageSize)
    contentStart = pageSize
  }

  /// Adds an entry larger than all before.
  ///
  /// - Parameter count: the record's bytes, at most 127.
  mutating func add(_ record: [UInt8], count: Int) throws {
    let size = max(4, 1 + count)
    if 8 + 2 * (cellCount + 1) + size > contentStart { try endLeaf() }
    contentStart -= size
    leaf[contentStart] = UInt8(truncatingIfNeeded: count)
    leaf.copy(record.span, from: 0, count: count, at: contentStart + 1)
    leaf.set(short: contentStart, at: 8 + 2 * cellCount)
    cellCount += 1
  }

  /// Writes a full leaf; its last entry becomes the divider.
  private mutating func endLeaf() throws {
    let count = Int(leaf[contentStart])
    dividerStarts.append(dividers.count)
    dividers.append(contentsOf: leaf[contentStart..<(contentStart + 1 + count)])
    contentStart += max(4, 1 + count)
    cellCount -= 1
    sealLeaf()
    leaves.append(try pages.add(leaf))
    cellCount = 0
    contentStart = pageSize
  }

  private mutating func sealLeaf() {
    leaf[0] = PageKind.indexLeaf.rawValue
    leaf.set(short: 0, at: 1)
    leaf.set(short: cellCount, at: 3)
    leaf.set(short: contentStart, at: 5)
    leaf[7] = 0
    for index in (8 + 2 * cellCount)..<contentStart { leaf[index] = 0 }
  }

  mutating func finish() throws {
    sealLeaf()
    if leaves.isEmpty {
      if cellCount > 0 { try pages.replace(root, with: leaf) }
      return
    }
    leaves.append(try pages.add(leaf))
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
