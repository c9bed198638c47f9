internal import ManagedObjectModel
internal import Migration
package import Platform
package import Salvage
import SystemPackage

/// What a salvage recovered for an opening, or why there is nothing.
package struct OpeningSalvage: Sendable, Hashable, Codable {
  /// How far it is.
  package var state: Receipt.Salvage.State

  /// The salvaged store, which stays beside the quarantined one; nil where there is none.
  package var store: PathText?

  /// The report of the salvage; nil where there is no salvaged store.
  package var report: PathText?

  /// The file of what is not part of the store; nil where there is nothing.
  package var setAside: PathText?

  /// Whether everything that the store held was recovered, beyond doubt.
  package var isComplete: Bool

  /// Why not, besides lost and doubtful records, in words; nil where it was, or nothing else tells.
  package var incompleteBecause: [String]?

  /// Whether what is no record is missing or doubtful; nil where everything was recovered, or that is not known.
  package var lacksDetails: Bool?

  /// Whether anything came out of which the numbers are; where nothing has, they are 0 and are not written.
  package var hasResult: Bool

  /// Records recovered.
  package var recovered: Int64

  /// Those of them that are doubtful.
  package var doubtful: Int64

  /// Records that were found whole and are not in the salvaged store; nil for none.
  package var recordsSetAside: Int64?

  /// Records lost.
  package var lost: Int64

  /// Whether the number of lost records is exact; else it is an estimate, or the least, or where it is 0 not known.
  package var lostIsExact: Bool

  /// Records that the store held: those that were recovered, those that were set aside and those that are lost.
  package var total: Int64

  /// The share of them that was recovered in percent, rounded down; nil where nothing tells how many there were.
  package var percent: Int?

  /// The pairs of many-to-many relationships; nil where there are none.
  package var pairs: PairNumbers?

  /// Why records are doubtful, with how many for each reason, by the codes of a salvage report; empty where none is.
  package var doubtfulReasons: [String: Int64]

  /// How much of the store was recovered, from 0 to 100; nil where not known.
  ///
  /// It is kept for programs that read it, and shown nowhere.
  package var score: Int?

  /// The accounts of the entities, by name.
  package var entities: [Receipt.Salvage.Entity]

  /// The accounts of the pairs of many-to-many relationships, by table; nil for none.
  package var pairAccounts: [Receipt.Salvage.Entity]?

  /// Whether the store may have held tables that nothing tells of; nil where it held none.
  package var mayLackTables: Bool?

  /// Values of recovered records that were set aside, because the salvaged store has no column for them; nil for none.
  package var valuesSetAside: Int64?

  /// Rows that were found and fit no table, which are kept beside the salvaged store; nil for none.
  package var unplacedRows: Int64?

  /// What the migration to the app's version left out; nil for nothing.
  package var migrationLosses: [Receipt.Salvage.MigrationLoss]?

  /// Why nothing came out that the app could open; nil where something did.
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

  /// What a receipt says; nil where no salvage was asked for.
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

  /// Why it is not complete, in a sentence, where no number of records tells it.
  package var reservationWords: String? { count.words(reserving: incompleteBecause ?? []) }

  /// The numbers of the records, and the words for them.
  package var count: RecoveryCount { RecoveryCount(self) }

  /// Whether more than half of the records are known to be recovered.
  package var hasMost: Bool { (count.percent ?? 0) > 50 }

  /// Whether what was salvaged is in the store's place.
  package var isInstalled: Bool { state == .installed }

  /// An account as it was written; without its numbers where nothing had come out.
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

  /// Writes the account; the numbers of records only where something came out that they are of.
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

  /// The numbers of the pairs of many-to-many relationships.
  package struct PairNumbers: Sendable, Hashable, Codable {
    /// Pairs that are in the salvaged store.
    package var recovered: Int64

    /// Pairs that were found and are not in it, because a record of theirs is not.
    package var setAside: Int64

    /// Pairs lost.
    package var lost: Int64

    /// Whether the number of lost pairs is exact; else it is an estimate, or the least, or where it is 0 not known.
    package var lostIsExact: Bool

    /// Pairs that the store held, as far as that is known.
    package var total: Int64

    init(_ count: PairCount) {
      recovered = count.recovered
      setAside = count.setAside
      lost = count.lost
      lostIsExact = count.isLostExact
      total = count.total
    }
  }
}
