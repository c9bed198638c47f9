/// Why a server could not be started.
package struct ServerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of failure it was.
  package enum Kind: String, Sendable {
    /// The address is none, or is not this machine's.
    case address = "address-invalid"

    /// The port is taken, or the library refused for another reason.
    case notStarted = "server-not-started"
  }

  /// What kind of failure it was.
  package var kind: Kind

  /// What was being done.
  package var operation: String

  /// What went wrong.
  package var detail: String

  /// What can be done about it.
  package var hint: String

  /// The stable word for the kind of failure.
  package var code: String { kind.rawValue }

  /// One sentence for people.
  package var description: String { "cannot \(operation): \(detail) [\(code)]. \(hint)" }
}
