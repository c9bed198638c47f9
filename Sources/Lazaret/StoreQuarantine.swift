public import Foundation
internal import Platform
import SystemPackage

/// The quarantined stores that came from a store's place: looking at them, salvaging them, putting them back.
///
/// ```swift
/// for entry in try await store.quarantine.all() {
///   let salvage = try await store.quarantine.salvage(entry) { show($0.fraction) }
///   if salvage.isComplete, salvage.failure == nil { try await store.quarantine.install(entry) }
/// }
/// ```
///
/// A quarantined store is only ever read, until it is put back or discarded.
public struct StoreQuarantine: Sendable {
  /// A quarantined store.
  public struct Entry: Sendable, Identifiable {
    /// How far its salvage is.
    public enum SalvageState: String, Sendable, Hashable, CaseIterable {
      /// None was asked for.
      case none

      /// It was asked for and has not been done, or not to its end.
      case pending

      /// There is a salvaged store beside it, which can be installed, or waits for another version of the app; see
      /// ``Entry/isInstallable`` and ``Entry/waiting``.
      case salvaged

      /// It gave nothing that this or another version of the app could open.
      case failed

      /// A copy of the salvaged store was put into a store's place.
      case installed
    }

    /// Why a salvaged store waits for another version of the app.
    public enum Waiting: String, Sendable, Hashable, CaseIterable {
      /// It is newer than the app.
      case newerApp = "newer-than-app"

      /// The order of versions that was given leaves its version out.
      case unlistedVersion = "unlisted-version"

      /// It could not be migrated to the app's version.
      case migration = "salvage-not-migrated"
    }

    /// What it is called.
    public let id: String

    /// Its main file, in quarantine.
    public let url: URL

    /// Where it came from; nil where its receipt cannot be read.
    public let original: URL?

    /// When it was quarantined; nil where its receipt cannot be read.
    public let date: Date?

    /// A stable word for why it was; nil where its receipt cannot be read.
    public let code: String?

    /// Why it was, in a plain sentence.
    public let words: String

    /// The size of its files in bytes; nil where its receipt cannot be read.
    public let bytes: Int64?

    /// How far its salvage is.
    public let salvageState: SalvageState

    /// Whether there is a salvaged store that was seen to open with the app's version when it was made, so that it can be installed.
    public let isInstallable: Bool

    /// Why the salvaged store waits and cannot be installed; nil where it can, and where there is none.
    public let waiting: Waiting?

    /// A quarantined store of the modules below.
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

  /// The quarantined stores of a store's place.
  init(of store: RecoverableStore) {
    self.store = store
    quarantines = Quarantines(home: store.homeOrFolder)
    quarantines.migration = store.migration
  }

  /// Adds the secret keys (`AGE-SECRET-KEY-1…`) with which a salvage reads encrypted backups.
  public mutating func unlock(with keys: [String]) throws(StoreError) {
    quarantines.identities += try told { try keys.map { try AgeIdentity($0) } }
  }

  /// Those that came from the store's place, and those whose receipt cannot be read, newest first.
  public func all() async throws -> [Entry] {
    try await work { _ in
      let place = try StoreFileSet.locate(store.path, in: FileSystem()).main
      return try quarantines.stores(at: store.path)
        .filter { $0.receipt.map { $0.originalPath.path == place } ?? true }.map(Entry.init)
    }
  }

  /// Moves the store into quarantine, whatever state it is in; nothing in the process may have it open.
  ///
  /// - Parameters:
  ///   - reason: why, in words; what is found if nil.
  ///   - progress: reports how far it is.
  @discardableResult
  public func add(reason: String? = nil, progress: @escaping StoreProgress.Handler = { _ in }) async throws -> Entry {
    try await work { cancellation in
      Entry(
        try quarantines.add(
          store.path, model: store.model.model, reason: reason, appVersion: store.appVersion,
          observer: OpeningObserver(progress, cancellation)))
    }
  }

  /// Makes a clean store of every record that is still in the bytes of a quarantined one, beside it.
  ///
  /// It can be done again at any time, for instance by a later version of the app; the best result stays the one to install.
  ///
  /// - Parameters:
  ///   - entry: the quarantined store.
  ///   - findsDeleted: whether deleted records are looked for too; they are set aside.
  ///   - usesBackup: whether what is lost is taken from the newest proven backup of the store.
  ///   - progress: reports how far it is.
  @discardableResult
  public func salvage(
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

  /// Puts a copy of what was salvaged of a quarantined store into the store's place; the one that is there is quarantined first.
  ///
  /// Nothing in the process may have the store open.
  ///
  /// - Returns: what was quarantined for it; nil where nothing was there.
  @discardableResult
  public func install(_ entry: Entry) async throws -> Entry? {
    try await work { _ in
      try quarantines.install(
        FilePath(file: entry.url), to: store.path, model: store.model.model, appVersion: store.appVersion
      ).quarantined.map(Entry.init)
    }
  }

  /// Puts a quarantined store back into the store's place as it was.
  ///
  /// - Parameters:
  ///   - entry: the quarantined store.
  ///   - replacing: whether a store that is there is quarantined first.
  /// - Returns: what was quarantined for it; nil where nothing was there.
  @discardableResult
  public func release(_ entry: Entry, replacing: Bool = false) async throws -> Entry? {
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
  /// The quarantined stores that came from the store's place.
  public var quarantine: StoreQuarantine { StoreQuarantine(of: self) }
}
