internal import PersistentStore
internal import RecoveryKit
internal import SQLiteFormat

extension KitEvidence {
  /// The rows of a table that are lost; nil where the kit does not know.
  ///
  /// Where nothing was written to the store since, each row that the kit lists and that is not there is lost; where the files
  /// are as it noted them and a log of later changes may be missing, about as many. Where something was written, a row that is
  /// not there may have been deleted: only those count that were where pages are lost.
  func losses(
    of index: Int, _ outcome: RowOutcome, _ estimate: LossEstimate, numbers: [Int64]
  ) throws(SalvageError) -> EntityAccounts.Losses? {
    let tree = outcome.crawl.trees[index]
    guard let table = kit.table(named: tree.name), table.hasRowids == tree.hasRowids else { return nil }
    // Most rows of a store that is rebuilt are no rows of the output's tables.
    let taken = tree.hasRowids ? outcome.live[index]?.takenKeys : nil
    guard tree.hasRowids, table.groups.allSatisfy({ $0.keys != nil }), let taken else {
      guard use.isCurrent else { return nil }
      let found = outcome.tallies[index].recovered + Int64(outcome.tallies[index].ofUnknownEntity.count)
      let lost = max(0, table.rows - found)
      return EntityAccounts.Losses(count: lost, basis: lost == 0 ? .none : .kit)
    }
    var missing: [Int64: KeyRanges] = [:]
    // What was found whole and set aside is not lost.
    let present = try presentKeys(of: tree, in: outcome.database).union(taken)
      .union(KeyRanges(outcome.tallies[index].ofUnknownEntity))
    for group in table.groups {
      let keys = (group.keys ?? KeyRanges()).subtracting(present)
      if !keys.isEmpty { missing[group.entity] = keys }
    }
    var newer: Int64 = 0
    if !isAsNoted {
      guard !tree.isComplete || outcome.tallies[index].destroyed > 0 else { return EntityAccounts.Losses() }
      let lost = try estimate.places(of: index, numbers: numbers)
      missing = missing.mapValues { $0.intersection(lost) }.filter { !$0.value.isEmpty }
      newer = try rowsSince(table, of: index, estimate, numbers: numbers)
    }
    let all = missing.values.reduce(KeyRanges()) { $0.union($1) }
    guard all.count + newer > 0 else { return EntityAccounts.Losses() }
    var losses = EntityAccounts.Losses(count: all.count + newer, basis: use.isCurrent ? .kit : .estimate, keys: all)
    if numbers.count > 1 { losses.byEntity = missing }
    if newer > 0 {
      let listed = keys(ofTable: tree.name) ?? KeyRanges()
      losses.take(likely: try estimate.keysOfLostEnd(of: index, numbers: numbers).subtracting(listed))
    }
    return losses
  }

  private func presentKeys(of tree: Tree, in database: OutputDatabase) throws(SalvageError) -> KeyRanges {
    guard let definition = tree.definition else { return KeyRanges() }
    let name =
      definition.rowidAlias.map { SQLText.quotedIdentifier(definition.columns[$0].name) }
      ?? ["rowid", "_rowid_", "oid"].first { definition.column(named: $0) == nil } ?? "rowid"
    let rows = try database.prepare("SELECT \(name) FROM \(SQLText.quotedIdentifier(tree.name)) ORDER BY 1")
    var keys = KeyRanges()
    while try rows.step() { keys.append(rows.integer(0)) }
    return keys
  }

  /// The rowids that the kit lists for a table; nil where it lists none.
  func keys(ofTable name: String) -> KeyRanges? {
    guard let table = kit.table(named: name), table.groups.allSatisfy({ $0.keys != nil }) else { return nil }
    return table.groups.reduce(KeyRanges()) { $0.union($1.keys ?? KeyRanges()) }
  }

  /// Rows that were likely added since the kit was made and are lost, by their place behind all that it lists.
  private func rowsSince(
    _ table: RecoveryKit.Table, of index: Int, _ estimate: LossEstimate, numbers: [Int64]
  ) throws(SalvageError) -> Int64 {
    let last = table.groups.compactMap { $0.keys?.ranges.last?.upperBound }.max() ?? 0
    var rows: Int64 = 0
    for hole in try estimate.holes(of: index, numbers: numbers) where hole.isBounded && hole.upTo > last {
      rows = rows.addingClamped(hole.upTo.subtractingClamped(max(last, hole.above)))
    }
    return min(rows, try estimate.rowsOnLostPages(of: index, numbers: numbers) ?? rows)
  }
}
