package import Platform

/// Compares indexes with tables.
///
/// Rows are summed during the page check, so no table is read twice.
package final class IndexCheck: PageVisitor {
  private let content: DatabaseContent
  private let rows: Mutex<IndexedRows>

  private static let pagesForTwo: Int64 = 256

  package init(_ database: Database, _ schema: Schema) throws(FormatError) {
    content = DatabaseContent(database)
    rows = Mutex(try IndexedRows(content, schema))
  }

  package func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError) {
    try rows.withLock { rows throws(FormatError) in try rows.add(page, cells, ofTree: root) }
  }

  /// Reads the indexes, two at once, after the check.
  ///
  /// - Parameter progress: called on this thread; returning false throws ``FormatError/Kind/cancelled``.
  package func finish(progress: () -> Bool) throws(FormatError) -> IndexReport {
    // The other thread may take all the work.
    if !progress() { throw FormatError.cancelled("compare the indexes") }
    let (begun, scans) = rows.withLock { $0.comparisons() }
    let work = IndexScans(scans, of: content)
    if scans.count > 1, Int64(content.pageCount) >= Self.pagesForTwo {
      _ = try concurrently { () throws(FormatError) in
        try work.run { true }
      } _: { () throws(FormatError) in
        try work.run(progress: progress)
      }
    } else {
      try work.run(progress: progress)
    }
    var report = begun
    for found in work.reports { report.add(found) }
    return report
  }
}

/// Index comparisons shared by threads.
private final class IndexScans: Sendable {
  private let content: DatabaseContent
  private let scans: [IndexScan]
  private let state: Mutex<State>

  private struct State {
    var next = 0
    var isStopped = false
    var reports: [IndexReport?]
  }

  init(_ scans: [IndexScan], of content: DatabaseContent) {
    self.scans = scans
    self.content = content
    state = Mutex(State(reports: scans.map { _ in nil }))
  }

  var reports: [IndexReport] { state.withLock { $0.reports.compactMap(\.self) } }

  /// Runs comparisons until none is left or one fails on any thread.
  func run(progress: () -> Bool) throws(FormatError) {
    let database = try Database(main: content, pageSize: content.pageSize)
    while let place = take() {
      do throws(FormatError) {
        let report = try scans[place].run(in: database) { progress() && !state.withLock(\.isStopped) }
        state.withLock { $0.reports[place] = report }
      } catch {
        state.withLock { $0.isStopped = true }
        throw error
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
  func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError)
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

  package init(_ content: DatabaseContent, _ schema: Schema) throws(FormatError) {
    // A separate database, because the running check uses its own.
    database = try Database(main: content, pageSize: content.pageSize)
    budget = Int64(content.highestPage) * Int64(content.pageSize)
    keyed = Set(
      schema.tables.lazy.filter { $0.rootPage > 0 && $0.tableDefinition?.isWithoutRowid == true }.map(\.rootPage))
    for entry in schema.tables where entry.rootPage > 0 {
      guard let table = IndexedTable(entry, schema.indexes(ofTable: entry.name), in: database) else { continue }
      if table.root > 0, !table.plans.isEmpty, places[table.root] == nil {
        places[table.root] = self.tables.count
      }
      self.tables.append(table)
      entries.append(entry.rootPage)
    }
  }

  /// Adds rows of a table's leaf; ignores other pages.
  package mutating func add(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError) {
    guard page.kind == .tableLeaf else { return }
    if last.root != root { last = (root, places[root]) }
    guard let place = last.place else { return }
    try tables[place].add(page, cells, in: database, &budget)
  }

  /// Returns the comparisons that remain after adding all rows.
  ///
  /// - Parameter tables: the root pages to compare; nil for all.
  package func comparisons(ofTables roots: Set<UInt32>? = nil) -> (report: IndexReport, left: [IndexScan]) {
    var report = IndexReport()
    report.keyedTables = roots.map(keyed.intersection) ?? keyed
    var scans: [IndexScan] = []
    for (root, table) in zip(entries, tables) where roots?.contains(root) != false {
      report.uncompared += table.uncompared
      report.findings.append(contentsOf: table.findings)
      scans += table.plans.map { plan in
        IndexScan(
          plan: plan,
          expected: table.lists.filter { plan.candidates.contains($0.columns) && $0.condition == plan.condition },
          others: table.lists)
      }
    }
    return (report, scans)
  }
}
