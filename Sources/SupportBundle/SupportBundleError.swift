public import AgeEncryption
public import Archives
public import StoreFiles
public import SystemPackage

/// A request about a support bundle that cannot be met.
public struct SupportBundleError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
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
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, in one sentence without a full stop and without values of records.
  public var detail: String

  /// What to do next, as a full sentence.
  public var hint: String

  /// The stable word for the kind of failure; that of the cause where there is one.
  public var code: String

  /// Whether the surroundings are at fault, and neither store nor bundle.
  public var isEnvironmental: Bool

  /// An error of a kind.
  public init(_ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
    code = kind.rawValue
    isEnvironmental = kind == .unreachable
  }

  /// What the file system says.
  public init(_ error: FileError) {
    self.init(.file, operation: error.operation, path: error.path, detail: error.detail, hint: error.hint)
    code = error.code
    isEnvironmental = error.isEnvironmental
  }

  /// What the archive's reader says.
  public init(_ error: ArchiveError, operation: String, path: FilePath?) {
    self.init(.archive, operation: operation, path: path, detail: error.detail, hint: error.hint)
    code = error.code
  }

  /// What the decryption says.
  public init(_ error: AgeError, operation: String, path: FilePath?) {
    self.init(.encryption, operation: operation, path: path, detail: error.detail, hint: error.hint)
    code = error.code
  }

  /// Any error of the floors below, told as one of this module.
  static func told(_ error: any Error, operation: String, path: FilePath?) -> SupportBundleError {
    switch error {
    case let error as SupportBundleError: error
    case let error as FileError: SupportBundleError(error)
    case let error as ArchiveError: SupportBundleError(error, operation: operation, path: path)
    case let error as AgeError: SupportBundleError(error, operation: operation, path: path)
    default:
      SupportBundleError(
        .bundleUnreadable, operation: operation, path: path, detail: "it failed for a reason that nobody foresaw",
        hint: "Please report this.")
    }
  }

  /// The caller asked to stop.
  static func cancelled(_ operation: String) -> SupportBundleError {
    SupportBundleError(
      .cancelled, operation: operation, detail: "it was cancelled", hint: "Run it again when there is time.")
  }
}
