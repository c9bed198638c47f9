internal import Foundation
package import GRDB
package import Platform
package import SystemPackage

/// What an error that came out of work with a database stands for, told the same way by every module.
///
/// Neither SQL nor values of records get into it.
package enum DatabaseFailure {
  /// A file, a lock, the disk or the memory is at fault.
  ///
  /// It is environmental unless the file error itself says otherwise, as that of a missing file does.
  case file(FileError)

  /// The caller that watched the work ended it.
  case interrupted

  /// Another module's error, about its data.
  case reported(any ReportableError)

  /// SQLite reported a code that the content or the statement has caused.
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
    case let error as FileError: self = .file(error)
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
    } else {
      self = .sqlite(code: error.extendedResultCode.rawValue, name: "\(error.resultCode)")
    }
  }

  /// The kind of the file error that another module's error stands for; nil where it is about data.
  private static func fileErrorKind(of error: any ReportableError) -> FileError.Kind? {
    // Modules give a file's error its own code, whatever their own kind is.
    if let kind = FileError.Kind(rawValue: error.code) { return kind }
    guard error.isEnvironmental else { return nil }
    if let error = error as? PersistentStoreError {
      switch error.kind {
      case .locked: return .locked
      case .readOnly: return .permissionDenied
      case .unstorableModel, .schemaScriptRefused, .damagedMetadata, .unknownName, .noModel, .closed, .noSpace,
        .inputOutput, .cannotOpen, .permissionDenied, .outOfMemory, .damaged, .notADatabase, .database:
        break
      }
    }
    return .other
  }

  /// The error of the environment; nil where the content is at fault, or the one who watched ended the work.
  package var environmentalError: FileError? {
    if case .file(let error) = self, error.isEnvironmental { error } else { nil }
  }
}

extension Database {
  /// Brings everything that is committed into the main file, and empties the log.
  ///
  /// SQLite tells in a row, and not by an error, that a lock has kept it from doing so: a file that is taken without its log
  /// would lack what was written last.
  ///
  /// - Throws: `SQLITE_BUSY` where another connection stood in the way.
  package func bringLogIntoMainFile() throws {
    let isBusy = try Int.fetchOne(self, sql: "PRAGMA main.wal_checkpoint(TRUNCATE)") ?? 0
    if isBusy != 0 { throw DatabaseError(resultCode: .SQLITE_BUSY) }
  }
}
