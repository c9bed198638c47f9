extension Backups {
  /// Takes a backup of a store that is about to be migrated or replaced, where the home's policy wants one.
  ///
  /// - Returns: nil where none is wanted, where there is no store, and where it is damaged: quarantine keeps that byte for
  ///   byte.
  /// - Throws: `backup-policy-unreadable`, or what taking the backup failed with.
  func backUp(
    _ store: StoreFileSet, before reason: BackupManifest.Reason, appVersion: String? = nil
  ) throws -> StoredBackup? {
    let policy = try BackupPolicy.load(home: home, in: surroundings.fileSystem)
    switch reason {
    case .beforeMigration: guard policy.beforeMigration else { return nil }
    case .beforeInstall: guard policy.beforeInstall else { return nil }
    case .beforeRestore: guard policy.beforeRestore else { return nil }
    case .manual, .scheduled: break
    }
    let examination = try Examiner(fileSystem: surroundings.fileSystem).examine(
      store.main, options: .init(depth: .full, countsRecords: false))
    guard examination.verdict != .missing, examination.verdict != .damaged, examination.isReadable else { return nil }
    var request = BackupRequest()
    request.reason = reason
    (request.compression, request.level) = policy.usablePacking
    request.appVersion = appVersion
    let backup = try create(store.main, request)
    // Damage in indexes is found while it is taken; the raw files that were kept are no backup to go back to.
    return backup.isApart ? nil : backup
  }
}
