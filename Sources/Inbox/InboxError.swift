package import Platform
package import SystemPackage

/// A request about the inbox that cannot be met.
package typealias InboxError = Failure<InboxErrorKind>

/// Why a request about the inbox cannot be met.
package enum InboxErrorKind: String, FailureKind {
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

  /// The address of a database is none, or holds what it may not; or the database is another home's.
  case address = "inbox-address"

  /// Another process works in this inbox.
  case inUse = "inbox-in-use"

  /// What is asked for cannot be done to this bundle now.
  case notNow = "inbox-not-now"

  /// A bundle is not where the records say.
  case missing = "bundle-missing"

  /// A bundle, or what was made of it, is not what was kept.
  case altered = "bundle-altered"

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

  /// The key or a model that the server was given is not there any more, or is none.
  case given = "worker-given"

  /// What a bundle unpacks to, or what is salvaged of it, is more than the sender's quota or the inbox leaves.
  case room = "sender-quota"

  /// A worker was killed, and not by itself.
  case killed = "worker-killed"

  /// Workers were not heard of any more: they were killed with their server, or could not reach the records.
  case lost = "worker-lost"

  /// Who is at fault, which the kind alone does not tell.
  package struct Details: FailureDetails {
    /// Whether the environment is at fault; nil for no.
    package var isEnvironmental: Bool?

    /// The environment is not at fault.
    package init() {}

    /// The environment is at fault, or is not.
    package init(isEnvironmental: Bool) { self.isEnvironmental = isEnvironmental }
  }

  /// What was being done, where a failure does not say.
  package static let usualOperation = "use the inbox"

  /// What the reader can do next, where a failure does not say.
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

extension InboxError {
  /// An error of a kind that the environment may be at fault for, with the usual hint unless another is given.
  package init(
    _ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String? = nil, isEnvironmental: Bool
  ) {
    self.init(
      kind, operation: operation, path: path, detail: detail, hint: hint,
      details: .init(isEnvironmental: isEnvironmental))
  }

  /// A sender of that name is known.
  package static let senderExists = InboxError(
    .senderExists, operation: "add a sender", detail: "a sender of that name is known, or was")

  /// No sender of that name is known.
  package static let senderUnknown = InboxError(
    .senderUnknown, operation: "revoke a token", detail: "no sender has that name")

  /// There is no such bundle.
  package static func noBundle(_ operation: String) -> InboxError {
    InboxError(.notFound, operation: operation, detail: "there is no such bundle")
  }
}
