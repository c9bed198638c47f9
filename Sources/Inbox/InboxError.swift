package import Platform
package import SystemPackage

package typealias InboxError = Failure<InboxErrorKind>

package enum InboxErrorKind: String, FailureKind {
  case senderExists = "sender-exists"

  case senderUnknown = "no-such-sender"

  case senderName = "sender-name"

  /// No such bundle or upload.
  case notFound = "not-in-inbox"

  case records = "inbox-records"

  /// The address is malformed or has forbidden parts, or the database is another home's.
  case address = "inbox-address"

  case inUse = "inbox-in-use"

  /// The bundle's state forbids it now.
  case notNow = "inbox-not-now"

  /// A bundle is not where the records say.
  case missing = "bundle-missing"

  /// A file is not the one stored.
  case altered = "bundle-altered"

  case memory = "worker-memory"

  case time = "worker-time"

  case fileSize = "worker-file-size"

  /// The worker ended without a result.
  case crashed = "worker-crashed"

  /// The worker did not start, or got an invalid order.
  case worker = "worker-failed"

  /// The key or a model is missing or invalid.
  case given = "worker-given"

  /// The files exceed the quota or the inbox's room.
  case room = "sender-quota"

  /// The worker was killed from outside.
  case killed = "worker-killed"

  /// The worker was killed with its server, or cut off from the records.
  case lost = "worker-lost"

  /// The party at fault, where the kind leaves it open.
  package struct Details: FailureDetails {
    /// Whether the environment is at fault; nil means no.
    package var isEnvironmental: Bool?

    package init() {}

    init(isEnvironmental: Bool) { self.isEnvironmental = isEnvironmental }
  }

  package var usualOperation: String { "use the inbox" }

  package var usualHint: String {
    switch self {
    case .senderExists:
      "Give another name: each sender's bundles are listed under it. lazaret inbox token list shows the names in use."
    case .senderUnknown: "lazaret inbox token list shows those there are."
    case .senderName: "Give another name."
    case .notFound: "It may have been discarded."
    case .records:
      "Keep a copy of the whole folder Inbox, then restore it from a backup: the server removes bundles that its records do not know."
    case .address: "Give postgresql://HOST/DATABASE."
    case .inUse: "Stop that one first, or give another home."
    case .notNow: "Wait until that is over."
    case .missing, .altered: "Restore it from a backup of the bundles; or discard it, then have it sent again."
    case .memory, .time, .fileSize: "Open the bundle as it was received on a machine of its own."
    case .crashed: "Keep the bundle as it was received, and report this."
    case .worker: "Please report this."
    case .given: "Give the server the key and the models anew, or put them back where they were."
    case .room: "Discard bundles of this sender, or give it a token with a larger quota; then try again."
    case .killed: "Look whether the system has ended it for want of memory: give the machine more, or fewer workers."
    case .lost: "Look whether the server is killed again and again, and whether it reaches its records."
    }
  }
}

func sentence(_ words: String) -> String {
  words.prefix(1).uppercased() + words.dropFirst() + (words.hasSuffix(".") ? "" : ".")
}

extension InboxError {
  /// Creates an error of a kind that leaves the fault open.
  package init(
    _ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String? = nil, isEnvironmental: Bool
  ) {
    self.init(
      kind, operation: operation, path: path, detail: detail, hint: hint,
      details: .init(isEnvironmental: isEnvironmental))
  }

  static let senderExists = InboxError(
    .senderExists, operation: "add a sender", detail: "a sender of that name is known, or was")

  static let senderUnknown = InboxError(.senderUnknown, operation: "revoke a token", detail: "no sender has that name")

  static let batchIsRunning = InboxError(
    .notNow, operation: "salvage the bundles again", detail: "an earlier batch of this damage is not over")

  static func noBundle(_ operation: String) -> InboxError {
    InboxError(.notFound, operation: operation, detail: "there is no such bundle")
  }
}
