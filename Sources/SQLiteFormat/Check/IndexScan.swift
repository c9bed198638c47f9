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

/// How the entries of an index follow from the rows of its table.
struct IndexPlan: Sendable {
  /// The index in the schema.
  let entry: SchemaEntry

  /// The columns by their places in the table; several where an automatic index may be that of one or another constraint,
  /// none where the entries cannot be computed.
  let candidates: [[Int]]

  /// Which rows have an entry; nil for all.
  var condition: RowCondition?

  /// How the entries lie; nil where that cannot be told.
  let order: [EntryOrder.Column]?
}

/// Makes the plans of a table's indexes.
struct IndexPlanning {
  let table: SchemaEntry
  let definition: TableDefinition
  let encoding: TextEncoding

  /// Whether DESC is taken account of; it is not in files of schema formats below 4.
  let honoursDescending: Bool

  /// The indexes that have a root.
  let indexes: [SchemaEntry]

  /// The plan of an index; nil where its entries cannot be computed.
  func plan(for index: SchemaEntry) -> IndexPlan? {
    guard index.sql != nil else { return automaticPlan(for: index) }
    guard let indexed = index.indexDefinition else { return nil }
    let condition = indexed.condition.flatMap { RowCondition($0, of: definition) }
    if indexed.isPartial, condition == nil { return nil }
    var columns: [Int] = []
    var order: [EntryOrder.Column] = []
    for column in indexed.columns {
      guard let name = column.name, let place = definition.column(named: name), isStored(place) else { return nil }
      columns.append(place)
      order.append(self.order(of: column))
    }
    return columns.isEmpty
      ? nil : IndexPlan(entry: index, candidates: [columns], condition: condition, order: order)
  }

  /// The plan by which only the order of an index is looked at; nil where that cannot be told either.
  func orderPlan(for index: SchemaEntry) -> IndexPlan? {
    guard let indexed = index.indexDefinition else { return nil }
    return IndexPlan(entry: index, candidates: [], order: indexed.columns.map { order(of: $0) })
  }

  /// An automatic index has no statement: it is that of the primary key, or of one of the UNIQUE constraints.
  private func automaticPlan(for index: SchemaEntry) -> IndexPlan? {
    var lists: [[Int]] = []
    let key = definition.rowidAlias == nil ? [definition.primaryKey] : []
    for names in key + definition.uniqueConstraints where !names.isEmpty {
      let columns = names.compactMap { definition.column(named: $0) }
      guard columns.count == names.count, columns.allSatisfy(isStored) else { return nil }
      if columns != [definition.rowidAlias], !lists.contains(columns) { lists.append(columns) }
    }
    // Where constraints and indexes are not as many as each other, one of them was not understood.
    guard !lists.isEmpty, lists.count == indexes.count(where: { $0.sql == nil }) else { return nil }
    let statement = SQLTokenizer.tokens(of: table.sql ?? "")
    let isPlain = lists.count == 1 && !statement.contains { $0.isWord("collate") || $0.isWord("desc") }
    let order = isPlain ? lists[0].map { _ in EntryOrder.Column(collation: .binary) } : nil
    return IndexPlan(entry: index, candidates: lists, order: order)
  }

  private func isStored(_ column: Int) -> Bool { definition.columns[column].generation != .virtual }

  /// How a column of an index is ordered; of the text that an expression gives the collation is not known.
  private func order(of column: IndexedColumn) -> EntryOrder.Column {
    let place = column.name.flatMap { definition.column(named: $0) }
    let isKnown = column.collation != nil || place != nil
    let name = column.collation ?? place.flatMap { definition.columns[$0].collation }
    return .init(
      collation: isKnown ? EntryOrder.Collation(name, encoding: encoding) : nil,
      isDescending: column.isDescending && honoursDescending)
  }
}
