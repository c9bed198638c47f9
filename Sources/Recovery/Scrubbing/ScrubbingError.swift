internal import PageRecovery
public import StoreFiles

/// A scrub that could not be done, or that did not pass its own check.
public typealias ScrubbingError = Failure<ScrubbingErrorKind>

/// Why a scrub could not be done, or did not pass its own check.
public enum ScrubbingErrorKind: String, FailureKind {
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

  /// What was being done, where a failure does not say.
  public static let usualOperation = "scrub the store"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .outputExists: "Choose another folder for the result."
    case .unknownColumn:
      "Name attributes as Entity.attribute, or columns as table.column where there is no model."
    case .valuesFound: "Nothing was kept of it. Export another level, and report this with the store's schema."
    case .storeChanged: "Close the app, or try again."
    case .key: "Let the software make the key."
    case .cancelled: "Run the same command again at any time."
    case .file: "Check the path and its permissions."
    case .survey: "Inspect the store; export another level where that finds nothing to read."
    }
  }

  /// Whether the environment is at fault, and not the store.
  public var isEnvironmental: Bool { self == .storeChanged }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension ScrubbingError {
  /// The error of a file that could not be read or written.
  init(_ error: FileError) { self.init(.file, because: error) }

  /// The error of pages that could not be looked at.
  init(_ error: SalvageError) {
    if error.kind == .cancelled {
      self = .cancelled()
    } else {
      self.init(error.fileError == nil ? .survey : .file, because: error)
    }
  }

  static func cancelled() -> ScrubbingError { ScrubbingError(.cancelled, detail: "it was cancelled") }
}
