public import Foundation
package import Migration
package import PersistentStore
package import Platform
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

package typealias LazaretError = Failure<LazaretErrorKind>

package enum LazaretErrorKind: String, FailureKind {
  /// The migration failed because of the store.
  case migrationFailed = "migration-failed"

  /// The store lacks parts of its own model.
  case repairable = "store-repairable"

  case unavailable = "store-unavailable"

  case damaged = "store-damaged"

  /// The file is clearly not a store.
  case foreignFile = "not-a-store"

  /// The sound store shares no entity with the app's model; it is probably another app's.
  case foreignStore = "foreign-store"

  /// No migration leads to the app's model.
  case incompatible = "store-incompatible"

  case creationFailed = "creation-failed"

  /// The salvage produced no store that the app could open, by a refusing policy or on the caller's request.
  case salvageFailed = "salvage-failed"

  /// The quarantined store waits for its salvage.
  case salvagePending = "salvage-pending"

  case cancelled = "cancelled"

  // MARK: Quarantine

  case notInQuarantine = "not-in-quarantine"
  case ambiguous = "ambiguous-id"
  case nothingToQuarantine = "nothing-to-quarantine"
  case placeTaken = "place-taken"
  case receiptUnreadable = "receipt-unreadable"
  case evidenceChanged = "evidence-changed"
  case evidenceMissing = "evidence-missing"
  case catalogueUnreadable = "catalogue-unreadable"
  case notSalvaged = "not-salvaged"
  case salvageUnusable = "salvage-unusable"

  package struct Details: FailureDetails {
    package var examination: Examination?

    /// The examination's own reason code (`locked`, `newer-model` …).
    package var code: String?

    package init() {}

    init(_ kind: LazaretErrorKind, _ examination: Examination) {
      self.examination = examination
      code = kind == .unavailable ? examination.reason.code : nil
    }
  }

  package var usualOperation: String { isOfQuarantine ? "use the quarantine" : "open the store" }

  /// Whether a quarantine or its catalogue is at fault, not an opening.
  package var isOfQuarantine: Bool {
    switch self {
    case .notInQuarantine, .ambiguous, .nothingToQuarantine, .placeTaken, .receiptUnreadable, .evidenceChanged,
      .evidenceMissing, .catalogueUnreadable, .notSalvaged, .salvageUnusable:
      true
    default: false
    }
  }

  package static let givePlace = "Give the place."
  package static let listVersion = "Salvage it again with its version in the order, or in a lock file."

  package var usualHint: String {
    switch self {
    case .foreignFile: "Check that it is the right file; it is as it was."
    case .repairable: "Repair it with lazaret repair and the app's model; the store is as it was."
    case .migrationFailed, .damaged, .incompatible, .foreignStore: "The store is as it was; inspect it."
    case .unavailable, .cancelled: "The store is as it was; open it again at any time."
    case .creationFailed: "Nothing was moved. Please report this, with the model."
    case .salvageFailed:
      "The store lies in quarantine, whole and unchanged; export it for debugging, or open an empty one."
    case .salvagePending: "The store lies in quarantine, whole and unchanged; salvage it."
    case .notInQuarantine: "List what there is with: lazaret quarantine list. It may be in another home."
    case .ambiguous: "Give its path instead."
    case .nothingToQuarantine: "Check the path."
    case .placeTaken: "Have what is there quarantined first, or release it to another place."
    case .receiptUnreadable:
      "The store beside it is not affected; it can be examined, salvaged and released without its receipt."
    case .evidenceChanged: "Copy the files elsewhere by hand if you want them as they are now."
    case .evidenceMissing:
      "Put its files back from a copy, under their names; what is left of it is removed with: lazaret quarantine discard ID"
    case .catalogueUnreadable:
      "Move it away; the quarantined stores themselves are not affected, and the next quarantine makes a new one."
    case .notSalvaged: "Salvage it first."
    case .salvageUnusable: "Salvage it again with the app's current model."
    }
  }

  package var isEnvironmental: Bool { self == .unavailable }

  /// Whether the code is the migration error's (`locked`, `migration-data-violation` …).
  package var standsForCause: Bool { self == .unavailable || self == .migrationFailed }
}

extension LazaretError {
  package var migrationError: MigrationError? { cause as? MigrationError }

  init(_ kind: Kind, _ error: MigrationError, path: FilePath, examination: Examination) {
    let report = error.reportPath.map { " The report is \(quoted($0))." } ?? ""
    let operation = error.isOfRepair ? error.operation : error.kind.usualOperation
    self.init(kind, because: error, operation: operation, path: path, hint: error.hint + report)
    self.examination = examination
  }

  static func cancelled(_ path: FilePath) -> LazaretError {
    LazaretError(.cancelled, path: path, detail: "it was cancelled")
  }

  static func cancelledSalvage(_ path: FilePath) -> LazaretError {
    LazaretError(
      .cancelled, operation: "salvage the store", path: path, detail: "it was cancelled",
      hint: "The store lies in quarantine, whole and unchanged; salvage it, or open it, again at any time.")
  }

  static func salvageFailed(_ path: FilePath, _ reason: Receipt.Reason) -> LazaretError {
    LazaretError(.salvageFailed, operation: "salvage the store", path: path, detail: printable(reason.words))
  }

  /// Returns the error for a foreign or encrypted file; nil for any other.
  ///
  /// - Parameter operation: an infinitive phrase.
  package static func noStore(_ examination: Examination, at path: FilePath, operation: String) -> LazaretError? {
    let kind: Kind? = examination.isForeignFile ? .foreignFile : examination.isEncryptedOrRandom ? .unavailable : nil
    guard let kind else { return nil }
    var error = LazaretError(kind, examination, path: path)
    error.operation = operation
    return error
  }

  init(_ kind: Kind, _ examination: Examination, path: FilePath) {
    self.init(
      kind, path: path, detail: examination.reason.words.asDetail, hint: examination.reason.hint,
      details: .init(kind, examination))
  }
}

extension String {
  /// A sentence as the detail of an error.
  var asDetail: String {
    let words = withoutFullStop
    return words.prefix(1).lowercased() + words.dropFirst()
  }

  var withoutFullStop: String { hasSuffix(".") ? String(dropLast()) : self }
}

extension Examination {
  /// Throws if the store is out of reach: locked, forbidden or missing.
  package func requireReachable(at path: FilePath) throws(LazaretError) {
    guard verdict == .unavailable else { return }
    throw LazaretError(.unavailable, self, path: path)
  }
}
