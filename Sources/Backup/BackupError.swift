package import Platform
internal import Salvage
internal import SystemPackage

/// A failed backup request.
package typealias BackupError = Failure<BackupErrorKind>

/// The reason a backup request failed.
package enum BackupErrorKind: String, FailureKind {
  case notFound = "no-such-backup"

  case ambiguous = "ambiguous-id"

  case nothingToBackUp = "nothing-to-back-up"

  /// The manifest is unreadable or contradicts itself.
  case manifestUnreadable = "backup-manifest-unreadable"

  /// The manifest differs from the written one.
  case manifestChanged = "backup-manifest-changed"

  /// The manifest's version is newer than this software.
  case manifestTooNew = "backup-manifest-too-new"

  case damaged = "backup-damaged"

  /// A backup needed by another is missing or damaged.
  case chainBroken = "backup-chain-broken"

  /// The name is taken.
  case nameTaken = "backup-name-taken"

  /// The written data differs from its source.
  case verificationFailed = "backup-verification-failed"

  case packing = "backup-packing"

  case compressionUnavailable = "compression-unavailable"

  /// The backup is encrypted, and no given key opens it.
  case locked = "backup-encrypted"

  /// The store's backups are encrypted, and the next one would be plain.
  case encryptionMissing = "backup-encryption-missing"

  /// The request is invalid, for example its level.
  case request = "backup-request"

  case unknownEntity = "unknown-entity"

  /// The store is not readable as a database.
  case store = "backup-store"

  /// The backup is newer than the store's quarantine, or of another generation.
  case otherGeneration = "backup-of-other-generation"

  case otherStore = "backup-of-other-store"

  /// A home's backup policy is unreadable or invalid.
  case policyUnreadable = "backup-policy-unreadable"

  /// The caller's progress function asked to stop.
  case cancelled

  /// The file system failed; the code is that of the file error.
  case file = "backup-file"

  // MARK: Object storage

  case s3Address = "s3-address"

  /// The environment or its files are invalid.
  case s3Settings = "s3-settings"

  /// Missing, or unknown to the server.
  case s3Credentials = "s3-credentials"

  /// The credentials lack the permission.
  case s3Access = "s3-access"

  case s3NoBucket = "s3-no-bucket"

  case s3NotFound = "s3-not-found"

  case s3Region = "s3-region"

  case s3Clock = "s3-clock"

  /// The server is out of reach, or the connection broke.
  case s3Unreachable = "s3-unreachable"

  case s3Certificate = "s3-certificate"

  case s3TimeOut = "s3-time-out"

  /// The server is overloaded or failed.
  case s3Server = "s3-server"

  /// The key is taken, or the object has changed.
  case s3Precondition = "s3-precondition"

  /// The body was corrupted on the way.
  case s3Checksum = "s3-checksum"

  /// The server lacks a needed function.
  case s3Unsupported = "s3-unsupported"

  /// The answer breaks the protocol.
  case s3Answer = "s3-answer"

  /// The answer of the object storage.
  package struct Details: FailureDetails {
    package var status: Int?

    /// The error code, such as `AccessDenied`.
    var word: String?

    package init() {}

    package init(status: Int?, word: String?) {
      self.status = status
      self.word = word
    }
  }

  package var usualOperation: String { rawValue.hasPrefix("s3-") ? "use the object storage" : "back up the store" }

  package var isEnvironmental: Bool {
    switch self {
    case .s3Settings, .s3Credentials, .s3Access, .s3NoBucket, .s3Region, .s3Clock, .s3Unreachable, .s3Certificate,
      .s3TimeOut, .s3Server, .s3Checksum, .s3Unsupported, .s3Answer:
      true
    default: false
    }
  }

  package static let orWhatIsLeft = "or what is left of this one."
  package static let giveModel = "Give the model that it was written with."
  package static let otherPath = "Move what is there away, or give another path."
  package static let otherHome = "Choose another home."

  /// The next step where a failure suggests none.
  package var usualHint: String {
    switch self {
    case .notFound: "List what there is with: lazaret backup list. It may be in another home."
    case .ambiguous: "Say of which store it is."
    case .nothingToBackUp: "Check the path."
    case .manifestUnreadable: "The files beside it are not affected: gunzip opens those that end in .gz."
    case .manifestChanged: "Use another backup, or unpack its files with gunzip."
    case .manifestTooNew: "Use a newer version of this software."
    case .damaged: "Use another backup, or none."
    case .chainBroken: "Restore an earlier backup, or put the missing one back."
    case .nameTaken: "Choose another name, or move what is there out of the way."
    case .verificationFailed: "Check the disk; the backup is kept, and is never taken for a good one."
    case .packing: "Please report this, with what you did."
    case .compressionUnavailable:
      "Use the command lazaret, which has it, or a build with libzstd; any zstd -d opens the files that end in .zst."
    case .locked: "Name the file with the secret key."
    case .encryptionMissing: "Say to whom it is encrypted, or that it is not to be."
    case .request: "See: lazaret backup list"
    case .unknownEntity: "Name an entity of the model that the store was written with."
    case .store: "Look at the store with: lazaret inspect"
    case .otherGeneration:
      "Use a backup from before; if the records in this one are the right ones, name it and say so."
    case .otherStore: "Name the store that it is of, or allow that it is restored over this one."
    case .policyUnreadable: "Correct the file, or move it away: the usual policy holds then."
    case .cancelled: "Run the same command again at any time."
    case .file: "Check the path and its permissions."
    case .s3Address: "Write it as s3://bucket or s3://bucket/prefix; credentials are no part of it."
    case .s3Settings: "Correct the variable or the file."
    case .s3Credentials:
      "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile in ~/.aws/credentials that AWS_PROFILE names."
    case .s3Access: "Ask the owner of the bucket for the right to list it, and to read, write and delete its objects."
    case .s3NoBucket: "Check the name, and AWS_ENDPOINT_URL_S3 and AWS_REGION; buckets are not made by this software."
    case .s3NotFound: "It may have been removed meanwhile."
    case .s3Region: "Set AWS_REGION to the region of the bucket."
    case .s3Clock: "Set the clock of this machine right."
    case .s3Unreachable: "Check the network and AWS_ENDPOINT_URL_S3, then run it again."
    case .s3Certificate: "Check AWS_ENDPOINT_URL_S3; AWS_CA_BUNDLE names a file with the authorities to trust."
    case .s3TimeOut, .s3Server: "Run it again later."
    case .s3Precondition: "Run it again."
    case .s3Checksum: "Run it again; where that does not help, check the network and the memory of this machine."
    case .s3Unsupported: "Use another server, or a newer version of it."
    case .s3Answer: "Check that AWS_ENDPOINT_URL_S3 names a server of the S3 protocol."
    }
  }

  /// Whether the code is that of the file system error, if any.
  package var standsForCause: Bool { self == .file || self == .nameTaken }
}

/// Runs `body`; returns nil if a file is missing.
func unlessMissing<Value>(_ body: () throws -> Value) throws -> Value? {
  do { return try body() } catch {
    let error = BackupError(any: error)
    guard error.fileError?.kind == .notFound else { throw error }
    return nil
  }
}

extension BackupError {
  package init(_ error: FileError) { self.init(error.kind == .alreadyExists ? .nameTaken : .file, because: error) }

  static func cancelled(_ operation: String) -> BackupError {
    BackupError(.cancelled, operation: operation, detail: "it was cancelled")
  }

  static func memory() -> BackupError {
    BackupError(
      .packing, operation: "pack the backup", detail: "there is not enough memory",
      hint: "Free some memory and run the same command again; nothing was lost.")
  }

  /// Wraps an error of files, pages or a salvage.
  package init(any error: any Error) {
    switch error {
    case let error as BackupError: self = error
    case let error as any ReportableError: self.init(.store, unlessFile: error)
    default: self.init(.store, detail: "an unforeseen failure")
    }
  }

  /// Wraps a page reader's error.
  init(_ error: FileError, store: FilePath) { self.init(.store, unlessFile: error, path: store) }

  init(salvaging error: SalvageError) { self.init(.damaged, unlessFile: error) }

  /// Wraps another module's error, or the file error that led to it.
  private init(_ kind: BackupErrorKind, unlessFile error: any ReportableError, path: FilePath? = nil) {
    if let fileError = error.fileError { self.init(fileError) } else { self.init(kind, because: error, path: path) }
  }
}
