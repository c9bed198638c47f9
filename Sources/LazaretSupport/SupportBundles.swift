public import Foundation
public import Lazaret
internal import Platform
internal import SupportBundle
internal import SystemPackage

/// Support bundles of a store, within the consent of its owner.
///
/// ```swift
/// let prepared = try await store.support.prepare()
/// // Show prepared.consent, and go on if the user agrees.
/// let bundle = try await store.support.write(prepared, to: folder, encryptedFor: [vendorKey])
/// ```
public struct SupportBundles: Sendable {
  /// How much of a store leaves the machine.
  public enum Level: String, Sendable, Hashable, CaseIterable {
    /// Numbers, states, and names of tables and columns: no user data.
    case facts

    /// The facts, and the damaged, orphan and schema pages unchanged.
    case damagedPages = "damaged-pages"

    /// The facts, and the whole damaged store with replaced values, except those that the report lists.
    case scrubbed

    /// Everything, byte for byte.
    case full
  }

  /// A bundle ready for writing, still on this machine.
  public struct Prepared: Sendable {
    /// A file of the bundle.
    public struct File: Sendable, Hashable {
      /// The name.
      public let name: String

      /// The size in bytes.
      public let bytes: Int64

      /// The description.
      public let words: String
    }

    /// The files.
    public let files: [File]

    /// The remarks in plain sentences.
    public let remarks: [String]

    /// The request for the user's consent, listing the data.
    public let consent: Notice

    let export: PreparedExport

    init(_ export: PreparedExport) {
      files = export.preview.files.map { File(name: $0.name, bytes: $0.bytes, words: $0.words) }
      remarks = export.preview.remarks
      consent = Notice(.consent(to: export.preview))
      self.export = export
    }
  }

  /// A written bundle.
  public struct Bundle: Sendable, Hashable {
    /// The location.
    public let url: URL?

    /// The size in bytes.
    public let bytes: Int64

    /// The hexadecimal SHA-256.
    public let sha256: String

    /// Whether it is encrypted to recipients.
    public let isEncrypted: Bool

    init(_ summary: ExportSummary) {
      url = URL(summary.path)
      bytes = summary.bundle.bytes
      sha256 = summary.bundle.sha256
      isEncrypted = !summary.bundle.recipients.isEmpty
    }
  }

  private let store: RecoverableStore
  private var exports: SupportExports { SupportExports(home: store.homeOrFolder) }

  init(of store: RecoverableStore) { self.store = store }

  /// Prepares a bundle.
  ///
  /// - Parameters:
  ///   - level: how much of the store to include.
  ///   - entry: a quarantined store instead of the live one.
  ///   - app: the app's identifier, for support.
  ///   - keeping: the entities and attributes (`Note.color`) with kept values in a scrubbed store.
  ///   - dropping: those with erased values.
  public func prepare(
    _ level: Level = .scrubbed, of entry: StoreQuarantine.Entry? = nil, app: String? = nil, keeping: Set<String> = [],
    dropping: Set<String> = [], progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Prepared {
    try await work { cancellation in
      let options = ExportOptions(
        level: level.level, app: app, appVersion: store.appVersion, model: store.model.model, keeping: keeping,
        dropping: dropping)
      return Prepared(
        try exports.make(
          entry.map { FilePath(file: $0.url) } ?? store.path, options, progress: told(progress, cancellation)))
    }
  }

  /// Writes a prepared bundle.
  ///
  /// - Parameters:
  ///   - prepared: the bundle, with the user's consent.
  ///   - url: an existing folder, or the bundle's URL.
  ///   - recipients: the public keys (`age1…`) to encrypt to; not encrypted if empty.
  public func write(
    _ prepared: Prepared, to url: URL, encryptedFor recipients: [String] = [],
    progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Bundle {
    try await work { cancellation in
      let keys = try recipients.map { try AgeRecipient($0) }
      return Bundle(
        try exports.write(
          prepared.export, to: keys, at: FilePath(file: url), progress: told(progress, cancellation)))
    }
  }
}

extension RecoverableStore {
  /// The support bundles of the store.
  public var support: SupportBundles { SupportBundles(of: self) }
}

extension SupportBundles.Level {
  var level: BundleLevel {
    switch self {
    case .facts: .facts
    case .damagedPages: .damagedPages
    case .scrubbed: .scrubbed
    case .full: .full
    }
  }
}

/// Reports an export's progress, and cancels it with the app's task.
private func told(_ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation) -> ExportProgress {
  { phase, done, total in
    progress(StoreProgress(.exporting, done: done, of: total, step: phase.words))
    return !cancellation.isAsked
  }
}

extension StoreModel {
  /// Reads the model in a store, backup or support bundle, if any.
  public init?(carriedBy url: URL) throws(StoreError) {
    let bundle = try told { try ModelCarrier(FilePath(file: url))?.load() }
    guard let bundle else { return nil }
    self.init(bundle)
  }
}
