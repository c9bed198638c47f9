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
