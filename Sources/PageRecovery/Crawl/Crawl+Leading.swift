internal import SQLiteFormat

extension Crawl {
  /// How many entries of a page are looked for among the rows.
  private static let entrySample = 16

  /// The pages without rowids that a tree leads to and that were not taken for its, as they look more like another's.
  ///
  /// SQLite reads them as those of the tree that leads to them. Of two indexes it is the one's whose table has the
  /// rows of its entries; likeness alone does not tell, as an index of a column without a type holds anything.
  func pagesLedTo() throws(SalvageError) -> [UInt32: Int] {
    var leading: [UInt32: Int] = [:]
    for tree in trees.indices where !trees[tree].hasRowids && !trees[tree].isDropped {
      for page in trees[tree].gaps.map(\.page) where page > 0 && page <= map.pageCount {
        guard map.look(page) == .indexLeaf || map.look(page) == .indexInterior else { continue }
        if let owner = map.owner(page), owner != tree, trees.indices.contains(owner) {
          guard try agreement(of: page, with: tree) > agreement(of: page, with: owner) else { continue }
        }
        leading[page] = tree
      }
    }
    return leading
  }

  /// How many of some entries of a page an index would have of the rows of its table.
  private func agreement(of page: UInt32, with index: Int) throws(SalvageError) -> Int {
    guard trees[index].kind == .index, let table = trees[index].table, trees[table].hasRowids,
      let definition = trees[table].definition, let name = trees[index].indexedColumns.first ?? nil,
      let column = definition.column(named: name), column != definition.rowidAlias,
      let field = definition.storedColumns.firstIndex(of: column)
    else { return 0 }
    let rows = PageRows(reader)
    let last = trees[index].indexedColumns.count
    var values: [Int64: Int] = [:]
    try rows.forEachEntry(on: page, kind: map.look(page) == .indexInterior ? .indexInterior : .indexLeaf) { record in
      guard values.count < Self.entrySample, let rowid = record.value(at: last)?.integer,
        let key = IndexedValues.key(record.value(at: 0))
      else { return }
      values[rowid] = key
    }
    var agreeing = 0
    for page in Set(values.keys.compactMap { leaf(of: table, endingFrom: $0) }) {
      try rows.forEach(on: page) { row in
        guard let value = values[row.rowid] else { return }
        if IndexedValues.key(row.record.value(at: field)) == value { agreeing += 1 }
      }
    }
    return agreeing
  }
}
