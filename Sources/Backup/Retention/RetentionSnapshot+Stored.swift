extension RetentionSnapshot {
  /// What retention has to know of a backup that lies in a place.
  ///
  /// One that is not whole counts as failed: it takes no good one's place, and goes when the rules would not keep it.
  package init(_ backup: StoredBackup) {
    let isUnreadable = backup.problems.contains { $0.code == .manifestUnreadable }
    let proof: Proof =
      if !backup.isWhole {
        .failed
      } else {
        switch backup.proof?.result {
        case nil: .unproven
        case .proven: .proven
        case .failed: .failed
        case .inconclusive: .inconclusive
        }
      }
    let standing: Standing =
      if isUnreadable {
        .unknown
      } else if let manifest = backup.manifest {
        manifest.kind == .evidence || !manifest.check.isSound ? .apart : .ordinary
      } else {
        .ordinary
      }
    self.init(
      identifier: backup.id.description, date: backup.id.date, tags: backup.manifest?.tags ?? [], proof: proof,
      needs: backup.needs.map(\.description), standing: standing, onlyHere: backup.onlyHere,
      lineage: backup.manifest?.lineage)
  }
}

extension StoredBackup {
  /// The backups that this one cannot be restored without, itself left out: its parent, and those that hold its large values.
  package var needs: [BackupIdentifier] {
    guard let manifest else { return [] }
    let holders = Set((manifest.externalData?.items ?? []).compactMap(\.backup) + [manifest.parent].compactMap(\.self))
    return holders.subtracting([id]).sorted()
  }
}
