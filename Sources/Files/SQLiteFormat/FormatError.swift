public import StoreFiles

/// A failure to read a database at all; damage that was met on the way is a ``Finding`` instead.
public typealias FormatError = Failure<FormatErrorKind>

/// Why a database cannot be read at all.
public enum FormatErrorKind: String, FailureKind {
  /// No page size can be told from the file, its log or its journal.
  case notADatabase = "not-a-database"

  /// The caller's progress function asked to stop.
  case cancelled = "cancelled"

  /// The bytes could not be read; its cause says why.
  case reading = "read-failed"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "read the database"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .notADatabase: "Check that it is the right file."
    case .cancelled: "Run the same command again at any time."
    case .reading: "Check the path and its permissions."
    }
  }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .reading }
}

extension FormatError {
  /// The error of a read that failed.
  public init(_ error: FileError) { self.init(.reading, because: error) }

  package static func cancelled(_ operation: String) -> FormatError {
    FormatError(.cancelled, operation: operation, detail: "it was cancelled")
  }
}
