extension SalvageReport {
  /// The accounts of what holds records of the app's.
  ///
  /// Core Data's own tables hold none: its lists, the pairs of its relationships, its history, and its notes on what it
  /// mirrors.
  public var records: [Entity] { isCoreData ? entities.filter { !$0.isCoreDatasOwn } : entities }

  /// The accounts of Core Data's own tables.
  public var ownTables: [Entity] { isCoreData ? entities.filter(\.isCoreDatasOwn) : [] }

  /// The numbers of the records, which every text, list and page takes from here.
  public var count: RecoveryCount {
    var count = RecoveryCount(records, isComplete: isComplete)
    count.unplaced = max(0, unplacedRows)
    return count
  }

  /// Whether any row is doubtful, Core Data's own included.
  package var hasDoubts: Bool { entities.contains { $0.doubtful > 0 } }
}

extension SalvageReport.Entity {
  /// The numbers of this entity alone.
  public var count: RecoveryCount { RecoveryCount([self], isComplete: !hasLosses && doubtful == 0) }

  /// Whether a table of a Core Data store is Core Data's own; those of entities begin with `Z` and have their names.
  fileprivate var isCoreDatasOwn: Bool {
    guard name == table else { return false }
    let name = table.uppercased()
    return name.hasPrefix("Z_") || name.hasPrefix("ANSCK") || Self.history.contains(name)
  }

  private static let history: Set<String> = ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"]
}
