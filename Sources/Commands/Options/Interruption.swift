#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Whether Ctrl-C was pressed: long work ends cleanly, a second Ctrl-C ends the process at once.
///
/// SIGTERM ends the process within a second, even within a long SQLite call. That is as safe as a kill: the next run
/// cleans up.
enum Interruption {
  /// A signal handler may write only this type and take no lock.
  nonisolated(unsafe) private static var isAsked: sig_atomic_t = 0

  nonisolated(unsafe) private static var listens = false

  static var isListening: Bool { unsafe listens }

  /// Starts listening for Ctrl-C and SIGTERM.
  static func listen() {
    unsafe listens = true
    for number in [SIGINT, SIGTERM] { _ = signal(number, interrupted) }
    // The parent may have blocked signals, which a child inherits.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in [SIGINT, SIGTERM] { unsafe sigaddset(&signals, number) }
    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  static func endListening() {
    for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    unsafe listens = false
  }

  static var isRequested: Bool { unsafe isAsked != 0 }

  fileprivate static func request() { unsafe isAsked = 1 }
}

/// The signal handler; little more than system calls is safe here.
private func interrupted(_ number: Int32) {
  Interruption.request()
  _ = signal(number, SIG_DFL)
  guard number == SIGTERM else { return }
  _ = signal(SIGALRM) { _ in _exit(128 + SIGTERM) }
  alarm(1)
}
