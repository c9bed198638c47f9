public import Foundation
internal import StoreCoordination
package import SystemPackage

/// The backups of a store: taking, listing, proving and restoring them.
///
/// ```swift
/// try await store.backups.createIfDue()
/// let preview = try await store.backups.preview()
/// if preview.isHarmless { try await store.backups.restore() }
/// ```
///
/// They lie in `Backups/` of the store's home. A backup is taken while the store is in use, and nothing is written beside it.
public struct StoreBackups: Sendable {
  private let store: RecoverableStore
  private var backups: Backups

  /// The backups of a store.
  init(of store: RecoverableStore) {
    self.store = store
    backups = Backups(home: store.homeOrFolder)
  }

  /// Adds the secret keys (`AGE-SECRET-KEY-1…`) with which encrypted backups are read.
  public mutating func unlock(with keys: [String]) throws(StoreError) {
    backups.identities += try told { try keys.map { try AgeIdentity($0) } }
  }

  /// Takes a backup at once, and reads it back.
  ///
  /// - Parameters:
  ///   - tags: words to find it by.
  ///   - isFull: whether it needs no earlier one; else it may hold only what has changed.
  ///   - progress: reports how far it is.
  public func create(
    tags: [String] = [], isFull: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Backup {
    try await work { cancellation in
      var request = BackupRequest(progress: told(progress, cancellation))
      request.tags = tags
      request.isFull = isFull
      request.appVersion = store.appVersion
      return Backup(try backups.create(store.path, request), in: try backups.place(of: store.path))
    }
  }

  /// Takes a backup where the policy of the home says that one is due, proves it, and prunes by that policy.
  ///
  /// For an app to call when it has opened its store and has nothing better to do.
  ///
  /// - Returns: nil where none was due.
  @discardableResult
  public func createIfDue(progress: @escaping StoreProgress.Handler = { _ in }) async throws -> Backup? {
    try await work { cancellation in
      let scheduled = try backups.backUpIfDue(
        store.path, appVersion: store.appVersion, progress: told(progress, cancellation))
      return try scheduled.backup.map { Backup($0, in: try backups.place(of: store.path)) }
    }
  }

  /// The backups that there are, newest first.
  public func all() async throws -> [Backup] {
    try await work { _ in
      try backups.catalogs(of: store.path)
        .flatMap { catalog in catalog.backups.map { Backup($0, in: catalog.place) } }.sorted { $0.date > $1.date }
    }
  }

  /// Restores a backup into a private folder, opens it there and checks it, and notes the result beside it.
  ///
  /// - Parameters:
  ///   - backup: the backup.
  ///   - migrating: whether it is migrated to the app's current version there too.
  ///   - progress: reports how far it is.
  public func prove(
    _ backup: Backup, migrating: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Backup.Proof {
    try await work { cancellation in
      var options = BackupProver.Options(progress: told(progress, cancellation))
      if migrating, case .coreData(let bundle) = store.model.model {
        options.depth = .migrated
        options.model = bundle
      }
      return Backup.Proof(try backups.prove(backup.identifier, in: backup.place, options))
    }
  }

  /// Says what restoring a backup over the store would change; touches nothing.
  ///
  /// - Parameters:
  ///   - backup: the newest that can be restored if nil.
  ///   - date: a moment that the backup must not be later than.
  ///   - progress: reports how far it is.
  public func preview(
    _ backup: Backup? = nil, notLaterThan date: Date? = nil, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> RestorePreview {
    try await work { cancellation in
      RestorePreview(
        try backups.preview(
          of: store.path, backup?.identifier, notLaterThan: Timestamp(date), from: backup?.place,
          options: restoring(progress, cancellation), models: bundles))
    }
  }

  /// The app's model, by which versions are named; none of a plain store.
  private var bundles: [ModelBundle] {
    guard case .coreData(let bundle) = store.model.model else { return [] }
    return [bundle]
  }

  /// Restores a backup over the store: the present one is quarantined, whole, and the restored one takes its place.
  ///
  /// Nothing in the process may have the store open.
  ///
  /// - Parameters:
  ///   - backup: the newest that can be restored if nil.
  ///   - date: a moment that the backup must not be later than.
  ///   - takesBackup: whether a backup of the present store is taken first, where it is sound.
  ///   - progress: reports how far it is.
  @discardableResult
  public func restore(
    _ backup: Backup? = nil, notLaterThan date: Date? = nil, takesBackup: Bool = true,
    progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Restored {
    try await work { cancellation in
      Restored(
        try backups.restore(
          over: store.path, backup?.identifier, notLaterThan: Timestamp(date), from: backup?.place,
          takesBackup: takesBackup, options: restoring(progress, cancellation)))
    }
  }

  /// Restores a backup to another place, where nothing may be.
  ///
  /// A backup that is kept apart (``Backup/isApart``) gives back what was backed up, damaged as it was.
  public func restore(
    _ backup: Backup, to url: URL, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws {
    try await work { cancellation in
      let restorer = BackupRestorer(of: backup.place)
      _ = try restorer.restore(
        backup.identifier, to: FilePath(file: url), options: restoring(progress, cancellation))
    }
  }

  /// Lets an original go whose migration removed records that it still holds: the policy judges it like any other then.
  public func release(_ backup: Backup) async throws {
    try await work { _ in _ = try backups.release(backup.identifier, in: backup.place) }
  }

  /// Says that records were meant to become few; the backup of before that is judged like any other then.
  public func acknowledgeFalls(since backup: Backup) async throws {
    try await work { _ in _ = try backups.acknowledgeFalls(since: backup.identifier, in: backup.place) }
  }

  private func restoring(
    _ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation
  ) -> BackupRestorer.Options {
    BackupRestorer.Options(model: SalvageModel(store.model.model), progress: told(progress, cancellation))
  }
}

extension RecoverableStore {
  /// The backups of the store.
  public var backups: StoreBackups { StoreBackups(of: self) }

  /// The home, or the store's folder where it has none.
  package var homeOrFolder: FilePath { home ?? path.removingLastComponent() }
}

/// Tells the app of a backup or a restore, and ends it when the app's task is cancelled.
private func told(_ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation) -> BackupProgress {
  { phase, done, total in
    progress(StoreProgress(phase, done, total))
    return !cancellation.isAsked
  }
}
