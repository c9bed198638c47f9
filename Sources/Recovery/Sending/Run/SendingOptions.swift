/// How persistently a bundle is sent.
public struct SendingOptions: Sendable, Hashable {
  /// How often it is tried without a byte of progress before it is left in the outbox.
  public var tries: Int

  /// Whether it is tried for as long as it takes.
  public var waits: Bool

  /// The most bytes of a part.
  ///
  /// A part is held in memory several times over on its way to the connection.
  public var partLimit: Int

  /// What the pauses between tries are drawn from; at random if nil.
  public var seed: UInt64?

  /// The longest pause that is waited for unless it `waits`: five minutes.
  public static let longestPause = Duration.seconds(300)

  /// Options.
  public init(tries: Int = 6, waits: Bool = false, partLimit: Int = 8 << 20, seed: UInt64? = nil) {
    self.tries = max(1, tries)
    self.waits = waits
    self.partLimit = min(max(1, partLimit), UploadRequest.partLimit)
    self.seed = seed
  }
}
