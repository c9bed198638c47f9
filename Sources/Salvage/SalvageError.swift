package import PersistentStore
public import Platform
package import SQLiteFormat

/// A salvage that could not be done at all; what could not be recovered is in the report instead.
public typealias SalvageError = Failure<SalvageErrorKind>

/// Why a salvage could not be done at all.
public enum SalvageErrorKind: String, FailureKind {
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

  /// The model has nothing of what the store holds.
  case unfitModel = "model-fits-nothing"

  /// What was rebuilt did not pass its checks.
  case verificationFailed = "salvage-verification-failed"

  /// The caller's progress function asked to stop.
  case cancelled = "cancelled"

  /// The file system refused; the code is that of the file error.
  case file = "salvage-file"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "salvage the store"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .nothingFound: "Check that it is the right file."
    case .outputExists, .outputIsStore: "Choose another name for the result."
    case .output: "Try another folder for the result; if it happens again, report it."
    case .donor: "Use another backup, or none."
    case .model: "Check the schema file."
    case .unfitModel:
      "Give the model that the store was written with, or none where the store carries its own."
    case .verificationFailed: "Salvage with --raw to get the rows as they are, and report it."
    case .cancelled: "Run the same command again at any time."
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension SalvageError {
  /// The error of a file that could not be read or written.
  package init(_ error: FileError) { self.init(.file, because: error) }

  /// The error of evidence that could not be read, or is no database.
  package init(_ error: FormatError) { self.init(error.fileError == nil ? .nothingFound : .file, because: error) }

  /// The error of a model that cannot be laid out; memory that has run out meanwhile is no fault of the model.
  package init(_ error: PersistentStoreError) {
    if let cause = DatabaseFailure(error, operation: error.operation, path: error.path).environmentalError {
      self.init(cause)
    } else {
      self.init(.model, because: error)
    }
  }

  package static func cancelled() -> SalvageError { SalvageError(.cancelled, detail: "it was cancelled") }
}
