package import Backup
package import ManagedObjectModel
package import Platform
package import SystemPackage

extension Backups {
  private var fileSystem: FileSystem { surroundings.fileSystem }

  private func restorer(of store: FilePath, _ place: (any BackupPlace)?) throws -> BackupRestorer {
    let found: any BackupPlace = if let place { place } else { try self.place(of: store) }
    return BackupRestorer(of: found, surroundings: surroundings)
  }

  private func refuseOther(
    _ backup: StoredBackup, _ place: (any BackupPlace)?, _ store: FilePath
  ) throws {
    guard let place = place as? FolderPlace, place.owner != nil, try !folders.isBackup(backup, of: store) else {
      return
    }
    let own = try places(of: store).first { $0.path == place.path }
    guard let own, try !BackupCatalog(of: own).isOther(backup.id) else { throw BackupError.ofOtherStore(backup) }
  }

  /// Previews the changes of a restore over a store.
  ///
  /// - Parameters:
  ///   - id: nil takes the newest restorable backup.
  ///   - time: the latest time of the backup.
  ///   - place: nil takes the store's place in the home.
  /// - Throws: `backup-of-other-store`, or the error of the restore or of reading the store.
  package func preview(
    of path: FilePath, _ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil,
    from place: (any BackupPlace)? = nil, allowsOtherStore: Bool = false, options: BackupRestorer.Options = .init(),
    models: [ModelBundle] = []
  ) throws -> RestorePreview {
    let restorer = try restorer(of: path, place)
    let backup = try restorer.choose(id, notLaterThan: time)
    if !allowsOtherStore { try refuseOther(backup, place, path) }
    return try restorer.preview(backup.id, over: path, options: options, models: models)
  }

  package struct Restored: Sendable {
    package var report: RestoreReport

    /// The previous store.
    package var quarantined: QuarantinedStore?

    /// The backup of the previous store; nil if it was damaged or no backup was wanted.
    package var backup: StoredBackup?

    /// The newer backups passed over; empty if the caller named the backup.
    var passedOver: [BackupChoice.PassedOver] = []

    /// Damage that was in the store at its backup; nil if sound, salvaged, or unknown.
    package var damage: (code: String, words: String)?
  }

  /// Restores a backup over a store and quarantines the present store unchanged.
  ///
  /// The backup is restored beside the store, checked and synced before any move. After a kill, the old store is at its
  /// path, or the next opening or restore installs the restored one.
  ///
  /// - Parameters:
  ///   - id: nil takes the newest restorable backup.
  ///   - time: the latest time of the backup.
  ///   - place: nil takes the store's place in the home.
  ///   - takesBackup: first backs up the present store if it is sound and the home's policy allows it.
  /// - Throws: `backup-of-other-store`; `locked` or `in-use` if another process has the store open, `no-space`,
  ///   `backup-damaged`, or the error of a step; the store is then unchanged.
  package func restore(
    over path: FilePath, _ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil,
    from place: (any BackupPlace)? = nil, takesBackup: Bool = true, allowsOtherStore: Bool = false,
    options: BackupRestorer.Options = .init()
  ) throws -> Restored {
    let store = try StoreFileSet.locate(path, in: fileSystem)
    let restorer = try restorer(of: path, place)
    let choice = try restorer.choice(id, notLaterThan: time)
    let backup = choice.backup
    if !allowsOtherStore { try refuseOther(backup, place, path) }
    let chosen = backup.id
    let restored = StoreLineage.Restored(
      backup: chosen.description, date: chosen.date, generation: backup.manifest?.lineage?.generation)
    _ = try finishInterrupted(store)
    // Report a store in use first.
    let attempt = try StoreLock(on: store, in: fileSystem)
    attempt.release()
    let mark = PrivateFolder.mark(of: store.main)
    defer { withExtendedLifetime(mark) {} }
    let folder = RestoreFolder(for: store, in: fileSystem)
    let present = takesBackup ? try backUp(store, before: .beforeRestore) : nil
    var staged: RestoreReport?
    do {
      let working = try folder.make()
      let report = try restorer.stage(chosen, in: folder, options: options)
      staged = report
      let quarantined = try exchange(store, folder, report, restored)
      working.release()
      return Restored(
        report: report, quarantined: quarantined, backup: present, passedOver: choice.passedOver,
        damage: report.damage(backup))
    } catch {
      // Finish a half-done quarantine: the restored store is then installed or removed. The next opening handles the
      // rest; report the first error.
      if let staged, (try? finishInterrupted(store)) == .some(chosen) {
        let quarantined = try QuarantineFolder(beside: store, surroundings: surroundings).stores()
          .first { $0.receipt?.originalPath.path == store.main }
        return Restored(
          report: staged, quarantined: quarantined, backup: present, passedOver: choice.passedOver,
          damage: staged.damage(backup))
      }
      if staged == nil { try? folder.removeUnlessInstalling() }
      throw error
    }
  }

  private func exchange(
    _ store: StoreFileSet, _ folder: RestoreFolder, _ report: RestoreReport, _ restored: StoreLineage.Restored
  ) throws -> QuarantinedStore? {
    let lock = try FolderLock(store.folder, in: fileSystem)
    if let access = try fileSystem.access(to: store.main), access.status.kind == .regular {
      try fileSystem.adoptAccess(of: access.usable, to: folder.store.main)
    }
    try folder.markReady(report.id, report)
    var quarantined: QuarantinedStore?
    if try !store.members(in: fileSystem).isEmpty {
      quarantined = try Quarantines(home: home, surroundings: surroundings).add(
        store, model: nil, reason: "Backup \(report.id) was restored in its place.", appVersion: nil,
        holding: [store.folder], makingRoomFor: restored, OpeningObserver())
    }
    do {
      try folder.install()
      if quarantined == nil { note(restored, at: store) }
    } catch {
      if let quarantined, try store.members(in: fileSystem).isEmpty {
        _ = try QuarantineFolder(beside: store, surroundings: surroundings).release(quarantined.id, to: store)
      }
      throw error
    }
    lock.release()
    return quarantined
  }

  private func note(_ restored: StoreLineage.Restored, at store: StoreFileSet) {
    let quarantine = QuarantineFolder(beside: store, surroundings: surroundings)
    do {
      guard try fileSystem.status(of: quarantine.path)?.kind == .directory else { return }
      let salvaging = try quarantine.salvageLock()
      try quarantine.noteRestored(restored, at: store.main)
      salvaging.release()
    } catch {
      // Without the note the store only starts its own generation.
    }
  }

  /// Finishes an interrupted restore, after the quarantine.
  package func finishInterrupted(_ store: StoreFileSet) throws -> BackupIdentifier? {
    let folder = RestoreFolder(for: store, in: fileSystem)
    guard try folder.isThere() else { return nil }
    let lock = try FolderLock(store.folder, in: fileSystem)
    _ = try QuarantineFolder(beside: store, surroundings: surroundings).finishInterrupted()
    let outcome = try folder.finishInterrupted()
    lock.release()
    if case .installed(let id) = outcome { return id }
    return nil
  }
}
