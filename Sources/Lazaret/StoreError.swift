public import Foundation
internal import Migration
internal import Platform
public import SystemPackage

/// Why something could not be done with a store: what went wrong, where, and what to do about it.
///
/// Values of records are in none of its words.
public struct StoreError: LocalizedError, Sendable, CustomStringConvertible {
  /// What an app decides by.
  public enum Kind: String, Sendable, CaseIterable {
    /// Nothing is wrong with the data: locked, forbidden, disk full, newer than the app. Try again.
    case unavailable

    /// The store is damaged, and the policy is to refuse.
    case damaged

    /// No way leads from the store to the app's model, and the policy is to refuse.
    case incompatible

    /// The store lacks something of its own model, and the policy is to refuse.
    case repairable

    /// The migration failed for a reason in the store; it is as it was, or waits in quarantine with what was salvaged of it.
    case migrationFailed

    /// Nothing came out of a salvage that the app could open.
    case salvageFailed

    /// The store lies in quarantine and waits for its salvage, and the policy is to refuse.
    case salvagePending

    /// The file is plainly of another kind than a store.
    case notAStore

    /// Anything else; ``StoreError/code`` says what.
    case other
  }

  /// What an app decides by.
  public let kind: Kind

  /// A stable word for what went wrong, such as `locked` or `no-space`.
  public let code: String

  /// What was being done, as an infinitive phrase.
  public let operation: String

  /// The file or folder that it was being done to, where there is one.
  public let path: FilePath?

  /// What went wrong, in one plain sentence without a full stop.
  public let detail: String

  /// What can be done next, as a full sentence.
  public let hint: String

  /// Whether the surroundings are at fault (a lock, a permission, a full disk) and nothing is wrong with the data.
  public let isEnvironmental: Bool

  /// The report of a migration that failed, for support: names and numbers, and no value of a record.
  public let migrationReport: URL?

  /// All of it on one line.
  public let description: String

  /// What went wrong, for an alert.
  public var errorDescription: String? { description }

  /// What went wrong, without what to do about it.
  public var failureReason: String? { detail }

  /// What can be done next.
  public var recoverySuggestion: String? { hint }

  /// The file or folder that it was being done to, where there is one.
  public var url: URL? { path.map { URL(file: $0) } }

  /// An error of the modules below.
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
    // The error of another library may hold anything; only its kind is told.
    detail = "an unforeseen error of the kind \(type(of: error)) came up"
    hint = "Please report this."
    isEnvironmental = false
    migrationReport = nil
    description = "cannot use the store: \(detail) [\(code)]. \(hint)"
  }
}

extension StoreError.Kind {
  /// What an app decides by, of an error of the modules below.
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
    case .creationFailed, .cancelled: self = .other
    }
  }
}
