internal import Dispatch
internal import Foundation
internal import Platform
package import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
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
    if process.terminationReason == .exit, process.terminationStatus == 0 {
      return try result(at: resultPath)
    }
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
    let said = String(
      decoding: try fileSystem.open(errors).bytes(at: 0, length: 64 << 10), as: UTF8.self)
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
