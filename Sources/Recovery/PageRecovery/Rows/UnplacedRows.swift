internal import SQLiteFormat

/// The fifth phase: writes the rows of pages that no table can be told for, and those that cannot be rows of the table whose
/// page they are on, into `lazaret_lost_and_found`, whose columns are those of SQLite's own table of that kind.
///
/// Pages without rowids that fit no table are those of indexes, whose entries are no rows: they are written too, since a table
/// without rowids that nothing tells of looks alike, and counted by themselves.
///
/// In: those pages and rows. Out: how many rows and how many entries they are.
struct UnplacedRows {
  /// How many records were written.
  struct Count {
    var rows: Int64 = 0

    var entries: Int64 = 0
  }

  private static let maximumFields = 500

  /// How many of the tables that a page fits are named at most.
  private static let namedCandidates = 8

  private static let table = "lazaret_lost_and_found"

  let context: RowContext

  /// Writes them; returns how many there are.
  func write() throws(SalvageError) -> Count {
    let pages = context.crawl.unplaced
    guard !pages.isEmpty || !context.misfits.isEmpty else { return Count() }
    var width = 1
    for page in pages { width = max(width, min(Self.maximumFields, context.crawl.map.fieldCount(page))) }
    for misfit in context.misfits { width = max(width, min(Self.maximumFields, misfit.fields)) }
    let insertion = try makeTable(width: width)
    var count = Count()
    try forEachRow(on: pages, width: width) { cell, page, kind, isEntry, payload throws(SalvageError) in
      try insertion.insert(payload.span, from: 0, length: payload.count, firstParameter: 4, fields: width) { bound in
        insertion.bind(Int64(page), at: 1)
        insertion.bind(Int64(bound), at: 2)
        if kind == .tableLeaf { insertion.bind(cell.rowid, at: 3) } else { insertion.bindNull(at: 3) }
        if bound < width { for field in bound..<width { insertion.bindNull(at: 4 + field) } }
      }
      if isEntry { count.entries += 1 } else { count.rows += 1 }
    }
    return count
  }

  /// Reads the rows of pages, then those that cannot be rows of their page's table.
  ///
  /// - Parameter body: takes the cell, its page and the kind of that, whether it is an entry of an index, and the record.
  private func forEachRow(
    on pages: [UInt32], width: Int, _ body: (LeafCell, UInt32, PageKind, Bool, [UInt8]) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    let any = RecordShape(
      fields: [RecordShape.Field](repeating: .init(allowed: .any, usual: .any), count: width), minimumFields: 1)
    var buffer = context.reader.makeBuffer()
    var scan = LeafScan()
    for page in pages {
      let candidates = try context.crawl.ties(for: page, &buffer) { index in
        !context.crawl.trees[index].isInternal && context.crawl.trees[index].kind != .index
      }
      guard try context.reader.readPlace(page, into: &buffer) else { continue }
      let kind = context.kind(of: page, hasRowids: context.crawl.map.look(page) == .tableLeaf)
      scan.read(
        buffer.span, start: 0, kind: kind, shape: any, geometry: context.reader.geometry, carves: false,
        admission: .all)
      let isIndex = kind != .tableLeaf && candidates.isEmpty
      try note(page, scan, candidates, isIndex: isIndex)
      for cell in scan.cells + scan.misfits.map(\.cell) {
        try body(cell, page, kind, isIndex, payload(of: cell, buffer))
      }
    }
    var current: UInt32 = 0
    for misfit in context.misfits {
      if misfit.page != current {
        guard try context.reader.readPlace(misfit.page, into: &buffer) else { continue }
        current = misfit.page
      }
      let owner = context.crawl.map.owner(misfit.page)
      let hasRowids = owner.map { context.tables.trees[$0].hasRowids } ?? true
      try body(
        misfit.cell, misfit.page, context.kind(of: misfit.page, hasRowids: hasRowids), false,
        payload(of: misfit.cell, buffer))
    }
  }

  /// The record of a cell, with its overflow pages as far as they can be had.
  private func payload(of cell: LeafCell, _ page: [UInt8]) throws(SalvageError) -> [UInt8] {
    var payload = context.localPart(of: cell, page.span)
    if cell.overflow != 0 { _ = try context.complete(&payload, of: cell) }
    RecordShape.clearReservedTypes(&payload)
    return payload
  }

  /// Notes where the rows of a page are, and which tables they fit.
  ///
  /// - Parameter candidates: those tables, by their places in the list of trees.
  private func note(
    _ page: UInt32, _ scan: LeafScan, _ candidates: [Int], isIndex: Bool
  ) throws(SalvageError) {
    guard let first = scan.cells.map(\.rowid).min(), let last = scan.cells.map(\.rowid).max() else { return }
    let names = candidates.map { context.crawl.trees[$0].name }
    let list =
      names.prefix(Self.namedCandidates).joined(separator: ", ") + (names.count > Self.namedCandidates ? ", …" : "")
    try context.tables.notes.notePage(
      Self.table,
      EvidenceNotes.PageNote(
        page: page, source: context.tables.source(of: page), foundBy: "content", keys: first...last,
        rows: scan.cells.count, certainty: .doubtful, doubt: nil,
        reason: isIndex
          ? "no root leads to it; it is like the page of an index, or of a table without rowids that nothing tells of"
          : names.isEmpty
            ? "no root leads to it, and it fits no table that is known"
            : "no root leads to it, and nothing tells which table it is of; it fits \(list)"))
  }

  /// Makes the table; returns the statement that writes a row.
  private func makeTable(width: Int) throws(SalvageError) -> OutputStatement {
    let columns = (0..<width).map { "c\($0)" }.joined(separator: ", ")
    try context.tables.database.execute(
      "CREATE TABLE \(Self.table) (rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER, \(columns))")
    let values = (1...(width + 3)).map { "?\($0)" }.joined(separator: ", ")
    return try context.tables.database.prepare(
      "INSERT INTO \(Self.table) (pgno, nfield, id, \(columns)) VALUES (\(values))")
  }
}
