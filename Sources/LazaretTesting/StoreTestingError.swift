internal import GRDB
internal import PersistentStore
public import StoreFiles
public import SystemPackage

/// A store that cannot be generated, compared or opened side by side.
///
/// Most come from a lower module and keep its code, words and hint.
public struct StoreTestingError: ReportableError {
  /// The stable word for the kind of failure; that of the cause where there is one.
  public var code: String

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, in one plain sentence without a full stop.
  public var detail: String

  /// What the reader can do next, as a full sentence.
  public var hint: String

  /// Whether the surroundings are at fault and not the store or the model.
  public var isEnvironmental: Bool

  /// An error of this module's own.
  init(code: String, operation: String, path: FilePath? = nil, detail: String, hint: String) {
    self.code = code
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
    isEnvironmental = false
  }

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
    code = cause.code
    self.operation = cause.operation
    self.path = cause.path ?? path
    detail = cause.detail
    hint = cause.hint
    isEnvironmental = cause.isEnvironmental
  }
}
