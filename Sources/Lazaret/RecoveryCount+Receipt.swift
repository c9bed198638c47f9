internal import ManagedObjectModel
internal import PersistentStore
import Platform
package import Salvage

extension RecoveryCount {
  package init(_ result: Receipt.Salvage.Result) {
    self.init(result.entities, pairs: result.pairs, isComplete: result.isComplete)
    if result.mayLackTables == true { noteUnknownTables() }
    valuesSetAside = max(0, result.valuesSetAside ?? 0)
    unplaced = max(0, result.unplacedRows ?? 0)
    for loss in result.migrationLosses ?? [] { leaveOut(loss.count, isValues: loss.property != nil) }
  }

  package init(_ salvage: OpeningSalvage) {
    self.init(salvage.entities, pairs: salvage.pairAccounts, isComplete: salvage.isComplete)
    if salvage.mayLackTables == true { noteUnknownTables() }
    valuesSetAside = max(0, salvage.valuesSetAside ?? 0)
    unplaced = max(0, salvage.unplacedRows ?? 0)
    for loss in salvage.migrationLosses ?? [] { leaveOut(loss.count, isValues: loss.property != nil) }
  }

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
  package var count: RecoveryCount { RecoveryCount(self) }

  package var words: String { count.words }

  /// A sentence on incompleteness that no number of records expresses.
  package var reservationWords: String? { count.words(reserving: incompleteBecause ?? []) }

  package var recovered: Int64 { count.recovered }

  package var doubtful: Int64 { count.doubtful }

  package var lost: Int64 { count.lost }

  /// Whether `lost` is exact rather than an estimate.
  package var lostIsExact: Bool { !count.isEstimate }
}

extension Receipt {
  /// The records of a sound store that fits neither the app nor its own model; nil if damaged or not counted.
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
