internal import Backup
public import Foundation
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import Salvage
package import SystemPackage

/// The backups of a store, in `Backups/` of its home.
///
/// ```swift
/// try await store.backups.createIfDue()
/// let preview = try await store.backups.preview()
/// if preview.isHarmless { try await store.backups.restore() }
/// ```
///
/// A backup may run while the store is in use, and writes no file beside it.
public struct StoreBackups: Sendable {
  private let store: RecoverableStore
  private var backups: Backups

  init(of store: RecoverableStore) {
    self.store = store
    backups = Backups(home: store.homeOrFolder)
  }

  /// Adds secret keys (`AGE-SECRET-KEY-1…`) that decrypt backups.
  public mutating func unlock(with keys: [String]) throws(StoreError) {
    backups.identities += try told { try keys.map { try AgeIdentity($0) } }
  }

  /// Takes a backup and reads it back.
  ///
  /// - Parameters:
  ///   - tags: words to find it by.
  ///   - isFull: makes it independent of earlier backups; otherwise it may be a delta.
  ///   - progress: called with the work done.
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

  /// Takes a backup if the home's policy says so, verifies it, and prunes.
  ///
  /// An app calls this when idle after opening.
  ///
  /// - Returns: nil if not due.
  @discardableResult
  public func createIfDue(progress: @escaping StoreProgress.Handler = { _ in }) async throws -> Backup? {
    try await work { cancellation in
      let scheduled = try backups.backUpIfDue(
        store.path, appVersion: store.appVersion, progress: told(progress, cancellation))
      return try scheduled.backup.map { Backup($0, in: try backups.place(of: store.path)) }
    }
  }

  /// Returns the backups, newest first.
  public func all() async throws -> [Backup] {
    try await work { _ in
      try backups.catalogs(of: store.path)
        .flatMap { catalog in catalog.backups.map { Backup($0, in: catalog.place) } }.sorted { $0.date > $1.date }
    }
  }

  /// Restores a backup into a private folder, checks it there, and notes the result.
  ///
  /// - Parameters:
  ///   - backup: the backup.
  ///   - migrating: also migrates it there to the current version.
  ///   - progress: called with the work done.
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

  /// Previews the changes of a restore over the store.
  ///
  /// - Parameters:
  ///   - backup: nil takes the newest restorable one.
  ///   - date: the latest time of the backup.
  ///   - progress: called with the work done.
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

  private var bundles: [ModelBundle] {
    guard case .coreData(let bundle) = store.model.model else { return [] }
    return [bundle]
  }

  /// Restores a backup over the store, and quarantines the present one.
  ///
  /// The process must have closed the store.
  ///
  /// - Parameters:
  ///   - backup: nil takes the newest restorable one.
  ///   - date: the latest time of the backup.
  ///   - takesBackup: first backs up a sound present store.
  ///   - progress: called with the work done.
  @discardableResult public func restore(
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

  /// Restores a backup to a free path.
  ///
  /// A backup kept apart (``Backup/isApart``) stays as damaged as its store.
  public func restore(
    _ backup: Backup, to url: URL, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws {
    try await work { cancellation in
      let restorer = BackupRestorer(of: backup.place)
      _ = try restorer.restore(backup.identifier, to: FilePath(file: url), options: restoring(progress, cancellation))
    }
  }

  /// Releases an original with records that its migration removed, so that the policy treats it like any other.
  public func release(_ backup: Backup) async throws {
    try await work { _ in _ = try backups.release(backup.identifier, in: backup.place) }
  }

  /// Confirms an intended fall in record counts, so that the policy treats the backup like any other.
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
  /// The store's backups.
  public var backups: StoreBackups { StoreBackups(of: self) }

  package var homeOrFolder: FilePath { home ?? path.removingLastComponent() }
}

private func told(_ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation) -> BackupProgress {
  { phase, done, total in
    progress(StoreProgress(phase, done, total))
    return !cancellation.isAsked
  }
}

extension StoreProgress {
  init(_ phase: BackupPhase, _ done: Int64, _ total: Int64) {
    let phase: Phase =
      switch phase {
      case .comparing: .comparing
      case .packing: .packing
      case .externalData: .externalData
      case .proving: .proving
      case .unpacking: .unpacking
      case .checking: .checking
      }
    self.init(phase, done: done, of: total)
  }
}

typealias PreviewBelow = RestorePreview

extension StoreBackups {
  /// A backup of a store.
  public struct Backup: Sendable, Identifiable {
    /// An entity that lost more than half of its records since the previous backup.
    public struct Fall: Sendable, Hashable {
      /// The entity, or the table.
      public let entity: String

      /// The previous number.
      public let before: Int64

      /// The present number.
      public let after: Int64
    }

    /// A verification.
    public struct Proof: Sendable, Hashable {
      /// Whether its files, read back, or also the restored store, passed.
      public let isProven: Bool

      /// Whether the environment prevented a result.
      public let isInconclusive: Bool

      /// Plain sentences.
      public let problems: [String]

      init(_ proof: BackupProof) {
        isProven = proof.result == .proven && !proof.isOfEvidence
        isInconclusive = proof.result == .inconclusive
        problems = proof.problems.map(\.words)
      }
    }

    /// The identifier.
    public let id: String

    /// Its time.
    public let date: Date

    /// Its size.
    public let bytes: Int64

    /// Words to find it by.
    public let tags: [String]

    /// Whether it is complete by names, sizes and manifests.
    public let isWhole: Bool

    /// Whether it is of a damaged store, and kept apart.
    public let isApart: Bool

    /// Whether it is complete, sound and verified.
    public let isProvenGood: Bool

    /// Whether it is encrypted.
    public let isEncrypted: Bool

    /// The model version, if known.
    public let modelVersion: String?

    /// Record counts by entity; empty if not counted.
    public let records: [String: Int64]

    /// The entities that lost more than half of their records.
    public let falls: [Fall]

    /// Records, by entity, that only this backup has since a migration removed them.
    public let onlyHere: [String: Int64]

    /// The reasons for its incompleteness.
    public let problems: [String]

    /// The last verification.
    public let proof: Proof?

    let identifier: BackupIdentifier
    let place: any BackupPlace

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

  /// The changes of a restore.
  public struct RestorePreview: Sendable, Hashable {
    /// An entity's records.
    public struct Entity: Sendable, Hashable {
      /// The name.
      public let name: String

      /// Only in the backup.
      public let added: Int64

      /// Different.
      public let changed: Int64

      /// Only in the present store.
      public let lost: Int64

      /// Equal.
      public let unchanged: Int64
    }

    /// A many-to-many relationship's pairs.
    public struct Pairs: Sendable, Hashable {
      /// Such as `Port.ships and Ship.ports`; the table if no known model names it.
      public let name: String

      /// Only in the backup.
      public let added: Int64

      /// Another position in an order.
      public let changed: Int64

      /// Only in the present store.
      public let lost: Int64
    }

    /// Large values in external files.
    public struct LargeValues: Sendable, Hashable {
      /// Files only in the backup.
      public let added: Int64

      /// Different file contents.
      public let changed: Int64

      /// Files only in the present store.
      public let lost: Int64
    }

    /// The entities of both.
    public let entities: [Entity]

    /// Many-to-many relationships; their pairs are not records.
    public let pairs: [Pairs]

    /// External large values of the backup's records.
    public let largeValues: LargeValues

    /// Whether all present data would stay; false if some could not be compared.
    public let isHarmless: Bool

    /// Model version, tables and columns, in words.
    public let schemaChanges: [String]

    /// External large values, in words.
    public let valueChanges: [String]

    /// The parts that could not be compared.
    public let remarks: [String]

    init(_ preview: PreviewBelow) {
      entities = preview.entities.map {
        Entity(name: $0.name, added: $0.added, changed: $0.changed, lost: $0.lost, unchanged: $0.unchanged)
      }
      pairs = preview.pairs.map { Pairs(name: $0.words, added: $0.added, changed: $0.changed, lost: $0.lost) }
      largeValues = LargeValues(added: preview.values.added, changed: preview.values.changed, lost: preview.values.lost)
      isHarmless = preview.isHarmless
      schemaChanges = preview.schemaWords
      valueChanges = preview.valueWords
      remarks = preview.remarks
    }
  }

  /// A finished restore.
  public struct Restored: Sendable, Hashable {
    /// The restored backup's identifier.
    public let backup: String

    /// Whether all of it was restored, with every large value of its records.
    public let isComplete: Bool

    /// The damage of the restored store; nil if sound or unknown.
    ///
    /// The store was damaged at the backup already (``Backup/isApart``). The next opening examines it, and the policy
    /// decides about a salvage.
    public let damage: String?

    /// The previous store, in quarantine.
    public let quarantined: URL?

    /// The identifier of the previous store's backup.
    public let earlierBackup: String?

    /// The reasons why newer backups were passed over.
    public let passedOver: [String]

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
