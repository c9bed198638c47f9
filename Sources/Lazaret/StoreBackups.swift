internal import Backup
public import Foundation
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage
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

/// The preview of the modules below.
typealias PreviewBelow = RestorePreview

extension StoreBackups {
  /// A backup of a store.
  public struct Backup: Sendable, Identifiable {
    /// An entity that has less than half of the records that it had in the backup before.
    public struct Fall: Sendable, Hashable {
      /// The entity, or the table where no entity is known.
      public let entity: String

      /// How many records it had.
      public let before: Int64

      /// How many it has.
      public let after: Int64
    }

    /// How a proof has ended.
    public struct Proof: Sendable, Hashable {
      /// Whether all that was looked at is right: its files, read back after it was taken, or also the store that it restores to.
      public let isProven: Bool

      /// Whether it could not be told, because of the surroundings.
      public let isInconclusive: Bool

      /// What is wrong, each in a plain sentence.
      public let problems: [String]

      /// A proof of the modules below.
      init(_ proof: BackupProof) {
        isProven = proof.result == .proven && !proof.isOfEvidence
        isInconclusive = proof.result == .inconclusive
        problems = proof.problems.map(\.words)
      }
    }

    /// What it is called.
    public let id: String

    /// When it was taken.
    public let date: Date

    /// Its size in bytes.
    public let bytes: Int64

    /// The words to find it by.
    public let tags: [String]

    /// Whether nothing of it is lacking, as far as names, sizes and manifests tell.
    public let isWhole: Bool

    /// Whether it is of a store that was damaged, and kept apart from the good ones.
    public let isApart: Bool

    /// Whether it is whole, of a sound store, and was proven when last looked at.
    public let isProvenGood: Bool

    /// Whether it is encrypted.
    public let isEncrypted: Bool

    /// The version of the model that the store was of; nil where not known.
    public let modelVersion: String?

    /// The records of each entity; empty where they were not counted.
    public let records: [String: Int64]

    /// The entities that have less than half of the records they had before.
    public let falls: [Fall]

    /// How many records of entities that a migration removed are in it alone, by entity.
    public let onlyHere: [String: Int64]

    /// Why it is not whole, each in a plain sentence.
    public let problems: [String]

    /// The last proof; nil where there was none.
    public let proof: Proof?

    let identifier: BackupIdentifier
    let place: any BackupPlace

    /// A backup of the modules below.
    init(_ backup: StoredBackup, in place: any BackupPlace) {
      let manifest = backup.manifest
      id = backup.id.description
      date = Date(backup.id.date)
      bytes = backup.bytes
      tags = manifest?.tags ?? []
      isWhole = backup.isWhole
      isApart = backup.isApart
      isProvenGood = backup.isProvenGood
      isEncrypted = manifest?.isLocked == true
      modelVersion = manifest?.model?.version
      let counts = manifest?.entities?.compactMap { entity in entity.rows.map { (entity.name, $0) } } ?? []
      records = Dictionary(counts) { $0 + $1 }
      falls = manifest?.falls?.map { Fall(entity: $0.name, before: $0.before, after: $0.after) } ?? []
      onlyHere = Dictionary(backup.onlyHere?.entities.map { ($0.name, $0.rows) } ?? []) { $0 + $1 }
      problems = backup.problems.map(\.words)
      proof = backup.proof.map(Proof.init)
      identifier = backup.id
      self.place = place
    }
  }

  /// What restoring a backup over a store would change.
  public struct RestorePreview: Sendable, Hashable {
    /// The records of an entity.
    public struct Entity: Sendable, Hashable {
      /// What it is called.
      public let name: String

      /// Those that are in the backup only.
      public let added: Int64

      /// Those that differ.
      public let changed: Int64

      /// Those that are in the present store only.
      public let lost: Int64

      /// Those that are the same.
      public let unchanged: Int64
    }

    /// The pairs of a many-to-many relationship.
    public struct Pairs: Sendable, Hashable {
      /// The relationship, such as `Port.ships and Ship.ports`; its table where no model that is known names it.
      public let name: String

      /// Those that are in the backup only.
      public let added: Int64

      /// Those that are at another place of an order.
      public let changed: Int64

      /// Those that are in the present store only.
      public let lost: Int64
    }

    /// The large values in files of their own.
    public struct LargeValues: Sendable, Hashable {
      /// Those whose files the backup alone has.
      public let added: Int64

      /// Those whose files have another content.
      public let changed: Int64

      /// Those whose files the present store alone has.
      public let lost: Int64
    }

    /// The entities of both.
    public let entities: [Entity]

    /// The many-to-many relationships of both, whose pairs are no records of their own.
    public let pairs: [Pairs]

    /// The large values in files of their own that records of the backup refer to.
    public let largeValues: LargeValues

    /// Whether nothing that is in the present store would change or go; false where not everything could be compared.
    public let isHarmless: Bool

    /// What would change in the schema, in words: the model version, tables, columns.
    public let schemaChanges: [String]

    /// What would change in large values that have files of their own, in words.
    public let valueChanges: [String]

    /// What could not be compared, in words.
    public let remarks: [String]

    /// A preview of the modules below.
    init(_ preview: PreviewBelow) {
      entities = preview.entities.map {
        Entity(name: $0.name, added: $0.added, changed: $0.changed, lost: $0.lost, unchanged: $0.unchanged)
      }
      pairs = preview.pairs.map { Pairs(name: $0.words, added: $0.added, changed: $0.changed, lost: $0.lost) }
      largeValues = LargeValues(
        added: preview.values.added, changed: preview.values.changed, lost: preview.values.lost)
      isHarmless = preview.isHarmless
      schemaChanges = preview.schemaWords
      valueChanges = preview.valueWords
      remarks = preview.remarks
    }
  }

  /// What a restore did.
  public struct Restored: Sendable, Hashable {
    /// What the backup that was restored is called.
    public let backup: String

    /// Whether everything in it was restored, and no large value that its records refer to is lost.
    public let isComplete: Bool

    /// Why the restored store is not sound, in a plain sentence; nil where it is, or nothing tells.
    ///
    /// The store was not when it was backed up, and is as it was then: ``Backup/isApart`` is true of such a backup. The next
    /// opening examines it like any other store, and the policy says whether it is salvaged.
    public let damage: String?

    /// The store that was there before, in quarantine; nil where there was none.
    public let quarantined: URL?

    /// What the backup of it that was taken before is called; nil where none was.
    public let earlierBackup: String?

    /// Why newer backups were not restored, each in a plain sentence.
    public let passedOver: [String]

    /// What the modules below did.
    init(_ restored: Backups.Restored) {
      backup = restored.report.id.description
      isComplete = restored.report.isComplete
      damage = restored.damage?.words
      quarantined = restored.quarantined.map { URL(file: $0.files.main) }
      earlierBackup = restored.backup?.id.description
      passedOver = restored.passedOver.map { "\($0.id) \($0.words)." }
    }
  }
}

/// Whether a piece of work is to end.
package final class Cancellation: Sendable {
  private let asked = Mutex(false)

  /// Whether it was asked to.
  package var isAsked: Bool { asked.withLock { $0 } }

  func ask() { asked.withLock { $0 = true } }
}

/// Does work on a thread of its own, and asks it to end when the task is cancelled.
///
/// - Throws: `CancellationError` where the work has ended because of that, `StoreError` where it failed.
package func work<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
  let cancellation = Cancellation()
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      WorkThread.start {
        let result = Result { () throws -> Value in
          if cancellation.isAsked { throw CancellationError() }
          return try body(cancellation)
        }
        continuation.resume(with: result.mapError { told($0, cancellation) })
      }
    }
  } onCancel: {
    cancellation.ask()
  }
}

/// Does short work where the caller waits for it, and throws a `StoreError` where it failed.
package func told<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
  do { return try body() } catch { throw StoreError(error) }
}

/// An error of the modules below as the app is to see it.
private func told(_ error: any Error, _ cancellation: Cancellation) -> any Error {
  if error is CancellationError { return error }
  let told = StoreError(error)
  // Each module has a code of its own for work that the caller has ended.
  return cancellation.isAsked && told.code.hasSuffix("cancelled") ? CancellationError() : told
}
