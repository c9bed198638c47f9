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
