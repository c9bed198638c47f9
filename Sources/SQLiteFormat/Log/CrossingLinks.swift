import Platform

/// The tree links between the database file and its log or journal.
///
/// Within one database the keys below a link lie within its bounds; across databases they do not.
package struct CrossingLinks: Sendable, Hashable {
  package private(set) var fitting = 0

  /// The links to other keys or kinds of page.
  package private(set) var contradicting = 0

  package init() {}

  /// Whether file and overlay have different trees.
  package var areContradicted: Bool { contradicting > fitting }

  /// Adds a link to a table page.
  ///
  /// - Parameters:
  ///   - keys: the page's first and last rowid.
  ///   - low: the exclusive bound; nil for the first child.
  ///   - high: the inclusive bound; nil for the last child.
  package mutating func add(_ keys: (first: Int64, last: Int64), above low: Int64?, upTo high: Int64?) {
    let isWithin = low.map { keys.first > $0 } ?? true && high.map { keys.last <= $0 } ?? true
    if isWithin { fitting += 1 } else { contradicting += 1 }
  }

  /// Adds a link to an index page, which is impossible in a table.
  package mutating func addIndexPage() { contradicting += 1 }

  /// Samples the interior pages of tables.
  init(_ database: Database, _ schema: Schema) throws(FormatError) {
    guard database.main.count > 0, database.isLogApplied || database.isJournalApplied else { return }
    var visited = PageSet()
    var pending: [(page: UInt32, depth: Int)] = schema.entries.reversed().compactMap { entry in
      guard entry.kind == .table, entry.rootPage > 0, entry.tableDefinition?.isWithoutRowid != true else { return nil }
      return (entry.rootPage, 0)
    }
    var looked = 0
    while let (number, depth) = pending.popLast(), looked < Self.innerPageLimit {
      guard number <= database.highestPage, visited.insert(number) else { continue }
      guard let page = try database.bTreePage(number), page.kind == .tableInterior, page.isHeaderPlausible,
        depth < BTreeWalk.maximumDepth
      else { continue }
      looked += 1
      guard let node = Node(page, last: database.highestPage) else { continue }
      try add(node, of: page, in: database)
      // All children of an interior page are of one kind.
      var hasInner = false
      for child in node.children.prefix(Self.kindSample) where !hasInner {
        hasInner = try database.bTreePage(child)?.kind == .tableInterior
      }
      if hasInner { pending += node.children.reversed().map { ($0, depth + 1) } }
    }
  }

  private static let innerPageLimit = 2048

  private static let placeLimit = 32

  private static let kindSample = 2

  private mutating func add(_ node: Node, of page: BTreePage, in database: Database) throws(FormatError) {
    let isAbove = database.isLaidOver(page.number)
    let places = node.children.indices.filter { database.isLaidOver(node.children[$0]) != isAbove }
    for index in stride(from: 0, to: places.count, by: max(1, places.count / Self.placeLimit)) {
      let place = places[index]
      guard let child = try database.bTreePage(node.children[place]), child.isHeaderPlausible else { continue }
      guard child.kind.isTable else {
        addIndexPage()
        continue
      }
      guard child.cellCount > 0, let first = child.cell(at: 0), let last = child.cell(at: child.cellCount - 1) else {
        continue
      }
      add(
        (first.rowid, last.rowid), above: place == 0 ? nil : node.keys[place - 1],
        upTo: place < node.keys.count ? node.keys[place] : nil)
    }
  }
}

extension CrossingLinks {
  private struct Node {
    var children: [UInt32] = []
    var keys: [Int64] = []

    /// Returns nil for an unreadable or out-of-range child.
    init?(_ page: BTreePage, last: UInt32) {
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index), let child = cell.leftChild, child > 1, child <= last,
          keys.last.map({ $0 < cell.rowid }) ?? true
        else { return nil }
        children.append(child)
        keys.append(cell.rowid)
      }
      guard page.rightMostChild > 1, page.rightMostChild <= last else { return nil }
      children.append(page.rightMostChild)
    }
  }
}

extension Database {
  /// Whether the log or journal provides the page.
  func isLaidOver(_ page: UInt32) -> Bool {
    isLogApplied && writeAheadLog?.frames[page] != nil || isJournalApplied && rollbackJournal?.pageOffsets[page] != nil
  }
}
