internal import Platform

/// How long to pause between tries: from a second to five minutes, growing, and drawn at random below that.
///
/// "Full jitter": so that all who lost one receiver do not come back at the same moment.
public struct RetrySchedule: Sendable {
  /// The first bound.
  public static let first = Duration.seconds(1)

  /// The last bound.
  public static let last = Duration.seconds(300)

  private var generator: SeededGenerator

  /// A schedule; the same seed gives the same pauses.
  public init(seed: UInt64 = UInt64.random(in: 0 ... .max)) { generator = SeededGenerator(seed: seed) }

  /// The bound of the pause after a number of failures in a row, from 1.
  public static func bound(after failures: Int) -> Duration {
    min(last, first * Int64(1 << min(max(failures, 1) - 1, 9)))
  }

  /// A pause after a number of failures in a row, from 1.
  ///
  /// - Parameter asked: how long the receiver asked to wait; never less than that.
  public mutating func pause(after failures: Int, asked: Duration? = nil) -> Duration {
    let share = Double.random(in: 0...1, using: &generator)
    let drawn = Self.bound(after: failures) * share
    return max(drawn, asked ?? .zero)
  }
}
