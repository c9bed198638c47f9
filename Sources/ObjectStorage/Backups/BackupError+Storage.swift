import Backup
import Platform
import SystemPackage

extension BackupError {
  /// What a server of the S3 protocol says.
  init(_ error: S3Error) {
    switch error.kind {
    // What a folder would say, so that whoever reads a place need not know what it is.
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
