import Foundation
import SystemPackage
import TestSupport

/// A second process that does something to a store, spoken to line by line.
final class OtherProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Whether Python with SQLite is there to be the other process.
  static let isAvailable = (try? run(python, ["-c", "import sqlite3"]))?.status == 0
  static let skipped = "skipped: python3 with its sqlite3 module is not on this machine"

  private static let python = "/usr/bin/env"

  /// Runs a Python script; its arguments are in `sys.argv[1:]`.
  init(_ script: String, _ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: Self.python)
    process.arguments = ["python3", "-c", script] + arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  deinit { stop() }

  /// Waits for a line of its output.
  func waitForLine() -> String {
    var bytes: [UInt8] = []
    while let byte = try? output.fileHandleForReading.read(upToCount: 1)?.first, byte != 10 { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Closes its input, which the scripts take as the sign to end, and waits for its end.
  func stop() {
    guard process.isRunning else { return }
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Runs a program to its end.
  static func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = program == python ? ["python3"] + arguments : arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: bytes, as: UTF8.self))
  }
}

/// The built command, run as a user without rights.
enum Unprivileged {
  private static let setpriv = "/usr/bin/setpriv"

  /// The command line tool, beside the tests in the build folder.
  private static let tool: FilePath? = {
    let folders =
      [FilePath(CommandLine.arguments.first ?? "").removingLastComponent()]
      + ["release", "debug"].map { RealMaterial.projectRoot.appending(".build/\($0)") }
    return folders.map { $0.appending("lazaret") }.first { FileManager.default.isExecutableFile(atPath: $0.string) }
  }()

  /// Whether rights can be given up, and the tool is there and may be run without them.
  static let isAvailable: Bool = {
    guard geteuid() == 0, FileManager.default.isExecutableFile(atPath: setpriv), tool != nil else { return false }
    return (try? run(["--version"]))?.status == 0
  }()
  static let skipped = "skipped: needs root, setpriv and the built command, which that user may run"

  /// Runs the command as a user who owns nothing.
  static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let options = ["--reuid=65534", "--regid=65534", "--clear-groups", tool?.string ?? ""]
    return try OtherProcess.run(setpriv, options + arguments)
  }
}
