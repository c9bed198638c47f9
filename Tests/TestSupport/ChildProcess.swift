import Foundation
import Platform
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

private func signal(_ process: Int32, _ number: Int32) { _ = kill(process, number) }

/// Another program, run to its end or held while a test goes on.
package final class ChildProcess {
  /// How it ended, and what it wrote.
  package struct Result {
    /// The exit code; 128 and the signal's number where a signal ended it.
    package var status: Int32
    package var output: String
    package var errors: String
  }

  private let process = Process()
  private let input = Pipe()
  private let folder: TemporaryFolder

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - program: its path, or a name that is looked for where the shell looks.
  ///   - directory: its current folder.
  ///   - home: what `LAZARET_HOME` is to it; nil for no such variable, whatever the tests were started with, as `LAZARET_MODEL`.
  package init(_ program: String, _ arguments: [String], in directory: FilePath? = nil, home: FilePath? = nil) throws {
    folder = try TemporaryFolder()
    process.executableURL = URL(fileURLWithPath: program.contains("/") ? program : Self.find(program) ?? program)
    process.arguments = arguments
    var surroundings = ProcessInfo.processInfo.environment
    surroundings["LAZARET_HOME"] = home?.string
    surroundings["LAZARET_MODEL"] = nil
    process.environment = surroundings
    if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory.string) }
    // Files and no pipes: nothing has to be read while the program runs.
    for name in ["output", "errors"] { try folder.write("", to: name) }
    process.standardOutput = FileHandle(forWritingAtPath: folder.appending("output").string)
    process.standardError = FileHandle(forWritingAtPath: folder.appending("errors").string)
    process.standardInput = input
    try process.run()
  }

  /// Whether there is such a program.
  package static func exists(_ program: String) -> Bool { find(program) != nil }

  private static func find(_ program: String) -> String? {
    (environment("PATH") ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(program)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// What it has written to standard output so far.
  package func output() throws -> String {
    String(decoding: try FileSystem().contents(of: folder.appending("output"), limit: 1 << 28), as: UTF8.self)
  }

  /// Waits until it has written a text.
  ///
  /// - Returns: false where it has not done so in ten seconds.
  package func waits(for text: String) throws -> Bool {
    for _ in 0..<1000 {
      if try output().contains(text) { return true }
      if !process.isRunning { return try output().contains(text) }
      Thread.sleep(forTimeInterval: 0.01)
    }
    return false
  }

  /// Waits until it has written a text to standard error.
  ///
  /// - Returns: false where it has not done so in thirty seconds.
  package func waits(forError text: String) throws -> Bool {
    for _ in 0..<3000 {
      if try errors().contains(text) { return true }
      if !process.isRunning { return try errors().contains(text) }
      Thread.sleep(forTimeInterval: 0.01)
    }
    return false
  }

  private func errors() throws -> String {
    String(decoding: try FileSystem().contents(of: folder.appending("errors"), limit: 1 << 28), as: UTF8.self)
  }

  /// Gives it a text to read.
  package func tell(_ text: String) { input.fileHandleForWriting.write(Data(text.utf8)) }

  /// Presses Ctrl-C.
  package func interrupt() { signal(process.processIdentifier, SIGINT) }

  /// Ends it by SIGKILL.
  package func kill() { signal(process.processIdentifier, SIGKILL) }

  /// Ends its input and waits for its end.
  package func finish() throws -> Result {
    try input.fileHandleForWriting.close()
    return try result()
  }

  /// Waits for its end, with its input open, and ends it by SIGKILL where it takes too long.
  package func wait(seconds: Int) throws -> Result {
    for _ in 0..<seconds * 100 where process.isRunning { Thread.sleep(forTimeInterval: 0.01) }
    if process.isRunning { kill() }
    return try result()
  }

  private func result() throws -> Result {
    process.waitUntilExit()
    let status = process.terminationStatus
    return Result(
      status: process.terminationReason == .uncaughtSignal ? 128 + status : status, output: try output(),
      errors: try errors())
  }

  /// Runs a program to its end.
  package static func run(
    _ program: String, _ arguments: [String], input: String = "", in directory: FilePath? = nil, home: FilePath? = nil
  ) throws -> Result {
    let child = try ChildProcess(program, arguments, in: directory, home: home)
    if !input.isEmpty { child.tell(input) }
    return try child.finish()
  }

  /// The path of the built command line, beside the tests that are running.
  package static let tool: String = {
    let manager = FileManager.default
    var folders: [String] = []
    if let executable = try? manager.destinationOfSymbolicLink(atPath: "/proc/self/exe") { folders.append(executable) }
    folders += CommandLine.arguments.prefix(1)
    for start in folders {
      // Beside the bundle on Linux; beside the bundle that holds the executable elsewhere.
      var url = URL(fileURLWithPath: start)
      for _ in 0..<4 {
        url.deleteLastPathComponent()
        let tool = url.appendingPathComponent("lazaret").path
        if manager.isExecutableFile(atPath: tool) { return tool }
      }
    }
    return "lazaret-was-not-built"
  }()
}
