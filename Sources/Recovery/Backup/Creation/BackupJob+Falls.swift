import StoreFiles

extension BackupJob {
  /// The entities that have less than half of the records that they had in the last good backup, or none any more.
  ///
  /// Compared is with the last backup of the same generation of the store, of one that was deleted and started over too. An
  /// entity that is not in the store's model any more has not fallen: a migration removed it, and keeps a note of its own.
  func falls(of manifest: BackupManifest) -> [BackupManifest.Fall]? {
    let earlier = catalog.backups.first { backup in
      guard let other = backup.manifest, backup.id < id, backup.isWhole, !backup.isApart, other.kind != .original,
        backup.proof?.result != .failed
      else { return false }
      return other.lineage?.generation == manifest.lineage?.generation
    }
    guard let earlier, let counted = earlier.manifest?.entities else { return nil }
    let isSameModel = earlier.manifest?.model?.entityHashes == manifest.model?.entityHashes
    let now = Dictionary(
      (manifest.entities ?? []).map { ($0.name, $0.rows) }, uniquingKeysWith: { first, _ in first })
    var falls: [BackupManifest.Fall] = []
    for entity in counted {
      guard let before = entity.rows, before > 0 else { continue }
      let after: Int64
      if let rows = now[entity.name] {
        guard let rows else { continue }
        after = rows
      } else {
        guard isSameModel else { continue }
        after = 0
      }
      if after >= 0, after < before - after {
        falls.append(.init(name: entity.name, before: before, after: after, backup: earlier.id))
      }
    }
    return falls.isEmpty ? nil : falls
  }
}
