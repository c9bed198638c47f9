internal import Platform
internal import SQLiteFormat

/// Calls everything there is on a database.
enum DatabaseReading {
  static func run(_ bytes: [UInt8]) throws(FuzzFailure) {
    let files = StoreBytes(bytes)
    for pageSize in [nil, 512] as [Int?] {
      let rows: Int
      do throws(FileError) {
        let database = try Database(
          main: MemoryBytes(files.main), writeAheadLog: files.log.map { MemoryBytes($0) },
          rollbackJournal: files.journal.map { MemoryBytes($0) }, pageSize: pageSize)
        // Only a file without a header of its own is read once more as one of small pages.
        if pageSize != nil, database.header?.hasMagic == true { return }
        rows = try read(database)
      } catch {
        continue
      }
      // A cell has four bytes, and each page can be met from every root in two ways.
      try expect(rows <= bytes.count * 40 + 100_000, "\(rows) rows in \(bytes.count) bytes")
    }
  }

  private static func read(_ database: Database) throws(FileError) -> Int {
    let schema = try database.schema()
    var roots: [UInt32] = [1]
    for entry in schema.entries {
      _ = entry.tableDefinition?.storedColumns
      _ = entry.indexDefinition
      if entry.rootPage > 0 { roots.append(entry.rootPage) }
    }
    var rows = 0
    for root in roots.prefix(20) { rows += try read(root, of: database, schema) }
    _ = try database.freelist()
    for number in 1...min(max(1, database.highestPage), 40) {
      _ = try database.pointerMapEntry(for: number)
      guard let page = try database.bTreePage(number) else { continue }
      _ = page.freeblocks
      _ = page.unallocatedSpace
      _ = page.children
    }
    rows += try database.scanTables().rows
    let report = try database.checkIntegrity(findingLimit: 200)
    _ = report.findings.items.map(\.description)
    return rows
  }

  private static func read(_ root: UInt32, of database: Database, _ schema: Schema) throws(FileError) -> Int {
    _ = try database.countRows(root: root)
    _ = try database.countRows(root: root, byIntegerIn: 1)
    for rowid in [Int64.min, 0, 1, .max] { _ = try database.row(rowid, root: root) }
    let definition = schema.entries.first { $0.rootPage == root }?.tableDefinition
    var rows = 0
    var values: [Value] = []
    for isTable in [true, false] {
      var cursor = try isTable ? database.rows(root: root) : database.entries(root: root)
      while let row = try cursor.next() {
        rows += 1
        row.record.decode(into: &values)
        _ = row.record.isWellFormed
        if let definition { _ = definition.values(of: row) }
      }
    }
    return rows
  }
}
