internal import Compatibility
internal import Dispatch

/// Does two pieces of work that have nothing in common, each on a thread of its own.
///
/// The only place of this module where the compiler is told so rather than that it finds out: neither may change what the
/// other one reads.
enum Pair {
  @safe private struct Work: @unchecked Sendable {
    let run: () throws(ScrubbingError) -> Void
  }

  /// Runs both, and throws the error of one that failed.
  static func run(
    _ first: () throws(ScrubbingError) -> Void, _ second: () throws(ScrubbingError) -> Void
  ) throws(ScrubbingError) {
    let failure = withoutActuallyEscaping(first) { first in
      withoutActuallyEscaping(second) { second in
        let works = [Work(run: first), Work(run: second)]
        let failure = Mutex<ScrubbingError?>(nil)
        DispatchQueue.concurrentPerform(iterations: works.count) { index in
          do throws(ScrubbingError) {
            try works[index].run()
          } catch {
            failure.withLock { $0 = $0 ?? error }
          }
        }
        return failure.withLock { $0 }
      }
    }
    if let failure { throw failure }
  }
}
