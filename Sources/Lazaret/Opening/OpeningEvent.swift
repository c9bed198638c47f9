package import Migration
import PersistentStore
package import Platform
internal import SQLiteFormat
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

    case migration

    case quarantine

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
    var event = OpeningEvent(
      .quarantine, at: date, path: stored.files.main,
      words: "The old store was moved into quarantine, complete and unchanged\(kept(stored)).", id: stored.id,
      reason: reason,
      receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    event.report = report.map { PathText($0) }
    event.records = stored.receipt?.soundRecords
    return event
  }

  private static func kept(_ stored: QuarantinedStore) -> String {
    guard let records = stored.receipt?.soundRecords else { return "" }
    return "; \(counted(records, "record")) \(records == 1 ? "is" : "are") in quarantine"
  }

  /// Returns the event of another run's quarantine.
  static func foundInQuarantine(_ stored: QuarantinedStore, at date: Timestamp) -> OpeningEvent {
    var event = OpeningEvent(
      .recovery, at: date, path: stored.files.main,
      words: "A store that was here before lies in quarantine, complete and unchanged\(kept(stored)).", id: stored.id,
      reason: stored.receipt?.reason, receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    event.records = stored.receipt?.soundRecords
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
    events.append(
      OpeningEvent(.migration, at: date, path: result.store, words: migration.words, migration: migration))
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
