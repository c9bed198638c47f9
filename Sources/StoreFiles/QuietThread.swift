internal import Foundation
internal import Synchronization

/// A thread that works while nobody else wants the processor.
///
/// A priority that was lowered cannot be raised again by an ordinary user; so such work has a thread of its own, which ends
/// with it.
package enum QuietThread {
  /// Runs work on such a thread, and waits for it; threads that the work starts are quiet too.
  package static func run<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let outcome = Outcome<Value, Failure>()
    let thread = Thread {
      SystemCalls.giveWay()
      do throws(Failure) {
        outcome.end(with: .success(try body()))
      } catch {
        outcome.end(with: .failure(error))
      }
    }
    // As much as the main thread has: the work may be recursive.
    thread.stackSize = 8 << 20
    thread.start()
    return try outcome.wait().get()
  }
}

/// What came of the work.
private final class Outcome<Value: Sendable, Failure: Error>: Sendable {
  private let ended = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<Value, Failure>?>(nil)

  func end(with value: Result<Value, Failure>) {
    result.withLock { $0 = value }
    ended.signal()
  }

  func wait() -> Result<Value, Failure> {
    while true {
      ended.wait()
      if let value = result.withLock({ $0 }) { return value }
    }
  }
}
