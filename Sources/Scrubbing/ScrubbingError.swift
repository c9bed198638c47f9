internal import Salvage
public import StoreFiles
public import SystemPackage

/// A scrub that could not be done, or that did not pass its own check.
public struct ScrubbingError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// The folder for the result has files of these names already.
    case outputExists = "output-exists"

    /// A column to be kept or dropped is none of the store's.
    case unknownColumn = "unknown-column"

    /// The check found original values in what was written.
    case valuesFound = "values-found"

    /// The store changed while it was read.
    case storeChanged = "store-changed"

    /// The key has not 32 bytes.
    case key = "scrubbing-key"

    /// The caller's progress function asked to stop.
    case cancelled = "cancelled"

    /// The file system refused; the code is that of the file error.
    case file = "scrubbing-file"

    /// The pages could not be looked at.
    case survey = "scrubbing-survey"
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
  public var isEnvironmental: Bool { fileError?.isEnvironmental ?? (kind == .storeChanged) }

  init(_ kind: Kind, operation: String = "scrub the store", path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }

  init(_ error: FileError) {
    kind = .file
    operation = error.operation
    path = error.path
    detail = error.detail
    hint = error.hint
    fileError = error
  }

  init(_ error: SalvageError) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else if error.kind == .cancelled {
      self = .cancelled()
    } else {
      self.init(.survey, operation: error.operation, path: error.path, detail: error.detail, hint: error.hint)
    }
  }

  static func cancelled() -> ScrubbingError {
    ScrubbingError(.cancelled, detail: "it was cancelled", hint: "Run it again when there is time.")
  }
}
