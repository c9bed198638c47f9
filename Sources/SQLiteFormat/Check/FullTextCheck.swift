package import Platform

/// A check of an FTS5 index's blocks, without the terms in them (fts5_index.c).
package struct FullTextCheck {
  /// The pages of a segment that a search reads.
  private struct Segment {
    let first: Int64
    let last: Int64
    var found: Int64 = 0
  }

  /// The rowid of the list of segments.
  private static let structureRow: Int64 = 10

  private var segments: [Int64: Segment] = [:]

  /// The number of blocks that are missing or malformed.
  package private(set) var damaged = 0

  /// Returns nil for a table without FTS5's blocks.
  package init?(of table: SchemaEntry, in database: Database, _ schema: Schema) throws(FileError) {
    guard table.tableDefinition?.module?.lowercased() == "fts5",
      let root = schema.table(named: table.name + "_data")?.rootPage, root > 0
    else { return nil }
    guard let structure = try database.row(Self.structureRow, root: root)?.block, readSegments(structure) else {
      damaged = 1
      return
    }
    var cursor = try database.rows(root: root)
    while let row = try cursor.next() {
      guard row.rowid > Self.structureRow, var segment = segments[row.rowid >> 37] else {
        // An empty index has no blocks.
        if row.rowid > Self.structureRow, segments.isEmpty { damaged += 1 }
        continue
      }
      // Bit 36 and the five below it are for pages of other kinds.
      let page = row.rowid & (1 << 37 - 1)
      guard page >= segment.first, page <= segment.last else { continue }
      segment.found += 1
      segments[row.rowid >> 37] = segment
      if !Self.isLeaf(row.block ?? []) { damaged += 1 }
    }
    for segment in segments.values { damaged += Int(segment.last - segment.first + 1 - segment.found) }
  }

  /// Reads a structure record; false if malformed.
  private mutating func readSegments(_ block: [UInt8]) -> Bool {
    var offset = 4
    // The second version has five more numbers for each segment.
    let isSecond = block.count >= 8 && block[4..<8].elementsEqual([0xff, 0, 0, 1])
    if isSecond { offset += 4 }
    func number() -> Int64? { Varint.read(block.span, at: &offset, before: block.count) }
    guard let levels = number(), number() != nil, number() != nil, levels >= 0 else { return false }
    for _ in 0..<min(levels, Int64(block.count)) {
      guard number() != nil, let count = number(), count >= 0 else { return false }
      for _ in 0..<count {
        guard let identifier = number(), let first = number(), let last = number(), first >= 0, last >= first,
          last <= Int32.max
        else { return false }
        guard !isSecond || (0..<5).allSatisfy({ _ in number() != nil }) else { return false }
        // A merge leaves an empty segment as 0 to 0.
        segments[identifier] = Segment(first: max(1, first), last: last)
      }
    }
    return true
  }

  /// Whether the offsets at a leaf's beginning and end lie within it.
  private static func isLeaf(_ block: [UInt8]) -> Bool {
    let bytes = block.span
    guard let firstRow = bytes.uint16(at: 0), let end = bytes.uint16(at: 2), end >= 4, end <= bytes.count,
      firstRow == 0 || (4..<end).contains(firstRow)
    else { return false }
    var (offset, term) = (end, 0)
    while offset < bytes.count {
      guard let step = Varint.read(bytes, at: &offset, before: bytes.count), step > 0, step < end else { return false }
      term += Int(step)
      guard term < end else { return false }
    }
    return true
  }
}

extension Row {
  fileprivate var block: [UInt8]? { record.value(at: 1)?.bytes }
}
