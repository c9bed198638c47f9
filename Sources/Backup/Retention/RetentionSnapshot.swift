package import Platform

/// The facts about a backup for retention.
package struct RetentionSnapshot: Sendable, Hashable {
  package enum Proof: String, Sendable, Hashable, Codable {
    /// It was restored, and the check passed.
    case proven

    case unproven

    case failed

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
  package var tags: [String]
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
  func hasAll(_ wanted: [String]) -> Bool {
    wanted.allSatisfy { $0.isEmpty && tags.isEmpty || tags.contains($0) }
  }
}

extension RetentionSnapshot {
  /// A broken backup counts as failed: it replaces no good one, and is kept only by the rules.
  package init(_ backup: StoredBackup) {
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
      } else {
        .ordinary
      }
    self.init(
      identifier: backup.id.description, date: backup.id.date, tags: backup.manifest?.tags ?? [], proof: proof,
      needs: backup.needs.map(\.description), standing: standing, onlyHere: backup.onlyHere,
      lineage: backup.manifest?.lineage, verification: backup.verification, falls: backup.manifest?.falls ?? [],
      isReleased: backup.isReleased, lacks: Set(backup.manifest?.externalData?.missing ?? []))
  }

  /// A backup is at most as good as the proofs of those it needs.
  package static func history(of backups: [StoredBackup]) -> [RetentionSnapshot] {
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
  package var needs: [BackupIdentifier] {
    guard let manifest else { return [] }
    let holders = Set((manifest.externalData?.items ?? []).compactMap(\.backup) + [manifest.parent].compactMap(\.self))
    return holders.subtracting([id]).sorted()
  }
}
