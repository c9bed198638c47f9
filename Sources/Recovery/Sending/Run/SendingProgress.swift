/// How far the sending of a bundle is.
public struct SendingProgress: Sendable, Hashable {
  /// What is being done.
  public enum Phase: Sendable, Hashable {
    /// The receiver is asked what it has already.
    case asking

    case sending

    /// A try failed, for the reason of that code, and the next is made after that span.
    case pausing(Duration, code: String)

    /// Everything is there; the receipt is asked for.
    case finishing
  }

  /// What is being done.
  public var phase: Phase

  /// How many bytes have gone out.
  public var done: Int64

  /// How many there are in all.
  public var total: Int64

  /// A state of things.
  public init(phase: Phase, done: Int64, total: Int64) {
    self.phase = phase
    self.done = done
    self.total = total
  }
}
