import Backup
import Platform
import SystemPackage

extension BackupError {
  init(_ error: S3Error) {
    switch error.kind {
    // The same kind as for a folder, so that callers need not know the place's type.
    case .notFound:
      self.init(FileError(.notFound, operation: error.operation, detail: error.detail))
    case .precondition:
      self.init(
        .nameTaken,
        because: FileError(.alreadyExists, operation: error.operation, detail: error.detail, hint: error.hint))
    case .address, .settings, .credentials, .access, .noBucket, .region, .clock, .unreachable, .certificate, .timeOut,
      .server, .checksum, .unsupported, .answer:
      self.init(.place, because: error)
    }
  }
}

/// Runs requests; their errors become those of a place of backups.
func asking<Value>(_ requests: () throws(S3Error) -> Value) throws(BackupError) -> Value {
  do throws(S3Error) { return try requests() } catch { throw BackupError(error) }
}
