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

  package var recovered: Int64 { count.recovered }

  /// The doubtful ones among the recovered records.
  var doubtful: Int64 { count.doubtful }

  package var lost: Int64 { count.lost }

  /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
  package var lostIsExact: Bool { !count.isEstimate }

  /// The recovered percentage, rounded down.
  package var percent: Int? { count.percent }

  /// The many-to-many pairs, if any.
  package var pairs: PairNumbers? { count.pairs.known.map(PairNumbers.init) }

  var hasMost: Bool { (percent ?? 0) > 50 }

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
    let count = count
    try encoder.encode([
      "state": state, "store": store, "report": report, "setAside": setAside, "complete": isComplete,
      "incompleteBecause": incompleteBecause, "lacksDetails": lacksDetails,
      "recordsSetAside": count.setAside == 0 ? nil : count.setAside, "percent": count.percent, "pairs": pairs,
      "score": score, "relationships": pairAccounts, "mayLackTables": mayLackTables, "valuesSetAside": valuesSetAside,
      "unplacedRows": unplacedRows, "migrationLosses": migrationLosses, "failure": failure,
    ])
    guard hasResult else { return }
    try encoder.encode([
      "recovered": count.recovered, "doubtful": count.doubtful, "lost": count.lost, "lostIsExact": !count.isEstimate,
      "total": count.total, "doubtfulReasons": DoubtReason.codes(count.doubtReasons), "entities": entities,
    ])
  }

  /// Many-to-many pairs.
  package struct PairNumbers: Sendable, Hashable, Encodable {
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
