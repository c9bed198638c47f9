internal import Compatibility
internal import Dispatch
internal import GRDB
internal import PersistentStore

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
    let limit = StatementLimit(time: limit)
    return try queues[index].read { database in try limit.apply(to: database) { try body(database) } }
  }

  func close() throws {
    for queue in queues { try queue.close() }
  }
}
