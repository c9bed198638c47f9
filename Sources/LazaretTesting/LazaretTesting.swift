internal import GRDB
// Tests import only this module, so re-export the types of its interface; its own files see them by this too.
@_exported public import ManagedObjectModel
@_exported public import Migration
@_exported public import PersistentStore
@_exported public import Platform
@_exported public import SystemPackage

extension PersistentStoreError {
  /// Wraps an error of a lower module or SQLite, without SQL or record values.
  init(testing error: any Error, operation: String, path: FilePath?) {
    switch error {
    case let error as PersistentStoreError:
      self = error
      self.path = error.path ?? path
    case let error as any ReportableError: self.init(.lowerModule, because: error, path: error.path ?? path)
    case let error as DatabaseError: self.init(error, operation: operation, path: path)
    default: self.init(.database, operation: operation, path: path, detail: "an unforeseen failure")
    }
  }
}
