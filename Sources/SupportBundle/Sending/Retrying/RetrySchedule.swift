internal import Platform

/// Pauses between tries: random, below a bound that grows from one second to five minutes.
///
/// "Full jitter" keeps the clients of a receiver from returning simultaneously.
public struct RetrySchedule: Sendable {
  /// The first bound.
  public static let first = Duration.seconds(1)

  /// The last bound.
  public static let last = Duration.seconds(300)

  private var generator: SeededGenerator

  /// Creates a schedule; equal seeds give equal pauses.
  public init(seed: UInt64 = UInt64.random(in: 0 ... .max)) { generator = SeededGenerator(seed: seed) }

  /// Returns the bound after a number of consecutive failures, from 1.
  public static func bound(after failures: Int) -> Duration {
    min(last, first * Int64(1 << min(max(failures, 1) - 1, 9)))
  }

  /// Returns a pause after a number of consecutive failures, from 1.
  ///
  /// - Parameter asked: the receiver's minimum.
  public mutating func pause(after failures: Int, asked: Duration? = nil) -> Duration {
    let share = Double.random(in: 0...1, using: &generator)
    let drawn = Self.bound(after: failures) * share
    return max(drawn, asked ?? .zero)
  }
}
