package import Failures

/// A server that could not be started.
package typealias ServerError = Failure<ServerErrorKind>

/// Why a server could not be started.
package enum ServerErrorKind: String, FailureKind {
  /// The address is none, or is not this machine's.
  case address = "address-invalid"

  /// The port is taken, or the library refused for another reason.
  case notStarted = "server-not-started"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "start the server"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .address: "Use an address such as 127.0.0.1 or ::1."
    case .notStarted: "Use another port, or 0 for any that is free."
    }
  }
}
