import SQLiteFormat

/// Calls everything there is on a database, for files of which nothing is known.
enum Exercise {
  /// Returns the number of rows that were read, so that nothing is left out as unused.
  @discardableResult
  static func everything(_ files: StoreFixture.Files, pageSize: Int? = nil) throws -> Int {
    _ = FileKind(firstBytes: files.main)
    _ = DatabaseHeader(files.main)?.findings
    let database: SQLiteFormat.Database
    do {
      database = try files.open(pageSize: pageSize)
    } catch {
      return 0
    }
    var rows = 0
    var values: [Value] = []
    let schema = try database.schema()
    var roots: [UInt32] = [1]
    for entry in schema.entries {
      if let definition = entry.tableDefinition { _ = definition.storedColumns }
      _ = entry.indexDefinition
      if entry.rootPage > 0 { roots.append(entry.rootPage) }
    }
    for root in roots.prefix(100) {
      _ = try database.countRows(root: root)
      _ = try database.countRows(root: root, byIntegerIn: 1)
      _ = try database.row(1, root: root)
      _ = try database.row(.max, root: root)
      let definition = schema.entries.first { $0.rootPage == root }?.tableDefinition
      for isTable in [true, false] {
        var cursor = try isTable ? database.rows(root: root) : database.entries(root: root)
        while let row = try cursor.next() {
          rows += 1
          row.record.decode(into: &values)
          _ = row.record.isWellFormed
          _ = row.record.value(at: 1)
          if let definition { _ = definition.values(of: row) }
        }
      }
    }
    _ = try database.freelist()
    for page in 1...min(max(1, database.highestPage), 60) {
      _ = try database.pointerMapEntry(for: page)
      if let page = try database.bTreePage(page) {
        _ = page.freeblocks
        _ = page.unallocatedSpace
        _ = page.children
      }
    }
    _ = try database.scanTables()
    let report = try database.checkIntegrity()
    _ = report.findings.items.map(\.description)
    return rows
  }
}
