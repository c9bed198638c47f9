/// What the rows of all tables should have in their indexes, added up leaf by leaf.
package struct IndexedRows {
  private let database: Database
  private var tables: [IndexedTable] = []

  /// The root pages of the tables, one for each of them.
  private var entries: [UInt32] = []

  /// The root pages of the tables whose rows are added up.
  private(set) var roots: [UInt32] = []

  /// The tables whose rows are added up, by their root pages.
  private var places: [UInt32: Int] = [:]

  /// The table whose page was the last one.
  private var last: (root: UInt32, place: Int?) = (0, nil)

  /// - Parameter tables: the root pages of the tables whose indexes are compared; all if nil.
  package init(_ database: Database, _ schema: Schema, ofTables tables: Set<UInt32>? = nil) {
    self.database = database
    for entry in schema.tables where entry.rootPage > 0 && tables?.contains(entry.rootPage) != false {
      guard let table = IndexedTable(entry, schema.indexes(ofTable: entry.name), in: database) else { continue }
      if table.root > 0, !table.plans.isEmpty, places[table.root] == nil {
        places[table.root] = self.tables.count
        roots.append(table.root)
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
    try tables[place].add(page, cells, in: database)
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
          plan: plan, rows: table.rows, expected: table.lists.filter { plan.candidates.contains($0.columns) },
          others: table.lists)
      }
    }
    return (report, scans)
  }
}

extension Database {
  /// Compares the entries of indexes with the rows of their tables, and looks whether they are in order.
  ///
  /// For a database whose pages are sound: what a damaged page holds is left out. Each table and each index is read once.
  /// Each row has to have one entry in each index, and each entry a row.
  ///
  /// - Parameters:
  ///   - tables: the root pages of the tables whose indexes are compared; all if nil.
  ///   - progress: called now and then; where it returns false, ``FormatError/Kind/cancelled`` is thrown.
  public func compareIndexes(
    _ schema: Schema, ofTables tables: Set<UInt32>? = nil, progress: @escaping () -> Bool = { true }
  ) throws(FormatError) -> IndexReport {
    var rows = IndexedRows(self, schema, ofTables: tables)
    var cells: [Cell] = []
    var pages = 0
    for root in rows.roots {
      var walk = try BTreeWalk(database: self, root: root, isTable: true)
      while let page = try walk.nextPage() {
        if pages & 0x3f == 0, !progress() { throw FormatError.cancelled("compare the indexes") }
        pages &+= 1
        cells.removeAll(keepingCapacity: true)
        for index in 0..<page.cellCount { if let cell = page.cell(at: index) { cells.append(cell) } }
        try rows.add(page, cells, ofTree: root)
      }
    }
    let (begun, left) = rows.comparisons()
    var report = begun
    for scan in left { report.add(try scan.run(in: self, progress: progress)) }
    return report
  }
}
