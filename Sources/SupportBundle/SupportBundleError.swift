public import Platform
public import SystemPackage

/// A request about a support bundle that cannot be met.
public typealias SupportBundleError = Failure<SupportBundleErrorKind>

/// Why a request about a support bundle cannot be met.
public enum SupportBundleErrorKind: String, FailureKind {
  /// The bundle is not one of this software, or says something that cannot be meant.
  case bundleUnreadable = "bundle-unreadable"

  /// A file of the bundle is missing, not listed, or not what the list says.
  case bundleDamaged = "bundle-damaged"

  /// The bundle is encrypted, and no secret key was given.
  case keyNeeded = "bundle-key-needed"

  /// A request that makes no sense.
  case request = "bundle-request"

  /// What would leave the machine still holds values that were to be replaced.
  case notScrubbed = "bundle-not-scrubbed"

  /// The store could not be read as a database.
  case store = "bundle-store"

  /// The other side refused, or what it said makes no sense.
  case refused = "send-refused"

  /// The other side could not be reached.
  case unreachable = "send-unreachable"

  /// The caller asked to stop.
  case cancelled

  /// An archive is damaged or hostile; the code is that of the archive's error.
  case archive = "bundle-archive"

  /// Encryption or decryption failed; the code is that of its error.
  case encryption = "bundle-encryption"

  /// The file system refused; the code is that of the file error.
  case file = "bundle-file"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "use the bundle"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .bundleUnreadable: "Give the file that lazaret export wrote."
    case .bundleDamaged: "Ask for the bundle again: what arrived is not what was sent."
    case .keyNeeded: "Give the file with the secret key of one of its recipients."
    case .request: "Correct that, then try again."
    case .notScrubbed: "Nothing was written. Please report this with the store's schema, or export another level."
    case .store: "Export it with --level facts or --level full."
    case .refused: "Ask the receiver."
    case .unreachable: "Try again later."
    case .cancelled: "Run the same command again at any time."
    case .archive: "Ask for the file again: what arrived is not what was sent."
    case .encryption: "Check the key, and that the whole file arrived."
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the environment is at fault, and neither store nor bundle.
  public var isEnvironmental: Bool { self == .unreachable }

  /// Whether the code is that of the cause.
  public var standsForCause: Bool {
    switch self {
    case .archive, .encryption, .file: true
    case .bundleUnreadable, .bundleDamaged, .keyNeeded, .request, .notScrubbed, .store, .refused, .unreachable,
      .cancelled:
      false
    }
  }
}

extension SupportBundleError {
  /// What the file system says.
  public init(_ error: FileError) { self.init(.file, because: error) }

  /// What the archive's reader says.
  public init(_ error: ArchiveError, operation: String, path: FilePath?) {
    self.init(.archive, because: error, operation: operation, path: path)
  }

  /// What the decryption says.
  public init(_ error: AgeError, operation: String, path: FilePath?) {
    self.init(.encryption, because: error, operation: operation, path: path)
  }

  /// Any error of the floors below, told as one of this module.
  package static func told(_ error: any Error, operation: String, path: FilePath?) -> SupportBundleError {
    switch error {
    case let error as SupportBundleError: error
    case let error as FileError: SupportBundleError(error)
    case let error as ArchiveError: SupportBundleError(error, operation: operation, path: path)
    case let error as AgeError: SupportBundleError(error, operation: operation, path: path)
    default:
      SupportBundleError(
        .bundleUnreadable, operation: operation, path: path, detail: "it failed for an unknown reason",
        hint: "Please report this.")
    }
  }

  /// The caller asked to stop.
  package static func cancelled(_ operation: String) -> SupportBundleError {
    SupportBundleError(.cancelled, operation: operation, detail: "it was cancelled")
  }
}
