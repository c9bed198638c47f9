internal import Dispatch
internal import GRDB
internal import Synchronization

/// A few read-only connections to one file, lent to callers, each to one at a time and for a limited time.
final class ReaderPool: Sendable {
  private let queues: [DatabaseQueue]
  private let free: Mutex<[Int]>
  private let places: DispatchSemaphore

  init(_ queues: [DatabaseQueue]) {
    self.queues = queues
    free = Mutex(Array(queues.indices))
    places = DispatchSemaphore(value: queues.count)
  }

  /// Reads with a connection of its own; what takes longer than the limit is interrupted.
  ///
  /// - Throws: what the body throws; `DatabaseError` with `SQLITE_INTERRUPT` where the time is up.
  func read<Value>(limit: Duration, _ body: (Database) throws -> Value) throws -> Value {
    places.wait()
    let index = free.withLock { $0.removeLast() }
    defer {
      free.withLock { $0.append(index) }
      places.signal()
    }
    let queue = queues[index]
    let watch = Watch()
    let (seconds, attoseconds) = limit.components
    DispatchQueue.global().asyncAfter(deadline: .now() + Double(seconds) + Double(attoseconds) * 1e-18) {
      watch.expire { queue.interrupt() }
    }
    defer { watch.end() }
    return try queue.read(body)
  }

  func close() throws {
    for queue in queues { try queue.close() }
  }
}

/// Sees to it that an interruption meets the query it is meant for, and no later one.
private final class Watch: Sendable {
  private let isRunning = Mutex(true)

  func expire(_ interrupt: () -> Void) { isRunning.withLock { if $0 { interrupt() } } }
  func end() { isRunning.withLock { $0 = false } }
}
