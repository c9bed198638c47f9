internal import Compatibility
internal import StoreCoordination

/// Whether a piece of work is to end.
package final class Cancellation: Sendable {
  private let asked = Mutex(false)

  /// Whether it was asked to.
  package var isAsked: Bool { asked.withLock { $0 } }

  func ask() { asked.withLock { $0 = true } }
}

/// Does work on a thread of its own, and asks it to end when the task is cancelled.
///
/// - Throws: `CancellationError` where the work has ended because of that, `StoreError` where it failed.
package func work<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
  let cancellation = Cancellation()
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      WorkThread.start {
        let result = Result { () throws -> Value in
          if cancellation.isAsked { throw CancellationError() }
          return try body(cancellation)
        }
        continuation.resume(with: result.mapError { told($0, cancellation) })
      }
    }
  } onCancel: {
    cancellation.ask()
  }
}

/// Does short work where the caller waits for it, and throws a `StoreError` where it failed.
func told<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
  do { return try body() } catch { throw StoreError(error) }
}

/// An error of the modules below as the app is to see it.
private func told(_ error: any Error, _ cancellation: Cancellation) -> any Error {
  if error is CancellationError { return error }
  let told = StoreError(error)
  // Each module has a code of its own for work that the caller has ended.
  return cancellation.isAsked && told.code.hasSuffix("cancelled") ? CancellationError() : told
}
