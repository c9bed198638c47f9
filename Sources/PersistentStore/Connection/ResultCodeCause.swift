package import GRDB
package import Platform

/// What a result code of SQLite's is owed to: the one rule by which every module tells the environment from the store.
///
/// The environment is never taken for damage. A code that a limit of the connection's own has caused (a length, a number
/// of pages, a deadline) is about the content: who sets such a limit tells the two apart, because the code does not.
package enum ResultCodeCause: Sendable, Hashable {
  /// Another connection holds a lock.
  case locked

  case noSpace

  /// The system reported an input/output error.
  case inputOutput

  /// The file cannot be opened: no descriptor left, no folder for it, no permission.
  case cannotOpen

  case permissionDenied

  /// The file or its folder is read-only.
  case readOnly

  /// The file got another name while it was open.
  case moved

  case outOfMemory

  /// The system lacks something that SQLite needs.
  case unsupported

  /// The one who watches the work ended it.
  case interrupted

  /// The content is at fault, or the statement: damage, a constraint, a type, a length.
  case content

  /// The cause of a result code, primary or extended (https://sqlite.org/rescode.html).
  package init(_ code: ResultCode) {
    switch code {
    case .SQLITE_IOERR_NOMEM: self = .outOfMemory
    case .SQLITE_READONLY_DBMOVED: self = .moved
    default:
      self =
        switch code.primaryResultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL: .locked
        case .SQLITE_FULL: .noSpace
        case .SQLITE_IOERR: .inputOutput
        case .SQLITE_CANTOPEN: .cannotOpen
        case .SQLITE_PERM: .permissionDenied
        case .SQLITE_READONLY: .readOnly
        case .SQLITE_NOMEM: .outOfMemory
        case .SQLITE_NOLFS: .unsupported
        case .SQLITE_INTERRUPT: .interrupted
        default: .content
        }
    }
  }

  /// The kind of file error that says the same; nil where the environment is not at fault.
  package var fileErrorKind: FileError.Kind? {
    switch self {
    case .locked: .locked
    case .noSpace: .noSpace
    case .inputOutput: .inputOutput
    case .cannotOpen: .cannotOpenForSQLite()
    case .permissionDenied, .readOnly: .permissionDenied
    case .moved: .changed
    case .outOfMemory: .outOfMemory
    case .unsupported: .other
    case .interrupted, .content: nil
    }
  }

  /// Whether the environment is at fault, and neither the content nor the one who ended the work.
  package var isEnvironmental: Bool { fileErrorKind != nil }
}
