internal import Quarantine
public import StoreFiles
internal import SupportBundle
public import SystemPackage

/// A bundle that could not be sent, or a request of the outbox that cannot be met.
public struct SendingError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// The address, the token or another thing that was asked for makes no sense.
    case request = "send-request"

    /// The file is no bundle.
    case notABundle = "bundle-unreadable"

    /// The bundle is not the file any more that it was when it was shown.
    case changed = "bundle-changed"

    /// The receiver refused, and would again.
    case refused = "send-refused"

    /// The receiver does not know the token, or wants one.
    case unauthorized = "send-unauthorized"

    /// The receiver takes no bundle of that size.
    case tooLarge = "send-too-large"

    /// The receiver sends to another place.
    case redirected = "send-redirected"

    /// The receiver's certificate is not to be trusted, or no secure connection came about.
    case untrusted = "send-untrusted"

    /// What the receiver said makes no sense.
    case answer = "send-answer"

    /// The receiver's receipt is about something else than what was sent.
    case receipt = "send-receipt"

    /// The receiver could not be reached, or has no time now.
    case unreachable = "send-unreachable"

    /// The receiver has no room for it now.
    case quota = "send-quota"

    /// The outbox has no room for it.
    case outboxFull = "outbox-full"

    /// The outbox has no such entry.
    case notFound = "not-in-outbox"

    /// An entry of the outbox cannot be read.
    case entryUnreadable = "outbox-entry-unreadable"

    /// Another process is sending the entry.
    case busy = "outbox-entry-busy"

    /// The entry was sent, or cancelled, and nothing more can be done with it.
    case over = "outbox-entry-over"

    /// The caller asked to stop.
    case cancelled

    /// The file system refused; the code is that of the file error.
    case file = "send-file"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, in one sentence without a full stop; no token and no address with one is in it.
  public var detail: String

  /// What to do next, as a full sentence.
  public var hint: String

  /// The stable word for the kind of failure; that of the cause where there is one.
  public var code: String

  /// Whether the surroundings are at fault: a line, a receiver that has no time, a full disk.
  public var isEnvironmental: Bool

  /// An error of a kind.
  public init(_ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
    code = kind.rawValue
    isEnvironmental = [.unreachable, .quota, .busy].contains(kind)
  }

  /// Any error of the floors below, told as one of this module.
  static func told(_ error: any Error, operation: String, path: FilePath?) -> SendingError {
    if let error = error as? SendingError { return error }
    guard let error = error as? any ReportableError else {
      return SendingError(
        .entryUnreadable, operation: operation, path: path, detail: "it failed for a reason that nobody foresaw",
        hint: "Please report this.")
    }
    let kind: Kind = error is FileError ? .file : error is SupportBundleError ? .notABundle : .file
    var told = SendingError(
      kind, operation: error.operation, path: error.path, detail: error.detail, hint: error.hint)
    told.code = error.code
    told.isEnvironmental = error.isEnvironmental
    return told
  }

  /// The caller asked to stop.
  static func cancelled(_ path: FilePath?) -> SendingError {
    SendingError(
      .cancelled, operation: "send the bundle", path: path,
      detail: "it was stopped; what has arrived is not sent again",
      hint: "Go on with: lazaret outbox send")
  }
}
