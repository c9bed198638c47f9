package import Platform

/// The facts about a backup for retention.
package struct RetentionSnapshot: Sendable, Hashable {
  package enum Proof: String, Sendable, Hashable, Codable {
    /// It was restored, and the check passed.
    case proven

    case unproven, failed

    /// The environment prevented a result.
    case inconclusive
  }

  /// The depth of a proven backup's check; each includes those before.
  package enum Verification: Int, Sendable, Hashable, Comparable {
    /// Its files are intact; an earlier version took it without a check.
    case files

    /// Every page, but not every index, as some could not be compared.
    case pages

    /// Every page, and the indexes of changed tables.
    case changed

    /// Every page and index, at backup or restore.
    case whole

    package static func < (left: Verification, right: Verification) -> Bool { left.rawValue < right.rawValue }
  }

  /// Whether the rules apply to a backup.
  package enum Standing: String, Sendable, Hashable {
    case ordinary

    /// It is evidence, or of an unsound store.
    case apart

    /// Its kind is unknown, for example as a later version wrote it.
    case unknown
  }

  package var identifier: String
  package var date: Timestamp
  var tags: [String]
  package var proof: Proof
  /// The depth of its proof; it replaces none verified further.
  package var verification: Verification
  package var falls: [BackupManifest.Fall]
  /// Whether a user released it from being kept for a drop.
  package var isReleased: Bool
  /// The parent, and backups with its external values.
  package var needs: [String]
  package var standing: Standing
  /// The file names of external values it refers to but lacks.
  package var lacks: Set<String>
  /// The external values it has that another backup of the history lacks.
  package var holds: Set<String>
  /// The records only in it, which keep it until released.
  package var onlyHere: OnlyHereNote?
  /// The generation of its store at this path, if known.
  package var lineage: StoreLineage?

  package init(
    identifier: String, date: Timestamp, tags: [String] = [], proof: Proof = .proven, needs: [String] = [],
    standing: Standing = .ordinary, onlyHere: OnlyHereNote? = nil, lineage: StoreLineage? = nil,
    verification: Verification = .whole, falls: [BackupManifest.Fall] = [], isReleased: Bool = false,
    lacks: Set<String> = [], holds: Set<String> = []
  ) {
    self.identifier = identifier
    self.date = date
    self.tags = tags
    self.proof = proof
    self.verification = verification
    self.falls = falls
    self.isReleased = isReleased
    self.lacks = lacks
    self.holds = holds
    self.needs = needs
    self.standing = standing
    self.onlyHere = onlyHere
    self.lineage = lineage
  }

  /// Returns whether it has all these tags; the empty tag means no tags.
  func hasAll(_ wanted: [String]) -> Bool { wanted.allSatisfy { $0.isEmpty && tags.isEmpty || tags.contains($0) } }

  /// A broken backup counts as failed: it replaces no good one, and is kept only by the rules.
  init(_ backup: StoredBackup) {
    let isUnreadable =
      backup.isUndecided || backup.problems.contains { [.manifestUnreadable, .manifestChanged].contains($0.code) }
    let proof: Proof =
      if !backup.isWhole {
        .failed
      } else {
        switch backup.proof?.result {
        case nil: .unproven
        case .proven: backup.isUnverified ? .unproven : .proven
        case .failed: .failed
        case .inconclusive: .inconclusive
        }
      }
    let standing: Standing =
      if isUnreadable || backup.manifestSource == .rebuilt {
        // Without a manifest, evidence looks like a good backup.
        .unknown
      } else if let manifest = backup.manifest {
        manifest.kind == .evidence || !manifest.check.isSound ? .apart : .ordinary
      } else { .ordinary }
    self.init(
      identifier: backup.id.description, date: backup.id.date, tags: backup.manifest?.tags ?? [], proof: proof,
      needs: backup.needs.map(\.description), standing: standing, onlyHere: backup.onlyHere,
      lineage: backup.manifest?.lineage, verification: backup.verification, falls: backup.manifest?.falls ?? [],
      isReleased: backup.isReleased, lacks: Set(backup.manifest?.externalData?.missing ?? []))
  }

  /// A backup is at most as good as the proofs of those it needs.
  static func history(of backups: [StoredBackup]) -> [RetentionSnapshot] {
    var failed: Set<String> = []
    // Needed backups are older.
    for backup in backups.ordered(by: { $0.id < $1.id }) {
      let isFailed = backup.proof?.result == .failed || backup.needs.contains { failed.contains($0.description) }
      if isFailed { failed.insert(backup.id.description) }
    }
    let lacking = backups.reduce(into: Set<String>()) { $0.formUnion($1.manifest?.externalData?.missing ?? []) }
    return backups.map { backup in
      var snapshot = RetentionSnapshot(backup)
      if !lacking.isEmpty { snapshot.holds = backup.valueNames.intersection(lacking) }
      if failed.contains(snapshot.identifier) { snapshot.proof = .failed }
      return snapshot
    }
  }
}

extension StoredBackup {
  /// The depth of its verification, if proven.
  package var verification: RetentionSnapshot.Verification {
    let check = manifest?.check
    // A restore can't compare these either.
    if check?.uncompared?.isEmpty == false { return .pages }
    // A later check of the files shows that the store checked then is unchanged.
    if let proof, proof.result == .proven, proof.lastRestored != nil { return .whole }
    switch check?.depth {
    case .whole: return .whole
    case .changed: return .changed
    case nil: return .files
    }
  }

  var valueNames: Set<String> {
    Set((manifest?.externalData?.items ?? []).compactMap { $0.name.text.split(separator: "/").last.map(String.init) })
  }

  /// The parent, and backups with its external values.
  var needs: [BackupIdentifier] {
    guard let manifest else { return [] }
    let holders = Set((manifest.externalData?.items ?? []).compactMap(\.backup) + [manifest.parent].compactMap(\.self))
    return holders.subtracting([id]).sorted()
  }
}

extension Set<BackupIdentifier> {
  /// Adds all backups that restoring these needs.
  func addingNeeded(by needs: (BackupIdentifier) -> [BackupIdentifier]) -> Set {
    var (all, waiting) = (self, Array(self))
    while let next = waiting.popLast() {
      for needed in needs(next) where all.insert(needed).inserted { waiting.append(needed) }
    }
    return all
  }
}

/// A reason to keep or drop a backup.
package enum RetentionReason: Sendable, Hashable {
  case policyIsEmpty

  case tags([String])

  case within(RetentionDuration)

  /// It is the newest of a counted period.
  case newest(of: RetentionPeriod)

  /// It is the newest of its period, within a rule's duration.
  case newestWithin(RetentionPeriod, RetentionDuration)

  /// It is the last one verified at least this far.
  case lastProven(RetentionSnapshot.Verification)

  case newestOfAll

  case neededBy(String)

  /// It is evidence or of an unsound store, outside the rules.
  case apart

  /// It holds records that a migration removed, and is outside the rules until released.
  case onlyHere(OnlyHereNote)

  /// It is the last one before a recent quarantine of the store.
  case beforeQuarantine

  /// It is the last one before entities lost more than half of their records.
  case beforeFall(entities: [String], in: String)

  /// It is the last one with external values that another kept one refers to but lacks.
  case holdsValues(count: Int, lackedBy: String)

  /// It shows the drop in records for which another one is kept.
  case showsFall(since: String)

  /// Its kind is unknown, so the rules don't apply.
  case unknown

  /// It is dated later than now by a wrong clock, and replaces no other.
  case datedInTheFuture

  /// It is dated before its parent by a wrong clock.
  case datedBeforeParent

  /// A jump in dates follows it, not yet confirmed; judged without the later ones, it would be kept.
  case clockMayHaveJumped(days: Int)

  /// A rule keeps it although unproven; it replaces no proven one.
  case notProven(RetentionSnapshot.Proof)

  case noRule

  /// Its proof failed or is missing, so the rules count others instead.
  case noProof(RetentionSnapshot.Proof)

  /// The stable code, part of the command line's contract.
  package var code: String {
    switch self {
    case .policyIsEmpty: "policy-is-empty"
    case .tags: "tag"
    case .within: "within"
    case .newest(let period): period.rawValue
    case .newestWithin(let period, _): "within-\(period.rawValue)"
    case .lastProven: "last-proven"
    case .newestOfAll: "newest"
    case .neededBy: "needed"
    case .apart: "apart"
    case .onlyHere: "only-here"
    case .beforeQuarantine: "before-quarantine"
    case .beforeFall: "before-fall"
    case .holdsValues: "holds-values"
    case .showsFall: "shows-fall"
    case .unknown: "unknown"
    case .datedInTheFuture: "dated-in-the-future"
    case .datedBeforeParent: "dated-before-its-parent"
    case .clockMayHaveJumped: "clock-may-have-jumped"
    case .notProven: "not-proven-yet"
    case .noRule: "no-rule"
    case .noProof: "no-proof"
    }
  }

  /// The reason in plain words; for rules, restic's.
  package var words: String {
    switch self {
    case .policyIsEmpty: "policy is empty"
    case .tags(let tags): "has tags [\(tags.joined(separator: ", "))]"
    case .within(let duration): "within \(duration)"
    case .newest(let period): "\(period.rawValue) snapshot"
    case .newestWithin(let period, let duration): "\(period.rawValue) within \(duration)"
    case .lastProven(let verification): "the last one \(verification.words)"
    case .newestOfAll: "the newest"
    case .neededBy(let child): "\(child) cannot be restored without it"
    case .apart: "kept apart: rules never touch evidence and backups of stores that were not sound"
    case .onlyHere(let note): "\(Self.words(of: note)), and is kept until it is released"
    case .beforeQuarantine:
      "the last one of before the store was quarantined, kept for \(RetentionJudgement.daysAfterQuarantine) days"
    case .beforeFall(let entities, let later):
      "the last one before \(Self.list(entities)) lost more than half of the records, in \(later): kept for "
        + "\(RetentionJudgement.daysAfterFall) days, or until it is released"
    case .holdsValues(let count, let later):
      "the last one with \(counted(count, "large value")) that records in \(later) refer to, and that \(later) lacks"
    case .showsFall(let earlier): "it shows what was lost after \(earlier), which is kept because of that"
    case .unknown: "what it holds cannot be read, so that rules do not touch it"
    case .datedInTheFuture: "dated in the future: a clock is or was wrong"
    case .datedBeforeParent: "dated before the backup it builds on: a clock was wrong"
    case .clockMayHaveJumped(let days): "the next one is dated \(days) days later: the clock may have jumped"
    case .notProven(let proof): "kept but not counted, for its proof \(proof.words)"
    case .noRule: "no rule keeps it"
    case .noProof(let proof): "no rule keeps it, and its proof \(proof.words)"
    }
  }

  /// Describes a note after an original's name: `holds 12 records of Person that …`.
  package static func words(of note: OnlyHereNote) -> String {
    note.records.map { "holds \($0) that its migration removed" } ?? "has a note of removed records that cannot be read"
  }

  private static func list(_ names: [String]) -> String {
    let shown = names.prefix(3).joined(separator: ", ")
    return names.count > 3 ? "\(shown) and \(names.count - 3) more" : shown
  }
}

extension RetentionSnapshot.Verification {
  /// The depth, in words that follow `the last one`.
  fileprivate var words: String {
    switch self {
    case .files: "whose files were read back; its store was not checked"
    case .pages: "of which every page was checked; the entries of some indexes could not be compared"
    case .changed: "of which every page was checked, and the indexes of what had changed"
    case .whole: "of which every page and every index was checked"
    }
  }
}

extension RetentionSnapshot.Proof {
  fileprivate var words: String {
    switch self {
    case .proven: "succeeded"
    case .unproven: "is still to come"
    case .failed: "failed"
    case .inconclusive: "was inconclusive"
    }
  }
}
