package import Migration
package import PersistentStore
package import Platform
package import SystemPackage

/// The reason why a store was not opened.
package typealias LazaretError = Failure<LazaretErrorKind>

/// Why a store was not opened.
package enum LazaretErrorKind: String, FailureKind {
  /// The migration failed for a reason in the store, and the policy is to refuse.
  case migrationFailed = "migration-failed"

  /// The store lacks something of its own model, and the policy is to refuse.
  case repairable = "store-repairable"

  /// The store is unavailable; nothing is wrong with it.
  case unavailable = "store-unavailable"

  /// The store is damaged, and the policy is to refuse.
  case damaged = "store-damaged"

  /// The file is plainly of another kind than a store, and the policy, or the command line, is to refuse.
  case foreignFile = "not-a-store"

  /// The store is sound and has nothing in common with the app's model: most likely it is another app's.
  case foreignStore = "foreign-store"

  /// No way leads from the store to the app's model, and the policy is to refuse.
  case incompatible = "store-incompatible"

  /// The new store is not what it should be.
  case creationFailed = "creation-failed"

  /// The salvage of a quarantined store gave nothing that the app could open, and the policy is to refuse, or the caller asked
  /// for the salvage itself.
  case salvageFailed = "salvage-failed"

  /// The store lies in quarantine and waits for its salvage, and the policy is to refuse.
  case salvagePending = "salvage-pending"

  /// The caller ended the opening.
  case cancelled = "cancelled"

  /// What led to the reason.
  package struct Details: FailureDetails {
    /// What was found out about the store.
    package var examination: Examination?

    /// The code of the examination's own reason, where that makes the store unavailable (`locked`, `newer-model` …).
    package var code: String?

    /// Nothing more is known.
    package init() {}

    init(_ kind: LazaretErrorKind, _ examination: Examination) {
      self.examination = examination
      code = kind == .unavailable ? examination.reason.code : nil
    }
  }

  /// What was being done, where a failure does not say.
  package static let usualOperation = "open the store"

  /// What the reader can do next, where a failure does not say.
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
    }
  }

  /// Whether the environment is at fault, or the store is newer than the app; nothing is wrong with it then.
  package var isEnvironmental: Bool { self == .unavailable }

  /// Whether the code is that of the migration's error (`locked`, `migration-data-violation` …), where that is the cause.
  package var standsForCause: Bool { self == .unavailable || self == .migrationFailed }
}

extension LazaretError {
  /// The error of the migration, where that is the reason.
  package var migrationError: MigrationError? { cause as? MigrationError }

  /// The error for a store that could not be migrated or repaired and stays as it is.
  init(_ kind: Kind, _ error: MigrationError, path: FilePath, examination: Examination) {
    let report = error.reportPath.map { " The report is \(quoted($0))." } ?? ""
    // A repair says itself which part of it failed.
    let operation = error.isOfRepair ? error.operation : MigrationErrorKind.usualOperation
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

  /// The error for a file that is no store of the app's to have: of another kind, or encrypted; nil for any other.
  ///
  /// - Parameter operation: what was to be done with it, as an infinitive phrase.
  package static func noStore(
    _ examination: Examination, at path: FilePath, operation: String
  ) -> LazaretError? {
    let kind: Kind? =
      examination.isForeignFile ? .foreignFile : examination.isEncryptedOrRandom ? .unavailable : nil
    guard let kind else { return nil }
    var error = LazaretError(kind, examination, path: path)
    error.operation = operation
    return error
  }

  /// The error for a store that stays where it is, in the words of its examination.
  init(_ kind: Kind, _ examination: Examination, path: FilePath) {
    var words = examination.reason.words
    if words.hasSuffix(".") { words.removeLast() }
    self.init(
      kind, path: path, detail: words.prefix(1).lowercased() + words.dropFirst(), hint: examination.reason.hint,
      details: .init(kind, examination))
  }
}

extension Examination {
  /// Throws where the store is out of reach: locked, forbidden, not there.
  ///
  /// - Parameter path: the store as the caller names it.
  package func requireReachable(at path: FilePath) throws(LazaretError) {
    guard verdict == .unavailable else { return }
    throw LazaretError(.unavailable, self, path: path)
  }
}
