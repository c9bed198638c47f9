internal import SQLiteFormat

extension Crawl {
  /// Gives pages whose first sector is lost to the tables whose rows the rest of them holds.
  ///
  /// Where the page that led to such a page is lost too, nothing but its rows tells whose it is: they fit a table, and
  /// their rowids are those of a gap in it.
  mutating func placeTornPages() throws(SalvageError) {
    let sector = TornSectors.sector
    guard map.pageCount >= 2, reader.usableSize > sector else { return }
    let candidates = trees.indices.filter { trees[$0].hasRowids && !trees[$0].gaps.isEmpty && trees[$0].isWalked }
    guard !candidates.isEmpty else { return }
    var buffer = reader.makeBuffer()
    for page in 2...map.pageCount where map.fate(page) == .unclaimed && map.look(page) == .linked {
      guard try reader.readPlace(page, into: &buffer),
        ChainTraits.isZero(buffer.span, 0..<sector), !ChainTraits.isZero(buffer.span, sector..<(sector + 4))
      else { continue }
      var fits: [(tree: Int, keys: ClosedRange<Int64>, bytes: Int)] = []
      for tree in candidates {
        if let fit = fit(buffer.span, from: sector, tree: tree) { fits.append((tree, fit.keys, fit.bytes)) }
      }
      fits.sort { ($0.bytes, $1.tree) > ($1.bytes, $0.tree) }
      guard let best = fits.first, fits.count < 2 || fits[1].bytes * 5 < best.bytes * 4 else { continue }
      map.claim(page, .damaged, owner: best.tree)
      trees[best.tree].gaps.append(
        Tree.Gap(page: page, above: best.keys.lowerBound.subtractingClamped(1), upTo: best.keys.upperBound))
    }
  }

  /// The rows of a table in what is left of a page: between which rowids they are, and how many bytes they take; nil where
  /// they are too few, or not those of a gap.
  private func fit(_ bytes: Span<UInt8>, from start: Int, tree: Int) -> (keys: ClosedRange<Int64>, bytes: Int)? {
    let cells = Carving.cells(
      bytes, in: start..<reader.usableSize, kind: .tableLeaf, shape: trees[tree].shape, geometry: reader.geometry,
      covered: [], encoding: reader.layout.encoding)
    var keys: ClosedRange<Int64>?
    var covered = 0
    for cell in cells {
      // A gap whose own page is looked through already is that of a leaf, and this page is another time's.
      let isMissing = trees[tree].gaps.contains {
        $0.above < cell.rowid && cell.rowid <= $0.upTo && map.fate($0.page) != .damaged
      }
      guard isMissing, !overlaps(tree, cell.rowid, cell.rowid) else { continue }
      keys = min(keys?.lowerBound ?? cell.rowid, cell.rowid)...max(keys?.upperBound ?? cell.rowid, cell.rowid)
      covered += cell.end - cell.offset
    }
    // All of a page's content is cells, but for the one that the lost sector cuts.
    guard let keys, covered * 2 > reader.usableSize - start else { return nil }
    return (keys, covered)
  }
}
