internal import GRDB
package import StoreFiles
package import SystemPackage

/// What an error that came out of work with a database stands for, told the same way by every module.
///
/// Neither SQL nor values of records get into it.
package enum DatabaseFailure {
  /// The surroundings are at fault: locks, permissions, disk, memory.
  case weather(FileError)

  /// Whoever watched the work ended it.
  case interrupted

  /// Another module's error, about its data.
  case reported(any ReportableError)

  /// SQLite reported a code that is nobody's weather.
  case sqlite(code: Int32, name: String)

  /// An error that no module of this project made.
  case unforeseen

  /// Tells what an error stands for.
  ///
  /// - Parameters:
  ///   - operation: what was being done, as an infinitive phrase, for errors that do not say.
  ///   - path: the file, likewise.
  package init(_ error: any Error, operation: String, path: FilePath?) {
    switch error {
    case let error as FileError: self = .weather(error)
    case let error as DatabaseError: self.init(error, operation: operation, path: path)
    case let error as any ReportableError:
      guard error.isEnvironmental else {
        self = .reported(error)
        return
      }
      let kind = FileError.Kind(rawValue: error.code) ?? (error.code == "store-locked" ? .locked : .other)
      self = .weather(
        FileError(kind, because: error, path: error.path ?? path, details: error.fileError?.details ?? .init()))
    default: self = .unforeseen
    }
  }

  private init(_ error: DatabaseError, operation: String, path: FilePath?) {
    let kind: FileError.Kind
    switch error.resultCode {
    case .SQLITE_FULL: kind = .noSpace
    case .SQLITE_IOERR: kind = .inputOutput
    case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL: kind = .locked
    case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH, .SQLITE_CANTOPEN: kind = .permissionDenied
    case .SQLITE_NOMEM: kind = .other
    case .SQLITE_INTERRUPT:
      self = .interrupted
      return
    default:
      self = .sqlite(code: error.extendedResultCode.rawValue, name: "\(error.resultCode)")
      return
    }
    self = .weather(FileError(kind, operation: operation, path: path))
  }
}
