package import Platform
package import SQLiteFormat
package import SystemPackage

/// A request of the backups that cannot be met.
package typealias BackupError = Failure<BackupErrorKind>

/// Why a request of the backups cannot be met.
package enum BackupErrorKind: String, FailureKind {
  /// There is no backup of that name.
  case notFound = "no-such-backup"

  /// Two stores have a backup of that name.
  case ambiguous = "ambiguous-id"

  /// There is no store to back up.
  case nothingToBackUp = "nothing-to-back-up"

  /// A manifest is none, is damaged, or contradicts itself.
  case manifestUnreadable = "backup-manifest-unreadable"

  /// A manifest is not what was written.
  case manifestChanged = "backup-manifest-changed"

  /// A manifest is of a later version than this software knows.
  case manifestTooNew = "backup-manifest-too-new"

  /// A file of the backup is missing, cut off or not what the manifest says.
  case damaged = "backup-damaged"

  /// A backup that another one needs is missing or damaged.
  case chainBroken = "backup-chain-broken"

  /// Something of that name is there already.
  case nameTaken = "backup-name-taken"

  /// What was written is not what was read.
  case verificationFailed = "backup-verification-failed"

  /// Data could not be packed.
  case packing = "backup-packing"

  /// Files are packed, or are to be packed, in a way that this build does not have.
  case compressionUnavailable = "compression-unavailable"

  /// A backup is encrypted, and no key that opens it was given.
  case locked = "backup-encrypted"

  /// The backups of a store are encrypted, and the next one would not be.
  case encryptionMissing = "backup-encryption-missing"

  /// A request that makes no sense, such as a level that does not exist.
  case request = "backup-request"

  /// The model of the backup's store has no entity of that name.
  case unknownEntity = "unknown-entity"

  /// The store could not be read as a database.
  case store = "backup-store"

  /// The backup was made after the store was quarantined, or of another generation of it.
  case otherGeneration = "backup-of-other-generation"

  /// The backup is of another store than the one that is named.
  case otherStore = "backup-of-other-store"

  /// The backup policy of a home is none, or says something that cannot be meant.
  case policyUnreadable = "backup-policy-unreadable"

  /// The caller's progress function asked to stop.
  case cancelled

  /// A place that is no folder refused; the code is that of its error.
  case place = "backup-place"

  /// The file system refused; the code is that of the file error.
  case file = "backup-file"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "back up the store"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .notFound: "List what there is with: lazaret backup list"
    case .ambiguous: "Name the store with --of."
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
    case .locked: "Name the file with the secret key: --identity FILE"
    case .encryptionMissing: "Say to whom: --encrypt-to age1…, or that it is not to be encrypted: --no-encryption"
    case .request: "See: lazaret backup list"
    case .unknownEntity: "Name an entity of the model that the store was written with."
    case .store: "Look at the store with: lazaret inspect"
    case .otherGeneration: "Use a backup from before, or name this one with --trust-backup."
    case .otherStore: "Name the store that it is of, or restore it over this one with --other-store."
    case .policyUnreadable: "Correct the file, or move it away: the usual policy holds then."
    case .cancelled: "Run the same command again at any time."
    case .place: "Check the address of the place, and run it again."
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the code is that of the file system's error, where that is the cause.
  package var standsForCause: Bool { self == .file || self == .place || self == .nameTaken }
}

extension BackupError {
  /// The JSON text of a value.
  package static func json(
    _ value: some Encodable, _ layout: JSON.Layout = .lines, to operation: String
  ) throws(BackupError) -> [UInt8] {
    do throws(FileError) {
      return try JSON.bytes(of: value, layout, to: operation)
    } catch {
      throw BackupError(error)
    }
  }

  /// What the file system says.
  package init(_ error: FileError) { self.init(error.kind == .alreadyExists ? .nameTaken : .file, because: error) }

  /// The caller asked to stop.
  package static func cancelled(_ operation: String) -> BackupError {
    BackupError(.cancelled, operation: operation, detail: "it was cancelled")
  }
}

extension BackupError {
  /// What the page reader says of a store.
  package init(_ error: FormatError, store: FilePath) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else {
      self.init(.store, because: error, path: store)
    }
  }
}
