internal import GRDB
internal import PersistentStore
public import StoreFiles
internal import SystemPackage

/// A store that cannot be generated, compared or opened side by side.
///
/// Most come from a lower module and keep its code, words and hint.
public typealias StoreTestingError = Failure<StoreTestingErrorKind>

/// Why a store cannot be generated, compared or opened side by side.
public enum StoreTestingErrorKind: String, FailureKind {
  /// A store was opened without its model.
  case noModel = "store-without-model"

  /// A version of a model that is newer than the current one.
  case newerVersion = "version-is-newer"

  /// A lower module could not do its part; the code is that of its error.
  case lowerModule = "store-testing"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "test the store"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .noModel: "Open both with their models."
    case .newerVersion: "Name an earlier version, or say which one came first with --versions or a lock file."
    case .lowerModule: "See the cause."
    }
  }

  /// Whether the code is that of the lower module's error.
  public var standsForCause: Bool { self == .lowerModule }
}

extension StoreTestingError {
  /// The error of a lower module, or of SQLite; neither SQL nor values of records get into it.
  init(_ error: any Error, operation: String, path: FilePath?) {
    if let error = error as? StoreTestingError {
      self = error
      return
    }
    let cause: any ReportableError
    if let error = error as? any ReportableError {
      cause = error
    } else if let error = error as? DatabaseError {
      cause = PersistentStoreError(error, operation: operation, path: path)
    } else {
      cause = PersistentStoreError(.database, operation: operation, path: path, detail: "an unforeseen failure")
    }
    self.init(.lowerModule, because: cause, path: cause.path ?? path)
  }
}
