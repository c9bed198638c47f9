public import Foundation
internal import Migration
internal import Platform
public import SystemPackage

/// An error of work on a store, without values of records.
public struct StoreError: LocalizedError, Sendable, CustomStringConvertible {
  /// The category for an app's decision.
  public enum Kind: String, Sendable, CaseIterable {
    /// The data is fine: locked, forbidden, disk full, or newer than the app.
    case unavailable

    /// The store is damaged.
    case damaged

    /// No migration leads to the app's model.
    case incompatible

    /// The store lacks parts of its own model.
    case repairable

    /// The migration failed; the store is unchanged, or quarantined with its salvaged store.
    case migrationFailed

    /// A salvage had no usable result.
    case salvageFailed

    /// The quarantined store waits for its salvage.
    case salvagePending

    /// The file is clearly not a store.
    case notAStore

    /// See ``StoreError/code``.
    case other
  }

  /// The category for an app's decision.
  public let kind: Kind

  /// A stable word, such as `locked` or `no-space`.
  public let code: String

  /// The failed operation, an infinitive phrase.
  public let operation: String

  /// The file or folder concerned.
  public let path: FilePath?

  /// The cause, without a full stop.
  public let detail: String

  /// The advice.
  public let hint: String

  /// Whether a lock, a permission or a full disk is at fault rather than the data.
  public let isEnvironmental: Bool

  /// A failed migration's support report: names and numbers, without values of records.
  public let migrationReport: URL?

  /// The error on one line.
  public let description: String

  /// The error on one line.
  public var errorDescription: String? { description }

  /// The cause.
  public var failureReason: String? { detail }

  /// The advice.
  public var recoverySuggestion: String? { hint }

  /// The file or folder concerned.
  public var url: URL? { path.map { URL(file: $0) } }

  init(_ error: any Error) {
    if let error = error as? StoreError {
      self = error
    } else if let error = error as? any ReportableError {
      self.init(reported: error)
    } else {
      self.init(unforeseen: error)
    }
  }

  private init(reported error: any ReportableError) {
    kind = Kind(error)
    code = error.code
    operation = error.operation
    path = error.path
    detail = error.detail
    hint = error.hint
    isEnvironmental = error.isEnvironmental
    let migration = error as? MigrationError ?? (error as? LazaretError)?.migrationError
    migrationReport = migration?.reportPath.map { URL(file: $0) }
    description = error.description
  }

  private init(unforeseen error: any Error) {
    kind = .other
    code = "unforeseen"
    operation = "use the store"
    path = nil
    // A foreign error's text may contain data, so only its type is shown.
    detail = "an unforeseen error of the kind \(type(of: error)) came up"
    hint = "Please report this."
    isEnvironmental = false
    migrationReport = nil
    description = "cannot use the store: \(detail) [\(code)]. \(hint)"
  }

  static func noVersions(_ path: FilePath) -> StoreError {
    StoreError(
      MigrationError(
        .sourceModelMissing, path: path, detail: "a plain SQLite store has no versions of a model",
        hint: "Its app's own migrator changes the schema."))
  }
}

extension StoreError.Kind {
  init(_ error: any ReportableError) {
    if error.isEnvironmental {
      self = .unavailable
      return
    }
    guard let kind = (error as? LazaretError)?.kind else {
      self = error is MigrationError ? .migrationFailed : .other
      return
    }
    switch kind {
    case .migrationFailed: self = .migrationFailed
    case .repairable: self = .repairable
    case .unavailable: self = .unavailable
    case .damaged: self = .damaged
    case .foreignFile: self = .notAStore
    case .incompatible, .foreignStore: self = .incompatible
    case .salvageFailed: self = .salvageFailed
    case .salvagePending: self = .salvagePending
    default: self = .other
    }
  }
}
