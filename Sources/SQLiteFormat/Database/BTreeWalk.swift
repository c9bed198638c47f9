internal import Platform

/// A walk over a b-tree's cells in key order that notes and skips damage.
///
/// It enters each page once, no deeper than ``maximumDepth``, so cycles are impossible.
struct BTreeWalk {
  /// Real trees have fewer than ten levels.
  static let maximumDepth = 40

  struct Level {
    let page: BTreePage
    /// The next cell, the next child on interior table pages, or both in turn on interior index pages.
    var next = 0
  }

  struct Place {
    let page: BTreePage
    let index: Int
  }

  let database: Database
  let root: UInt32
  let isTable: Bool
  var findings = Findings()
  private(set) var visited = PageSet()
  private var stack: [Level] = []

  init(database: Database, root: UInt32, isTable: Bool) throws(FileError) {
    self.database = database
    self.root = root
    self.isTable = isTable
    try descend(to: root, from: nil)
  }

  /// Creates an empty walk for gathering payloads.
  init(gatheringFrom database: Database, root: UInt32) {
    self.database = database
    self.root = root
    isTable = true
  }

  /// Claims an overflow page that exists and is unused.
  mutating func claim(_ page: UInt32, from parent: UInt32) -> Bool {
    guard page >= 2, page <= database.highestPage else {
      findings.note(.pageOutOfRange, page: parent, root: root, found: Int64(page))
      return false
    }
    guard visited.insert(page) else {
      findings.note(.pageUsedTwice, page: page, root: root)
      return false
    }
    return true
  }

  /// Returns the next table leaf or index page.
  mutating func nextPage() throws(FileError) -> BTreePage? {
    while var top = stack.popLast() {
      if top.page.kind.isLeaf { return top.page }
      let index = top.next
      top.next += 1
      let page = top.page
      let isFirstVisit = index == 0
      if index <= page.cellCount { stack.append(top) }
      if index <= page.cellCount { try descend(toChild: index, of: page) }
      if isFirstVisit && !isTable { return page }
    }
    return nil
  }

  mutating func nextCell() throws(FileError) -> Place? {
    while let top = stack.last {
      let page = top.page
      let next = top.next
      stack[stack.count - 1].next = next + 1
      if page.kind.isLeaf {
        if next < page.cellCount { return Place(page: page, index: next) }
        stack.removeLast()
      } else if isTable {
        if next <= page.cellCount { try descend(toChild: next, of: page) } else { stack.removeLast() }
      } else if next <= 2 * page.cellCount {
        if next & 1 == 1 { return Place(page: page, index: next / 2) }
        try descend(toChild: next / 2, of: page)
      } else {
        stack.removeLast()
      }
    }
    return nil
  }

  /// Returns the next cells of one page: a whole leaf, or one of an interior index page.
  mutating func nextRun() throws(FileError) -> (page: BTreePage, cells: Range<Int>)? {
    while let place = try nextCell() {
      guard place.page.kind.isLeaf else { return (place.page, place.index..<(place.index + 1)) }
      stack.removeLast()
      return (place.page, place.index..<place.page.cellCount)
    }
    return nil
  }

  private mutating func descend(toChild index: Int, of page: BTreePage) throws(FileError) {
    if let child = page.child(at: index) {
      try descend(to: child, from: page)
    } else {
      findings.note(.cellPointerInvalid, page: page.number, cell: index, root: root)
    }
  }

  private mutating func descend(to number: UInt32, from parent: BTreePage?) throws(FileError) {
    guard number >= 1, number <= database.highestPage, parent == nil || number > 1 else {
      findings.note(.pageOutOfRange, page: parent?.number, root: root, found: Int64(number))
      return
    }
    guard stack.count < BTreeWalk.maximumDepth else {
      findings.note(.treeTooDeep, page: number, root: root)
      return
    }
    guard visited.insert(number) else {
      findings.note(.pageUsedTwice, page: number, root: root)
      return
    }
    guard let content = try database.page(number) else {
      findings.note(.pageMissing, page: number, root: root)
      return
    }
    guard let page = BTreePage(content.bytes, number: number, geometry: database.geometry), page.kind.isTable == isTable
    else {
      findings.note(.pageKindWrong, page: number, root: root, found: Int64(content.bytes.first ?? 0))
      return
    }
    if !page.isHeaderPlausible { findings.note(.pageHeaderInvalid, page: number, root: root) }
    stack.append(Level(page: page))
  }
}

extension BTreeWalk {
  /// Returns a cell's payload, cut off at a broken chain or `limit` bytes.
  mutating func payload(of cell: Cell, on page: BTreePage, limit: Int) throws(FileError) -> ArraySlice<UInt8> {
    let local = page.bytes[cell.localPayload]
    guard var next = cell.overflowPage, limit > local.count else { return local }
    let wanted = min(limit, cell.payloadLength)
    let perPage = database.usableSize - 4
    guard Int64(cell.payloadLength) <= Int64(database.highestPage) * Int64(database.pageSize) else {
      findings.note(.payloadTooLong, page: page.number, root: root, found: Int64(cell.payloadLength))
      return local
    }
    var bytes = Array(local)
    var from = page.number
    while bytes.count < wanted {
      guard next != 0 else {
        findings.note(.overflowTooShort, page: from, root: root, expected: Int64(wanted), found: Int64(bytes.count))
        break
      }
      guard claim(next, from: from) else { break }
      guard let overflow = try database.page(next), let following = overflow.bytes.span.uint32(at: 0) else {
        findings.note(.pageMissing, page: next, root: root)
        break
      }
      let count = min(perPage, wanted - bytes.count, max(0, overflow.presentCount - 4))
      bytes.append(contentsOf: overflow.bytes[4..<(4 + count)])
      if count < min(perPage, wanted - (bytes.count - count)) { break }
      from = next
      next = following
    }
    return bytes[...]
  }
}
