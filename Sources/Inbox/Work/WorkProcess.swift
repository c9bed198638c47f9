internal import Dispatch
internal import Foundation
internal import Platform
package import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

#if os(Linux)
  internal import CLinux
#endif

/// Runs work in its own process, limited before it reads anything.
///
/// Order and result are files. The worker ends with its input, so that it cannot outlive this process.
package struct WorkProcess: WorkRunner {
  private let executable: FilePath
  private let arguments: [String]
  private let fileSystem = FileSystem()

  /// - Parameter arguments: the command; the order's path follows.
  package init(_ executable: FilePath, _ arguments: [String]) {
    self.executable = executable
    self.arguments = arguments
  }

  private static let operation = "do the work of the inbox"

  package func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult? {
    do {
      return try begin(order, beat, isCancelled)
    } catch let error as InboxError {
      throw error
    } catch let error as any ReportableError {
      throw InboxError(
        .worker, because: error, operation: Self.operation, details: .init(isEnvironmental: error.isEnvironmental))
    } catch {
      throw InboxError(
        .worker, operation: Self.operation, detail: "the worker could not be started",
        hint: "Check whether this system can start more processes.", isEnvironmental: true)
    }
  }

  private func begin(
    _ order: WorkOrder, _ beat: () -> Void, _ isCancelled: @Sendable () -> Bool
  ) throws -> WorkResult? {
    guard let resultPath = order.result.path else {
      throw InboxError(.worker, operation: Self.operation, detail: "there is no place for the result")
    }
    let orderPath = resultPath.sibling(suffix: ".order")
    let errorPath = resultPath.sibling(suffix: ".errors")
    defer {
      // The next start removes the rest.
      for path in [orderPath, errorPath, resultPath] { try? fileSystem.unlink(path) }
    }
    try fileSystem.unlink(resultPath)
    let bytes = try JSON.bytes(of: order, .line, to: "begin the work", at: orderPath)
    try fileSystem.writeAtomically(bytes, to: orderPath, replacing: true, permissions: .ownerReadWrite)
    let errors = try fileSystem.create(errorPath, permissions: .ownerReadWrite, truncating: true)
    try errors.commit()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable.string)
    process.arguments = arguments + [orderPath.string]
    // Crashes are expected; a backtrace would have hostile bytes.
    process.environment = ["SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"].merging(
      ProcessInfo.processInfo.environment.filter { ["LD_LIBRARY_PATH", "TMPDIR"].contains($0.key) }
    ) { $1 }
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle(forWritingAtPath: errorPath.string) ?? FileHandle.nullDevice
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run()
    let start = ContinuousClock.now
    var isLate = false
    var isStopped = false
    while ended.wait(timeout: .now() + .milliseconds(250)) == .timedOut {
      if isCancelled() { isStopped = true }
      if start.duration(to: .now) > .seconds(order.resources.seconds) { isLate = true }
      if isStopped || isLate {
        _ = kill(process.processIdentifier, SIGKILL)
        // Do not wait for its children.
        _ = ended.wait(timeout: .now() + .seconds(5))
        break
      }
      beat()
    }
    try input.fileHandleForWriting.close()
    if isStopped { return nil }
    if isLate { throw Self.tooLong }
    if Self.wasAskedToEnd(process) { return nil }
    if process.terminationReason == .exit, process.terminationStatus == 0 { return try result(at: resultPath) }
    throw try cause(of: process, errorPath)
  }

  /// Whether a termination signal ended it, as when a service stops.
  private static func wasAskedToEnd(_ process: Process) -> Bool {
    process.terminationReason == .uncaughtSignal
      && [SIGTERM, SIGINT, SIGHUP].contains(process.terminationStatus & 0x7F)
  }

  private func result(at path: FilePath) throws -> WorkResult {
    let bytes = try fileSystem.contents(of: path, limit: WorkResult.lengthLimit)
    do {
      return try JSONDecoder().decode(WorkResult.self, from: Data(bytes))
    } catch {
      throw InboxError(.worker, operation: Self.operation, path: path, detail: "the worker's result makes no sense")
    }
  }

  /// Exit statuses of a worker prevented by its environment, or of a program not executable.
  private static let statusesWithoutWork: Set<Int32> = [3, 126, 127]

  private static let tooLong = InboxError(.time, operation: operation, detail: "it took longer than it may")

  private func cause(of process: Process, _ errors: FilePath) throws -> InboxError {
    // Some systems add a core dump flag.
    let status =
      process.terminationReason == .uncaughtSignal ? process.terminationStatus & 0x7F : process.terminationStatus
    let said = String(decoding: try fileSystem.open(errors).bytes(at: 0, length: 64 << 10), as: UTF8.self)
    // Out of memory ends the runtime like any crash; only its output distinguishes it.
    let isOutOfMemory =
      ["allocate memory", "failed to allocate", "out of memory", "out-of-memory", "bad_alloc"].contains {
        said.lowercased().contains($0)
      }
    if process.terminationReason == .uncaughtSignal {
      switch status {
      case SIGXCPU: return Self.tooLong
      case SIGXFSZ:
        return InboxError(.fileSize, operation: Self.operation, detail: "it wrote a larger file than it may")
      default: break
      }
    }
    if isOutOfMemory {
      return InboxError(.memory, operation: Self.operation, detail: "it needed more memory than it may have")
    }
    // A worker's own limits never send this: a person did, or the system short of memory.
    if process.terminationReason == .uncaughtSignal, status == SIGKILL {
      return InboxError(
        .killed, operation: Self.operation,
        detail: "the worker was killed from outside, as the system does where its memory runs out",
        isEnvironmental: true)
    }
    if process.terminationReason == .exit, Self.statusesWithoutWork.contains(status) {
      return InboxError(
        .worker, operation: Self.operation,
        detail: "the worker could not begin, or could not write its result: it ended with the status \(status)",
        hint: "Look whether the disk of the inbox is full, and whether this program is whole.", isEnvironmental: true)
    }
    return InboxError(
      .crashed, operation: Self.operation,
      detail: process.terminationReason == .exit
        ? "the worker ended with the status \(status) and no result"
        : "the worker was ended by the signal \(status)")
  }
}

package struct WorkLimits: Sendable, Hashable, Codable {
  /// The bytes of address space.
  package var memory: UInt64 = 1 << 30

  var processorSeconds: UInt64 = 900

  /// The bytes of one written file.
  package var fileBytes: UInt64 = 16 << 30

  var openFiles: UInt64 = 256

  /// The seconds until it is killed.
  package var seconds = 1800

  package init() {}

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
    for number in [SIGABRT, SIGILL, SIGTRAP] { _ = signal(number, endWithReason) }
    try Self.limit(RLIMIT_AS, memory)
    // The signal names the cause; the kill follows.
    try Self.limit(RLIMIT_CPU, processorSeconds, most: processorSeconds + 5)
    try Self.limit(RLIMIT_FSIZE, fileBytes)
    try Self.limit(RLIMIT_NOFILE, openFiles)
    try Self.limit(RLIMIT_CORE, 0)
  }

  #if canImport(Glibc)
    private typealias Resource = __rlimit_resource
    private static func number(_ resource: Resource) -> __rlimit_resource_t { .init(resource.rawValue) }
  #else
    private typealias Resource = CInt
    private static func number(_ resource: Resource) -> CInt { resource }
  #endif

  private static func limit(_ resource: Resource, _ value: UInt64, most hard: UInt64? = nil) throws(InboxError) {
    var limit = rlimit()
    let known = unsafe getrlimit(number(resource), &limit)
    // Never exceed the process's own limits.
    let most = known == 0 ? min(rlim_t(hard ?? value), limit.rlim_max) : rlim_t(hard ?? value)
    limit.rlim_cur = min(rlim_t(value), most)
    limit.rlim_max = most
    guard unsafe setrlimit(number(resource), &limit) == 0 else {
      throw InboxError(
        .worker, operation: "limit the worker", detail: "the system does not limit what it may use",
        hint: "Serve on a system that can, such as Linux.", isEnvironmental: true)
    }
  }
}

/// Ends the process by a signal, having reported on standard error whether its memory ran out.
///
/// The runtime's own report needs memory. This one does not.
private func endWithReason(_ number: CInt) {
  if unsafe mmap(nil, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED {
    let report: StaticString = "out of memory\n"
    _ = unsafe write(STDERR_FILENO, report.utf8Start, report.utf8CodeUnitCount)
  }
  _ = signal(number, SIG_DFL)
  _ = raise(number)
}

/// Watches a worker's use of disk space.
///
/// It temporarily needs more than stays: copies, sorted rows, an unverified store.
final class RoomWatch: Sendable {
  private struct State {
    var next = ContinuousClock.now
    var isOver = false
  }

  private let state = Mutex(State())
  private let inbox: Inbox
  private let bundle: String
  private let folders: InboxFolders
  private let limit: Int64

  /// - Parameters:
  ///   - room: the bytes that may stay.
  ///   - before: the bytes present.
  init(_ inbox: Inbox, _ bundle: String, in folders: InboxFolders, room: Int64, before: Int64) {
    self.inbox = inbox
    self.bundle = bundle
    self.folders = folders
    limit = before + Self.working(room)
  }

  /// The temporary limit, given the bytes that may stay.
  static func working(_ room: Int64) -> Int64 { (64 << 20) + 4 * min(max(0, room), 1 << 50) }

  /// Whether it uses too much; measured at most twice a second.
  var isOver: Bool {
    state.withLock { state in
      guard !state.isOver, state.next <= .now else { return state.isOver }
      let start = ContinuousClock.now
      defer {
        // Spend at most a tenth of the time on counting.
        let end = ContinuousClock.now
        state.next = end + max(.milliseconds(500), start.duration(to: end) * 10)
      }
      // A vanishing file must not end the worker; its end counts again.
      guard let bytes = try? inbox.workingBytes(of: bundle, in: folders) else { return false }
      state.isOver = bytes > limit
      return state.isOver
    }
  }
}

/// A worker's isolation, as far as the kernel supports it.
package struct WorkIsolation: Sendable, Hashable, Codable {
  package enum Measure: String, Sendable, Hashable, Codable, CaseIterable {
    /// No further privileges.
    case privileges

    /// No network but an empty one of its own.
    case network

    /// No files but its job's and the system's.
    case files

    /// No sockets, programs, processes, tracing or mounts.
    case calls
  }

  package var reached: Set<Measure>

  package var missing: [Measure] { Measure.allCases.filter { !reached.contains($0) } }

  /// Readable by every worker: libraries, time zone, its own process information.
  private static let system: [FilePath] = [
    "/usr", "/lib", "/lib64", "/etc/localtime", "/proc/self", "/dev/null", "/dev/zero", "/dev/urandom",
  ]

  /// Isolates this process permanently, as far as supported.
  ///
  /// Call before other threads start: some restrictions apply only to the calling thread and its descendants.
  ///
  /// - Parameters:
  ///   - readable: readable paths; missing ones are skipped.
  ///   - writable: fully accessible folders.
  package static func apply(readable: [FilePath], writable: [FilePath]) -> WorkIsolation {
    var isolation = WorkIsolation(reached: [])
    #if os(Linux)
      if lazaret_leave_network() == 0 { isolation.reached.insert(.network) }
      guard lazaret_keep_no_new_privileges() == 0 else { return isolation }
      isolation.reached.insert(.privileges)
      if confine(readable: system + readable, writable: writable) { isolation.reached.insert(.files) }
      if lazaret_refuse_calls() == 0 { isolation.reached.insert(.calls) }
    #endif
    return isolation
  }

  #if os(Linux)
    /// Restricts the file system to some paths; false, without effect, if unsupported.
    private static func confine(readable: [FilePath], writable: [FilePath]) -> Bool {
      let version = lazaret_landlock_version()
      // Version 1 of the interface cannot move files between folders.
      guard version >= 2 else { return false }
      let rules = lazaret_landlock_begin(version)
      guard rules >= 0 else { return false }
      for (paths, writes) in [(readable, CInt(0)), (writable, 1)] {
        for path in paths {
          let failure = unsafe path.withPlatformString { unsafe lazaret_landlock_allow(rules, version, $0, writes) }
          // A missing path needs no permission; the job fails with its own error.
          guard failure == 0 || failure == ENOENT || failure == ENOTDIR || failure == EACCES else {
            _ = close(rules)
            return false
          }
        }
      }
      return lazaret_landlock_end(rules) == 0
    }
  #endif

  /// Tests which forbidden actions succeed.
  ///
  /// - Parameter folder: a forbidden one.
  package static func trials(outside folder: FilePath) -> [String: Bool] {
    var done: [String: Bool] = [:]
    #if os(Linux)
      let stream = CInt(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    for (name, family) in [("socket", AF_INET), ("socket6", AF_INET6), ("local", AF_UNIX)] {
      let descriptor = socket(family, stream, 0)
      done[name] = descriptor >= 0
      if descriptor >= 0 { _ = close(descriptor) }
    }
    let fileSystem = FileSystem()
    func succeeds(_ body: () throws -> Void) -> Bool {
      do {
        try body()
        return true
      } catch {
        return false
      }
    }
    done["read"] = succeeds { _ = try fileSystem.contents(of: "/etc/passwd", limit: 1 << 20) }
    done["list"] = succeeds { _ = try fileSystem.entries(of: folder) }
    let file = folder.appending("written-by-a-worker")
    done["write"] = succeeds {
      try fileSystem.create(file).commit()
      try fileSystem.unlink(file)
    }
    done["program"] = canStartProgram()
    return done
  }

  private static func canStartProgram() -> Bool {
    var process = pid_t()
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe [strdup("true"), nil]
    defer { unsafe free(arguments[0]) }
    guard unsafe posix_spawn(&process, "/bin/true", nil, nil, &arguments, nil) == 0 else { return false }
    var status: CInt = 0
    _ = unsafe waitpid(process, &status, 0)
    // Status 127: not executed.
    return status == 0
  }
}
