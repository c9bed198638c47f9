import Foundation
package import Platform

/// A client's clock and pauses.
package struct S3Waiting: Sendable {
  package var now: @Sendable () -> Timestamp

  package var pause: @Sendable (_ milliseconds: Int) -> Void

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

extension S3Client {
  /// Pauses randomly; returns the milliseconds.
  package func pause(upTo most: Int) -> Int {
    let time = waiting.random(most)
    waiting.pause(time)
    return time
  }
}
