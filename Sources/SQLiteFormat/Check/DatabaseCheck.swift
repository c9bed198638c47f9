public import Platform

/// A full database check: every page has one use, and every cell fits.
struct DatabaseCheck {
  let database: Database
  let progress: (_ done: Int, _ total: Int) -> Bool

  /// The columns to count rows by, under root pages.
  let columns: [UInt32: Int]

  let visitor: (any PageVisitor)?

  var findings: Findings
  var ownership: PageOwnership
  var trees: [IntegrityReport.Tree] = []
  var pagesDone = 0
  var scratch = PageCheck()

  var leaves = LeafCopies()

  /// The rules of tables with rowids, under root pages.
  private var rules: [UInt32: FieldRules] = [:]

  /// Leaves without a row that fits their table.
  private var strangers: [LeafCopy.Place] = []

  /// Checks pages beforehand in larger databases.
  private let lookAhead: PageLookAhead?

  /// The interior page with children handed over, and the place of the first that was not.
  private var handed: (page: UInt32, end: Int) = (0, 0)

  /// The grouped count; nil if only the total matters.
  var grouped: GroupedCount?

  private let isAutoVacuum: Bool

  init(
    _ database: Database, findingLimit: Int, columns: [UInt32: Int], visitor: (any PageVisitor)?,
    progress: @escaping (_ done: Int, _ total: Int) -> Bool
  ) {
    self.database = database
    self.columns = columns
    self.visitor = visitor
    self.progress = progress
    findings = Findings(limit: findingLimit)
    findings.append(contentsOf: database.findings)
    ownership = PageOwnership(pageCount: database.highestPage)
    isAutoVacuum = database.header?.isAutoVacuum ?? false
    lookAhead = PageLookAhead(database)
  }

  mutating func run() throws(FileError) -> IntegrityReport {
    defer { lookAhead?.stop() }
    claimReservedPages()
    let schema = try database.schema()
    findings.append(contentsOf: schema.findings)
    let freelist = try checkFreelist()
    try checkTree(root: 1, name: "sqlite_schema", isTable: true)
    for entry in schema.entries where entry.rootPage != 0 && (entry.kind == .table || entry.kind == .index) {
      // The root page decides; a mismatch is in the statement.
      let table = entry.tableDefinition
      let isTable = entry.kind == .table && table?.isWithoutRowid != true
      if isTable { rules[entry.rootPage] = table.map { FieldRules($0) } }
      try checkPointer(to: entry.rootPage, PointerMapEntry(.root, parent: 0))
      try checkTree(root: entry.rootPage, name: entry.name, isTable: isTable)
    }
    checkCounts(schema)
    checkLargestRoot(schema)
    try checkUnused()
    try checkStrangers()
    let copies = try checkCopies()
    return IntegrityReport(
      findings: findings, ownership: ownership, trees: trees, freelistCount: freelist, schema: schema, copies: copies)
  }

  mutating func advance() throws(FileError) {
    pagesDone += 1
    guard pagesDone & 0x3f == 0 else { return }
    let total = Int(database.highestPage)
    guard progress(min(pagesDone, total), total) else { throw FileError.cancelled("check the database") }
  }

  /// Claims a page; returns false if it is out of range or used.
  mutating func claim(_ page: UInt32, as use: PageOwnership.Use, root: UInt32, from parent: UInt32?) -> Bool {
    guard page >= 1, page <= database.pageCount else {
      findings.note(.pageOutOfRange, page: parent, root: root == 0 ? nil : root, found: Int64(page))
      return false
    }
    guard page <= database.highestPage else {
      findings.note(.pageMissing, page: page, root: root == 0 ? nil : root)
      return false
    }
    guard ownership.claim(page, as: use, root: root) else {
      let earlier = ownership.use(of: page)
      let isReserved = earlier == .pointerMap || earlier == .lockBytes
      findings.note(isReserved ? .reservedPageUsed : .pageUsedTwice, page: page, root: root == 0 ? nil : root)
      return false
    }
    return true
  }

  /// Compares a page's pointer map entry with its parent.
  mutating func checkPointer(to page: UInt32, _ expected: PointerMapEntry) throws(FileError) {
    guard isAutoVacuum, page >= 2, page <= database.highestPage else { return }
    let entry = try database.pointerMapEntry(for: page)
    guard entry != expected else { return }
    findings.note(.pointerMapWrong, page: page, expected: Int64(expected.parent), found: entry.map { Int64($0.parent) })
  }

  private mutating func claimReservedPages() {
    let layout = database.layout
    if layout.lockBytePage <= ownership.pageCount { _ = ownership.claim(layout.lockBytePage, as: .lockBytes, root: 0) }
    guard isAutoVacuum, ownership.pageCount >= 2 else { return }
    var page: UInt32 = 2
    while let map = layout.pointerMapPage(for: page), map <= ownership.pageCount {
      _ = ownership.claim(map, as: .pointerMap, root: 0)
      let (next, isTooLarge) = page.addingReportingOverflow(UInt32(layout.pointerMapEntries) + 1)
      if isTooLarge { break }
      page = next
    }
  }

  private mutating func checkFreelist() throws(FileError) -> Int {
    let list = try database.freelist()
    findings.append(contentsOf: list.findings)
    for page in list.trunks where claim(page, as: .freelistTrunk, root: 0, from: nil) {
      try checkPointer(to: page, PointerMapEntry(.free, parent: 0))
      try advance()
    }
    for page in list.leaves where claim(page, as: .freelistLeaf, root: 0, from: nil) {
      try checkPointer(to: page, PointerMapEntry(.free, parent: 0))
      try advance()
    }
    return list.count
  }

  private mutating func checkCounts(_ schema: Schema) {
    var rows: [String: Int] = [:]
    for tree in trees { rows[tree.name] = tree.rows }
    for entry in schema.entries where entry.kind == .index {
      // Conditions and the app's functions cannot be evaluated here.
      if let index = entry.indexDefinition, index.isPartial || index.foreignFunction != nil { continue }
      // Needs both trees sound; damage is already reported.
      guard let entries = rows[entry.name],
        let table = schema.table(named: entry.tableName), let expected = rows[table.name], entries != expected
      else { continue }
      findings.note(.indexCountDiffers, root: entry.rootPage, expected: Int64(expected), found: Int64(entries))
    }
  }

  private mutating func checkLargestRoot(_ schema: Schema) {
    guard isAutoVacuum, let header = database.header else { return }
    let largest = schema.entries.map(\.rootPage).max() ?? 0
    guard max(1, largest) != header.largestRootPage else { return }
    findings.note(.largestRootWrong, page: 1, expected: Int64(largest), found: Int64(header.largestRootPage))
  }

  /// Notes leaves with rows that only another table can hold.
  private mutating func checkStrangers() throws(FileError) {
    for leaf in strangers {
      guard let page = try database.bTreePage(leaf.page) else { continue }
      if rules.contains(where: { $0.key != leaf.root && $0.value.areAll(true, rowsOf: page, isStrict: true) }) {
        findings.note(.pageCopied, page: leaf.page, root: leaf.root)
      }
    }
  }

  /// Finds identical leaves of two tables.
  ///
  /// If the rows match one table's types and none fits the other's, the other's leaf is a copy.
  private func checkCopies() throws(FileError) -> [LeafCopy] {
    var copies: [LeafCopy] = []
    for (first, second) in try leaves.pairs(in: database) {
      var copy = LeafCopy(first: first, second: second)
      for (own, other) in [(first, second), (second, first)] {
        guard let page = try database.bTreePage(own.page),
          rules[other.root]?.areAll(true, rowsOf: page, isStrict: true) == true,
          rules[own.root]?.areAll(false, rowsOf: page, isStrict: true) == true
        else { continue }
        copy.stranger = own
      }
      copies.append(copy)
    }
    return copies
  }

  private mutating func checkUnused() throws(FileError) {
    let end = min(database.pageCount, database.highestPage)
    guard end >= 1 else { return }
    for page in 1...end where ownership.use(of: page) == .none { findings.note(.pageNeverUsed, page: page) }
    if database.pageCount > database.highestPage {
      findings.note(.pageMissing, page: database.highestPage &+ 1, found: Int64(database.pageCount))
    }
    let total = Int(database.highestPage)
    guard progress(total, total) else { throw FileError.cancelled("check the database") }
  }
}

extension Database {
  /// Checks every page: b-trees, overflow chains, freelist, pointer map and orphan pages.
  ///
  /// Memory is five bytes per page, sixteen per table leaf, and up to `findingLimit` findings. `progress` gets done and
  /// total pages; returning false throws ``FileError/Kind/cancelled``.
  ///
  /// - Parameter columns: the columns to count rows by, from 0, under root pages.
  public func checkIntegrity(
    findingLimit: Int = 1000, countingBy columns: [UInt32: Int] = [:],
    progress: @escaping (_ done: Int, _ total: Int) -> Bool = { _, _ in true }
  ) throws(FileError) -> IntegrityReport {
    try checkIntegrity(findingLimit: findingLimit, countingBy: columns, visitor: nil, progress: progress)
  }

  /// Checks every page and shows sound b-tree pages to a visitor.
  package func checkIntegrity(
    findingLimit: Int = 1000, countingBy columns: [UInt32: Int], visitor: (any PageVisitor)?,
    progress: @escaping (_ done: Int, _ total: Int) -> Bool
  ) throws(FileError) -> IntegrityReport {
    var check = DatabaseCheck(self, findingLimit: findingLimit, columns: columns, visitor: visitor, progress: progress)
    return try check.run()
  }
}

extension DatabaseCheck {
  private struct Level {
    let page: BTreePage
    var next = 0
  }

  mutating func checkTree(root: UInt32, name: String, isTable: Bool) throws(FileError) {
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
        if let sum = scratch.leafSum { leaves.add(page.number, sum, ofTree: root) }
        if scratch.isStranger, strangers.count < LeafCopies.limit {
          strangers.append(LeafCopy.Place(page: page.number, root: root))
        }
        try checkCells(of: page, tree: &tree, lastRowid: &lastRowid)
        continue
      }
      let index = top.next
      if index == 0, !isTable { try checkCells(of: page, tree: &tree, lastRowid: &lastRowid) }
      if index > 0, isTable, let key = page.cell(at: index - 1)?.rowid {
        // A child's rowids are at most its key; later rowids are greater.
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
        // Reported with the page.
        continue
      }
      guard stack.count < BTreeWalk.maximumDepth else {
        findings.note(.treeTooDeep, page: child, root: root)
        continue
      }
      guard let next = try enter(child, of: &tree, from: page) else { continue }
      stack.append(Level(page: next))
      if next.kind.isLeaf { handOver(childrenOf: page, from: index + 1, of: tree) }
    }
    if grouped?.hasTooMany == true { findings.note(.tooManyGroups, root: root) }
    tree.counts = grouped?.counts
    trees.append(tree)
  }

  private mutating func enter(
    _ number: UInt32, of tree: inout IntegrityReport.Tree, from parent: BTreePage?
  ) throws(FileError) -> BTreePage? {
    guard claim(number, as: .leaf, root: tree.root, from: parent?.number) else { return nil }
    try advance()
    if let parent { try checkPointer(to: number, PointerMapEntry(.child, parent: parent.number)) }
    if lookAhead?.take(number, into: &scratch) != true {
      try scratch.read(number, of: checked(tree), from: database)
    }
    guard let page = scratch.page else {
      if let byte = scratch.firstByte {
        findings.note(.pageKindWrong, page: number, root: tree.root, found: Int64(byte))
      } else {
        findings.note(.pageMissing, page: number, root: tree.root)
      }
      ownership.mark(number, as: .damaged)
      return nil
    }
    tree.pages += 1
    if !page.kind.isLeaf { ownership.mark(number, as: .interior) }
    for problem in scratch.problems { findings.note(problem.kind, page: number, cell: problem.cell, root: tree.root) }
    if scratch.isDamaged {
      ownership.mark(number, as: .damaged)
    } else if let visitor {
      try visitor.visit(page, scratch.cells, ofTree: tree.root)
    }
    return page
  }

  private func checked(_ tree: IntegrityReport.Tree) -> ExpectedTree {
    ExpectedTree(root: tree.root, isTable: tree.isTable, rules: rules[tree.root])
  }

  /// Hands the next leaves over, each page once, before the walk comes to them.
  private mutating func handOver(childrenOf page: BTreePage, from place: Int, of tree: IntegrityReport.Tree) {
    guard let lookAhead, handed.page != page.number || place >= handed.end else { return }
    handed = (page.number, min(place + lookAhead.limit, page.cellCount + 1))
    var seen: Set<UInt32> = []
    let pages = (place..<max(place, handed.end)).compactMap { page.child(at: $0) }.filter { child in
      child >= 1 && child <= min(database.pageCount, database.highestPage) && ownership.use(of: child) == .none
        && seen.insert(child).inserted
    }
    lookAhead.hand(pages, of: checked(tree))
  }

  private mutating func checkCells(
    of page: BTreePage, tree: inout IntegrityReport.Tree, lastRowid: inout Int64?
  ) throws(FileError) {
    // A sound page's cells are at hand.
    if scratch.cells.count == page.cellCount, !scratch.isDamaged {
      var malformed = scratch.malformed[...]
      for (index, cell) in scratch.cells.enumerated() {
        let isMalformed = malformed.first == index
        if isMalformed { malformed.removeFirst() }
        try check(cell, index, isMalformed, of: page, tree: &tree, lastRowid: &lastRowid)
      }
      return
    }
    var budget = PageBudget()
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index), budget.take(cell.length, of: page) else { continue }
      // Reported with the page.
      let isMalformed = !RecordCheck.isWellFormed(page.bytes.span, cell: cell)
      try check(cell, index, isMalformed, of: page, tree: &tree, lastRowid: &lastRowid)
    }
  }

  @inline(__always) private mutating func check(
    _ cell: Cell, _ index: Int, _ isMalformed: Bool, of page: BTreePage, tree: inout IntegrityReport.Tree,
    lastRowid: inout Int64?
  ) throws(FileError) {
    tree.rows += 1
    if tree.isTable {
      if let last = lastRowid, cell.rowid <= last {
        findings.note(.rowidOrder, page: page.number, cell: index, root: tree.root)
      }
      lastRowid = cell.rowid
      grouped?.add(cell, on: page)
    }
    if isMalformed {
      findings.note(.recordMalformed, page: page.number, cell: index, root: tree.root)
    }
    if let first = cell.overflowPage { try checkChain(from: first, of: cell, on: page, tree: &tree) }
  }

  private mutating func checkChain(
    from first: UInt32, of cell: Cell, on page: BTreePage, tree: inout IntegrityReport.Tree
  ) throws(FileError) {
    let expected = database.geometry.overflowPageCount(of: cell.payloadLength, onTableLeaf: page.kind == .tableLeaf)
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

/// Counts rows by the integer in one column, such as `Z_ENT`.
struct GroupedCount {
  /// Further integers count under nil.
  static let limit = 65536

  let column: Int

  private var counted: [Int64?: Int] = [:]
  private var current: Int64?
  private var run = 0

  private(set) var hasTooMany = false

  init(column: Int) { self.column = column }

  /// The rows per integer; nil for other values or overflow.
  var counts: [Int64?: Int] {
    guard run > 0 else { return counted }
    return counted.merging([current: run], uniquingKeysWith: +)
  }

  @inline(__always) mutating func add(_ cell: Cell, on page: BTreePage) {
    let value = LeafScan.integer(inColumn: column, of: page.bytes.span, payload: cell.localPayload)
    if value != current { begin(value) }
    run += 1
  }

  private mutating func begin(_ value: Int64?) {
    if run > 0 { counted[current, default: 0] += run }
    run = 0
    current = value
    guard value != nil, counted.count >= Self.limit, counted[value] == nil else { return }
    current = nil
    hasTooMany = true
  }
}
