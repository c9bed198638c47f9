package import GRDB
internal import StoreFiles
package import SystemPackage

extension PersistentStoreError {
  /// The error that SQLite's result code stands for; neither SQL nor bound values get into it.
  ///
  /// ``ResultCodeCause`` decides whether the environment is at fault or the store.
  package init(_ error: DatabaseError, operation: String, path: FilePath?) {
    let kind: Kind =
      switch ResultCodeCause(error.extendedResultCode) {
      case .locked: .locked
      case .noSpace: .noSpace
      case .inputOutput: .inputOutput
      case .cannotOpen, .unsupported: .cannotOpen
      case .permissionDenied: .permissionDenied
      case .readOnly, .moved: .readOnly
      case .outOfMemory: .outOfMemory
      case .content where error.resultCode == .SQLITE_CORRUPT: .damaged
      case .content where error.resultCode == .SQLITE_NOTADB: .notADatabase
      case .content, .interrupted: .database
      }
    let words = error.message.map(Self.withoutValues) ?? "SQLite gave no reason"
    self.init(
      kind, operation: operation, path: path, detail: words, resultCode: error.extendedResultCode.rawValue)
    if kind == .cannotOpen, FileError.Kind.cannotOpenForSQLite() == .tooManyOpenFiles {
      detail += ": too many files are open"
      hint = FileError.Kind.tooManyOpenFiles.usualHint
    }
  }

  /// The error as this module reports it: SQLite's are translated, its own and foreign ones stay what they are.
  static func translated(_ error: any Error, operation: String, path: FilePath?) -> any Error {
    if let error = error as? DatabaseError {
      return PersistentStoreError(error, operation: operation, path: path)
    }
    return error
  }

  /// SQLite's message without what it quotes of the statement, which can hold values.
  ///
  /// SQLite quotes the token it stumbled upon (`near "…"`, `unrecognized token: "…"`), and the token may hold quotes
  /// itself: everything from the first to the last one goes. Names come without quotes.
  static func withoutValues(_ message: String) -> String {
    let message = message.prefix(1000)
    guard let first = message.firstIndex(of: "\""), let last = message.lastIndex(of: "\"") else {
      return printable(String(message.prefix(400)))
    }
    return printable(message[..<first].prefix(400) + "\"…\"" + message[last...].dropFirst().prefix(100))
  }
}
