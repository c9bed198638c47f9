import Foundation
package import Platform

/// A client's timeouts and retries.
package struct S3RetryPolicy: Sendable, Hashable {
  /// The milliseconds for connecting.
  var connecting = 10_000

  /// The seconds a transfer may stay below ``slowest``.
  package var stalling = 30

  /// The bytes per second below which a transfer stalls.
  var slowest = 512

  /// The seconds for a slow answer, such as completing an upload.
  var working = 300

  /// The seconds per request.
  var whole = 1800

  /// The attempts per request; the pauses usually span half a minute for a restarting server.
  package var attempts = 12

  /// The longest first pause in milliseconds; it doubles each time.
  var firstPause = 200

  /// The longest pause in milliseconds.
  var longestPause = 10_000

  /// The longest accepted `Retry-After`, in seconds.
  var longestPauseAsked = 30

  package init() {}

  /// For a process with a waiting caller or other work.
  package static var short: S3RetryPolicy {
    var retries = S3RetryPolicy()
    retries.attempts = 6
    return retries
  }

  /// The longest pause in milliseconds.
  ///
  /// - Parameter attempt: the failed attempts, from 1.
  package func pause(after attempt: Int) -> Int {
    min(longestPause, firstPause << min(max(attempt - 1, 0), 20))
  }
}

/// A client's clock and pauses.
package struct S3Waiting: Sendable {
  var now: @Sendable () -> Timestamp

  var pause: @Sendable (_ milliseconds: Int) -> Void

  /// A random number from 0 to `most`.
  package var random: @Sendable (_ most: Int) -> Int

  package init(
    now: @escaping @Sendable () -> Timestamp, pause: @escaping @Sendable (_ milliseconds: Int) -> Void,
    random: @escaping @Sendable (_ most: Int) -> Int
  ) {
    self.now = now
    self.pause = pause
    self.random = random
  }

  package static let machine = S3Waiting(
    now: Surroundings.machine.now, pause: { Thread.sleep(forTimeInterval: Double($0) / 1000) },
    random: { Int.random(in: 0...max(0, $0)) })
}
