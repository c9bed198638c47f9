/// A thread that works while no other process wants the processor.
///
/// A priority that was lowered cannot be raised again by an ordinary user; so such work has a thread of its own, which ends
/// with it.
package enum QuietThread {
  /// Runs work on such a thread, and waits for it; threads that the work starts are quiet too.
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
