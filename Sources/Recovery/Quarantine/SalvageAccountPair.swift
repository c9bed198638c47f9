internal import StoreFiles

/// The accounts that two results of salvaging one quarantined store have of the same records.
struct SalvageAccountPair {
  /// The name of the entity; that of the table where the results have other entities in it.
  let name: String

  let table: String

  /// What the earlier result has; nil where it does not know the table.
  let earlier: Receipt.Salvage.Entity?

  /// What the later result has; nil where it does not know the table.
  let later: Receipt.Salvage.Entity?

  /// The accounts of two results by table and entity, in that order.
  ///
  /// Several entities share the table of their hierarchy. Where the results name others in a table, as one does that was made
  /// without a model, the sums of the table are compared.
  static func all(
    _ earlier: [Receipt.Salvage.Entity], _ later: [Receipt.Salvage.Entity]
  ) -> [SalvageAccountPair] {
    let before = Dictionary(grouping: earlier, by: \.table)
    let after = Dictionary(grouping: later, by: \.table)
    return Set(before.keys).union(after.keys).sorted().flatMap { table in
      pairs(of: table, before[table] ?? [], after[table] ?? [])
    }
  }

  /// The accounts of two results, those of the pairs of relationships among them where both have these.
  static func all(_ earlier: Receipt.Salvage.Result, _ later: Receipt.Salvage.Result) -> [SalvageAccountPair] {
    guard let before = earlier.pairs, let after = later.pairs else { return all(earlier.entities, later.entities) }
    return all(earlier.entities + before, later.entities + after)
  }

  private static func pairs(
    of table: String, _ earlier: [Receipt.Salvage.Entity], _ later: [Receipt.Salvage.Entity]
  ) -> [SalvageAccountPair] {
    let names = Set(earlier.map(\.name))
    guard names == Set(later.map(\.name)), names.count == earlier.count, names.count == later.count else {
      let (before, after) = (sum(of: table, earlier), sum(of: table, later))
      return [
        SalvageAccountPair(name: (after ?? before)?.name ?? table, table: table, earlier: before, later: after)
      ]
    }
    return zip(earlier.ordered { $0.name < $1.name }, later.ordered { $0.name < $1.name }).map { before, after in
      SalvageAccountPair(name: after.name, table: table, earlier: before, later: after)
    }
  }

  /// The accounts of a table as one; nil for none.
  private static func sum(of table: String, _ accounts: [Receipt.Salvage.Entity]) -> Receipt.Salvage.Entity? {
    guard accounts.count > 1 else { return accounts.first }
    // Receipts are not to be trusted: no sum of theirs may stop the run.
    func sum(_ number: (Receipt.Salvage.Entity) -> Int64) -> Int64 { accounts.reduce(0) { $0 &+ number($1) } }
    let taken = sum { $0.fromBackup ?? 0 }
    let apart = sum { $0.setAside ?? 0 }
    return Receipt.Salvage.Entity(
      name: table, table: table, recovered: sum(\.recovered), doubtful: sum(\.doubtful),
      fromBackup: taken == 0 ? nil : taken, setAside: apart == 0 ? nil : apart, lost: sum(\.lost),
      lostIsExact: accounts.allSatisfy(\.lostIsExact))
  }
}
