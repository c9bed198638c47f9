internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat
public import StoreFiles
public import SystemPackage

/// A salvage that could not be done at all; what could not be recovered is in the report instead.
public struct SalvageError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// No page of a SQLite database was found in the bytes.
    case nothingFound = "nothing-to-salvage"

    /// Something has the name that the result should get.
    case outputExists = "output-exists"

    /// The result would take the place of a part of the store.
    case outputIsStore = "output-is-store"

    /// The result could not be written.
    case output = "salvage-output"

    /// The backup that rows are to be taken from is of no use.
    case donor = "backup-unusable"

    /// The model cannot be laid out.
    case model = "salvage-model"

    /// What was rebuilt did not pass its checks.
    case verificationFailed = "salvage-verification-failed"

    /// The caller's progress function asked to stop.
    case cancelled = "cancelled"

    /// The file system refused; the code is that of the file error.
    case file = "salvage-file"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, without values of records.
  public var detail: String

  /// What the reader can do next.
  public var hint: String

  /// The error of the file system, where that is the cause.
  public var fileError: FileError?

  /// The stable word for the kind of failure; that of the file error where one is the cause.
  public var code: String { fileError?.code ?? kind.rawValue }

  /// Whether the surroundings are at fault, and not the store.
  public var isEnvironmental: Bool { fileError?.isEnvironmental ?? false }

  init(_ kind: Kind, operation: String = "salvage the store", path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }

  /// The error of the file system.
  package init(_ error: FileError) {
    kind = .file
    operation = error.operation
    path = error.path
    detail = error.detail
    hint = error.hint
    fileError = error
  }

  init(_ error: FormatError) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else {
      self.init(.nothingFound, operation: error.operation, path: error.path, detail: error.detail, hint: error.hint)
    }
  }

  init(_ error: PersistentStoreError) {
    self.init(.model, operation: error.operation, path: error.path, detail: error.detail, hint: error.hint)
  }

  static func cancelled() -> SalvageError {
    SalvageError(.cancelled, detail: "it was cancelled", hint: "Run it again when there is time.")
  }
}
