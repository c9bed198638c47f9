internal import SQLiteFormat

extension RowHarvest {
  /// The most fields that the table of unplaced rows has.
  private static let maximumFields = 500

  /// Writes rows of pages that no table can be told for into `lazaret_lost_and_found`, whose columns are those of SQLite's
  /// own table of that kind.
  func writeUnplaced() throws(SalvageError) {
    guard !crawl.unplaced.isEmpty else { return }
    var width = 1
    for page in crawl.unplaced { width = max(width, min(Self.maximumFields, crawl.map.fieldCount(page))) }
    let columns = (0..<width).map { "c\($0)" }
    try database.execute(
      "CREATE TABLE lazaret_lost_and_found (rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER, "
        + columns.joined(separator: ", ") + ")")
    let values = (1...(width + 3)).map { "?\($0)" }
    let insertion = try database.prepare(
      "INSERT INTO lazaret_lost_and_found (pgno, nfield, id, \(columns.joined(separator: ", "))) "
        + "VALUES (\(values.joined(separator: ", ")))")
    let any = RecordShape(
      fields: [RecordShape.Field](repeating: .init(allowed: .any, usual: .any), count: width), minimumFields: 1)
    var buffer = reader.makeBuffer()
    var scan = LeafScan()
    var payload: [UInt8] = []
    for page in crawl.unplaced {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      let kind: PageKind =
        switch crawl.map.look(page) {
        case .tableLeaf: .tableLeaf
        case .indexInterior: .indexInterior
        default: .indexLeaf
        }
      scan.read(buffer.span, start: 0, kind: kind, shape: any, geometry: reader.geometry, carves: false)
      for cell in scan.cells {
        payload.removeAll(keepingCapacity: true)
        payload.append(contentsOf: buffer[cell.payload..<(cell.payload + cell.local)])
        if cell.overflow != 0 {
          _ = try chains.follow(
            from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, owner: nil)
        }
        try insertion.insert(payload.span, from: 0, length: payload.count, firstParameter: 4, fields: width) { bound in
          insertion.bind(Int64(page), at: 1)
          insertion.bind(Int64(bound), at: 2)
          if kind == .tableLeaf { insertion.bind(cell.rowid, at: 3) } else { insertion.bindNull(at: 3) }
          if bound < width { for field in bound..<width { insertion.bindNull(at: 4 + field) } }
        }
        unplacedRows += 1
      }
    }
  }

  /// Whether a row belongs to its table although its entity number is of none: all trees are sound, so that the row is
  /// where it should be, and the table has rows of one entity alone, which is how Core Data reads it.
  func isOfSoleEntity(_ cell: LeafCell, _ bytes: Span<UInt8>, tree index: Int) -> Bool {
    guard isSound, crawl.trees[index].isListed, let others = crawl.trees[index].otherNumbers else { return false }
    return crawl.trees[index].shape.entityNumber(bytes, cell).map { !others.contains($0) } ?? true
  }

  /// Keeps a row apart whose entity number is none of its table's.
  func keepUnknown(
    _ cell: LeafCell, _ bytes: Span<UInt8>, page: UInt32, tree index: Int, source: String
  ) throws(SalvageError) {
    var payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    if cell.overflow != 0 {
      _ = try chains.follow(
        from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, owner: index)
    }
    tallies[index].destroyed += 1
    try keepApart(
      payload.span, from: 0, length: payload.count, cell, page: page, tree: index, source: source,
      reason: "its entity number is none of its table's")
  }
}
