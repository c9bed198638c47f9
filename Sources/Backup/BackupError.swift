public import StoreFiles
public import SystemPackage

/// A request of the backups that cannot be met.
public struct BackupError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// There is no backup of that name.
    case notFound = "no-such-backup"

    /// Two stores have a backup of that name.
    case ambiguous = "ambiguous-id"

    /// There is no store to back up.
    case nothingToBackUp = "nothing-to-back-up"

    /// A manifest is none, is damaged, or contradicts itself.
    case manifestUnreadable = "backup-manifest-unreadable"

    /// A manifest is of a later version than this software knows.
    case manifestTooNew = "backup-manifest-too-new"

    /// A file of the backup is missing, cut off or not what the manifest says.
    case damaged = "backup-damaged"

    /// A backup that another one needs is missing or damaged.
    case chainBroken = "backup-chain-broken"

    /// Something of that name is there already.
    case nameTaken = "backup-name-taken"

    /// What was written is not what was read.
    case verificationFailed = "backup-verification-failed"

    /// Data could not be packed.
    case packing = "backup-packing"

    /// A request that makes no sense, such as a level that does not exist.
    case request = "backup-request"

    /// The store could not be read as a database.
    case store = "backup-store"

    /// The backup was made after the store was quarantined, or of another generation of it.
    case otherGeneration = "backup-of-other-generation"

    /// The backup policy of a home is none, or says something that cannot be meant.
    case policyUnreadable = "backup-policy-unreadable"

    /// The caller's progress function asked to stop.
    case cancelled

    /// The file system refused; the code is that of the file error.
    case file = "backup-file"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, in one sentence without a full stop and without values of records.
  public var detail: String

  /// What to do next, as a full sentence.
  public var hint: String

  /// The error of the file system, where that is the cause.
  public var fileError: FileError?

  /// The stable word for the kind of failure; that of the file error where one is the cause.
  public var code: String { fileError?.code ?? kind.rawValue }

  /// Whether the surroundings are at fault, and neither store nor backup.
  public var isEnvironmental: Bool { fileError?.isEnvironmental ?? false }

  /// An error of a kind.
  public init(_ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }

  /// What the file system says.
  public init(_ error: FileError) {
    kind = error.kind == .alreadyExists ? .nameTaken : .file
    operation = error.operation
    path = error.path
    detail = error.detail
    hint = error.hint
    fileError = error
  }

  /// The caller asked to stop.
  package static func cancelled(_ operation: String) -> BackupError {
    BackupError(.cancelled, operation: operation, detail: "it was cancelled", hint: "Run it again when there is time.")
  }
}
