package import Dispatch
internal import Platform

/// Wakes a pool's waiting threads, each once for any number of changes.
package final class WorkerWake: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let pending = Mutex(0)
  private let count: Int

  /// - Parameter count: the number of waiting threads.
  package init(count: Int) { self.count = count }

  /// Wakes a thread unless all are signalled already.
  package func signal() {
    let isNew = pending.withLock { pending in
      guard pending < count else { return false }
      pending += 1
      return true
    }
    if isNew { semaphore.signal() }
  }

  /// Waits for a signal or the timeout; returns whether it was signalled.
  @discardableResult
  package func wait(atMost time: DispatchTimeInterval) -> Bool {
    guard semaphore.wait(timeout: .now() + time) == .success else { return false }
    pending.withLock { $0 -= 1 }
    return true
  }
}
