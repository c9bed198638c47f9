package import GRDB
package import Platform

/// The cause of an SQLite result code: the shared rule that separates environment from content.
///
/// Environmental errors never count as damage. Codes from the connection's own limits (length, pages, deadline) count
/// as content; the code that sets one must distinguish.
package enum ResultCodeCause: Sendable, Hashable {
  case locked

  case noSpace

  case inputOutput

  /// No descriptor, folder or permission.
  case cannotOpen

  case permissionDenied

  case readOnly

  /// Renamed while open.
  case moved

  case outOfMemory

  /// The system lacks a required feature.
  case unsupported

  case interrupted

  /// Damage, constraint, type or length.
  case content

  /// Classifies a primary or extended result code (https://sqlite.org/rescode.html).
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

  /// The environmental error kind, if any.
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

  package var isEnvironmental: Bool { fileErrorKind != nil }
}
