package import Dispatch
internal import Platform

/// Wakes the threads of a pool that wait for jobs, each once however many changes came meanwhile.
package final class WorkerWake: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let pending = Mutex(0)
  private let count: Int

  /// - Parameter count: how many threads wait.
  package init(count: Int) { self.count = count }

  /// Wakes a thread; where as many have been woken as there are, nothing is done.
  package func signal() {
    let isNew = pending.withLock { pending in
      guard pending < count else { return false }
      pending += 1
      return true
    }
    if isNew { semaphore.signal() }
  }

  /// Waits until it is woken, at most for a time.
  ///
  /// - Returns: whether it was woken.
  @discardableResult
  package func wait(atMost time: DispatchTimeInterval) -> Bool {
    guard semaphore.wait(timeout: .now() + time) == .success else { return false }
    pending.withLock { $0 -= 1 }
    return true
  }
}
