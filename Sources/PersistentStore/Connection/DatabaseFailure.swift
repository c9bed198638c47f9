internal import Foundation
package import GRDB
package import Platform
package import SystemPackage

/// The meaning of a database error, without SQL or record values.
package enum DatabaseFailure {
  /// A file, lock, disk or memory error; not environmental for a missing file and the like.
  case file(FileError)

  case interrupted

  case reported(any ReportableError)

  case sqlite(code: Int32, name: String)

  /// An error from outside this project.
  case unforeseen

  /// Classifies an error.
  ///
  /// - Parameter operation: an infinitive phrase, used like `path` if the error has none.
  package init(_ error: any Error, operation: String, path: FilePath?) {
    switch error {
    case let error as FileError where error.kind.subject == .fileSystem: self = .file(error)
    case let error as DatabaseError: self.init(error, operation: operation, path: path)
    case let error as any ReportableError:
      guard let kind = Self.fileErrorKind(of: error) else {
        self = .reported(error)
        return
      }
      self = .file(
        FileError(kind, because: error, path: error.path ?? path, details: error.fileError?.details ?? .init()))
    case let error as Errno: self = .file(FileError(error, operation: operation, path: path))
    case let error as POSIXError:
      self = .file(FileError(Errno(rawValue: error.code.rawValue), operation: operation, path: path))
    default: self = .unforeseen
    }
  }

  private init(_ error: DatabaseError, operation: String, path: FilePath?) {
    let cause = ResultCodeCause(error.extendedResultCode)
    if let kind = cause.fileErrorKind {
      self = .file(FileError(kind, operation: operation, path: path))
    } else if cause == .interrupted {
      self = .interrupted
    } else if error.resultCode == .SQLITE_CORRUPT, let path, let failure = Self.readFailure(of: path) {
      self = .file(failure)
    } else {
      self = .sqlite(code: error.extendedResultCode.rawValue, name: "\(error.resultCode)")
    }
  }

  /// The error of reading a file to its end: SQLite reports a page that the disk cannot read as a damaged one.
  private static func readFailure(of path: FilePath) -> FileError? {
    do throws(FileError) {
      let file = try FileSystem().open(path)
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      var offset: Int64 = 0
      while case let count = try file.read(at: offset, length: buffer.count, into: &buffer), count > 0 {
        offset += Int64(count)
      }
      return nil
    } catch {
      return error.kind == .notFound ? nil : error
    }
  }

  private static func fileErrorKind(of error: any ReportableError) -> FileError.Kind? {
    // Modules keep the code of a file error.
    if let kind = FileError.Kind(rawValue: error.code), kind.subject == .fileSystem { return kind }
    guard error.isEnvironmental else { return nil }
    if let error = error as? PersistentStoreError {
      switch error.kind {
      case .locked: return .locked
      case .readOnly: return .permissionDenied
      default: break
      }
    }
    return .other
  }

  /// The error if environmental.
  package var environmentalError: FileError? {
    if case .file(let error) = self, error.isEnvironmental { error } else { nil }
  }
}

extension Database {
  /// Checkpoints and truncates the log.
  ///
  /// SQLite reports a blocking lock in a row, not as an error; a file copied without its log would lack the latest
  /// commits.
  ///
  /// - Throws: `SQLITE_BUSY` if another connection blocks it.
  package func bringLogIntoMainFile() throws {
    let isBusy = try Int.fetchOne(self, sql: "PRAGMA main.wal_checkpoint(TRUNCATE)") ?? 0
    if isBusy != 0 { throw DatabaseError(resultCode: .SQLITE_BUSY) }
  }
}

/// The cause of an SQLite result code: the shared rule that separates environment from content.
///
/// Environmental errors never count as damage. Codes from the connection's own limits (length, pages, deadline) count
/// as content; the code that sets one must distinguish.
package enum ResultCodeCause: Sendable, Hashable {
  case locked, noSpace, inputOutput

  /// No descriptor, folder or permission.
  case cannotOpen

  case permissionDenied, readOnly

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
