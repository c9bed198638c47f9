/// The comparison of one index with what the rows of its table add up to.
package struct IndexScan: Sendable {
  let plan: IndexPlan

  /// What they add up to, for each list of columns that the index may be of.
  let expected: [IndexedTable.Expected]

  /// The same for the columns of every index of the table.
  let others: [IndexedTable.Expected]

  /// Reads the index once, and compares its entries.
  ///
  /// - Parameter progress: called now and then; where it returns false, ``FormatError/Kind/cancelled`` is thrown.
  package func run(in database: Database, progress: () -> Bool) throws(FormatError) -> IndexReport {
    var entries = IndexEntries(database, plan, columns: others.map(\.columns.count).max() ?? 0)
    try entries.read(progress)
    var report = IndexReport()
    report.findings = entries.findings
    // Of some indexes only the order can be told.
    if plan.candidates.isEmpty { return report }
    let rows = expected.first?.rows ?? 0
    let fitting = expected.filter { $0.columns.count == entries.columns }
    let isAsMany = entries.count == rows && entries.isUniform
    // An index of no row has nothing to compare.
    if entries.count == 0, rows == 0 {
      report.compared = 1
    } else if expected.contains(where: \.isUncertain) {
      report.uncompared = [plan.entry.name]
    } else if isAsMany, fitting.contains(where: { $0.sum == entries.sum }) {
      report.compared = 1
    } else if isAsMany, fitting.isEmpty,
      !others.contains(where: { $0.columns.count == entries.columns && $0.sum == entries.sum && !$0.isUncertain })
    {
      // As many columns as the statement does not say: what it says was not understood.
      report.uncompared = [plan.entry.name]
    } else {
      report.compared = 1
      report.findings.note(
        .indexEntriesDiffer, root: plan.entry.rootPage, expected: Int64(rows), found: Int64(entries.count))
    }
    return report
  }
}

/// The entries of an index, added up, and looked at for their order.
private struct IndexEntries {
  var findings = Findings()
  var count = 0
  var sum: UInt64 = 0

  /// The columns of each entry, the rowid left out.
  var columns = -1
  var isUniform = true

  private let database: Database
  private let root: UInt32
  private let fieldCount: Int
  private let order: EntryOrder?
  private var fields = RecordFields()

  /// The entry before, where it is wholly on its page.
  private var previous = RecordFields()

  /// - Parameter columns: the most columns of any index of the table.
  init(_ database: Database, _ plan: IndexPlan, columns: Int) {
    self.database = database
    root = plan.entry.rootPage
    fieldCount = max(columns, plan.candidates.map(\.count).max() ?? 0, plan.order?.count ?? 0) + 2
    order = plan.order.map(EntryOrder.init)
  }

  mutating func read(_ progress: () -> Bool) throws(FormatError) {
    // The page of the entry before; nil where that is not wholly on it, or where there is none.
    var last: BTreePage?
    var pages = 0
    var walk = try BTreeWalk(database: database, root: root, isTable: false)
    while let (page, cells) = try walk.nextRun() {
      if pages & 0x3f == 0, !progress() { throw FormatError.cancelled("compare the indexes") }
      pages &+= 1
      try read(page, cells, behind: &last)
    }
  }

  private mutating func read(
    _ page: BTreePage, _ cells: Range<Int>, behind last: inout BTreePage?
  ) throws(FormatError) {
    let span = page.bytes.span
    var isBehindOwn = false
    for index in cells {
      guard let cell = page.cell(at: index) else { continue }
      count &+= 1
      guard fields.read(span, in: cell.localPayload, upTo: fieldCount), fields.end <= cell.localPayload.upperBound
      else {
        last = nil
        isBehindOwn = false
        try addLong(cell, index, on: page)
        continue
      }
      add(span)
      guard let order else { continue }
      let relation: EntryOrder.Relation =
        if isBehindOwn {
          order.relation(span, previous, to: span, fields)
        } else if let last {
          order.relation(last.bytes.span, previous, to: span, fields)
        } else {
          .unknown
        }
      if relation == .wrong { findings.note(.indexOrder, page: page.number, cell: index, root: root) }
      isBehindOwn = true
      swap(&previous, &fields)
    }
    if isBehindOwn { last = page }
  }

  /// Adds an entry that goes on behind its page.
  private mutating func addLong(_ cell: Cell, _ index: Int, on page: BTreePage) throws(FormatError) {
    var gathering = BTreeWalk(gatheringFrom: database, root: root)
    let payload = Array(try gathering.payload(of: cell, on: page, limit: cell.payloadLength))
    guard fields.read(payload.span, in: 0..<payload.count, upTo: fieldCount), fields.end <= payload.count else {
      findings.note(.recordMalformed, page: page.number, cell: index, root: root)
      return
    }
    add(payload.span)
  }

  @inline(__always)
  private mutating func add(_ bytes: Span<UInt8>) {
    if columns < 0 { columns = fields.count - 1 }
    if fields.count - 1 != columns { isUniform = false }
    var hash = EntryHash()
    for field in 0..<fields.count { hash.add(fields.codes[field], bytes, at: fields.starts[field]) }
    sum &+= hash.value
  }
}
