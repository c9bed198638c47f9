extension Database {
  /// The number of rows of a table, or of entries of an index, from page headers alone.
  ///
  /// Leaves of tables are not read beyond their first bytes. Damage is noted, and what lies behind it not counted.
  public func countRows(root: UInt32) throws(FormatError) -> (count: Int, findings: Findings) {
    var counting = RowCounting(self, root: root)
    try counting.run()
    return (counting.count, counting.findings)
  }

  /// The number of rows of a table for each integer in one column, such as `Z_ENT`; column 0 is the record's first.
  ///
  /// Rows whose column holds anything else, or lies on an overflow page, are counted under nil. At most 65,536
  /// different integers are told apart; rows of further ones are counted under nil too, with a finding.
  public func countRows(
    root: UInt32, byIntegerIn column: Int
  ) throws(FormatError) -> (counts: [Int64?: Int], findings: Findings) {
    var walk = try BTreeWalk(database: self, root: root, isTable: true)
    var grouped = GroupedCount(column: column)
    while let page = try walk.nextPage() {
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index) else {
          walk.findings.note(.cellInvalid, page: page.number, cell: index, root: root)
          continue
        }
        grouped.add(cell, on: page)
      }
    }
    if grouped.hasTooMany { walk.findings.note(.tooManyGroups, root: root) }
    return (grouped.counts, walk.findings)
  }
}

/// Counts the cells of a b-tree by reading the first bytes of its pages, and inner pages whole.
private struct RowCounting {
  let database: Database
  let root: UInt32
  var count = 0
  var findings = Findings()
  private var visited = PageSet()
  private var prefix: [UInt8] = []
  /// The pages still to look at, the next one last, with their depth.
  private var pending: [(page: UInt32, depth: Int)]

  init(_ database: Database, root: UInt32) {
    self.database = database
    self.root = root
    pending = [(root, 0)]
  }

  mutating func run() throws(FormatError) {
    while let (number, depth) = pending.popLast() {
      guard number >= 1, number <= database.highestPage, number > 1 || depth == 0 else {
        findings.note(.pageOutOfRange, root: root, found: Int64(number))
        continue
      }
      guard visited.insert(number) else {
        findings.note(.pageUsedTwice, page: number, root: root)
        continue
      }
      let headerOffset = number == 1 ? DatabaseHeader.length : 0
      try database.pagePrefix(number, length: headerOffset + 8, into: &prefix)
      guard prefix.count == headerOffset + 8 else {
        findings.note(.pageMissing, page: number, root: root)
        continue
      }
      guard let kind = PageKind(rawValue: prefix[headerOffset]) else {
        findings.note(.pageKindWrong, page: number, root: root, found: Int64(prefix[headerOffset]))
        continue
      }
      let stored = prefix.span.uint16(at: headerOffset + 3) ?? 0
      let isPossible = stored <= (database.usableSize - 8) / 6
      if !isPossible { findings.note(.pageHeaderInvalid, page: number, root: root) }
      if kind.isLeaf || !kind.isTable { count += isPossible ? stored : 0 }
      if !kind.isLeaf { try enqueueChildren(of: number, depth: depth) }
    }
  }

  private mutating func enqueueChildren(of number: UInt32, depth: Int) throws(FormatError) {
    guard depth < BTreeWalk.maximumDepth else {
      findings.note(.treeTooDeep, page: number, root: root)
      return
    }
    guard let page = try database.bTreePage(number) else { return }
    pending.append((page.rightMostChild, depth + 1))
    for index in stride(from: page.cellCount - 1, through: 0, by: -1) {
      if let child = page.child(at: index) {
        pending.append((child, depth + 1))
      } else {
        findings.note(.cellPointerInvalid, page: number, cell: index, root: root)
      }
    }
  }
}
