public import Platform
internal import SystemPackage

/// A failed sending or outbox request, without tokens in the detail.
public typealias SendingError = Failure<SendingErrorKind>

/// The reason for a failed sending or outbox request.
public enum SendingErrorKind: String, FailureKind {
  /// The address, token or another argument is invalid.
  case request = "send-request"

  case notABundle = "bundle-unreadable"

  /// The bundle changed after the preview.
  case changed = "bundle-changed"

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

  case notFound = "not-in-outbox"

  case entryUnreadable = "outbox-entry-unreadable"

  /// Another process is sending the entry.
  case busy = "outbox-entry-busy"

  /// The entry was sent or cancelled.
  case over = "outbox-entry-over"

  case cancelled

  /// A file error, which provides the code.
  case file = "send-file"

  /// The default operation.
  public var usualOperation: String { "send the bundle" }

  package static let wholeAddress = "Give the whole address."

  /// The default advice.
  public var usualHint: String {
    switch self {
    case .request: "Correct that, then try again."
    case .notABundle: "Give the file that lazaret export wrote; nothing else is sent."
    case .changed: "Send the bundle again from its own file."
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
    case .notFound: "List what there is with: lazaret outbox list. It may be in another home."
    case .entryUnreadable:
      "Move its folder away, and send the bundle again; the receiver does not take it twice."
    case .busy: "Wait until it is done; lazaret outbox list shows when."
    case .over: "Send the bundle itself again, if that is wanted."
    case .cancelled: "Go on with: lazaret outbox send"
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the environment is the cause: network, busy receiver, another process.
  public var isEnvironmental: Bool { [.unreachable, .quota, .busy].contains(self) }

  /// Whether the cause provides the code.
  public var standsForCause: Bool { self == .file || self == .notABundle }
}

extension SendingError {
  static func told(_ error: any Error, operation: String, path: FilePath?) -> SendingError {
    if let error = error as? SendingError { return error }
    guard let error = error as? any ReportableError else {
      return SendingError(
        .entryUnreadable, operation: operation, path: path, detail: "it failed for an unknown reason",
        hint: "Please report this.")
    }
    return SendingError(error is SupportBundleError ? .notABundle : .file, because: error)
  }

  static func cancelled(_ path: FilePath?) -> SendingError {
    SendingError(.cancelled, path: path, detail: "it was stopped; what has arrived is not sent again")
  }
}
