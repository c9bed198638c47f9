internal import Dispatch
internal import StoreFiles
internal import Synchronization

/// Does two pieces of work at once, each on a thread of its own, and waits for both.
///
/// - Throws: what the first piece threw, else what the second threw.
package func concurrently<First: Sendable, Second: Sendable>(
  _ first: @escaping @Sendable () throws(MigrationError) -> First,
  _ second: () throws(MigrationError) -> Second
) throws(MigrationError) -> (First, Second) {
  let outcome = Outcome<First>()
  let finished = DispatchSemaphore(value: 0)
  DispatchQueue.global().async {
    do throws(MigrationError) {
      outcome.set(.success(try first()))
    } catch {
      outcome.set(.failure(error))
    }
    finished.signal()
  }
  let other: Result<Second, MigrationError>
  do throws(MigrationError) {
    other = .success(try second())
  } catch {
    other = .failure(error)
  }
  finished.wait()
  guard let one = outcome.value else {
    throw MigrationError(.sqlite, detail: "a thread ended without a result")
  }
  return (try one.get(), try other.get())
}

/// The place where one thread leaves its result for another.
private final class Outcome<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, MigrationError>?>(nil)

  var value: Result<Value, MigrationError>? { result.withLock { $0 } }

  func set(_ value: Result<Value, MigrationError>) { result.withLock { $0 = value } }
}
