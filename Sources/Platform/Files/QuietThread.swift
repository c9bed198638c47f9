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
