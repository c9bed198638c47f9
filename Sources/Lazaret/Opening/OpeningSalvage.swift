internal import ManagedObjectModel
internal import Migration
package import Platform
package import Salvage
import SystemPackage

/// A salvage for an opening.
package struct OpeningSalvage: Sendable, Hashable, Codable {
  package var state: Receipt.Salvage.State

  /// The salvaged store, which stays in quarantine.
  package var store: PathText?

  package var report: PathText?

  /// The file of the set-aside rows and values.
  package var setAside: PathText?

  /// Whether all content was recovered without doubt.
  package var isComplete: Bool

  /// Reasons for incompleteness other than lost and doubtful records.
  var incompleteBecause: [String]?

  /// Whether content other than records is missing or doubtful; nil if complete or unknown.
  var lacksDetails: Bool?

  /// Whether there is a result; otherwise the numbers are 0 and not encoded.
  var hasResult: Bool

  package var recovered: Int64

  /// The doubtful ones among the recovered records.
  var doubtful: Int64

  /// The records found whole but set aside.
  var recordsSetAside: Int64?

  package var lost: Int64

  /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
  package var lostIsExact: Bool

  /// Recovered, set-aside and lost records.
  var total: Int64

  /// The recovered percentage, rounded down.
  package var percent: Int?

  /// The many-to-many pairs, if any.
  package var pairs: PairNumbers?

  /// Doubtful records by reason, with a salvage report's codes.
  var doubtfulReasons: [String: Int64]

  /// The recovered share, from 0 to 100, for programs that read it; shown nowhere.
  var score: Int?

  package var entities: [Receipt.Salvage.Entity]

  /// The accounts of many-to-many pairs, by table.
  var pairAccounts: [Receipt.Salvage.Entity]?

  /// Whether the store may have held unknown tables; nil if it held no table.
  var mayLackTables: Bool?

  /// The values set aside for lack of a column.
  package var valuesSetAside: Int64?

  /// The rows set aside because they fit no table.
  var unplacedRows: Int64?

  package var migrationLosses: [Receipt.Salvage.MigrationLoss]?

  /// The reason for a missing usable result.
  package var failure: Receipt.Reason?

  private enum CodingKeys: String, CodingKey {
    case state
    case store
    case report
    case setAside
    case isComplete = "complete"
    case incompleteBecause
    case lacksDetails
    case recovered
    case doubtful
    case recordsSetAside
    case lost
    case lostIsExact
    case total
    case percent
    case pairs
    case doubtfulReasons
    case score
    case entities
    case pairAccounts = "relationships"
    case mayLackTables
    case valuesSetAside
    case unplacedRows
    case migrationLosses
    case failure
  }

  /// Creates a receipt's account; nil if no salvage was requested.
  init?(_ stored: QuarantinedStore) {
    guard let salvage = stored.receipt?.salvage else { return nil }
    func path(_ name: PathText?) -> PathText? {
      name?.path?.lastComponent.map { PathText(stored.files.folder.appending($0)) }
    }
    let result = salvage.result
    state = salvage.state
    store = path(result?.name)
    report = path(result?.report)
    setAside = path(result?.setAside)
    hasResult = result != nil
    isComplete = result?.isComplete ?? false
    incompleteBecause = result?.incompleteBecause
    lacksDetails = result?.lacksDetails
    let count = result.map { RecoveryCount($0) } ?? RecoveryCount(isComplete: false)
    recovered = count.recovered
    doubtful = count.doubtful
    recordsSetAside = count.setAside == 0 ? nil : count.setAside
    lost = count.lost
    lostIsExact = !count.isEstimate
    total = count.total
    percent = count.percent
    pairs = count.pairs.known.map(PairNumbers.init)
    doubtfulReasons = DoubtReason.codes(count.doubtReasons)
    score = result?.score
    entities = result?.entities ?? []
    pairAccounts = result?.pairs
    mayLackTables = result?.mayLackTables
    valuesSetAside = result?.valuesSetAside
    unplacedRows = result?.unplacedRows
    migrationLosses = result?.migrationLosses
    let isWaiting = salvage.state == .salvaged && result?.isUsable != true
    failure = salvage.state == .failed || isWaiting ? salvage.failure : nil
  }

  /// A sentence on incompleteness that no number of records expresses.
  package var reservationWords: String? { count.words(reserving: incompleteBecause ?? []) }

  package var count: RecoveryCount { RecoveryCount(self) }

  var hasMost: Bool { (count.percent ?? 0) > 50 }

  package var isInstalled: Bool { state == .installed }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    state = try values.decode(Receipt.Salvage.State.self, forKey: .state)
    store = try values.decodeIfPresent(PathText.self, forKey: .store)
    report = try values.decodeIfPresent(PathText.self, forKey: .report)
    setAside = try values.decodeIfPresent(PathText.self, forKey: .setAside)
    isComplete = try values.decode(Bool.self, forKey: .isComplete)
    incompleteBecause = try values.decodeIfPresent([String].self, forKey: .incompleteBecause)
    lacksDetails = try values.decodeIfPresent(Bool.self, forKey: .lacksDetails)
    hasResult = values.contains(.recovered)
    recovered = try values.decodeIfPresent(Int64.self, forKey: .recovered) ?? 0
    doubtful = try values.decodeIfPresent(Int64.self, forKey: .doubtful) ?? 0
    recordsSetAside = try values.decodeIfPresent(Int64.self, forKey: .recordsSetAside)
    lost = try values.decodeIfPresent(Int64.self, forKey: .lost) ?? 0
    lostIsExact = try values.decodeIfPresent(Bool.self, forKey: .lostIsExact) ?? true
    total = try values.decodeIfPresent(Int64.self, forKey: .total) ?? 0
    percent = try values.decodeIfPresent(Int.self, forKey: .percent)
    pairs = try values.decodeIfPresent(PairNumbers.self, forKey: .pairs)
    doubtfulReasons = try values.decodeIfPresent([String: Int64].self, forKey: .doubtfulReasons) ?? [:]
    score = try values.decodeIfPresent(Int.self, forKey: .score)
    entities = try values.decodeIfPresent([Receipt.Salvage.Entity].self, forKey: .entities) ?? []
    pairAccounts = try values.decodeIfPresent([Receipt.Salvage.Entity].self, forKey: .pairAccounts)
    mayLackTables = try values.decodeIfPresent(Bool.self, forKey: .mayLackTables)
    valuesSetAside = try values.decodeIfPresent(Int64.self, forKey: .valuesSetAside)
    unplacedRows = try values.decodeIfPresent(Int64.self, forKey: .unplacedRows)
    migrationLosses = try values.decodeIfPresent([Receipt.Salvage.MigrationLoss].self, forKey: .migrationLosses)
    failure = try values.decodeIfPresent(Receipt.Reason.self, forKey: .failure)
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(state, forKey: .state)
    try values.encodeIfPresent(store, forKey: .store)
    try values.encodeIfPresent(report, forKey: .report)
    try values.encodeIfPresent(setAside, forKey: .setAside)
    try values.encode(isComplete, forKey: .isComplete)
    try values.encodeIfPresent(incompleteBecause, forKey: .incompleteBecause)
    try values.encodeIfPresent(lacksDetails, forKey: .lacksDetails)
    if hasResult {
      try values.encode(recovered, forKey: .recovered)
      try values.encode(doubtful, forKey: .doubtful)
      try values.encode(lost, forKey: .lost)
      try values.encode(lostIsExact, forKey: .lostIsExact)
      try values.encode(total, forKey: .total)
      try values.encode(doubtfulReasons, forKey: .doubtfulReasons)
      try values.encode(entities, forKey: .entities)
    }
    try values.encodeIfPresent(recordsSetAside, forKey: .recordsSetAside)
    try values.encodeIfPresent(percent, forKey: .percent)
    try values.encodeIfPresent(pairs, forKey: .pairs)
    try values.encodeIfPresent(score, forKey: .score)
    try values.encodeIfPresent(pairAccounts, forKey: .pairAccounts)
    try values.encodeIfPresent(mayLackTables, forKey: .mayLackTables)
    try values.encodeIfPresent(valuesSetAside, forKey: .valuesSetAside)
    try values.encodeIfPresent(unplacedRows, forKey: .unplacedRows)
    try values.encodeIfPresent(migrationLosses, forKey: .migrationLosses)
    try values.encodeIfPresent(failure, forKey: .failure)
  }

  /// Many-to-many pairs.
  package struct PairNumbers: Sendable, Hashable, Codable {
    package var recovered: Int64

    /// The pairs set aside because one of their records is not in the salvaged store.
    var setAside: Int64

    package var lost: Int64

    /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
    package var lostIsExact: Bool

    /// The pairs that the store held, as far as known.
    var total: Int64

    init(_ count: PairCount) {
      recovered = count.recovered
      setAside = count.setAside
      lost = count.lost
      lostIsExact = count.isLostExact
      total = count.total
    }
  }
}
