package import Dispatch
internal import Foundation

/// Threads without Dispatch.
///
/// Dispatch's pool needs three file descriptors on first use and ends the process without them.
package enum WorkThread {
  /// The main thread's size: work may be recursive.
  static let stackSize = 8 << 20

  /// Runs work on a new thread, as a member of a group if given, with a name for debuggers.
  package static func start(
    named name: String? = nil, in group: DispatchGroup? = nil, stackSize: Int = stackSize,
    _ body: @escaping @Sendable () -> Void
  ) {
    group?.enter()
    let thread = Thread {
      body()
      group?.leave()
    }
    thread.name = name
    thread.stackSize = stackSize
    thread.start()
  }
}

/// Runs two pieces of work concurrently.
///
/// - Throws: the first piece's error, else the second's.
package func concurrently<First: Sendable, Second, Failure: Error>(
  _ first: @escaping @Sendable () throws(Failure) -> First, _ second: () throws(Failure) -> Second
) throws(Failure) -> (First, Second) {
  let outcome = WorkOutcome<First, Failure>()
  WorkThread.start { outcome.end { () throws(Failure) in try first() } }
  let other = Result(catching: second)
  let one = outcome.wait()
  return (try one.get(), try other.get())
}

/// Runs pieces of work concurrently and returns the results in order.
///
/// - Throws: the error of the first piece that failed.
package func concurrently<Work: Sendable, Outcome: Sendable, Failure: Error>(
  _ works: [Work], _ body: @escaping @Sendable (Work) throws(Failure) -> Outcome
) throws(Failure) -> [Outcome] {
  guard let last = works.last else { return [] }
  guard works.count > 1 else { return [try body(last)] }
  let (others, own) = try concurrently { () throws(Failure) in
    try concurrently(Array(works.dropLast()), body)
  } _: { () throws(Failure) in
    try body(last)
  }
  return others + [own]
}

final class WorkOutcome<Value: Sendable, Failure: Error>: Sendable {
  private let ended = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<Value, Failure>?>(nil)

  func end(with body: () throws(Failure) -> Value) {
    let value = Result(catching: body)
    result.withLock { $0 = value }
    ended.signal()
  }

  /// Waits for the result and releases it: only one thread waits.
  func wait() -> Result<Value, Failure> {
    while true {
      ended.wait()
      if let value = result.withLock({ $0.take() }) { return value }
    }
  }
}

/// A low-priority thread.
///
/// An ordinary user cannot raise a lowered priority again, so the thread ends with its work.
package enum QuietThread {
  /// Runs work on such a thread and waits; threads started by it inherit the priority.
  package static func run<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let outcome = WorkOutcome<Value, Failure>()
    WorkThread.start {
      SystemCalls.giveWay()
      outcome.end { () throws(Failure) in try body() }
    }
    return try outcome.wait().get()
  }
}

/// A value behind a lock.
///
/// The standard library's type of this name requires newer systems; this one is a class and can be shared.
package final class Mutex<Value: ~Copyable>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  package init(_ value: consuming sending Value) { self.value = value }

  /// Runs `body` with exclusive access to the value; not reentrant.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
