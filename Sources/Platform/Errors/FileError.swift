public import SystemPackage

/// A failed file system operation.
public typealias FileError = Failure<FileErrorKind>

/// The kinds of file system failures.
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

  /// The default operation of a failure.
  public var usualOperation: String { "use the file" }

  /// Whether the environment is at fault: not for a missing, existing or oversized file, a name too long, a failed
  /// comparison or an encoding failure.
  public var isEnvironmental: Bool {
    switch self {
    case .permissionDenied, .readOnlyFileSystem, .noSpace, .inputOutput, .locked, .inUse, .isDirectory, .notRegularFile,
      .danglingLink, .notDownloaded, .crossDevice, .changed, .outOfMemory, .tooManyOpenFiles, .noLocks, .cannotOpen,
      .journalUnreadable, .placeTaken, .other:
      true
    case .notFound, .alreadyExists, .tooLarge, .nameTooLong, .verificationFailed, .encodingFailed: false
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
    case .other: "the file system refused"
    }
  }
}

extension FileErrorKind {
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
}

extension FileError {
  /// Makes an error in the kind's words.
  public init(_ kind: Kind, operation: String, path: FilePath?, hint: String? = nil) {
    self.init(kind, operation: operation, path: path, detail: kind.words, hint: hint)
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
    if let own = self as? FileError { return own }
    guard kind.standsForCause else { return nil }
    return cause as? FileError ?? cause?.fileError
  }
}
