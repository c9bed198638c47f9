package import Backup
package import ManagedObjectModel
package import Platform
package import SystemPackage

extension Backups {
  private var fileSystem: FileSystem { surroundings.fileSystem }

  private func restorer(of store: FilePath, _ place: (any BackupPlace)?) throws(BackupError) -> BackupRestorer {
    var found = place
    if found == nil { found = try self.place(of: store) }
    return BackupRestorer(of: found ?? FolderPlace(home.appending("Backups")), surroundings: surroundings)
  }

  /// Refuses a backup of another store, where the places say of which one they are.
  private func refuseOther(
    _ backup: StoredBackup, _ place: (any BackupPlace)?, _ store: FilePath
  ) throws(BackupError) {
    guard let place = place as? FolderPlace, place.owner != nil else { return }
    let own = try places(of: store).first { $0.path == place.path }
    guard let own, try !BackupCatalog(of: own).isOther(backup.id) else { throw .ofOtherStore(backup) }
  }

  /// Says what restoring a backup over a store would change; touches nothing.
  ///
  /// - Parameters:
  ///   - path: the store.
  ///   - id: the backup; the newest that can be restored if nil.
  ///   - time: a moment that the backup must not be later than.
  ///   - place: where it is; the store's own place in the home if nil.
  ///   - allowsOtherStore: whether it may be of another store.
  ///   - models: the models by which versions are named.
  /// - Throws: `backup-of-other-store`, or what restoring it, or reading the store, failed with.
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

  /// What a restore over a store did.
  package struct Restored: Sendable {
    /// What was restored, and what could not be.
    package var report: RestoreReport

    /// The store that was there before, in quarantine; nil where there was none.
    package var quarantined: QuarantinedStore?

    /// The backup that was taken of it before; nil where it was damaged, or none was wanted.
    package var backup: StoredBackup?

    /// The newer backups that were not restored, and why; empty where the backup was named.
    package var passedOver: [BackupChoice.PassedOver] = []

    /// Why what was restored is not sound, as the store was not when it was backed up; nil where it is, was salvaged, or nothing
    /// tells.
    package var damage: (code: String, words: String)?
  }

  /// Restores a backup over a store: the present one is quarantined, as it is, and the restored one takes its place.
  ///
  /// The backup is restored beside the store, whole, checked and on the disk, before anything is moved. After a kill at any
  /// moment the old store is in its place, or the next opening, or restore, puts the restored one there.
  ///
  /// - Parameters:
  ///   - path: the store, whether it is there or not.
  ///   - id: the backup; the newest that can be restored if nil.
  ///   - time: a moment that the backup must not be later than.
  ///   - place: where it is; the store's own place in the home if nil.
  ///   - takesBackup: whether a backup of the present store is taken first, where it is sound and the home's policy does not
  ///     forbid it; it is quarantined in any case.
  ///   - allowsOtherStore: whether the backup may be of another store.
  /// - Throws: `backup-of-other-store`; `locked` or `in-use` where another process has the store open, `no-space`, `backup-damaged`, or what a step
  ///   failed with. The store is in its place then, as it was.
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
    // A store that is in use is told of before anything is restored.
    let attempt = try StoreLock(on: store, in: fileSystem)
    _ = consume attempt
    let folder = RestoreFolder(for: store, in: fileSystem)
    let present = takesBackup ? try backUp(store, before: .beforeRestore) : nil
    var staged: RestoreReport?
    do {
      let working = try folder.make()
      let report = try restorer.stage(chosen, in: folder, options: options)
      staged = report
      let quarantined = try exchange(store, folder, report, restored)
      _ = consume working
      return Restored(
        report: report, quarantined: quarantined, backup: present, passedOver: choice.passedOver,
        damage: report.damage(backup))
    } catch {
      // The present store may be half-way into quarantine: that is brought to its end, and then the restored one has its
      // place, or goes. What cannot be ended now stays for the next opening, and the first error is the one to report.
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

  /// Quarantines the present store and puts the restored one into its place, under the folder's lock.
  private func exchange(
    _ store: StoreFileSet, _ folder: RestoreFolder, _ report: RestoreReport, _ restored: StoreLineage.Restored
  ) throws -> QuarantinedStore? {
    let lock = try FolderLock(store.folder, in: fileSystem)
    // Who may read and write the new store is who may read and write the old one.
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
      // What made room for it goes back to where it was.
      if let quarantined, try store.members(in: fileSystem).isEmpty {
        _ = try QuarantineFolder(beside: store, surroundings: surroundings).release(quarantined.id, to: store)
      }
      throw error
    }
    _ = consume lock
    return quarantined
  }

  /// Notes, in the receipt of what was at an empty place before, what is there now.
  private func note(_ restored: StoreLineage.Restored, at store: StoreFileSet) {
    let quarantine = QuarantineFolder(beside: store, surroundings: surroundings)
    do {
      guard try fileSystem.status(of: quarantine.path)?.kind == .directory else { return }
      let salvaging = try quarantine.salvageLock()
      try quarantine.noteRestored(restored, at: store.main)
      _ = consume salvaging
    } catch {
      // The store is there. Without the note it is of a generation of its own, of which less is known, and nothing wrong.
    }
  }

  /// Ends a restore that an earlier run left, after what it left in the quarantine.
  ///
  /// - Returns: the backup whose store was put into its place; nil where none was.
  package func finishInterrupted(_ store: StoreFileSet) throws -> BackupIdentifier? {
    let folder = RestoreFolder(for: store, in: fileSystem)
    guard try folder.isThere() else { return nil }
    let lock = try FolderLock(store.folder, in: fileSystem)
    _ = try QuarantineFolder(beside: store, surroundings: surroundings).finishInterrupted()
    let outcome = try folder.finishInterrupted()
    _ = consume lock
    if case .installed(let id) = outcome { return id }
    return nil
  }
}
