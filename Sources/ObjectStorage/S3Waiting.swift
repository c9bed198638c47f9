import Foundation
package import Platform

/// What a client takes from outside besides its settings: the clock, the pauses between attempts, and their lengths.
package struct S3Waiting: Sendable {
  /// The clock.
  package var now: @Sendable () -> Timestamp

  /// Waits for so many milliseconds.
  package var pause: @Sendable (_ milliseconds: Int) -> Void

  /// A number from 0 to the given one.
  package var random: @Sendable (_ most: Int) -> Int

  /// What a client takes from outside.
  package init(
    now: @escaping @Sendable () -> Timestamp, pause: @escaping @Sendable (_ milliseconds: Int) -> Void,
    random: @escaping @Sendable (_ most: Int) -> Int
  ) {
    self.now = now
    self.pause = pause
    self.random = random
  }

  /// The machine's own.
  package static let machine = S3Waiting(
    now: Surroundings.machine.now, pause: { Thread.sleep(forTimeInterval: Double($0) / 1000) },
    random: { Int.random(in: 0...max(0, $0)) })
}

extension S3Client {
  /// Waits for a time of random length.
  ///
  /// - Returns: the milliseconds.
  package func pause(upTo most: Int) -> Int {
    let time = waiting.random(most)
    waiting.pause(time)
    return time
  }
}
