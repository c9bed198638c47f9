public import SystemPackage

/// A failed file system operation, or a failure to read or write a file's content.
public typealias FileError = Failure<FileErrorKind>

/// The kinds of file failures, and those of the HTTP server.
public enum FileErrorKind: String, FailureKind {
  case notFound = "file-not-found"
  case alreadyExists = "file-exists"
  case permissionDenied = "permission-denied"
  case readOnlyFileSystem = "read-only-file-system"
  case noSpace = "no-space"
  case inputOutput = "io-error"
  case locked = "locked"
  case inUse = "in-use"
  case isDirectory = "is-a-directory"
  case notRegularFile = "not-a-regular-file"
  case danglingLink = "dangling-link"
  case notDownloaded = "not-downloaded"
  case crossDevice = "cross-device"
  case tooLarge = "file-too-large"
  case nameTooLong = "name-too-long"
  case changed = "changed-meanwhile"
  case outOfMemory = "out-of-memory"
  case tooManyOpenFiles = "too-many-open-files"
  case noLocks = "no-locks"
  case cannotOpen = "cannot-open"
  case verificationFailed = "verification-failed"
  case journalUnreadable = "migration-journal-unreadable"
  case placeTaken = "place-taken"
  case encodingFailed = "encoding-failed"
  case other = "file-error"

  case notAPropertyList = "not-a-property-list"
  case propertyListDamaged = "property-list-damaged"
  case propertyListTooLarge = "property-list-too-large"
  case malformedXML = "xml-malformed"
  /// The XML declares a document type or entities, which could expand endlessly or read other files.
  case forbiddenXML = "xml-forbidden-declaration"
  case xmlTooLarge = "xml-too-large"
  case notAKeyedArchive = "not-a-keyed-archive"
  /// A keyed archive that Apple's archiver did not write.
  case foreignKeyedArchive = "foreign-archive"
  case propertyListUnwritable = "property-list-unwritable"

  case ageRecipient = "age-recipient"
  case ageIdentity = "age-identity"
  case ageHeader = "age-header"
  case ageHeaderTooLarge = "age-header-too-large"
  case ageNoIdentity = "age-no-identity"
  case ageHeaderAltered = "age-header-altered"
  /// The content was altered or truncated.
  case agePayload = "age-payload"
  case ageArmor = "age-armor"

  case gzipDamaged = "gzip-damaged"
  case archiveCutOff = "archive-cut-off"
  case archiveTooLarge = "archive-too-large"
  case tarDamaged = "tar-damaged"
  /// The archive holds a link, a device or a sparse file.
  case archiveNotAFile = "archive-not-a-file"
  /// A name leaves the folder or is not portable.
  case archiveName = "archive-name"
  case archiveNameDoubled = "archive-name-doubled"

  case notADatabase = "not-a-database"
  case cancelled

  /// Malformed, or not an address of this machine.
  case serverAddress = "address-invalid"
  /// The port is taken, or libmicrohttpd failed otherwise.
  case serverNotStarted = "server-not-started"

  /// Further facts of a failed operation.
  public struct Details: FailureDetails {
    /// The error number of a failed system call.
    public var errno: Errno?

    /// The bytes that must be free, for a full disk.
    public var neededBytes: Int64?

    /// True for the system's own limit on file size.
    public var isEnvironmental: Bool? { errno == .fileTooLarge ? true : nil }

    /// Makes empty details.
    public init() {}

    package init(neededBytes: Int64) { self.neededBytes = neededBytes }
  }

  package enum Subject { case fileSystem, propertyList, age, archive, database, server }

  /// The subject of the failure: the file system, a file's content or the server.
  package var subject: Subject {
    switch self {
    case .notAPropertyList, .propertyListDamaged, .propertyListTooLarge, .malformedXML, .forbiddenXML, .xmlTooLarge,
      .notAKeyedArchive, .foreignKeyedArchive, .propertyListUnwritable:
      .propertyList
    case .ageRecipient, .ageIdentity, .ageHeader, .ageHeaderTooLarge, .ageNoIdentity, .ageHeaderAltered, .agePayload,
      .ageArmor:
      .age
    case .gzipDamaged, .archiveCutOff, .archiveTooLarge, .tarDamaged, .archiveNotAFile, .archiveName,
      .archiveNameDoubled:
      .archive
    case .notADatabase, .cancelled: .database
    case .serverAddress, .serverNotStarted: .server
    default: .fileSystem
    }
  }

  /// The default operation of a failure.
  public var usualOperation: String {
    switch subject {
    case .fileSystem: "use the file"
    case .propertyList: "read the property list"
    case .age: "use the age encryption"
    case .archive: "read the archive"
    case .database: "read the database"
    case .server: "start the server"
    }
  }

  /// Whether the environment is at fault: not for a missing, existing or oversized file, a name too long, a failed
  /// comparison, an encoding failure or bad content.
  public var isEnvironmental: Bool {
    switch self {
    case .notFound, .alreadyExists, .tooLarge, .nameTooLong, .verificationFailed, .encodingFailed: false
    default: subject == .fileSystem
    }
  }

  /// The default hint of a failure.
  public var usualHint: String {
    switch self {
    case .notFound: "Check the path."
    case .alreadyExists: "Choose another name, or move what is there out of the way."
    case .permissionDenied: "Give yourself permission to read and write there, or run as the owner of the file."
    case .readOnlyFileSystem: "Make the file system writable, or work on a copy elsewhere."
    case .noSpace: "Free some space and run the same command again; nothing was lost."
    case .inputOutput: "Check the disk; copy what can be read to another one before you try again."
    case .locked, .inUse: "Quit the app that uses it, then run the same command again."
    case .isDirectory: "Name the store's file, not its folder."
    case .notRegularFile: "Name a regular file."
    case .danglingLink: "Mount the volume that it leads to, or correct the link."
    case .notDownloaded: "Let the cloud service download the file first, then try again."
    case .crossDevice: "Choose a folder on the same file system."
    case .tooLarge: "Name a smaller file, or check that it is the right one."
    case .nameTooLong: "Give it a shorter name, or move it to a folder with a shorter path."
    case .changed: "Run the same command again."
    case .outOfMemory: "Free some memory, then try again; nothing was lost."
    case .tooManyOpenFiles: "Close files or raise the limit of open files, then try again; nothing was lost."
    case .noLocks: "Check that the file system supports locks, then try again; nothing was lost."
    case .cannotOpen: "Check the permissions and the number of open files, then try again; nothing was lost."
    case .verificationFailed: "Check the disk; the original was left as it was."
    case .journalUnreadable: "Use the version of the app or the tool that began the migration, or a later one."
    case .placeTaken: "Move the store that is in the way elsewhere, then run the same command again."
    case .encodingFailed: "Please report this, with what you did."
    case .other: "See what the system reported, then try again."
    case .notAPropertyList, .notAKeyedArchive, .notADatabase: "Check that it is the right file."
    case .propertyListDamaged, .malformedXML: "Take the file from a backup or build it again."
    case .propertyListTooLarge, .xmlTooLarge: "Check that it is the right file; no real one is that large."
    case .forbiddenXML: "Save the file again with Xcode; its files declare no entities."
    case .foreignKeyedArchive: "Compile the model with Xcode's momc, or name the model's source."
    case .propertyListUnwritable: "Leave the value out."
    case .ageRecipient: "Give the public key that begins with age1, as the vendor published it."
    case .ageIdentity: "Give the file with the secret key, as it was written when the key was made."
    case .ageHeader, .ageArmor: "Check that the whole file arrived, and that it is one that was encrypted with age."
    case .ageHeaderTooLarge: "Encrypt it to fewer recipients."
    case .ageNoIdentity: "Give the secret key that belongs to one of the recipients it was encrypted to."
    case .ageHeaderAltered, .agePayload, .gzipDamaged, .archiveCutOff, .tarDamaged:
      "Ask for the file again: what arrived is not what was sent."
    case .archiveTooLarge: "Unpack it by hand if you trust it, or allow more."
    case .archiveNotAFile, .archiveName, .archiveNameDoubled:
      "Do not unpack it by hand: no bundle of this software is made like that."
    case .cancelled: "Run the same command again at any time."
    case .serverAddress: "Use an address such as 127.0.0.1 or ::1."
    case .serverNotStarted: "Use another port, or 0 for any that is free."
    }
  }

  fileprivate var words: String {
    switch self {
    case .notFound: "there is no such file"
    case .alreadyExists: "something of that name is there already"
    case .permissionDenied: "permission denied"
    case .readOnlyFileSystem: "the file system is read-only"
    case .noSpace: "no space is left on the disk"
    case .inputOutput: "the disk reported an input/output error"
    case .locked: "another process holds a lock on it"
    case .inUse: "another process has it open"
    case .isDirectory: "it is a folder, not a file"
    case .notRegularFile: "it is not a regular file"
    case .danglingLink: "it is a symbolic link that leads nowhere"
    case .notDownloaded: "it is a placeholder whose content is still in the cloud"
    case .crossDevice: "it is on another file system"
    case .tooLarge: "it is larger than this operation accepts"
    case .nameTooLong: "its name or its path is longer than the system allows"
    case .changed: "another process changed it meanwhile"
    case .outOfMemory: "no memory is left"
    case .tooManyOpenFiles: "too many files are open"
    case .noLocks: "the system has no locks left"
    case .cannotOpen: "it cannot be opened"
    case .verificationFailed: "what was written is not what was read"
    case .journalUnreadable: "the journal of an interrupted migration cannot be read"
    case .placeTaken: "another store has its place"
    case .encodingFailed: "it cannot be written as JSON"
    default: "the file system refused"
    }
  }

  package static func cannotOpenForSQLite() -> FileErrorKind {
    // SQLite opens six at once: main file, log, index, journal, folder and a temporary file.
    SystemCalls.lacksDescriptors(6) ? .tooManyOpenFiles : .cannotOpen
  }
}

extension FileError {
  /// Throws if too few file descriptors are left to work with a store.
  ///
  /// Dispatch, which closing an SQLite connection uses, needs three on first use and ends the process without them.
  package static func requireDescriptors(to operation: String, path: FilePath? = nil) throws(FileError) {
    guard SystemCalls.lacksDescriptors(9) else { return }
    throw FileError(.tooManyOpenFiles, operation: operation, path: path)
  }

  /// Makes an error in the kind's words.
  public init(_ kind: Kind, operation: String, path: FilePath?, hint: String? = nil) {
    self.init(kind, operation: operation, path: path, detail: kind.words, hint: hint)
  }

  package init(_ kind: Kind, _ detail: String) { self.init(kind, detail: detail) }

  package static func cancelled(_ operation: String) -> FileError {
    FileError(.cancelled, operation: operation, detail: "it was cancelled")
  }

  /// Makes the error of a failed system call.
  public init(_ errno: Errno, operation: String, path: FilePath?) {
    let kind: Kind =
      switch errno {
      case .noSuchFileOrDirectory, .notDirectory: .notFound
      case .fileExists, .directoryNotEmpty: .alreadyExists
      case .permissionDenied, .notPermitted: .permissionDenied
      case .readOnlyFileSystem: .readOnlyFileSystem
      case .noSpace, .diskQuotaExceeded: .noSpace
      case .ioError: .inputOutput
      case .resourceTemporarilyUnavailable, .resourceBusy: .locked
      case .isDirectory: .isDirectory
      case .improperLink: .crossDevice
      case .tooManySymbolicLinkLevels: .danglingLink
      case .fileTooLarge: .tooLarge
      case .fileNameTooLong: .nameTooLong
      case .noMemory: .outOfMemory
      case .tooManyOpenFiles, .tooManyOpenFilesInSystem: .tooManyOpenFiles
      case .noLocks: .noLocks
      default: .other
      }
    self.init(kind, operation: operation, path: path, detail: "\(errno)")
    self.errno = errno
  }
}

extension ReportableError {
  /// The file system error at the end of the cause chain.
  public var fileError: FileError? {
    if let own = self as? FileError { return own.kind.subject == .fileSystem ? own : nil }
    return kind.standsForCause ? cause?.fileError : nil
  }
}
