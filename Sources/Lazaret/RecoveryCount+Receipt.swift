internal import ManagedObjectModel
internal import PersistentStore
import Platform
package import Salvage

extension RecoveryCount {
  /// The numbers of a salvaged store, as its receipt has them.
  package init(_ result: Receipt.Salvage.Result) {
    self.init(result.entities, pairs: result.pairs, isComplete: result.isComplete)
    if result.mayLackTables == true { noteUnknownTables() }
    valuesSetAside = max(0, result.valuesSetAside ?? 0)
    unplaced = max(0, result.unplacedRows ?? 0)
    for loss in result.migrationLosses ?? [] { leaveOut(loss.count, isValues: loss.property != nil) }
  }

  /// The numbers of the records of an opening's salvage.
  package init(_ salvage: OpeningSalvage) {
    self.init(salvage.entities, pairs: salvage.pairAccounts, isComplete: salvage.isComplete)
    if salvage.mayLackTables == true { noteUnknownTables() }
    valuesSetAside = max(0, salvage.valuesSetAside ?? 0)
    unplaced = max(0, salvage.unplacedRows ?? 0)
    for loss in salvage.migrationLosses ?? [] { leaveOut(loss.count, isValues: loss.property != nil) }
  }

  /// The numbers of a single entity.
  package init(_ entity: Receipt.Salvage.Entity) {
    self.init(
      [entity], pairs: nil, isComplete: !entity.hasLosses && entity.doubtful == 0 && entity.setAside ?? 0 == 0)
  }

  private init(_ entities: [Receipt.Salvage.Entity], pairs accounts: [Receipt.Salvage.Entity]?, isComplete: Bool) {
    self.init(isComplete: isComplete)
    for account in accounts ?? [] {
      pairs.add(
        recovered: account.recovered, setAside: account.setAside ?? 0, lost: account.lost, isExact: account.lostIsExact,
        isUnknown: account.lostBasis.flatMap(SalvageReport.Entity.Basis.init) == .unknown)
    }
    for entity in entities {
      add(
        recovered: entity.recovered, doubtful: entity.doubtful,
        reasons: DoubtReason.counts(entity.doubtfulReasons, of: entity.doubtful), setAside: entity.setAside ?? 0,
        lost: entity.lost, isExact: entity.lostIsExact, basis: entity.lostBasis.flatMap(SalvageReport.Entity.Basis.init)
      )
    }
  }
}

extension Receipt.Salvage.Entity {
  /// What a report says of an entity.
  init(_ entity: SalvageReport.Entity) {
    self.init(
      name: entity.name, table: entity.table, recovered: entity.recovered, doubtful: entity.doubtful,
      doubtfulReasons: entity.doubts.isEmpty ? nil : DoubtReason.codes(entity.doubts),
      fromBackup: entity.fromBackup == 0 ? nil : entity.fromBackup,
      setAside: entity.setAside == 0 ? nil : entity.setAside, lost: entity.lost, lostIsExact: entity.isLostExact,
      lostBasis: entity.lostBasis.rawValue)
  }
}

extension Receipt.Salvage.Result {
  /// The numbers of its records.
  package var count: RecoveryCount { RecoveryCount(self) }

  /// What came out, in a few plain sentences.
  package var words: String { count.words }

  /// Why it is not complete, in a sentence, where no number of records tells it.
  package var reservationWords: String? { count.words(reserving: incompleteBecause ?? []) }

  /// Records recovered in all.
  package var recovered: Int64 { count.recovered }

  /// Doubtful records in all.
  package var doubtful: Int64 { count.doubtful }

  /// Records lost in all.
  package var lost: Int64 { count.lost }

  /// Whether the number of lost records is exact; else it is an estimate.
  package var lostIsExact: Bool { !count.isEstimate }
}

extension Receipt {
  /// How many records a store holds that is in quarantine because it does not fit the app, or its own model; nil where it is
  /// damaged, or they were not counted.
  var soundRecords: Int64? {
    let codes = [
      "other-model", "unknown-version", "not-core-data", "other-schema", VerdictReason.notMigratableCode,
      VerdictReason.tablesMissingCode, VerdictReason.repairableCode, VerdictReason.migrationFailedCode,
      VerdictReason.repairFailedCode,
    ]
    guard codes.contains(reason.code), let entities else { return nil }
    var sum: Int64 = 0
    for entity in entities {
      guard let rows = entity.rows else { return nil }
      sum = max(0, sum &+ Int64(rows))
    }
    return sum
  }
}
