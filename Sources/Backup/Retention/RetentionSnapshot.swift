package import Platform

/// What retention has to know of a backup.
package struct RetentionSnapshot: Sendable, Hashable {
  /// Whether the backup has been shown to be good.
  package enum Proof: String, Sendable, Hashable, Codable {
    /// It has been restored and checked, and was good.
    case proven

    /// It has not been tried yet.
    case unproven

    /// It has been tried, and something was wrong.
    case failed

    /// It has been tried, and the surroundings did not let it come to an end.
    case inconclusive
  }

  /// How far the store in a proven backup was checked; each includes those before.
  package enum Verification: Int, Sendable, Hashable, Comparable {
    /// Its files are what was written; an earlier version of this software took it, and checked no store.
    case files

    /// Every page, and not every index: the entries of some could not be compared with rows.
    case pages

    /// Every page, and the indexes of the tables that had changed.
    case changed

    /// Every page and every index, when it was taken or when it was restored to be verified.
    case whole

    /// Whether one goes less far than another.
    package static func < (left: Verification, right: Verification) -> Bool { left.rawValue < right.rawValue }
  }

  /// Whether the rules are for a backup.
  package enum Standing: String, Sendable, Hashable {
    case ordinary

    /// It is evidence, or of a store that was not sound, and is kept apart.
    case apart

    /// What it is cannot be told, for instance because a later version of this software wrote it.
    case unknown
  }

  /// What it is called.
  package var identifier: String
  /// When it was taken.
  package var date: Timestamp
  /// Its tags.
  package var tags: [String]
  /// Whether it has been shown to be good.
  package var proof: Proof
  /// How far it was verified, where it is proven: it takes the place of none that was verified further.
  package var verification: Verification
  /// The entities that have few records, or none, where the backup before had many.
  package var falls: [BackupManifest.Fall]
  /// Whether a person has said that no fall keeps it any more.
  package var isReleased: Bool
  /// The backups that it cannot be restored without: the one it is a delta of, and those that have its large values.
  package var needs: [String]
  /// Whether the rules are for it.
  package var standing: Standing
  /// The large values that its records refer to and that it has not, by the names of their files.
  package var lacks: Set<String>
  /// Those of the large values that any backup of the history lacks which it has.
  package var holds: Set<String>
  /// The records that are only in it, so that it is kept until it is released; nil for one that nothing of the kind keeps.
  package var onlyHere: OnlyHereNote?
  /// Which store of several that had the same place it is of; nil where its manifest does not say.
  package var lineage: StoreLineage?

  /// What is known of a backup.
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

  /// Whether it has all of these tags; the empty tag stands for having none.
  func hasAll(_ wanted: [String]) -> Bool {
    wanted.allSatisfy { $0.isEmpty && tags.isEmpty || tags.contains($0) }
  }
}

extension RetentionSnapshot {
  /// What retention has to know of a backup that lies in a place.
  ///
  /// One that is not whole counts as failed: it takes no good one's place, and goes when the rules would not keep it.
  package init(_ backup: StoredBackup) {
    let isUnreadable = backup.problems.contains { [.manifestUnreadable, .manifestChanged].contains($0.code) }
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
        // Blocks alone do not tell evidence from a good backup.
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

  /// What retention has to know of all backups of a place.
  ///
  /// One that cannot be restored without another one is no better than that one's proof.
  package static func history(of backups: [StoredBackup]) -> [RetentionSnapshot] {
    var failed: Set<String> = []
    // What is needed is older than what needs it.
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
  /// How far it was verified, where its proof succeeded.
  package var verification: RetentionSnapshot.Verification {
    let check = manifest?.check
    // A restore checks no more of them.
    if check?.uncompared?.isEmpty == false { return .pages }
    // What was restored and checked once has the same store in it still, as a later look at its files says.
    if let proof, proof.result == .proven, proof.lastRestored != nil { return .whole }
    switch check?.depth {
    case .whole: return .whole
    case .changed: return .changed
    case nil: return .files
    }
  }

  /// The names of the files of large values that it has, as records refer to them.
  var valueNames: Set<String> {
    Set((manifest?.externalData?.items ?? []).compactMap { $0.name.text.split(separator: "/").last.map(String.init) })
  }

  /// The backups that this one cannot be restored without, itself left out: its parent, and those that hold its large values.
  package var needs: [BackupIdentifier] {
    guard let manifest else { return [] }
    let holders = Set((manifest.externalData?.items ?? []).compactMap(\.backup) + [manifest.parent].compactMap(\.self))
    return holders.subtracting([id]).sorted()
  }
}
