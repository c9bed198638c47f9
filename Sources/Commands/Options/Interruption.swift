#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Whether the user has pressed Ctrl-C: long work ends in good order then, and a second Ctrl-C ends the process at once.
///
/// After SIGTERM the process ends within a second whatever it does, such as a call of SQLite's that takes long. That is safe as a kill
/// is: the next run clears what it leaves.
enum Interruption {
  /// Of the one type that a signal may write: no lock may be taken there.
  nonisolated(unsafe) private static var isAsked: sig_atomic_t = 0

  nonisolated(unsafe) private static var listens = false

  static var isListening: Bool { unsafe listens }

  /// Begins to listen for Ctrl-C and the usual request to end.
  static func listen() {
    unsafe listens = true
    for number in [SIGINT, SIGTERM] { _ = signal(number, interrupted) }
    // The process that started this one may have held signals back, and a child inherits that.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in [SIGINT, SIGTERM] { unsafe sigaddset(&signals, number) }
    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// Ends the listening: Ctrl-C ends the process again.
  static func endListening() {
    for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    unsafe listens = false
  }

  static var isRequested: Bool { unsafe isAsked != 0 }

  fileprivate static func request() { unsafe isAsked = 1 }
}

/// Runs inside a signal, where little more than system calls is safe.
private func interrupted(_ number: Int32) {
  Interruption.request()
  _ = signal(number, SIG_DFL)
  guard number == SIGTERM else { return }
  _ = signal(SIGALRM) { _ in _exit(128 + SIGTERM) }
  alarm(1)
}
