/// A request that got no answer.
public struct TransportError: Error, Sendable, Hashable {
  /// What kind of failure it was.
  public enum Kind: Sendable, Hashable {
    /// The connection did not come about, broke or took too long; another time it may work.
    case connection

    /// The receiver could not prove who it is, or no secure connection came about.
    case untrusted

    /// The request is one that is not made.
    case request

    /// The file could not be read, or changed meanwhile.
    case file
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What went wrong, in one sentence without a full stop; no address and no token is in it.
  public var detail: String

  /// A failure.
  public init(_ kind: Kind, _ detail: String) {
    self.kind = kind
    self.detail = detail
  }
}
