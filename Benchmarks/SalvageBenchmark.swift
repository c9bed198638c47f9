import ArgumentParser
import Foundation
import Platform
import Salvage
import SystemPackage

/// Measures salvaging whole stores against SQLite's `.recover`, and against what a copy and a check of the healthy file
/// cost.
///
/// Goals: under a quarter of `.recover`'s time, at most twice that of `VACUUM INTO` and `PRAGMA integrity_check`, in under
/// 128 MB. Everything runs in processes of its own, one after the other, so that each peak memory is its own.
struct SalvageBenchmark {
  let folders: [FilePath]
  let sqlite: String
  let rounds: Int

  func run() throws {
    for folder in folders {
      let store = folder.appending("store.sqlite")
      let bytes = try FileSystem().status(of: store)?.size ?? 0
      print("\(store.string): \(bytes / 1_000_000) MB")
      var ours: [SalvageRun] = []
      var recover: [Double] = []
      var copy: [Double] = []
      for _ in 0..<rounds {
        ours.append(try SalvageRun(store))
        copy.append(try copyAndCheck(store))
        if let seconds = try recovered(store) { recover.append(seconds) }
      }
      let run = ours.sorted { $0.seconds < $1.seconds }[ours.count / 2]
      let memory = ours.map(\.peakMegabytes).max() ?? 0
      print(
        "  salvage: \(rounded(run.seconds)) s (whole process \(rounded(median(ours.map(\.wholeSeconds)))) s, "
          + "processor time \(rounded(run.processorSeconds)) s), peak memory \(rounded(memory)) MB")
      let yardstick = median(copy)
      print(
        "  against VACUUM INTO and integrity_check: \(rounded(yardstick)) s, ratio \(rounded(run.seconds / yardstick))")
      if recover.isEmpty {
        print("  against .recover: \(sqlite) has no .recover, or recovers nothing with it")
      } else {
        print("  against .recover: \(rounded(median(recover))) s, ratio \(rounded(run.seconds / median(recover)))")
      }
    }
  }

  private func copyAndCheck(_ store: FilePath) throws -> Double {
    let folder = try ScratchFolder()
    let out = folder.path.appending("copy.sqlite")
    let start = ContinuousClock.now
    try shell("'\(sqlite)' '\(store.string)' \"VACUUM INTO '\(out.string)'\"")
    try shell("'\(sqlite)' '\(out.string)' 'PRAGMA integrity_check'")
    let elapsed = start.duration(to: .now)
    try folder.remove()
    return inSeconds(elapsed)
  }

  /// The time of `.recover` into a new file; nil where it makes none with a table in it.
  private func recovered(_ store: FilePath) throws -> Double? {
    let folder = try ScratchFolder()
    let out = folder.path.appending("recovered.sqlite")
    let start = ContinuousClock.now
    try shell("'\(sqlite)' '\(store.string)' .recover 2>/dev/null | '\(sqlite)' '\(out.string)' 2>/dev/null; true")
    let elapsed = start.duration(to: .now)
    let size = try FileSystem().status(of: out)?.size ?? 0
    let whole = try FileSystem().status(of: store)?.size ?? 0
    try folder.remove()
    return size * 4 > whole ? inSeconds(elapsed) : nil
  }

  private func shell(_ command: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", command]
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw ValidationError("This failed: \(command)") }
  }
}

/// One salvage in a process of its own.
struct SalvageRun {
  let seconds: Double
  let processorSeconds: Double
  let wholeSeconds: Double
  let peakMegabytes: Double

  init(_ store: FilePath) throws {
    let folder = try ScratchFolder()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = ["salvage-once", store.string, folder.path.appending("out.sqlite").string]
    let output = Pipe()
    process.standardOutput = output
    let start = ContinuousClock.now
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    wholeSeconds = inSeconds(start.duration(to: .now))
    let fields = text.split(separator: "\t").compactMap {
      Double($0.trimmingCharacters(in: .whitespacesAndNewlines))
    }
    guard process.terminationStatus == 0, fields.count == 3 else {
      throw ValidationError("The salvage failed: \(text)")
    }
    (seconds, processorSeconds, peakMegabytes) = (fields[0], fields[1], fields[2])
    try folder.remove()
  }
}

/// Salvages one store in this process and prints seconds, processor seconds and megabytes, for ``SalvageRun``.
struct SalvageOnceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "salvage-once", shouldDisplay: false)

  @Argument var store: String
  @Argument var output: String
  @Flag(help: "Say at the beginning of each phase how much time and memory was taken up to there.")
  var phases = false

  func run() throws {
    let start = ContinuousClock.now
    var options = Salvager.Options()
    if phases {
      let trace = MemoryTrace(start)
      options.progress = { phase, _, _ in
        trace.note(phase.rawValue)
        return true
      }
    }
    _ = try Salvager().salvage(FilePath(store), to: FilePath(output), options: options)
    if phases { MemoryTrace(start).note("end") }
    let elapsed = start.duration(to: .now)
    print("\(inSeconds(elapsed))\t\(processorMilliseconds() / 1000)\t\(peakMemory() ?? 0)")
  }
}

/// Measures salvaging generated stores.
struct SalvageBenchmarkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage", abstract: "Measures salvaging stores against .recover, and against copy and check.")

  @Argument(help: "Folders with store.sqlite, the smallest store first.")
  var folders: [String]

  @Option(name: .customLong("sqlite3"), help: "The sqlite3 to hold it against.")
  var sqlite = "sqlite3"

  @Option(help: "How many times each measurement is taken; the median counts.")
  var rounds = 3

  func validate() throws {
    if rounds < 1 { throw ValidationError("Give at least one round.") }
  }

  func run() throws {
    try SalvageBenchmark(folders: folders.map { FilePath($0) }, sqlite: sqlite, rounds: rounds).run()
  }
}
