package import Migration
import PersistentStore
package import Platform
internal import SQLiteFormat
package import SystemPackage

/// One thing that was done to get a store open.
package struct OpeningEvent: Sendable, Hashable, Codable {
  /// What kind of thing.
  package enum Kind: String, Sendable, Codable {
    /// An earlier run, or another process, had begun or done something of this: an interrupted quarantine was finished or
    /// taken back, or the store that was here before was found in quarantine.
    case recovery

    /// The store as it was before its repair or migration was kept.
    case backup

    /// What the store lacked of its own model was added.
    case repair

    /// The store was migrated to the app's version.
    case migration

    /// The store was moved into quarantine.
    case quarantine

    /// The quarantined store was salvaged, and a copy of the result put into its place; or nothing came out.
    case salvage

    /// An empty store was created.
    case create

    /// A recovery kit of the store was noted; told by ``Opening/backgroundPass`` and not among the events, because it
    /// happens after the opening.
    case recoveryKit = "recovery-kit"
  }

  /// What was done.
  package var kind: Kind

  /// When, in RFC 3339.
  package var date: String

  /// The file that it produced: the quarantined store, or the new one.
  package var path: PathText

  /// What happened, in one plain sentence.
  package var words: String

  /// For a quarantine: what the store is called there.
  package var id: String?

  /// For a quarantine: why.
  package var reason: Receipt.Reason?

  /// For a quarantine: the receipt.
  package var receipt: PathText?

  /// For a repair: what was added, and what was left as it is.
  package var repair: RepairAccount?

  /// For a migration: what it did and what was lost.
  package var migration: OpeningMigration?

  /// For a salvage: what was recovered and what was not; for a quarantine: what has become of its salvage so far.
  package var salvage: OpeningSalvage?

  /// For a quarantine: the command that puts the store back where it came from.
  package var undo: String?

  /// For a quarantine after a failed migration: the report, where one could be written.
  package var report: PathText?

  /// For a quarantine of a sound store: how many records it held; nil where they were not counted.
  package var records: Int64?

  /// One thing that was done, and when.
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
  /// An empty store was put into its place.
  static func created(_ place: StoreFileSet, for model: AppModel, at date: Timestamp) -> OpeningEvent {
    OpeningEvent(
      .create, at: date, path: place.main,
      words: "An empty store for \(printable(model.currentVersionName)) was created.")
  }

  /// This opening has moved the store into quarantine.
  ///
  /// - Parameters:
  ///   - report: that of the migration whose failure is the reason, where one could be written.
  ///   - undo: the command that puts it back; nil where its receipt does not say where.
  static func quarantined(
    _ stored: QuarantinedStore, because reason: Receipt.Reason, report: FilePath?, undo: String?, at date: Timestamp
  ) -> OpeningEvent {
    var event = OpeningEvent(
      .quarantine, at: date, path: stored.files.main,
      words: "The old store was moved into quarantine, complete and unchanged\(kept(stored)).", id: stored.id,
      reason: reason,
      receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    event.report = report.map { PathText($0) }
    event.undo = undo
    event.records = stored.receipt?.soundRecords
    return event
  }

  /// How many records of a sound store are in quarantine; nothing where they were not counted.
  private static func kept(_ stored: QuarantinedStore) -> String {
    guard let records = stored.receipt?.soundRecords else { return "" }
    return "; \(counted(records, "record")) \(records == 1 ? "is" : "are") in quarantine"
  }

  /// An earlier run, or another process, has moved the store into quarantine.
  static func foundInQuarantine(_ stored: QuarantinedStore, undo: String?, at date: Timestamp) -> OpeningEvent {
    var event = OpeningEvent(
      .recovery, at: date, path: stored.files.main,
      words: "A store that was here before lies in quarantine, complete and unchanged\(kept(stored)).", id: stored.id,
      reason: stored.receipt?.reason, receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    event.undo = undo
    event.records = stored.receipt?.soundRecords
    return event
  }

  /// A quarantined store was salvaged, or nothing could be, as its receipt says.
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

  /// A store was repaired or migrated, or both, and its original kept.
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

  /// What a store lacked of its own model was added.
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

  /// Whether another event tells of the same thing, though maybe of another moment.
  func isTheSame(as other: OpeningEvent) -> Bool {
    kind == other.kind && id == other.id && path == other.path && words == other.words
  }
}

/// What a migration did with a store on its way to being open.
package struct OpeningMigration: Sendable, Hashable, Codable {
  /// One step of it.
  package struct Step: Sendable, Hashable, Codable {
    /// Such as `V1 → V2`.
    package var step: String

    /// How it was carried out.
    package var way: MigrationWay

    /// The records that it left.
    package var rows: Int
  }

  /// The steps, in order.
  package var steps: [Step]

  /// How many of the steps an earlier run had finished.
  package var resumedSteps: Int

  /// What records lost in it; empty where nothing was lost.
  package var losses: [MigrationPlan.Finding]

  /// The records that were left out because the app's version lacks their entity, by entity; they are in the original, which
  /// is kept until it is released.
  package var removedRows: [String: Int]

  /// What it cost; nil where an earlier run did it and could not tell any more.
  package var metrics: MigrationMetrics?

  init(_ result: Migrator.Result) {
    steps = result.steps.map { Step(step: $0.step, way: $0.way, rows: $0.rows) }
    resumedSteps = result.resumedSteps
    losses = result.steps.flatMap(\.losses)
    removedRows = result.steps.map(\.removedRows).reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
    metrics = result.metrics
  }

  /// In one plain sentence.
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
