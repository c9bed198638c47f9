internal import SQLiteFormat

extension LossEstimate {
  /// The usual fill after insertions in any order.
  private static let usualFill = 0.7

  private static let innerPageLimit = 256

  /// Returns the lost rows of a table without rowids, by its tree's child pages; nil if unknown.
  func rowsWithoutRowids(of index: Int) throws -> Int64? {
    let tree = crawl.trees[index]
    let tally = outcome.tallies[index]
    guard tree.leaves.isEmpty else {
      guard !tree.isWalked, strayPages > 0 else { return tally.onLostPages }
      let mean = Double(tally.recovered) / Double(tree.leaves.count)
      return Int64((Double(strayPages) * shareOfPages(of: index) * mean).rounded(.up))
    }
    guard tree.isWalked else { return strayPages > 0 || tree.rootBehindEnd > 0 ? nil : 0 }
    let lost = tree.gaps.count { gap in
      gap.page > 0 && outcome.reader.moved[gap.page] == nil && crawl.map.fate(gap.page) != .placed
    }
    guard lost > 0 else { return tally.onLostPages }
    return try rowsOfLeaf(of: tree).map { Int64(($0 * Double(lost)).rounded(.up)) }
  }

  /// Returns the rows per leaf, by row sizes on interior pages.
  private func rowsOfLeaf(of tree: Tree) throws -> Double? {
    let usable = outcome.reader.usableSize
    var buffer = outcome.reader.makeBuffer()
    var bytes = 0
    var cells = 0
    for page in tree.innerPages.prefix(Self.innerPageLimit) {
      guard try outcome.reader.readPlace(page, into: &buffer), let count = buffer.span.uint16(at: 3),
        let start = buffer.span.uint16(at: 5), count > 0, start >= 12 + 2 * count, start < usable
      else { continue }
      bytes += usable - start
      cells += count
    }
    guard cells > 0 else { return nil }
    // An interior cell also has a 4-byte page number; the pointer takes 2 bytes.
    let size = max(4, Double(bytes) / Double(cells) - 4) + 2
    return max(1, Self.usualFill * Double(usable - 8) / size)
  }

  /// Returns the highest rowid noted for an `AUTOINCREMENT` table.
  func sequenceKey(of table: Tree) throws -> Int64? {
    guard let tree = crawl.trees.first(where: { isSame($0.name, "sqlite_sequence") && $0.isWalked }) else { return nil }
    var buffer = outcome.reader.makeBuffer()
    var scan = LeafCellScan()
    for page in tree.leaves where crawl.map.fate(page) == .tree {
      guard try outcome.reader.readPlace(page, into: &buffer) else { continue }
      scan.read(
        buffer.span, start: 0, kind: .tableLeaf, shape: tree.shape, geometry: outcome.reader.geometry, carves: false)
      for cell in scan.cells where cell.overflow == 0 {
        let payload = buffer[cell.payload..<(cell.payload + cell.local)]
        guard let record = Record(payload: payload, encoding: outcome.reader.layout.encoding),
          let name = record.value(at: 0)?.string, isSame(name, table.name)
        else { continue }
        return record.value(at: 1)?.integer
      }
    }
    return nil
  }

  /// Returns the lost rowids; nil unless indexes agree.
  func countedKeys(of table: Int) throws -> KeyRanges? {
    let tally = outcome.tallies[table]
    guard tally.isCounted, !tally.isDisputed else { return nil }
    let keys = try listedKeys(of: table)
    return keys.count == tally.lost ? keys : nil
  }

  /// Returns the rowids in uncontradicted indexes without a row.
  func listedKeys(of table: Int) throws -> KeyRanges {
    var keys = KeyRanges()
    guard let live = outcome.live[table] else { return keys }
    for rowid in outcome.tallies[table].listed where try !live.hasRow(rowid) { keys.append(rowid) }
    return keys
  }
}
