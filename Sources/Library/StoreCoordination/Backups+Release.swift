extension Backups {
  /// Releases an original whose migration removed records that it still holds: pruning judges it like any other from then on.
  ///
  /// Until then it is kept whatever the policy says; `StoredBackup.onlyHere` says of which entities it holds records. The
  /// original itself is not touched.
  ///
  /// - Parameters:
  ///   - id: the backup.
  ///   - place: where it is; looked for in the places of all stores if nil.
  /// - Returns: what was noted of it; nil where nothing was to be released, because it was released before or no migration
  ///   removed records that it holds.
  /// - Throws: `no-such-backup`, `ambiguous-id` where two stores have one of that name, or what the place says.
  @discardableResult
  package func release(
    _ id: BackupIdentifier, in place: (any BackupPlace)? = nil
  ) throws(BackupError) -> OnlyHereNote? {
    let found: any BackupPlace
    if let place { found = place } else { found = try find(id).catalog.place }
    return try BackupPruner(of: found, surroundings: surroundings).release(id)
  }

  /// Says that records were meant to become few: the last backup of before that is judged by the rules of pruning like any
  /// other from then on.
  ///
  /// - Parameters:
  ///   - id: the backup that is kept because of the fall, as `BackupManifest.Fall.backup` names it.
  ///   - place: where it is; looked for in the places of all stores if nil.
  /// - Returns: the falls that kept it; empty where none did.
  /// - Throws: `no-such-backup`, `ambiguous-id` where two stores have one of that name, or what the place says.
  @discardableResult
  package func acknowledgeFalls(
    since id: BackupIdentifier, in place: (any BackupPlace)? = nil
  ) throws(BackupError) -> [BackupManifest.Fall] {
    let found: any BackupPlace
    if let place { found = place } else { found = try find(id).catalog.place }
    return try BackupPruner(of: found, surroundings: surroundings).acknowledge(id)
  }
}
