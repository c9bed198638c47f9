/// What the rows of all tables should have in their indexes, added up leaf by leaf.
package struct IndexedRows {
  private let database: Database
  private var tables: [IndexedTable] = []

  /// The root pages of the tables, one for each of them.
  private var entries: [UInt32] = []

  /// The tables whose rows are added up, by their root pages.
  private var places: [UInt32: Int] = [:]

  /// The bytes of long rows that may still be gathered: as many as there are, since no page is of two rows.
  private var budget: Int64

  private var last: (root: UInt32, place: Int?) = (0, nil)

  /// - Throws: what reading the first page says.
  package init(_ content: DatabaseContent, _ schema: Schema) throws(FormatError) {
    // One of its own: that of a check could not be used here while the check goes on.
    database = try Database(main: content, pageSize: content.pageSize)
    budget = Int64(content.highestPage) * Int64(content.pageSize)
    for entry in schema.tables where entry.rootPage > 0 {
      guard let table = IndexedTable(entry, schema.indexes(ofTable: entry.name), in: database) else { continue }
      if table.root > 0, !table.plans.isEmpty, places[table.root] == nil {
        places[table.root] = self.tables.count
      }
      self.tables.append(table)
      entries.append(entry.rootPage)
    }
  }

  /// Adds the rows of a leaf of a table; pages of any other kind, or of any other tree, are left out.
  package mutating func add(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError) {
    guard page.kind == .tableLeaf else { return }
    if last.root != root { last = (root, places[root]) }
    guard let place = last.place else { return }
    try tables[place].add(page, cells, in: database, &budget)
  }

  /// What is left to do once all rows were added, each of which can be done by itself.
  ///
  /// - Parameter tables: the root pages of the tables whose indexes are compared; all if nil.
  package func comparisons(ofTables roots: Set<UInt32>? = nil) -> (report: IndexReport, left: [IndexScan]) {
    var report = IndexReport()
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
