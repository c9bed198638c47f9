internal import Dispatch
internal import Foundation
package import Platform
package import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Does the work in a process of its own, which limits itself before it reads anything.
///
/// The worker gets its order by the path of a file, and writes its result to another. It ends when its input does, so that none
/// outlives this process.
package struct WorkProcess: WorkRunner {
  private let executable: FilePath
  private let arguments: [String]
  private let surroundings: Surroundings

  /// A runner.
  ///
  /// - Parameters:
  ///   - executable: the program.
  ///   - arguments: its verb; the path of the order comes behind it.
  package init(_ executable: FilePath, _ arguments: [String], surroundings: Surroundings = .machine) {
    self.executable = executable
    self.arguments = arguments
    self.surroundings = surroundings
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
    let fileSystem = surroundings.fileSystem
    guard let resultPath = order.result.path else {
      throw InboxError(.worker, operation: Self.operation, detail: "there is no place for the result")
    }
    let orderPath = resultPath.sibling(suffix: ".order")
    let errorPath = resultPath.sibling(suffix: ".errors")
    defer {
      // What stays is removed at the next start.
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
    // The crash of a worker is expected, and its trace would be of hostile bytes.
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
        // Whatever it may have started is not waited for.
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

  /// Whether a process was ended by a signal that asks for it, as a service's processes are when it stops.
  private static func wasAskedToEnd(_ process: Process) -> Bool {
    process.terminationReason == .uncaughtSignal
      && [SIGTERM, SIGINT, SIGHUP].contains(process.terminationStatus & 0x7F)
  }

  private func result(at path: FilePath) throws -> WorkResult {
    let bytes = try surroundings.fileSystem.contents(of: path, limit: WorkResult.lengthLimit)
    do {
      return try JSONDecoder().decode(WorkResult.self, from: Data(bytes))
    } catch {
      throw InboxError(.worker, operation: Self.operation, path: path, detail: "the worker's result makes no sense")
    }
  }

  /// How a worker ends that its surroundings kept from its work, and how a program ends that cannot be carried out.
  private static let statusesWithoutWork: Set<Int32> = [3, 126, 127]

  private static let tooLong = InboxError(.time, operation: operation, detail: "it took longer than it may")

  private func cause(of process: Process, _ errors: FilePath) throws -> InboxError {
    // Some systems add a mark that there is a dump.
    let status =
      process.terminationReason == .uncaughtSignal ? process.terminationStatus & 0x7F : process.terminationStatus
    let said = String(
      decoding: try surroundings.fileSystem.open(errors).bytes(at: 0, length: 64 << 10), as: UTF8.self)
    // A runtime without memory ends by one of several signals, as any crash does; only what it wrote tells them apart.
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
    // None of its own limits ends a worker so: a person does, or the system where its memory is short.
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
