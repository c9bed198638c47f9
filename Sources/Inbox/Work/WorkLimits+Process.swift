internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

extension WorkLimits {
  /// Limits this process permanently.
  ///
  /// - Throws: `worker-failed` if the system refuses a limit; no worker runs without.
  package func apply() throws(InboxError) {
    // A child inherits signals ignored by the server's parent or blocked by the starting thread.
    var wanted = sigset_t()
    unsafe sigemptyset(&wanted)
    for number in [SIGXCPU, SIGXFSZ] {
      _ = signal(number, SIG_DFL)
      unsafe sigaddset(&wanted, number)
    }
    unsafe pthread_sigmask(SIG_UNBLOCK, &wanted, nil)
    try Self.limit(Self.addressSpace, memory)
    // The signal names the cause; the kill follows.
    try Self.limit(Self.processorTime, processorSeconds, most: processorSeconds + 5)
    try Self.limit(Self.fileSize, fileBytes)
    try Self.limit(Self.files, openFiles)
    try Self.limit(Self.dump, 0)
  }

  #if canImport(Glibc)
    private typealias Resource = __rlimit_resource_t
    private static let addressSpace = Resource(RLIMIT_AS.rawValue)
    private static let processorTime = Resource(RLIMIT_CPU.rawValue)
    private static let fileSize = Resource(RLIMIT_FSIZE.rawValue)
    private static let files = Resource(RLIMIT_NOFILE.rawValue)
    private static let dump = Resource(RLIMIT_CORE.rawValue)
  #else
    private typealias Resource = CInt
    private static let addressSpace = RLIMIT_AS
    private static let processorTime = RLIMIT_CPU
    private static let fileSize = RLIMIT_FSIZE
    private static let files = RLIMIT_NOFILE
    private static let dump = RLIMIT_CORE
  #endif

  private static func limit(_ resource: Resource, _ value: UInt64, most hard: UInt64? = nil) throws(InboxError) {
    var limit = rlimit()
    let known = unsafe getrlimit(resource, &limit)
    // Never exceed the process's own limits.
    let most = known == 0 ? min(rlim_t(hard ?? value), limit.rlim_max) : rlim_t(hard ?? value)
    limit.rlim_cur = min(rlim_t(value), most)
    limit.rlim_max = most
    guard unsafe setrlimit(resource, &limit) == 0 else {
      throw InboxError(
        .worker, operation: "limit the worker", detail: "the system does not limit what it may use",
        hint: "Serve on a system that can, such as Linux.", isEnvironmental: true)
    }
  }
}
