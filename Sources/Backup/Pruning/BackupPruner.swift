package import Platform

/// Prunes a place by a policy: moves unneeded backups to the trash, and deletes expired ones.
package struct BackupPruner: Sendable {
  package struct Options: Sendable, Hashable {
    var trashDays: Int

    /// Whether only to report.
    var isRehearsal: Bool

    /// Whether to verify the newest good backups first.
    var verifies: Bool

    package init(trashDays: Int = 7, isRehearsal: Bool = false, verifies: Bool = false) {
      self.verifies = verifies
      self.trashDays = max(0, trashDays)
      self.isRehearsal = isRehearsal
    }
  }

  let place: any BackupPlace

  private let surroundings: Surroundings

  package init(of place: any BackupPlace, surroundings: Surroundings = .machine) {
    self.place = place
    self.surroundings = surroundings
  }

  private var bin: BackupTrash { BackupTrash(place: place, surroundings: surroundings) }

  /// Prunes the place.
  ///
  /// A kill leaves each backup whole in one section, or unlisted in transit; the next run finishes.
  ///
  /// - Throws: errors of the place; dropped backups stay dropped.
  package func prune(_ policy: RetentionPolicy, options: Options = Options()) throws -> PruningReport {
    let lock = options.isRehearsal ? nil : try place.lock()
    defer { withExtendedLifetime(lock) {} }
    if !options.isRehearsal { try bin.finishInterrupted() }
    let now = surroundings.now()
    var catalog = try BackupCatalog(of: place)
    var failed: [BackupIdentifier] = []
    if options.verifies, !options.isRehearsal { failed = try verify(&catalog, policy, now) }
    let plan = RetentionPlan(of: catalog, policy: policy, now: now)
    var report = PruningReport(plan: plan)
    report.failed = failed
    for decision in plan.dropped {
      let backup = try catalog.backup(decision.id)
      report.droppedBytes += backup.bytes
      if options.isRehearsal {
        report.trash.append(.init(id: backup.id, expires: Self.expiry(now, options)))
      } else {
        try bin.drop(backup, because: decision.reasons.map(\.words))
      }
    }
    try empty(catalog, options, now, &report)
    report.trash.sort { $0.id > $1.id }
    return report
  }

  /// Verifies the newest good backup, and the newest of those verified furthest, with their ancestors, before others
  /// are dropped for them.
  ///
  /// - Returns: the failed backups.
  private func verify(
    _ catalog: inout BackupCatalog, _ policy: RetentionPolicy, _ now: Timestamp
  ) throws -> [BackupIdentifier] {
    let check = BackupFileCheck(surroundings: surroundings)
    var failed: [BackupIdentifier] = []
    var read: Set<BackupIdentifier> = []
    // Each round verifies another backup, or is the last.
    for _ in 0...catalog.backups.count {
      let plan = RetentionPlan(of: catalog, policy: policy, now: now)
      let good = plan.kept.filter { $0.snapshot.proof == .proven && $0.snapshot.standing == .ordinary }
      guard !plan.dropped.isEmpty, let newest = good.first else { break }
      let furthest = good.map(\.snapshot.verification).max()
      let chosen = [newest.id] + good.filter { $0.snapshot.verification == furthest }.prefix(1).map(\.id)
      var isSound = true
      for id in chosen {
        for backup in Self.needed(by: id, in: catalog) where read.insert(backup.id).inserted {
          guard let manifest = backup.manifest, manifest.kind != .original else { continue }
          let found = try check.look(at: manifest, place) { _, _, _ in true }
          guard !found.problems.isEmpty else { continue }
          let proof = BackupProof(
            id: backup.id, date: now, result: .failed, depth: .files, problems: found.problems,
            lastRestored: backup.proof?.lastRestored, manifest: backup.manifestDigest)
          try place.replace("\(backup.id)\(BackupProof.suffix)", with: try proof.json(), in: .kept)
          failed.append(backup.id)
          isSound = false
        }
      }
      if isSound { break }
      catalog = try BackupCatalog(of: place)
    }
    return failed
  }

  /// Adds all backups that restoring this one needs.
  private static func needed(by id: BackupIdentifier, in catalog: BackupCatalog) -> [StoredBackup] {
    let all = catalog.all
    let needed = Set([id]).addingNeeded { next in all.first { $0.id == next }?.needs ?? [] }
    return all.filter { needed.contains($0.id) }.ordered { $0.id < $1.id }
  }

  /// Moves a backup and its ancestors out of the trash.
  ///
  /// - Returns: the moved backups, oldest first.
  /// - Throws: `no-such-backup`, `backup-damaged`, `backup-name-taken`, or errors of the place.
  package func undelete(_ id: BackupIdentifier) throws -> [BackupIdentifier] {
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    try bin.finishInterrupted()
    return try bin.restore(id)
  }

  /// Releases an original with records that its migration removed, so that the rules apply to it.
  ///
  /// Durably removes its note.
  ///
  /// - Returns: the note, if any.
  /// - Throws: `no-such-backup`, or errors of the place.
  @discardableResult package func release(_ id: BackupIdentifier) throws -> OnlyHereNote? {
    // Checked before locking, which would create the folder.
    _ = try BackupCatalog(of: place).backup(id)
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    try bin.finishInterrupted()
    guard let note = try BackupCatalog(of: place).backup(id).onlyHere else { return nil }
    try place.delete("\(id)\(BackupManifest.File.Role.originalOnlyHere.suffix)", in: .kept)
    return note
  }

  /// Releases a backup kept for a drop in records, so that the rules apply to it.
  ///
  /// Writes a note beside it.
  ///
  /// - Returns: the drops that kept it.
  /// - Throws: `no-such-backup`, or errors of the place.
  @discardableResult package func acknowledge(_ id: BackupIdentifier) throws -> [BackupManifest.Fall] {
    // Checked before locking, which would create the folder.
    _ = try BackupCatalog(of: place).backup(id)
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    let catalog = try BackupCatalog(of: place)
    let backup = try catalog.backup(id)
    let falls = catalog.backups.flatMap { $0.manifest?.falls ?? [] }.filter { $0.backup == id }
    guard !falls.isEmpty, !backup.isReleased else { return [] }
    let note: JSON.Object = ["date": surroundings.now(), "format": "lazaret-backup-release", "version": 1]
    let bytes = try JSON.bytes(of: note, .line, to: "release the backup")
    try place.replace("\(id)\(BackupCatalog.releaseSuffix)", with: bytes, in: .kept)
    return falls
  }

  package func trash() throws -> [TrashedBackup] { try bin.backups() }

  // MARK: Emptying

  /// Deletes expired backups, if the clock is plausible.
  ///
  /// Keeps those that kept ones need, proven ones if no kept one is, and originals with removed records.
  private func empty(
    _ catalog: BackupCatalog, _ options: Options, _ now: Timestamp, _ report: inout PruningReport
  ) throws {
    let kept = Set(report.plan.kept.map(\.id))
    let remaining = catalog.backups.filter { kept.contains($0.id) }
    let hasGood = remaining.contains(where: \.isProvenGood)
    var needed = Set((remaining + catalog.others).flatMap(\.needs))
    // Earlier versions drop an original without its note.
    let notes = Set(catalog.strays.compactMap { BackupCatalog.noteIdentifier(of: $0.name) })
    for backup in try bin.backups() {
      let isReleased = !backup.hasNote && !notes.contains(backup.id)
      let expires = isReleased ? backup.dropped.map { Self.expiry($0, options) } : nil
      let isDue = expires.map { $0 <= now } ?? false
      let isGood = backup.record?.wasProvenGood != false
      guard isDue, report.plan.isClockTrusted, !needed.contains(backup.id), hasGood || !isGood else {
        // Backups that stay in the trash may need older ones.
        needed.formUnion(backup.needs)
        report.trash.append(.init(id: backup.id, expires: expires))
        continue
      }
      if !options.isRehearsal { try bin.remove(backup) }
      report.emptied.append(backup.id)
      report.freedBytes += backup.bytes
    }
  }

  private static func expiry(_ dropped: Timestamp, _ options: Options) -> Timestamp {
    Timestamp(secondsSince1970: dropped.secondsSince1970 &+ Int64(min(options.trashDays, 1_000_000)) * 86400)
  }
}

/// The result of a pruning, real or simulated.
package struct PruningReport: Sendable, Hashable, Encodable {
  package struct Trashed: Sendable, Hashable, Encodable {
    package var id: BackupIdentifier

    /// The earliest deletion; nil with an unreadable record, or for an original with removed records.
    package var expires: Timestamp?
  }

  /// The decision on each backup, with reasons.
  package var plan: RetentionPlan

  /// The backups that failed verification.
  package var failed: [BackupIdentifier] = []

  package var emptied: [BackupIdentifier] = []

  /// The trash afterwards, newest first.
  package var trash: [Trashed] = []

  /// The bytes moved to the trash.
  package var droppedBytes: Int64 = 0

  package var freedBytes: Int64 = 0

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "clockTrusted": plan.isClockTrusted, "backups": plan.decisions, "droppedBytes": droppedBytes, "failed": failed,
      "emptied": emptied, "freedBytes": freedBytes, "trash": trash,
    ])
  }
}

extension RetentionPlan.Decision {
  package var id: BackupIdentifier { BackupIdentifier(snapshot.identifier) ?? BackupIdentifier(date: snapshot.date) }
}
