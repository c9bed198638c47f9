/// The reason why a store was not opened.
public struct LazaretError: ReportableError {
  /// What kind of reason it was.
  public enum Kind: String, Sendable {
    /// The migration failed for a reason in the store, and the policy is to refuse.
    case migrationFailed = "migration-failed"

    /// The store cannot be had now; nothing is wrong with it.
    case unavailable = "store-unavailable"

    /// The store is damaged, and the policy is to refuse.
    case damaged = "store-damaged"

    /// No way leads from the store to the app's model, and the policy is to refuse.
    case incompatible = "store-incompatible"

    /// The new store is not what it should be.
    case creationFailed = "creation-failed"

    /// The salvage of a quarantined store gave nothing that the app could open, and the policy is to refuse, or somebody asked
    /// for the salvage itself.
    case salvageFailed = "salvage-failed"

    /// The store lies in quarantine and waits for its salvage, and the policy is to refuse.
    case salvagePending = "salvage-pending"

    /// Whoever watched the opening ended it.
    case cancelled = "cancelled"
  }

  /// What kind of reason it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The store, as the caller names it.
  public var path: FilePath?

  /// What went wrong, in one plain sentence without a full stop.
  public var detail: String

  /// What the reader can do next, as a full sentence.
  public var hint: String

  /// What was found out about the store.
  public var examination: Examination?

  /// The error of the migration, where that is the reason.
  public var migrationError: MigrationError?

  /// The reason's own code where the store could not be had (`locked`, `newer-model` …) or migrated
  /// (`migration-data-violation` …), else the kind's.
  public var code: String {
    if let migrationError, kind != .incompatible { return migrationError.code }
    if kind == .unavailable, let reason = examination?.reason { return reason.code }
    return kind.rawValue
  }

  /// Whether the surroundings are at fault, or the store is newer than the app; nothing is wrong with it then.
  public var isEnvironmental: Bool { kind == .unavailable }

  init(
    _ kind: Kind, operation: String = "open the store", path: FilePath?, detail: String, hint: String,
    examination: Examination? = nil
  ) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
    self.examination = examination
  }

  /// The error for a store that could not be migrated and stays as it is.
  init(_ kind: Kind, _ error: MigrationError, path: FilePath, examination: Examination) {
    let report = error.reportPath.map { " The report is \(quoted($0))." } ?? ""
    self.init(
      kind, operation: "migrate the store", path: path, detail: error.detail, hint: error.hint + report,
      examination: examination)
    migrationError = error
  }

  static func cancelled(_ path: FilePath) -> LazaretError {
    LazaretError(
      .cancelled, path: path, detail: "it was cancelled", hint: "The store is as it was; open it again at any time.")
  }

  static func cancelledSalvage(_ path: FilePath) -> LazaretError {
    LazaretError(
      .cancelled, operation: "salvage the store", path: path, detail: "it was cancelled",
      hint: "The store lies in quarantine, whole and unchanged; salvage it, or open it, again at any time.")
  }

  static func salvageFailed(_ path: FilePath, _ reason: Receipt.Reason) -> LazaretError {
    LazaretError(
      .salvageFailed, operation: "salvage the store", path: path, detail: printable(reason.words),
      hint: "The store lies in quarantine, whole and unchanged; export it for debugging, or open an empty one.")
  }

  /// The error for a store that stays where it is, in the words of its examination.
  init(_ kind: Kind, _ examination: Examination, path: FilePath) {
    var words = examination.reason.words
    if words.hasSuffix(".") { words.removeLast() }
    self.init(
      kind, path: path, detail: words.prefix(1).lowercased() + words.dropFirst(), hint: examination.reason.hint,
      examination: examination)
  }
}
