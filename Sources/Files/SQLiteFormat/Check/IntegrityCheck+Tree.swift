extension IntegrityCheck {
  private struct Level {
    let page: BTreePage
    var next = 0
  }

  /// Checks one b-tree from its root to its leaves and along its overflow chains.
  mutating func checkTree(root: UInt32, name: String, isTable: Bool) throws(FormatError) {
    var tree = IntegrityReport.Tree(root: root, name: name, isTable: isTable)
    grouped = isTable ? columns[root].map(GroupedCount.init) : nil
    var stack: [Level] = []
    var lastRowid: Int64?
    if let page = try enter(root, of: &tree, from: nil) { stack.append(Level(page: page)) }
    while let top = stack.last {
      let page = top.page
      if page.kind.isLeaf {
        stack.removeLast()
        if tree.depth == 0 { tree.depth = stack.count + 1 }
        if tree.depth != stack.count + 1 { findings.note(.treeUneven, page: page.number, root: root) }
        if isTable, page.cellCount > 0, page.number > 1 { leaves.add(page, ofTree: root) }
        try checkCells(of: page, tree: &tree, lastRowid: &lastRowid)
        continue
      }
      let index = top.next
      if index == 0, !isTable { try checkCells(of: page, tree: &tree, lastRowid: &lastRowid) }
      if index > 0, isTable, let key = page.cell(at: index - 1)?.rowid {
        // All rowids of the child before this key are at most the key; those behind it are greater.
        if let last = lastRowid, last > key {
          findings.note(.rowidOrder, page: page.number, cell: index - 1, root: root)
        }
        lastRowid = max(lastRowid ?? key, key)
      }
      guard index <= page.cellCount else {
        stack.removeLast()
        continue
      }
      stack[stack.count - 1].next = index + 1
      guard let child = page.child(at: index) else {
        // The cell pointer itself is reported with the page.
        continue
      }
      guard stack.count < BTreeWalk.maximumDepth else {
        findings.note(.treeTooDeep, page: child, root: root)
        continue
      }
      if let next = try enter(child, of: &tree, from: page) { stack.append(Level(page: next)) }
    }
    if grouped?.hasTooMany == true { findings.note(.tooManyGroups, root: root) }
    tree.counts = grouped?.counts
    trees.append(tree)
  }

  /// Takes a page of a tree, where it is one and belongs to nothing else.
  private mutating func enter(
    _ number: UInt32, of tree: inout IntegrityReport.Tree, from parent: BTreePage?
  ) throws(FormatError) -> BTreePage? {
    guard claim(number, as: .leaf, root: tree.root, from: parent?.number) else { return nil }
    try advance()
    if let parent { try checkPointer(to: number, PointerMapEntry(.child, parent: parent.number)) }
    guard let content = try database.page(number) else {
      findings.note(.pageMissing, page: number, root: tree.root)
      ownership.mark(number, as: .damaged)
      return nil
    }
    guard let page = BTreePage(content.bytes, number: number, geometry: database.geometry),
      page.kind.isTable == tree.isTable
    else {
      findings.note(.pageKindWrong, page: number, root: tree.root, found: Int64(content.bytes.first ?? 0))
      ownership.mark(number, as: .damaged)
      return nil
    }
    tree.pages += 1
    if !page.kind.isLeaf { ownership.mark(number, as: .interior) }
    let problems = scratch.check(page)
    for problem in problems {
      findings.note(problem.kind, page: number, cell: problem.cell, root: tree.root)
    }
    if problems.contains(where: { $0.kind.severity == .damage }) {
      ownership.mark(number, as: .damaged)
    } else if let visitor {
      try visitor.visit(page, scratch.cells, ofTree: tree.root)
    }
    return page
  }

  private mutating func checkCells(
    of page: BTreePage, tree: inout IntegrityReport.Tree, lastRowid: inout Int64?
  ) throws(FormatError) {
    // The page has just been checked, and its cells are at hand where nothing is wrong with it.
    let isSound = scratch.cells.count == page.cellCount && ownership.use(of: page.number) != .damaged
    var budget = PageBudget()
    for index in 0..<page.cellCount {
      if isSound {
        try check(scratch.cells[index], index, of: page, tree: &tree, lastRowid: &lastRowid)
      } else if let cell = page.cell(at: index), budget.take(cell.length, of: page) {
        // What cannot be read has been reported with the page.
        try check(cell, index, of: page, tree: &tree, lastRowid: &lastRowid)
      }
    }
  }

  @inline(__always)
  private mutating func check(
    _ cell: Cell, _ index: Int, of page: BTreePage, tree: inout IntegrityReport.Tree, lastRowid: inout Int64?
  ) throws(FormatError) {
    tree.rows += 1
    if tree.isTable {
      if let last = lastRowid, cell.rowid <= last {
        findings.note(.rowidOrder, page: page.number, cell: index, root: tree.root)
      }
      lastRowid = cell.rowid
      grouped?.add(cell, on: page)
    }
    if !RecordCheck.isWellFormed(page.bytes.span, cell: cell) {
      findings.note(.recordMalformed, page: page.number, cell: index, root: tree.root)
    }
    if let first = cell.overflowPage {
      try checkChain(from: first, of: cell, on: page, tree: &tree)
    }
  }

  private mutating func checkChain(
    from first: UInt32, of cell: Cell, on page: BTreePage, tree: inout IntegrityReport.Tree
  ) throws(FormatError) {
    let expected = database.geometry.overflowPageCount(
      of: cell.payloadLength, onTableLeaf: page.kind == .tableLeaf)
    var number = first
    var from = page.number
    var count = 0
    while number != 0 {
      guard count < expected else {
        findings.note(.overflowTooLong, page: from, root: tree.root, expected: Int64(expected))
        return
      }
      guard claim(number, as: .overflow, root: tree.root, from: from) else { return }
      try advance()
      let kind: PointerMapEntry.Kind = count == 0 ? .overflowFirst : .overflowNext
      try checkPointer(to: number, PointerMapEntry(kind, parent: from))
      guard let content = try database.page(number), let next = content.bytes.span.uint32(at: 0) else {
        findings.note(.pageMissing, page: number, root: tree.root)
        return
      }
      count += 1
      tree.overflowPages += 1
      from = number
      number = next
    }
    if count < expected {
      findings.note(
        .overflowTooShort, page: page.number, root: tree.root, expected: Int64(expected), found: Int64(count))
    }
  }
}
