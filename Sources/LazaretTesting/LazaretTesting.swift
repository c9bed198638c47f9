internal import GRDB
// Tests import only this module, so re-export the types of its interface.
@_exported public import ManagedObjectModel
@_exported public import Migration
@_exported public import PersistentStore
@_exported public import Platform
@_exported public import SystemPackage

/// A failure of a store test.
///
/// Most take code, words and hint from a lower module.
public typealias StoreTestingError = Failure<StoreTestingErrorKind>

/// The kinds of store test failures.
public enum StoreTestingErrorKind: String, FailureKind {
  case noModel = "store-without-model"

  case newerVersion = "version-is-newer"

  /// A lower module failed; its error's code applies.
  case lowerModule = "store-testing"

  /// The default operation of a failure.
  public var usualOperation: String { "test the store" }

  /// The default hint of a failure.
  public var usualHint: String {
    switch self {
    case .noModel: "Open both with their models."
    case .newerVersion: "Name an earlier version, or say which one came first."
    case .lowerModule: "See the cause."
    }
  }

  /// Whether the lower module's code applies.
  public var standsForCause: Bool { self == .lowerModule }
}

extension StoreTestingError {
  /// Wraps an error of a lower module or SQLite, without SQL or record values.
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
