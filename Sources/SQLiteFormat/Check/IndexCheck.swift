internal import Dispatch
package import Platform

/// Compares indexes with tables.
///
/// Rows are summed during the page check, so no table is read twice. In larger databases a thread reads the indexes
/// beside that check; end it with ``compare(progress:)`` or ``stop()``.
package final class IndexCheck: PageVisitor {
  private let rows: Mutex<IndexedRows>
  private let scans: IndexScans
  private let thread = DispatchGroup()

  private static let pagesForThread: UInt32 = 256

  package init(_ database: Database, _ schema: Schema) throws(FileError) {
    let content = DatabaseContent(database)
    let indexed = try IndexedRows(content, schema)
    scans = IndexScans(indexed.scans(), of: content)
    rows = Mutex(indexed)
    if content.highestPage >= Self.pagesForThread {
      WorkThread.start(in: thread) { [scans] in scans.run { true } }
    }
  }

  package func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FileError) {
    try rows.withLock { rows throws(FileError) in try rows.add(page, cells, ofTree: root) }
  }

  /// Reads the remaining indexes, after the check.
  ///
  /// - Parameter progress: called on this thread; returning false throws ``FileError/Kind/cancelled``.
  package func compare(progress: () -> Bool) throws(FileError) -> IndexReport {
    // The other thread may take all the work.
    if !progress() { throw FileError.cancelled("compare the indexes") }
    scans.run(progress: progress)
    thread.wait()
    let totals = try scans.totals()
    return rows.withLock { $0.report(totals) }
  }

  /// Ends the reading without a result.
  package func stop() {
    scans.stop()
    thread.wait()
  }
}

/// Index scans shared by threads.
private final class IndexScans: Sendable {
  private let content: DatabaseContent
  private let scans: [IndexScan]
  private let state: Mutex<State>

  private struct State {
    var next = 0
    var isStopped = false
    var failure: FileError?
    var totals: [IndexTotals?]
  }

  init(_ scans: [IndexScan], of content: DatabaseContent) {
    self.scans = scans
    self.content = content
    state = Mutex(State(totals: scans.map { _ in nil }))
  }

  func stop() { state.withLock { $0.isStopped = true } }

  /// Returns the results in order, or throws the first error of a thread.
  func totals() throws(FileError) -> [IndexTotals] {
    try state.withLock { state throws(FileError) in
      if let failure = state.failure { throw failure }
      return state.totals.compactMap(\.self)
    }
  }

  /// Runs scans until none is left or one fails on any thread.
  func run(progress: () -> Bool) {
    do throws(FileError) {
      let database = try Database(main: content, pageSize: content.pageSize)
      while let place = take() {
        let totals = try scans[place].run(in: database) { progress() && !state.withLock(\.isStopped) }
        state.withLock { $0.totals[place] = totals }
      }
    } catch {
      state.withLock { state in
        state.isStopped = true
        if state.failure == nil { state.failure = error }
      }
    }
  }

  private func take() -> Int? {
    state.withLock { state in
      guard !state.isStopped, state.next < scans.count else { return nil }
      defer { state.next += 1 }
      return state.next
    }
  }
}

/// An observer of the check's b-tree pages, which saves reading them again.
package protocol PageVisitor: Sendable {
  /// Receives a sound b-tree page with all its cells.
  ///
  /// A tree's pages come together, leaves in key order. Only the report shows whether the whole tree is sound.
  func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FileError)
}

/// The result of comparing indexes with their tables.
public struct IndexReport: Sendable {
  /// Entries that differ from the rows or are out of order.
  public var findings = Findings()

  /// The number of indexes compared.
  public var compared = 0

  /// The indexes with entries that cannot be computed here.
  ///
  /// They have expressions, complex conditions, tables WITHOUT ROWID or unreadable definitions.
  public var uncompared: [String] = []

  /// The root pages of tables WITHOUT ROWID whose key order is unchecked.
  package var keyedTables: Set<UInt32> = []

  /// Whether there is no damage.
  public var isSound: Bool { !findings.hasDamage }

  package mutating func add(_ other: IndexReport) {
    findings.append(contentsOf: other.findings)
    compared += other.compared
    uncompared += other.uncompared
    keyedTables.formUnion(other.keyedTables)
  }
}

/// The expected index entries of all tables, summed leaf by leaf.
package struct IndexedRows {
  private let database: Database
  private var tables: [IndexedTable] = []

  private var entries: [UInt32] = []

  private var places: [UInt32: Int] = [:]

  /// The remaining bytes of long rows, at most the database's size, since rows share no pages.
  private var budget: Int64

  /// The root pages of tables WITHOUT ROWID.
  private let keyed: Set<UInt32>

  private var last: (root: UInt32, place: Int?) = (0, nil)

  package init(_ content: DatabaseContent, _ schema: Schema) throws(FileError) {
    // A separate database, because the running check uses its own.
    database = try Database(main: content, pageSize: content.pageSize)
    budget = Int64(content.highestPage) * Int64(content.pageSize)
    keyed = Set(
      schema.tables.lazy.filter { $0.rootPage > 0 && $0.tableDefinition?.isWithoutRowid == true }.map(\.rootPage))
    for entry in schema.tables where entry.rootPage > 0 {
      guard let table = IndexedTable(entry, schema.indexes(ofTable: entry.name), in: database) else { continue }
      if table.root > 0, !table.plans.isEmpty, places[table.root] == nil { places[table.root] = self.tables.count }
      self.tables.append(table)
      entries.append(entry.rootPage)
    }
  }

  /// Adds rows of a table's leaf; ignores other pages.
  package mutating func add(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FileError) {
    guard page.kind == .tableLeaf else { return }
    if last.root != root { last = (root, places[root]) }
    guard let place = last.place else { return }
    try tables[place].add(page, cells, in: database, &budget)
  }

  /// Returns the scans that ``report(_:ofTables:)`` needs.
  ///
  /// - Parameter tables: the root pages to compare; nil for all.
  package func scans(ofTables roots: Set<UInt32>? = nil) -> [IndexScan] {
    zip(entries, tables).flatMap { root, table in roots?.contains(root) == false ? [] : table.scans }
  }

  /// Compares the results of the scans, in their order, with the rows.
  package func report(_ totals: [IndexTotals], ofTables roots: Set<UInt32>? = nil) -> IndexReport {
    var report = IndexReport()
    report.keyedTables = roots.map(keyed.intersection) ?? keyed
    var rest = totals[...]
    for (root, table) in zip(entries, tables) where roots?.contains(root) != false {
      report.uncompared += table.uncompared
      report.findings.append(contentsOf: table.findings)
      for (plan, entries) in zip(table.plans, rest) { report.add(table.compare(entries, of: plan)) }
      rest = rest.dropFirst(table.plans.count)
    }
    return report
  }
}

/// A table with its expected index entries, summed as hashes to bound memory.
struct IndexedTable: Sendable {
  struct Expected: Sendable {
    /// The columns by place.
    let columns: [Int]

    let condition: RowCondition?

    var rows = 0

    var sum: UInt64 = 0

    var isUncertain = false
  }

  /// The root page; 0 if there are no entries to sum.
  private(set) var root: UInt32 = 0

  private(set) var plans: [IndexPlan] = []

  private(set) var uncompared: [String] = []

  private(set) var lists: [Expected] = []

  private(set) var rows = 0

  private(set) var findings = Findings()

  private let definition: TableDefinition
  private let encoding: TextEncoding

  /// The hash inputs, list by list: record fields or the steps below.
  private var steps: [Int] = []
  private static let rowidStep = -1
  private static let endStep = -2

  /// From here down, columns absent from records: −3 for column 0.
  private static let absentStep = -3

  /// The column in each record field.
  private var columnOfField: [Int]

  private var fieldCount = 0

  private var fields = RecordFields()

  init?(_ table: SchemaEntry, _ indexes: [SchemaEntry], in database: Database) {
    let there = indexes.filter { $0.rootPage > 0 }
    guard !there.isEmpty else { return nil }
    definition = table.tableDefinition ?? TableDefinition(name: table.name)
    encoding = database.encoding
    columnOfField = definition.storedColumns
    guard table.tableDefinition != nil, !definition.isWithoutRowid, !definition.isVirtual, table.rootPage > 0 else {
      uncompared = there.map(\.name)
      return
    }
    root = table.rootPage
    let planning = IndexPlanning(
      table: table, definition: definition, encoding: encoding,
      honoursDescending: (database.header?.schemaFormat ?? 4) >= 4, indexes: there)
    for index in there {
      if let plan = planning.plan(for: index) {
        plans.append(plan)
      } else {
        uncompared.append(index.name)
        // The order of its entries can still be checked.
        if let plan = planning.orderPlan(for: index) { plans.append(plan) }
      }
    }
    for plan in plans {
      for columns in plan.candidates
      where !lists.contains(where: { $0.columns == columns && $0.condition == plan.condition }) {
        lists.append(Expected(columns: columns, condition: plan.condition))
      }
    }
    planSteps()
  }

  private mutating func planSteps() {
    var fieldOf = [Int?](repeating: nil, count: definition.columns.count)
    for (field, column) in columnOfField.enumerated() { fieldOf[column] = field }
    for list in lists {
      for column in list.columns {
        if column == definition.rowidAlias {
          steps.append(Self.rowidStep)
        } else if let field = fieldOf[column] {
          steps.append(field)
          fieldCount = max(fieldCount, field + 1)
        } else {
          steps.append(Self.absentStep - column)
        }
      }
      steps.append(Self.endStep)
      for field in (list.condition?.columns ?? []).compactMap({ fieldOf[$0] }) {
        fieldCount = max(fieldCount, field + 1)
      }
    }
  }

  var scans: [IndexScan] {
    let columns = lists.map(\.columns.count).max() ?? 0
    return plans.map { IndexScan(plan: $0, columns: columns) }
  }

  /// Compares an index's entries with the rows added.
  func compare(_ entries: IndexTotals, of plan: IndexPlan) -> IndexReport {
    var report = IndexReport()
    report.findings = entries.findings
    // Some indexes only have a known order.
    if plan.candidates.isEmpty { return report }
    let expected = lists.filter { plan.candidates.contains($0.columns) && $0.condition == plan.condition }
    let rows = expected.first?.rows ?? 0
    let fitting = expected.filter { $0.columns.count == entries.columns }
    let isAsMany = entries.count == rows && entries.isUniform
    if entries.count == 0, rows == 0 {
      report.compared = 1
    } else if expected.contains(where: \.isUncertain) {
      report.uncompared = [plan.entry.name]
    } else if isAsMany, fitting.contains(where: { $0.sum == entries.sum }) {
      report.compared = 1
    } else if isAsMany, fitting.isEmpty,
      !lists.contains(where: { $0.columns.count == entries.columns && $0.sum == entries.sum && !$0.isUncertain })
    {
      // The statement has other columns, so it was misread.
      report.uncompared = [plan.entry.name]
    } else {
      report.compared = 1
      report.findings.note(
        .indexEntriesDiffer, root: plan.entry.rootPage, expected: Int64(rows), found: Int64(entries.count))
    }
    return report
  }

  // MARK: Rows

  /// Adds a leaf's expected entries.
  ///
  /// - Parameters:
  ///   - database: holds the overflow pages.
  ///   - budget: the bytes of long rows left; further rows are skipped. Only a database with
  ///     shared pages exhausts it.
  mutating func add(
    _ page: BTreePage, _ cells: [Cell], in database: Database, _ budget: inout Int64
  ) throws(FileError) {
    rows &+= cells.count
    guard !lists.isEmpty else { return }
    let span = page.bytes.span
    for index in cells.indices {
      let payload = cells[index].localPayload
      let isHere =
        fieldCount == 0 || fields.read(span, in: payload, upTo: fieldCount) && fields.end <= payload.upperBound
      guard !isHere else {
        add(span, cells[index].rowid)
        continue
      }
      budget -= Int64(cells[index].payloadLength)
      if budget >= 0 { try addLong(cells[index], index, on: page, in: database) }
    }
  }

  private mutating func addLong(
    _ cell: Cell, _ index: Int, on page: BTreePage, in database: Database
  ) throws(FileError) {
    var gathering = BTreeWalk(gatheringFrom: database, root: root)
    let payload = Array(try gathering.payload(of: cell, on: page, limit: cell.payloadLength))
    guard fields.read(payload.span, in: 0..<payload.count, upTo: fieldCount), fields.end <= payload.count else {
      findings.note(.recordMalformed, page: page.number, cell: index, root: root)
      return
    }
    add(payload.span, cell.rowid)
  }

  @inline(__always) private mutating func add(_ bytes: Span<UInt8>, _ rowid: Int64) {
    var hash = EntryHash()
    var list = 0
    for step in steps {
      if step >= 0, step < fields.count {
        hash.add(fields.codes[step], bytes, at: fields.starts[step])
      } else if step == Self.rowidStep {
        hash.add(rowid)
      } else if step == Self.endStep {
        hash.add(rowid)
        switch lists[list].condition.map({ $0.holds { value(ofColumn: $0, bytes, rowid) } }) ?? true {
        case true?:
          lists[list].sum &+= hash.value
          lists[list].rows &+= 1
        case false?: break
        case nil: lists[list].isUncertain = true
        }
        hash = EntryHash()
        list &+= 1
      } else if let value = defaultValue(ofColumn: step >= 0 ? columnOfField[step] : Self.absentStep - step) {
        hash.add(value)
      } else {
        lists[list].isUncertain = true
      }
    }
  }

  private func value(ofColumn column: Int, _ bytes: Span<UInt8>, _ rowid: Int64) -> Value? {
    if column == definition.rowidAlias { return .integer(rowid) }
    guard let field = columnOfField.firstIndex(of: column) else { return nil }
    guard field < fields.count else { return defaultValue(ofColumn: column) }
    return SerialType.value(of: fields.codes[field], in: bytes, at: fields.starts[field], encoding: encoding)
  }

  /// Returns the value for rows older than the column; nil if in doubt.
  private func defaultValue(ofColumn column: Int) -> Value? {
    let column = (place: column, definition: definition.columns[column])
    guard column.definition.hasDefault else { return .null }
    guard let literal = column.definition.defaultValue else { return nil }
    switch (literal, column.definition.affinity) {
    case (.null, _): return .null
    case (.integer, .integer), (.integer, .numeric), (.integer, .real), (.integer, .blob), (.text, .text),
      (.text, .blob):
      return definition.defaultValue(ofColumn: column.place, encoding: encoding)
    default: return nil
    }
  }
}
