internal import Foundation
public import StoreFiles

/// The time as the sender sees it, so that tests take none.
public struct SendingClock: Sendable {
  /// The moment in UTC.
  public var now: @Sendable () -> Timestamp

  /// A span that only grows, to measure by.
  public var elapsed: @Sendable () -> Duration

  /// Lets time pass; ends early where it is asked to stop.
  public var pause: @Sendable (_ span: Duration, _ isStopped: @Sendable () -> Bool) -> Void

  /// A clock.
  public init(
    now: @escaping @Sendable () -> Timestamp, elapsed: @escaping @Sendable () -> Duration,
    pause: @escaping @Sendable (_ span: Duration, _ isStopped: @Sendable () -> Bool) -> Void
  ) {
    self.now = now
    self.elapsed = elapsed
    self.pause = pause
  }

  private static let start = ContinuousClock.now

  /// The machine's own.
  public static let machine = SendingClock(
    now: Surroundings.machine.now,
    elapsed: { start.duration(to: .now) },
    pause: { span, isStopped in
      let end = ContinuousClock.now + span
      while ContinuousClock.now < end, !isStopped() {
        let rest = min(ContinuousClock.now.duration(to: end), .milliseconds(100))
        Thread.sleep(forTimeInterval: max(0, rest / .seconds(1)))
      }
    })
}
