public import Foundation
public import Lazaret
internal import Platform
internal import SupportBundle
internal import SystemPackage

/// Support bundles of a store: what support needs to find out what happened, and no more than the owner of the store agrees to.
///
/// ```swift
/// let prepared = try await store.support.prepare()
/// // Show prepared.consent, and go on if the user agrees.
/// let bundle = try await store.support.write(prepared, to: folder, encryptedFor: [vendorKey])
/// ```
public struct SupportBundles: Sendable {
  /// How much of a store leaves the machine.
  public enum Level: String, Sendable, Hashable, CaseIterable {
    /// Numbers, names of tables and columns, and states: no byte of the user's.
    case facts

    /// Besides, the damaged and orphan pages and those of the schema, as they are.
    case damagedPages = "damaged-pages"

    /// Besides the facts, the whole store with its damage, its values replaced but for those that the report lists.
    case scrubbed

    /// Everything, byte for byte.
    case full
  }

  /// A bundle that is ready to be written; nothing has left the machine.
  public struct Prepared: Sendable {
    /// A file in it.
    public struct File: Sendable, Hashable {
      /// What it is called.
      public let name: String

      /// Its size in bytes.
      public let bytes: Int64

      /// What it is, in words.
      public let words: String
    }

    /// The files in it.
    public let files: [File]

    /// What is remarkable, each in a plain sentence.
    public let remarks: [String]

    /// Words that ask the user for leave, with what would leave the machine.
    public let consent: Notice

    let export: PreparedExport

    /// A bundle of the modules below.
    init(_ export: PreparedExport) {
      files = export.preview.files.map { File(name: $0.name, bytes: $0.bytes, words: $0.words) }
      remarks = export.preview.remarks
      consent = Notice(.consent(to: export.preview))
      self.export = export
    }
  }

  /// A bundle that was written.
  public struct Bundle: Sendable, Hashable {
    /// Where it is.
    public let url: URL?

    /// Its size in bytes.
    public let bytes: Int64

    /// The SHA-256 of its bytes, in hexadecimal digits.
    public let sha256: String

    /// Whether only its recipients can open it.
    public let isEncrypted: Bool

    /// A bundle of the modules below.
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

  /// Makes a bundle ready.
  ///
  /// - Parameters:
  ///   - level: how much of the store it holds.
  ///   - entry: a quarantined store instead of the one in its place.
  ///   - app: the app's identifier, for support.
  ///   - keeping: the entities and attributes (`Note.color`) whose values a scrubbed store keeps.
  ///   - dropping: those of which it keeps nothing.
  ///   - progress: reports how far it is.
  public func prepare(
    _ level: Level = .scrubbed, of entry: StoreQuarantine.Entry? = nil, app: String? = nil, keeping: Set<String> = [],
    dropping: Set<String> = [], progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Prepared {
    try await work { cancellation in
      let options = ExportOptions(
        level: level.level, app: app, appVersion: store.appVersion, model: store.model.model, keeping: keeping,
        dropping: dropping)
      return Prepared(
        try exports.prepare(
          entry.map { FilePath(file: $0.url) } ?? store.path, options, progress: told(progress, cancellation)))
    }
  }

  /// Writes a bundle that is ready.
  ///
  /// - Parameters:
  ///   - prepared: what was prepared, and the user agreed to.
  ///   - url: a folder that is there, in which the bundle gets a name of its own; else the bundle's own URL.
  ///   - recipients: the public keys (`age1…`) that alone can open it; not encrypted if empty.
  ///   - progress: reports how far it is.
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
  /// Support bundles of the store.
  public var support: SupportBundles { SupportBundles(of: self) }
}

extension SupportBundles.Level {
  /// The same, for the modules below.
  var level: BundleLevel {
    switch self {
    case .facts: .facts
    case .damagedPages: .damagedPages
    case .scrubbed: .scrubbed
    case .full: .full
    }
  }
}

/// Tells the app of an export, and ends it when the app's task is cancelled.
private func told(_ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation) -> ExportProgress {
  { phase, done, total in
    progress(StoreProgress(.exporting, done: done, of: total, step: phase.words))
    return !cancellation.isAsked
  }
}

extension StoreModel {
  /// The model that a store, a backup or a support bundle carries; nil where it carries none.
  public init?(carriedBy url: URL) throws(StoreError) {
    let bundle = try told { try ModelCarrier(FilePath(file: url))?.load() }
    guard let bundle else { return nil }
    self.init(bundle)
  }
}
