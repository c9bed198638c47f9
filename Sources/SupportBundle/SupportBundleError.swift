public import Platform
public import SystemPackage

/// A failed request about a support bundle.
public typealias SupportBundleError = Failure<SupportBundleErrorKind>

/// The reason for a failed request about a support bundle.
public enum SupportBundleErrorKind: String, FailureKind {
  /// The bundle is foreign or malformed.
  case bundleUnreadable = "bundle-unreadable"

  /// A file of the bundle is missing, unlisted or has another checksum.
  case bundleDamaged = "bundle-damaged"

  /// The bundle is encrypted, and the key is missing.
  case keyNeeded = "bundle-key-needed"

  /// The request is invalid.
  case request = "bundle-request"

  /// The output contains values that should be replaced.
  case notScrubbed = "bundle-not-scrubbed"

  /// The store is unreadable as a database.
  case store = "bundle-store"

  /// The receiver rejected it, or its answer is invalid.
  case refused = "send-refused"

  case unreachable = "send-unreachable"

  case cancelled

  /// An archive is damaged or hostile; its error provides the code.
  case archive = "bundle-archive"

  /// Encryption or decryption failed; its error provides the code.
  case encryption = "bundle-encryption"

  /// A file error, which provides the code.
  case file = "bundle-file"

  /// The default operation.
  public var usualOperation: String { "use the bundle" }

  /// The default advice.
  public var usualHint: String {
    switch self {
    case .bundleUnreadable: "Give the file that lazaret export wrote."
    case .bundleDamaged: "Ask for the bundle again: what arrived is not what was sent."
    case .keyNeeded: "Give the file with the secret key of one of its recipients."
    case .request: "Correct that, then try again."
    case .notScrubbed: "Nothing was written. Please report this with the store's schema, or export another level."
    case .store: "Export it at another level: facts or full."
    case .refused: "Ask the receiver."
    case .unreachable: "Try again later."
    case .cancelled: "Run the same command again at any time."
    case .archive: "Ask for the file again: what arrived is not what was sent."
    case .encryption: "Check the key, and that the whole file arrived."
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the environment is the cause.
  public var isEnvironmental: Bool { self == .unreachable }

  /// Whether the cause provides the code.
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
  /// Wraps a file error.
  public init(_ error: FileError) { self.init(.file, because: error) }

  package static func told(_ error: any Error, operation: String, path: FilePath?) -> SupportBundleError {
    switch error {
    case let error as SupportBundleError: error
    case let error as FileError where error.kind.subject == .archive:
      SupportBundleError(.archive, because: error, operation: operation, path: path)
    case let error as FileError where error.kind.subject == .age:
      SupportBundleError(.encryption, because: error, operation: operation, path: path)
    case let error as FileError: SupportBundleError(error)
    default:
      SupportBundleError(
        .bundleUnreadable, operation: operation, path: path, detail: "it failed for an unknown reason",
        hint: "Please report this.")
    }
  }

  package static func cancelled(_ operation: String) -> SupportBundleError {
    SupportBundleError(.cancelled, operation: operation, detail: "it was cancelled")
  }
}

package enum SupportBundleErrors {
  static let operation = "export the store"

  static func request(_ operation: String, _ path: FilePath?, _ detail: String, _ hint: String) -> SupportBundleError {
    SupportBundleError(.request, operation: operation, path: path, detail: detail, hint: hint)
  }

  /// The store has no data for the level.
  static func store(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.store, operation: operation, path: path, detail: detail)
  }

  /// The output has values, names or checksums.
  ///
  /// - Parameter kept: the columns with kept values.
  static func notScrubbed(
    _ path: FilePath, count: Int, in name: String, at offset: Int64, keeping kept: Set<String>
  ) -> SupportBundleError {
    SupportBundleError(
      .notScrubbed, operation: operation, path: path,
      detail:
        "\(count) values of records, or names or sums of files, were found in what was to be written, the first in "
        + "\(printable(name)) at byte \(offset)" + keptDetail(kept), hint: keptHint(kept))
  }

  /// Returns the likely cause if columns were kept.
  package static func keptDetail(_ kept: Set<String>) -> String {
    kept.isEmpty
      ? "" : "; likely because values of \(words(kept)) are kept: they are values of other columns too"
  }

  package static func keptHint(_ kept: Set<String>) -> String? {
    guard !kept.isEmpty else { return nil }
    return
      "Nothing was written. Keep the other columns with these values too, whatever the case of their letters, or do "
      + "not keep \(words(kept)). \(reportIt)"
  }

  package static let reportIt = "Please report it with the store's schema if it fails with nothing kept."

  private static func words(_ kept: Set<String>) -> String {
    kept.sorted().map { printable($0) }.joined(separator: ", ")
  }
}
