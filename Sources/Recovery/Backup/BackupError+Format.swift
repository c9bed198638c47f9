package import SQLiteFormat
import StoreFiles
package import SystemPackage

extension BackupError {
  /// What the page reader says of a store.
  package init(_ error: FormatError, store: FilePath) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else {
      self.init(.store, because: error, path: store)
    }
  }
}
