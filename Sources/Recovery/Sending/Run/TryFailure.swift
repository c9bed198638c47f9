/// A try that failed, and whether another one may do better.
struct TryFailure: Error {
  /// What is told where no other try is made.
  var error: SendingError

  /// Whether another try makes sense.
  var isPassing: Bool

  /// How long the receiver asks to wait.
  var asked: Duration?

  /// A failure that another try may not meet.
  static func passing(_ error: SendingError, asked: Duration? = nil) -> TryFailure {
    TryFailure(error: error, isPassing: true, asked: asked)
  }

  /// A failure that every other try would meet.
  static func final(_ error: SendingError) -> TryFailure { TryFailure(error: error, isPassing: false) }
}
