internal import StoreFiles

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
