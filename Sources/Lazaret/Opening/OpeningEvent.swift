internal import ManagedObjectModel
package import Migration
import PersistentStore
package import Platform
package import Salvage
package import SystemPackage

/// An action taken to open a store.
package struct OpeningEvent: Sendable, Hashable, Codable {
  package enum Kind: String, Sendable, Codable {
    /// An earlier run's or another process's work: a finished or undone quarantine, or the place's store found in
    /// quarantine.
    case recovery

    /// The original was kept.
    case backup

    /// Missing parts of its own model were added.
    case repair

    case migration, quarantine

    /// The quarantined store was salvaged and a copy installed, or the salvage failed.
    case salvage

    case create

    /// A kit was noted; reported by ``Opening/backgroundPass``, after the opening.
    case recoveryKit = "recovery-kit"
  }

  package var kind: Kind

  /// RFC 3339.
  var date: String

  /// The quarantined or the new store.
  package var path: PathText

  /// One plain sentence.
  package var words: String

  /// A quarantined store's name.
  package var id: String?

  package var reason: Receipt.Reason?

  package var receipt: PathText?

  package var repair: RepairAccount?

  package var migration: OpeningMigration?

  /// A salvage's result, or a quarantined store's salvage so far.
  package var salvage: OpeningSalvage?

  /// The report of the failed migration that caused a quarantine.
  package var report: PathText?

  /// A quarantined sound store's records, if counted.
  package var records: Int64?

  package init(
    _ kind: Kind, at date: Timestamp, path: FilePath, words: String, id: String? = nil,
    reason: Receipt.Reason? = nil, receipt: FilePath? = nil, migration: OpeningMigration? = nil
  ) {
    self.kind = kind
    self.date = date.rfc3339
    self.path = PathText(path)
    self.words = words
    self.id = id
    self.reason = reason
    self.receipt = receipt.map { PathText($0) }
    self.migration = migration
  }
}

extension OpeningEvent {
  static func created(_ place: StoreFileSet, for model: AppModel, at date: Timestamp) -> OpeningEvent {
    OpeningEvent(
      .create, at: date, path: place.main,
      words: "An empty store for \(printable(model.currentVersionName)) was created.")
  }

  /// Returns the event of this opening's quarantine.
  ///
  /// - Parameter report: the report of the causing migration failure.
  static func quarantined(
    _ stored: QuarantinedStore, because reason: Receipt.Reason, report: FilePath?, at date: Timestamp
  ) -> OpeningEvent {
    var event = lying(stored, .quarantine, at: date, words: "The old store was moved into quarantine", because: reason)
    event.report = report.map { PathText($0) }
    return event
  }

  /// Returns the event of another run's quarantine.
  static func foundInQuarantine(_ stored: QuarantinedStore, at date: Timestamp) -> OpeningEvent {
    lying(
      stored, .recovery, at: date, words: "A store that was here before lies in quarantine",
      because: stored.receipt?.reason)
  }

  private static func lying(
    _ stored: QuarantinedStore, _ kind: Kind, at date: Timestamp, words: String, because reason: Receipt.Reason?
  ) -> OpeningEvent {
    let records = stored.receipt?.soundRecords
    let kept = records.map { "; \(counted($0, "record")) \($0 == 1 ? "is" : "are") in quarantine" } ?? ""
    var event = OpeningEvent(
      kind, at: date, path: stored.files.main, words: "\(words), complete and unchanged\(kept).", id: stored.id,
      reason: reason, receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    event.records = records
    return event
  }

  static func salvaged(_ stored: QuarantinedStore, at date: Timestamp) -> OpeningEvent {
    let salvage = OpeningSalvage(stored)
    var words: String
    switch salvage?.state {
    case .installed?:
      words = stored.receipt?.salvage?.result?.words ?? "The store was salvaged."
      words += " A copy of the salvaged store is in its place."
    case .failed?: words = salvage?.failure?.words ?? "Nothing could be salvaged."
    case nil, .pending?, .salvaged?:
      words = salvage?.failure?.words ?? "The store was salvaged; what came out is beside it in quarantine."
    }
    var event = OpeningEvent(
      .salvage, at: date, path: salvage?.store?.path ?? stored.files.main, words: words, id: stored.id,
      receipt: stored.receiptPath)
    event.salvage = salvage
    return event
  }

  static func migrated(_ result: Migrator.Result, at date: Timestamp) -> [OpeningEvent] {
    var events: [OpeningEvent] = []
    if let backup = result.backup {
      events.append(
        OpeningEvent(
          .backup, at: date, path: backup,
          words: "The store as it was before \(result.steps.isEmpty ? "the repair" : "the migration") was kept, "
            + "complete and unchanged."))
    }
    if let repair = result.repair { events.append(repaired(repair, result.store, at: date)) }
    guard !result.steps.isEmpty || result.repair == nil else { return events }
    let migration = OpeningMigration(result)
    events.append(OpeningEvent(.migration, at: date, path: result.store, words: migration.words, migration: migration))
    return events
  }

  private static func repaired(_ repair: RepairAccount, _ store: FilePath, at date: Timestamp) -> OpeningEvent {
    var words = "The store lacked parts of its own model; what was missing was added: \(repair.words)."
    let rest = repair.leftOut.count { $0.kind.isWantedByModel && !$0.kind.isDangling && $0.kind != .lostRecords }
    if rest > 0 { words += " \(counted(rest, "part")) could not be added." }
    let references = repair.danglingReferences
    if references > 0 {
      words +=
        " \(counted(references, "reference")) \(references == 1 ? "leads" : "lead") to no record: what "
        + "\(references == 1 ? "it" : "they") led to is not in the store."
    }
    for lost in repair.leftOut where lost.kind == .lostRecords {
      words += " \(lost.text.prefix(1).uppercased())\(lost.text.dropFirst())."
    }
    var event = OpeningEvent(.repair, at: date, path: store, words: words)
    event.repair = repair
    return event
  }

  /// Whether both report the same action, possibly at different times.
  func isTheSame(as other: OpeningEvent) -> Bool {
    kind == other.kind && id == other.id && path == other.path && words == other.words
  }
}

package struct OpeningMigration: Sendable, Hashable, Codable {
  package struct Step: Sendable, Hashable, Codable {
    /// Such as `V1 → V2`.
    package var step: String

    package var way: MigrationWay

    /// The records after the step.
    package var rows: Int
  }

  package var steps: [Step]

  /// The steps that an earlier run had finished.
  package var resumedSteps: Int

  package var losses: [MigrationPlan.Finding]

  /// The records left out because the app's version lacks their entity, by entity; the original is kept until released.
  package var removedRows: [String: Int]

  /// Nil if an earlier run migrated the store.
  package var metrics: MigrationMetrics?

  init(_ result: Migrator.Result) {
    steps = result.steps.map { Step(step: $0.step, way: $0.way, rows: $0.rows) }
    resumedSteps = result.resumedSteps
    losses = result.steps.flatMap(\.losses)
    removedRows = result.steps.map(\.removedRows).reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
    metrics = result.metrics
  }

  /// One plain sentence.
  package var words: String {
    let first = steps.first?.step.split(separator: " → ").first ?? ""
    let last = steps.last?.step.split(separator: " → ").last ?? ""
    let count = steps.count == 1 ? "one step" : "\(steps.count) steps"
    let records = losses.filter { $0.property == nil }.reduce(0) { $0 + ($1.rows ?? 0) }
    let values = losses.filter { $0.property != nil }.reduce(0) { $0 + ($1.rows ?? 0) }
    var lost: [String] = []
    if records > 0 { lost.append(counted(records, "record")) }
    if values > 0 { lost.append(counted(values, "value")) }
    let loss = lost.isEmpty ? "" : "; it left out \(lost.joined(separator: " and "))"
    return "The store was migrated, \(printable("\(first) → \(last)")) in \(count)\(loss)."
  }
}

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

  /// The recovered share, from 0 to 100, for programs that read it; shown nowhere.
  var score: Int?

  /// The accounts by entity; nil without a result.
  private var accounts: [Receipt.Salvage.Entity]?

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
    case state, store, report, setAside
    case isComplete = "complete"
    case incompleteBecause, lacksDetails, score
    case accounts = "entities"
    case pairAccounts = "relationships"
    case mayLackTables, valuesSetAside, unplacedRows, migrationLosses, failure
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
    isComplete = result?.isComplete ?? false
    incompleteBecause = result?.incompleteBecause
    lacksDetails = result?.lacksDetails
    score = result?.score
    accounts = result?.entities
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

  /// Whether there is a result; otherwise the numbers are 0 and not encoded.
  var hasResult: Bool { accounts != nil }

  package var entities: [Receipt.Salvage.Entity] { accounts ?? [] }

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
