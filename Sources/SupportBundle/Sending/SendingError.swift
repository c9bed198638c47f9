public import Platform
internal import SystemPackage

/// A bundle that could not be sent, or a request of the outbox that cannot be met.
///
/// No token and no address with one is in the detail.
public typealias SendingError = Failure<SendingErrorKind>

/// Why a bundle could not be sent, or a request of the outbox cannot be met.
public enum SendingErrorKind: String, FailureKind {
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

  /// What was being done, where a failure does not say.
  public static let usualOperation = "send the bundle"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .request: "Correct that, then try again."
    case .notABundle: "Give the file that lazaret export wrote; nothing else is sent."
    case .changed: "Send the bundle again from its own file."
    case .refused, .unauthorized, .tooLarge: "Ask the receiver."
    case .redirected: "Ask the receiver for the right address, and send it there."
    case .untrusted:
      "Check the address and the clock of this machine; nothing is sent to a receiver that cannot prove who it is."
    case .answer:
      "Check that the address is that of a receiver: one of tus 1.0, or with --put one that takes a PUT."
    case .receipt: "Send it again with: lazaret outbox retry"
    case .unreachable, .quota: "It waits in the outbox; go on with: lazaret outbox send"
    case .outboxFull: "Send or cancel what waits there, or allow more."
    case .notFound: "List what there is with: lazaret outbox list. Another home is given with --home."
    case .entryUnreadable:
      "Move its folder away, and send the bundle again; the receiver does not take it twice."
    case .busy: "Wait until it is done; lazaret outbox list shows when."
    case .over: "Send the bundle itself again, if that is wanted."
    case .cancelled: "Go on with: lazaret outbox send"
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the environment is at fault: a line, a receiver that has no time, another process.
  public var isEnvironmental: Bool { [.unreachable, .quota, .busy].contains(self) }

  /// Whether the code is that of the cause, where there is one.
  public var standsForCause: Bool { self == .file || self == .notABundle }
}

extension SendingError {
  /// Any error of the floors below, told as one of this module.
  static func told(_ error: any Error, operation: String, path: FilePath?) -> SendingError {
    if let error = error as? SendingError { return error }
    guard let error = error as? any ReportableError else {
      return SendingError(
        .entryUnreadable, operation: operation, path: path, detail: "it failed for an unknown reason",
        hint: "Please report this.")
    }
    return SendingError(error is SupportBundleError ? .notABundle : .file, because: error)
  }

  /// The caller asked to stop.
  static func cancelled(_ path: FilePath?) -> SendingError {
    SendingError(.cancelled, path: path, detail: "it was stopped; what has arrived is not sent again")
  }
}
