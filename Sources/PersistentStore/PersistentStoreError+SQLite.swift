package import GRDB
internal import StoreFiles
package import SystemPackage

extension PersistentStoreError {
  /// The error that SQLite's result code stands for; neither SQL nor bound values get into it.
  ///
  /// Locks, permissions, full disks and failing disks are the environment's fault, damage is the store's: the primary
  /// result codes of SQLite's documentation decide.
  package init(_ error: DatabaseError, operation: String, path: FilePath?) {
    let kind: Kind =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL: .locked
      case .SQLITE_FULL: .noSpace
      case .SQLITE_IOERR: .inputOutput
      case .SQLITE_CANTOPEN: .cannotOpen
      case .SQLITE_PERM, .SQLITE_AUTH: .permissionDenied
      case .SQLITE_READONLY: .readOnly
      case .SQLITE_NOMEM: .outOfMemory
      case .SQLITE_CORRUPT: .damaged
      case .SQLITE_NOTADB: .notADatabase
      default: .database
      }
    let words = error.message.map(Self.withoutValues) ?? "SQLite gave no reason"
    self.init(
      kind, operation: operation, path: path, detail: words, resultCode: error.extendedResultCode.rawValue)
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
