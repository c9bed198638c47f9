public import Platform
internal import Salvage
internal import SystemPackage

/// A failed request about a support bundle, its scrubbing or sending, without tokens in the detail.
public typealias SupportBundleError = Failure<SupportBundleErrorKind>

/// The reason for a failed request about a support bundle, its scrubbing or sending.
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

  case cancelled

  /// An archive is damaged or hostile; its error provides the code.
  case archive = "bundle-archive"

  /// Encryption or decryption failed; its error provides the code.
  case encryption = "bundle-encryption"

  /// A file error, which provides the code.
  case file = "bundle-file"

  // MARK: Scrubbing

  /// A column to keep or drop is missing.
  case unknownColumn = "unknown-column"

  /// The output contains original values.
  case valuesFound = "values-found"

  case storeChanged = "store-changed"

  case scrubbingKey = "scrubbing-key"

  /// The pages could not be surveyed.
  case survey = "scrubbing-survey"

  // MARK: Sending

  /// The address, token or another argument is invalid.
  case sendingRequest = "send-request"

  /// The bundle changed after the preview.
  case bundleChanged = "bundle-changed"

  /// The receiver rejected it permanently.
  case refused = "send-refused"

  /// The token is missing or unknown.
  case unauthorized = "send-unauthorized"

  case tooLarge = "send-too-large"

  /// The receiver redirects elsewhere.
  case redirected = "send-redirected"

  /// The certificate is untrusted, or TLS failed.
  case untrusted = "send-untrusted"

  /// The receiver's answer is invalid.
  case answer = "send-answer"

  /// The receipt is for other content.
  case receipt = "send-receipt"

  /// The receiver is unreachable or busy.
  case unreachable = "send-unreachable"

  /// The receiver has no space now.
  case quota = "send-quota"

  case outboxFull = "outbox-full"

  case notInOutbox = "not-in-outbox"

  case entryUnreadable = "outbox-entry-unreadable"

  /// Another process is sending the entry.
  case entryBusy = "outbox-entry-busy"

  /// The entry was sent or cancelled.
  case entryOver = "outbox-entry-over"

  /// The default operation.
  public var usualOperation: String {
    switch self {
    case .bundleUnreadable, .bundleDamaged, .keyNeeded, .request, .notScrubbed, .store, .cancelled, .archive,
      .encryption, .file:
      "use the bundle"
    case .unknownColumn, .valuesFound, .storeChanged, .scrubbingKey, .survey: "scrub the store"
    case .sendingRequest, .bundleChanged, .refused, .unauthorized, .tooLarge, .redirected, .untrusted, .answer,
      .receipt, .unreachable, .quota, .outboxFull, .notInOutbox, .entryUnreadable, .entryBusy, .entryOver:
      "send the bundle"
    }
  }

  package static let wholeAddress = "Give the whole address."

  /// The default advice.
  public var usualHint: String {
    switch self {
    case .bundleUnreadable: "Give the file that lazaret export wrote."
    case .bundleDamaged: "Ask for the bundle again: what arrived is not what was sent."
    case .keyNeeded: "Give the file with the secret key of one of its recipients."
    case .request, .sendingRequest: "Correct that, then try again."
    case .notScrubbed: "Nothing was written. Please report this with the store's schema, or export another level."
    case .store: "Export it at another level: facts or full."
    case .cancelled: "Run the same command again at any time."
    case .archive: "Ask for the file again: what arrived is not what was sent."
    case .encryption: "Check the key, and that the whole file arrived."
    case .file: "Check the path and its permissions."
    case .unknownColumn: "Name attributes as Entity.attribute, or columns as table.column where there is no model."
    case .valuesFound: "Nothing was kept of it. Export another level, and report this with the store's schema."
    case .storeChanged: "Close the app, or try again."
    case .scrubbingKey: "Let the software make the key."
    case .survey: "Inspect the store; export another level where that finds nothing to read."
    case .bundleChanged: "Send the bundle again from its own file."
    case .refused, .tooLarge: "Ask the receiver."
    case .unauthorized: "Give the token that the receiver gave to you."
    case .redirected: "Ask the receiver for the right address, and send it there."
    case .untrusted:
      "Check the address and the clock of this machine; nothing is sent to a receiver that cannot prove who it is."
    case .answer:
      "Check that the address is that of a receiver: one of tus 1.0, or one that takes a PUT where that is asked for."
    case .receipt: "Send it again with: lazaret outbox retry"
    case .unreachable, .quota: "It waits in the outbox; go on with: lazaret outbox send"
    case .outboxFull: "Send or cancel what waits there, or allow more."
    case .notInOutbox: "List what there is with: lazaret outbox list. It may be in another home."
    case .entryUnreadable: "Move its folder away, and send the bundle again; the receiver does not take it twice."
    case .entryBusy: "Wait until it is done; lazaret outbox list shows when."
    case .entryOver: "Send the bundle itself again, if that is wanted."
    }
  }

  /// Whether the environment is the cause: network, busy receiver, another process, an app that writes.
  public var isEnvironmental: Bool { [.storeChanged, .unreachable, .quota, .entryBusy].contains(self) }

  /// Whether the cause provides the code.
  public var standsForCause: Bool { [.archive, .encryption, .file].contains(self) }
}

extension SupportBundleError {
  /// Wraps a file error.
  public init(_ error: FileError) { self.init(.file, because: error) }

  static func told(_ error: any Error, operation: String, path: FilePath?) -> SupportBundleError {
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

  static func cancelled(_ operation: String) -> SupportBundleError {
    SupportBundleError(.cancelled, operation: operation, detail: "it was cancelled")
  }
}

extension SupportBundleError {
  /// Wraps an error of a scrub's files or survey.
  init(scrubbing error: any Error) {
    switch error {
    case let error as SupportBundleError: self = error
    case let error as SalvageError where error.kind == .cancelled: self = .cancelled(SupportBundleErrors.scrubbing)
    case let error as any ReportableError: self.init(error.fileError == nil ? .survey : .file, because: error)
    default: self.init(.survey, detail: "an unforeseen failure")
    }
  }

  /// Wraps an error of sending or of the outbox.
  static func sending(_ error: any Error, operation: String, path: FilePath?) -> SupportBundleError {
    switch error {
    case let error as SupportBundleError: error
    case let error as any ReportableError: SupportBundleError(.file, because: error)
    default:
      SupportBundleError(
        .entryUnreadable, operation: operation, path: path, detail: "it failed for an unknown reason",
        hint: "Please report this.")
    }
  }

  static func stopped(_ path: FilePath?) -> SupportBundleError {
    SupportBundleError(
      .cancelled, operation: "send the bundle", path: path,
      detail: "it was stopped; what has arrived is not sent again", hint: "Go on with: lazaret outbox send")
  }
}

package enum SupportBundleErrors {
  static let operation = "export the store"
  static let scrubbing = "scrub the store"

  static func cancelled() -> SupportBundleError { .cancelled(operation) }

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
    kept.isEmpty ? "" : "; likely because values of \(words(kept)) are kept: they are values of other columns too"
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
