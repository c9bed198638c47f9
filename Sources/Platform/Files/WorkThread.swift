internal import Foundation

/// Threads for pieces of work.
///
/// Dispatch keeps a pool of threads, which needs three file descriptors when it is first used, and ends the process where
/// there are none left; a thread of its own needs none.
package enum WorkThread {
  /// As much as the main thread has: work may be recursive.
  package static let stackSize = 8 << 20

  /// Does a piece of work on a thread of its own, which ends with it and has the name that debuggers show.
  package static func start(
    named name: String? = nil, stackSize: Int = stackSize, _ body: @escaping @Sendable () -> Void
  ) {
    let thread = Thread(block: body)
    thread.name = name
    thread.stackSize = stackSize
    thread.start()
  }
}

/// Does two pieces of work at once, one of them on a thread of its own, and waits for both.
///
/// - Throws: what the first piece threw, else what the second threw.
package func concurrently<First: Sendable, Second, Failure: Error>(
  _ first: @escaping @Sendable () throws(Failure) -> First, _ second: () throws(Failure) -> Second
) throws(Failure) -> (First, Second) {
  let outcome = WorkOutcome<First, Failure>()
  WorkThread.start { outcome.end { () throws(Failure) in try first() } }
  let other: Result<Second, Failure>
  do throws(Failure) {
    other = .success(try second())
  } catch {
    other = .failure(error)
  }
  let one = outcome.wait()
  return (try one.get(), try other.get())
}

/// Does pieces of work at once, each but the last on a thread of its own, and gives what came of them in their order.
///
/// - Throws: what the first piece that failed threw.
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

/// What came of a piece of work on another thread.
final class WorkOutcome<Value: Sendable, Failure: Error>: Sendable {
  private let ended = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<Value, Failure>?>(nil)

  /// Does the work, and leaves its result for the thread that waits.
  func end(with body: () throws(Failure) -> Value) {
    let value: Result<Value, Failure>
    do throws(Failure) {
      value = .success(try body())
    } catch {
      value = .failure(error)
    }
    result.withLock { $0 = value }
    ended.signal()
  }

  /// Waits for the result, and gives it up: only one thread waits.
  func wait() -> Result<Value, Failure> {
    while true {
      ended.wait()
      if let value = result.withLock({ $0.take() }) { return value }
    }
  }
}
