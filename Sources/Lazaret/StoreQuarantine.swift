public import Foundation
internal import Platform
import SystemPackage

/// The quarantined stores from a store's path.
///
/// ```swift
/// for entry in try await store.quarantine.all() {
///   let salvage = try await store.quarantine.salvage(entry) { show($0.fraction) }
///   if salvage.isComplete, salvage.failure == nil { try await store.quarantine.install(entry) }
/// }
/// ```
///
/// They are only read until released or discarded.
public struct StoreQuarantine: Sendable {
  /// A quarantined store.
  public struct Entry: Sendable, Identifiable {
    /// Its salvage's state.
    public enum SalvageState: String, Sendable, Hashable, CaseIterable {
      /// Not requested.
      case none

      /// Requested and not finished.
      case pending

      /// A salvaged store can be installed, or waits for another version of the app; see ``Entry/isInstallable`` and
      /// ``Entry/waiting``.
      case salvaged

      /// No version of the app could open the result.
      case failed

      /// A copy was installed.
      case installed
    }

    /// The reason why a salvaged store waits for another version of the app.
    public enum Waiting: String, Sendable, Hashable, CaseIterable {
      /// It is newer than the app.
      case newerApp = "newer-than-app"

      /// The given order omits its version.
      case unlistedVersion = "unlisted-version"

      /// Its migration failed.
      case migration = "salvage-not-migrated"
    }

    /// The identifier.
    public let id: String

    /// The quarantined main file.
    public let url: URL

    /// The original path; nil if the receipt is unreadable.
    public let original: URL?

    /// Nil if the receipt is unreadable.
    public let date: Date?

    /// The reason's stable word; nil if the receipt is unreadable.
    public let code: String?

    /// The reason.
    public let words: String

    /// Nil if the receipt is unreadable.
    public let bytes: Int64?

    /// Its salvage's state.
    public let salvageState: SalvageState

    /// Whether its salvaged store opened with the app's version when made.
    public let isInstallable: Bool

    /// The reason why the salvaged store cannot be installed.
    public let waiting: Waiting?

    init(_ stored: QuarantinedStore) {
      id = stored.id
      url = URL(file: stored.files.main)
      let receipt = stored.receipt
      original = URL(receipt?.originalPath)
      date = Date(rfc3339: receipt?.date)
      code = receipt?.reason.code
      words = receipt?.reason.words ?? "Its receipt cannot be read."
      bytes = receipt?.totalBytes
      salvageState =
        switch receipt?.salvage?.state {
        case nil: .none
        case .pending?: .pending
        case .salvaged?: .salvaged
        case .failed?: .failed
        case .installed?: .installed
        }
      let salvage = receipt?.salvage
      isInstallable = salvage?.result?.isUsable == true
      waiting = isInstallable || salvage?.result == nil ? nil : salvage?.failure.flatMap { Waiting(rawValue: $0.code) }
    }
  }

  private let store: RecoverableStore
  private var quarantines: Quarantines

  init(of store: RecoverableStore) {
    self.store = store
    quarantines = Quarantines(home: store.homeOrFolder)
    quarantines.migration = store.migration
  }

  /// Adds secret keys (`AGE-SECRET-KEY-1…`) that decrypt backups for a salvage.
  public mutating func unlock(with keys: [String]) throws(StoreError) {
    quarantines.identities += try told { try keys.map { try AgeIdentity($0) } }
  }

  /// Returns the stores from this path or with unreadable receipts, newest first.
  public func all() async throws -> [Entry] {
    try await work { _ in
      let place = try StoreFileSet.locate(store.path, in: FileSystem()).main
      return try quarantines.stores(at: store.path)
        .filter { $0.receipt.map { $0.originalPath.path == place } ?? true }.map(Entry.init)
    }
  }

  /// Quarantines the store in any state; the process must have closed it.
  ///
  /// - Parameters:
  ///   - reason: nil takes the examination's.
  ///   - progress: called with the work done.
  @discardableResult
  public func add(reason: String? = nil, progress: @escaping StoreProgress.Handler = { _ in }) async throws -> Entry {
    try await work { cancellation in
      Entry(
        try quarantines.add(
          store.path, model: store.model.model, reason: reason, appVersion: store.appVersion,
          observer: OpeningObserver(progress, cancellation)))
    }
  }

  /// Salvages a quarantined store's records into a new store beside it.
  ///
  /// A later version of the app may repeat it; the best result stays the one to install.
  ///
  /// - Parameters:
  ///   - entry: the quarantined store.
  ///   - findsDeleted: also looks for deleted records, which are set aside.
  ///   - usesBackup: takes lost records from the newest verified backup.
  ///   - progress: called with the work done.
  @discardableResult public func salvage(
    _ entry: Entry, findsDeleted: Bool = false, usesBackup: Bool = false,
    progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> RecoverableStore.Salvage {
    try await work { cancellation in
      RecoverableStore.Salvage(
        try quarantines.salvage(
          FilePath(file: entry.url), model: store.model.model,
          options: QuarantineSalvageOptions(findsDeleted: findsDeleted, backup: usesBackup ? .newest : nil),
          observer: OpeningObserver(progress, cancellation)))
    }
  }

  /// Installs a salvaged store's copy, after quarantining the present store, which the process must have closed.
  ///
  /// - Returns: the store quarantined for it.
  @discardableResult public func install(_ entry: Entry) async throws -> Entry? {
    try await work { _ in
      try quarantines.install(
        FilePath(file: entry.url), to: store.path, model: store.model.model, appVersion: store.appVersion
      ).quarantined.map(Entry.init)
    }
  }

  /// Puts a quarantined store back unchanged.
  ///
  /// - Parameters:
  ///   - entry: the quarantined store.
  ///   - replacing: first quarantines a present store.
  /// - Returns: the store quarantined for it.
  @discardableResult public func release(_ entry: Entry, replacing: Bool = false) async throws -> Entry? {
    try await work { _ in
      try quarantines.release(FilePath(file: entry.url), to: store.path, replacing: replacing).quarantined
        .map(Entry.init)
    }
  }

  /// Removes a quarantined store for good.
  public func discard(_ entry: Entry) async throws {
    try await work { _ in _ = try quarantines.discard(FilePath(file: entry.url)) }
  }
}

extension RecoverableStore {
  /// The quarantined stores from this path.
  public var quarantine: StoreQuarantine { StoreQuarantine(of: self) }
}
