#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The processor time that a piece of work takes on its own thread; other tests and processes do not count.
package func processorTime(of work: () throws -> Void) rethrows -> Duration {
  let start = processorTime()
  try work()
  return processorTime() - start
}

/// The processor time of this thread so far.
package func processorTime() -> Duration {
  var time = timespec()
  unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
