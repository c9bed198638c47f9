internal import StoreFiles
package import SystemPackage

/// A request about the inbox that cannot be met.
package struct InboxError: ReportableError, Hashable {
  /// What kind of failure it was.
  package enum Kind: String, Sendable {
    /// A sender of that name is known already.
    case senderExists = "sender-exists"

    /// No sender of that name is known.
    case senderUnknown = "no-such-sender"

    /// A name that no sender can have.
    case senderName = "sender-name"

    /// There is no such bundle, or no such upload.
    case notFound = "not-in-inbox"

    /// The records of the inbox cannot be read or written.
    case records = "inbox-records"

    /// Another process works in this inbox.
    case inUse = "inbox-in-use"

    /// What is asked for cannot be done to this bundle now.
    case notNow = "inbox-not-now"

    /// A worker needed more memory than it may have.
    case memory = "worker-memory"

    /// A worker took longer than it may.
    case time = "worker-time"

    /// A worker wrote more than it may.
    case fileSize = "worker-file-size"

    /// A worker ended by itself, without a result.
    case crashed = "worker-crashed"

    /// A worker could not be started, or was told what makes no sense.
    case worker = "worker-failed"

    /// A job was begun as often as it may be.
    case tries = "worker-tries"
  }

  /// What kind of failure it was.
  package var kind: Kind

  /// What was being done, as an infinitive phrase.
  package var operation: String

  /// The file or folder it was being done to, where there is one.
  package var path: FilePath?

  /// What went wrong, in one sentence without a full stop.
  package var detail: String

  /// What to do next, as a full sentence.
  package var hint: String

  /// Whether the surroundings are at fault.
  package var isEnvironmental: Bool

  /// The kind's stable word.
  package var code: String { kind.rawValue }

  /// An error of a kind.
  package init(
    _ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String, isEnvironmental: Bool = false
  ) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
    self.isEnvironmental = isEnvironmental
  }

  /// There is no such bundle.
  static func noBundle(_ operation: String) -> InboxError {
    InboxError(
      .notFound, operation: operation, detail: "there is no such bundle", hint: "It may have been discarded.")
  }
}
