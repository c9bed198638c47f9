package import Platform

/// Prunes a place by a policy: what no rule keeps goes to the trash, and what has been there long enough goes for good.
package struct BackupPruner: Sendable {
  /// How it is done.
  package struct Options: Sendable, Hashable {
    /// The days for which a dropped backup stays in the trash.
    package var trashDays: Int

    /// Whether it is only told what would be done.
    package var isRehearsal: Bool

    /// Whether the newest good backups, which the others are dropped for, are read and compared with their digests first.
    package var verifies: Bool

    /// A week in the trash, in earnest, and nothing read, unless told otherwise.
    package init(trashDays: Int = 7, isRehearsal: Bool = false, verifies: Bool = false) {
      self.verifies = verifies
      self.trashDays = max(0, trashDays)
      self.isRehearsal = isRehearsal
    }
  }

  /// The place.
  package let place: any BackupPlace

  private let surroundings: Surroundings

  /// A pruner of a place.
  package init(of place: any BackupPlace, surroundings: Surroundings = .machine) {
    self.place = place
    self.surroundings = surroundings
  }

  private var bin: BackupTrash { BackupTrash(of: place, surroundings: surroundings) }

  /// Prunes.
  ///
  /// After a kill at any moment every backup is whole among the kept ones, or whole in the trash, or on its way there and no
  /// longer listed as whole; the next run finishes that.
  ///
  /// - Throws: ``BackupError`` where the place cannot be read or written; what was dropped by then stays dropped.
  package func prune(
    _ policy: RetentionPolicy, options: Options = Options()
  ) throws(BackupError) -> PruningReport {
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

  /// Reads the newest good backup, and the newest of those that were verified furthest, with all that they need, before
  /// anything is dropped for them; what is not what was written counts as failed from then on.
  ///
  /// - Returns: the backups that failed.
  private func verify(
    _ catalog: inout BackupCatalog, _ policy: RetentionPolicy, _ now: Timestamp
  ) throws(BackupError) -> [BackupIdentifier] {
    let check = BackupFileCheck(surroundings: surroundings)
    var failed: [BackupIdentifier] = []
    var read: Set<BackupIdentifier> = []
    // Each round reads a backup that was not read before, or is the last.
    for _ in 0...catalog.backups.count {
      let plan = RetentionPlan(of: catalog, policy: policy, now: now)
      let good = plan.kept.filter { $0.snapshot.proof == .proven && $0.snapshot.standing == .ordinary }
      guard !plan.dropped.isEmpty, let newest = good.first else { break }
      let furthest = good.map(\.snapshot.verification).max()
      let chosen = [newest.id] + good.filter { $0.snapshot.verification == furthest }.prefix(1).map(\.id)
      var isSound = true
      for id in chosen {
        for backup in try needed(by: id, in: catalog) where read.insert(backup.id).inserted {
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

  /// A backup and all that it cannot be restored without.
  private func needed(by id: BackupIdentifier, in catalog: BackupCatalog) throws(BackupError) -> [StoredBackup] {
    var found: [BackupIdentifier: StoredBackup] = [:]
    var waiting = [id]
    while let next = waiting.popLast() {
      guard found[next] == nil, let backup = catalog.all.first(where: { $0.id == next }) else { continue }
      found[next] = backup
      waiting += backup.needs
    }
    return found.values.ordered { $0.id < $1.id }
  }

  /// Brings a backup back out of the trash, with what it cannot be restored without.
  ///
  /// - Returns: what was brought back, the oldest first.
  /// - Throws: `no-such-backup`, `backup-damaged`, `backup-name-taken`, or what the place says.
  package func undelete(_ id: BackupIdentifier) throws(BackupError) -> [BackupIdentifier] {
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    try bin.finishInterrupted()
    return try bin.restore(id)
  }

  /// Releases an original whose migration removed records that it still holds: the rules judge it like any other from then
  /// on.
  ///
  /// The note beside it is removed, and that is on the disk when this returns; the original is not touched.
  ///
  /// - Returns: what the note said; nil where there is none, because the backup was released before or never had one.
  /// - Throws: `no-such-backup`, or what the place says.
  @discardableResult
  package func release(_ id: BackupIdentifier) throws(BackupError) -> OnlyHereNote? {
    // Looked for before the lock is taken, which makes the folder of a place.
    _ = try BackupCatalog(of: place).backup(id)
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    try bin.finishInterrupted()
    guard let note = try BackupCatalog(of: place).backup(id).onlyHere else { return nil }
    try place.delete("\(id)\(BackupManifest.File.Role.originalOnlyHere.suffix)", in: .kept)
    return note
  }

  /// Says that no fall of records keeps a backup any more: the rules judge it like any other from then on.
  ///
  /// A note is written beside it; the backup itself is not touched.
  ///
  /// - Returns: the falls that kept it; empty where none did.
  /// - Throws: `no-such-backup`, or what the place says.
  @discardableResult
  package func acknowledge(_ id: BackupIdentifier) throws(BackupError) -> [BackupManifest.Fall] {
    // Looked for before the lock is taken, which makes the folder of a place.
    _ = try BackupCatalog(of: place).backup(id)
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    let catalog = try BackupCatalog(of: place)
    let backup = try catalog.backup(id)
    let falls = catalog.backups.flatMap { $0.manifest?.falls ?? [] }.filter { $0.backup == id }
    guard !falls.isEmpty, !backup.isReleased else { return [] }
    let note: JSON.Object = ["date": surroundings.now(), "format": "lazaret-backup-release", "version": 1]
    let bytes = try BackupError.json(note, .line, to: "release the backup")
    try place.replace("\(id)\(BackupCatalog.releaseSuffix)", with: bytes, in: .kept)
    return falls
  }

  /// The backups in the trash, newest first.
  package func trash() throws(BackupError) -> [TrashedBackup] { try bin.backups() }

  // MARK: Emptying

  /// Removes from the trash what has been there long enough.
  ///
  /// Nothing goes while the clock is in doubt, nothing that a kept backup needs, nothing proven good while no kept backup
  /// is, and no original with records that its migration removed.
  private func empty(
    _ catalog: BackupCatalog, _ options: Options, _ now: Timestamp, _ report: inout PruningReport
  ) throws(BackupError) {
    let kept = Set(report.plan.kept.map(\.id))
    let remaining = catalog.backups.filter { kept.contains($0.id) }
    let hasGood = remaining.contains(where: \.isProvenGood)
    var needed = Set((remaining + catalog.others).flatMap(\.needs))
    // An earlier version of this software drops an original and leaves its note behind.
    let notes = Set(catalog.strays.compactMap { BackupCatalog.noteIdentifier(of: $0.name) })
    for backup in try bin.backups() {
      let isReleased = !backup.hasNote && !notes.contains(backup.id)
      let expires = isReleased ? backup.dropped.map { Self.expiry($0, options) } : nil
      let isDue = expires.map { $0 <= now } ?? false
      let isGood = backup.record?.wasProvenGood != false
      guard isDue, report.plan.isClockTrusted, !needed.contains(backup.id), hasGood || !isGood else {
        // What stays in the trash may need what is older.
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

/// What a pruning did, or would do.
package struct PruningReport: Sendable, Hashable, Encodable {
  /// A backup that is in the trash, and until when.
  package struct Trashed: Sendable, Hashable, Encodable {
    /// What it is called.
    package var id: BackupIdentifier

    /// From when on it may be removed for good; nil where it stays, because its record cannot be read or it is an original
    /// with records that its migration removed.
    package var expires: Timestamp?
  }

  /// What was decided of each backup, and why.
  package var plan: RetentionPlan

  /// The backups that were not what was written when they were read before others were dropped for them.
  package var failed: [BackupIdentifier] = []

  /// What was removed from the trash for good.
  package var emptied: [BackupIdentifier] = []

  /// What is in the trash afterwards, newest first.
  package var trash: [Trashed] = []

  /// The bytes that were dropped into the trash.
  package var droppedBytes: Int64 = 0

  /// The bytes that were removed for good.
  package var freedBytes: Int64 = 0

  /// Writes the report of a pruning, each backup with the reasons for its decision.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "clockTrusted": plan.isClockTrusted, "backups": plan.decisions, "droppedBytes": droppedBytes, "failed": failed,
      "emptied": emptied, "freedBytes": freedBytes, "trash": trash,
    ])
  }
}

extension RetentionPlan.Decision {
  /// The identifier of the backup that was judged.
  package var id: BackupIdentifier {
    BackupIdentifier(snapshot.identifier) ?? BackupIdentifier(date: snapshot.date)
  }
}
