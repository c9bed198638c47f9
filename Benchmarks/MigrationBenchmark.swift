import ArgumentParser
import Foundation
import ManagedObjectModel
import Migration
import Platform
import SQLiteFormat
import SystemPackage

/// Measures migrating a store against hand-written SQL for the same change.
///
/// Goal: at most 1.2 times its time, in under 64 MB, and linear in the number of records. Each migration runs in a
/// process of its own, so that its peak memory is its own too.
struct MigrationBenchmark {
  /// One change, as both sides carry it out.
  struct Change {
    let name: String
    let version: String

    /// The versions that it goes through.
    let via: [String]

    /// The methods of hand-written SQL to hold it against; the first counts.
    let methods: [HandWrittenMigration.Method]
  }

  /// A generated store: its folder holds `store.sqlite` and `BenchHistory.xcdatamodeld`.
  struct Subject {
    let folder: FilePath

    var store: FilePath { folder.appending("store.sqlite") }
    var model: FilePath { folder.appending("BenchHistory.xcdatamodeld") }
  }

  static let changes = [
    Change(
      name: "add and rename (in place)", version: "Bench 2", via: [],
      methods: [.addAndRename, .addAndRenameSynchronized]),
    Change(
      name: "without a column (rebuild)", version: "Bench 3", via: [],
      methods: [.newFile, .newFileSafe, .newFileCopied, .inPlace]),
    Change(
      name: "both, one after the other", version: "Bench 3", via: ["Bench 2"], methods: [.addThenNewFile]),
  ]

  let subjects: [Subject]
  let rounds: Int

  func run() throws {
    var perRecord: [String: [(records: Int, seconds: Double)]] = [:]
    for subject in subjects {
      let bytes = try FileSystem().status(of: subject.store)?.size ?? 0
      let baseline = HandWrittenMigration(store: subject.store)
      let records = try baseline.recordCount()
      print("\(subject.store.string): \(records) records, \(bytes / 1_000_000) MB")
      // What no hand-written SQL does, on a second core beside the copy.
      let checks = try (0..<rounds).map { _ in try Self.secondsOfCheck(subject.store) }
      print("  the check of every page of the source alone: \(rounded(median(checks))) s")
      for change in Self.changes {
        var ours: [MigrationRun] = []
        var theirs: [String: [Double]] = [:]
        for _ in 0..<rounds {
          for method in change.methods { theirs[method.rawValue, default: []].append(try baseline.seconds(method)) }
          ours.append(try MigrationRun(subject, change))
        }
        let run = ours.sorted { $0.seconds < $1.seconds }[ours.count / 2]
        let memory = ours.map(\.peakMegabytes).max() ?? 0
        print("  \(change.name): \(rounded(run.seconds)) s, peak memory \(rounded(memory)) MB")
        print("    phases: \(run.phases)")
        for method in change.methods {
          let seconds = median(theirs[method.rawValue] ?? [])
          print("    against \(method.rawValue): \(rounded(seconds)) s, ratio \(rounded(run.seconds / seconds))")
        }
        perRecord[change.name, default: []].append((records, run.seconds))
      }
    }
    for (name, points) in perRecord.sorted(by: { $0.key < $1.key }) where points.count > 1 {
      let texts = points.map { "\($0.records): \(rounded($0.seconds * 1e6 / Double(max(1, $0.records)))) µs" }
      print("a record, \(name): \(texts.joined(separator: ", "))")
    }
  }
}

extension MigrationBenchmark {
  /// How long the check of a store's pages takes that every migration makes.
  fileprivate static func secondsOfCheck(_ store: FilePath) throws -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    let report = try Database(main: try FileSystem().open(store)).checkIntegrity(findingLimit: 10)
    guard report.isSound else { throw ValidationError("The store is damaged.") }
    return inSeconds(clock.now - start)
  }
}

/// One migration in a process of its own.
struct MigrationRun {
  let seconds: Double
  let peakMegabytes: Double
  let phases: String

  init(_ subject: MigrationBenchmark.Subject, _ change: MigrationBenchmark.Change) throws {
    let folder = try ScratchFolder()
    let store = folder.path.appending("store.sqlite")
    try FileManager.default.copyItem(atPath: subject.store.string, toPath: store.string)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments =
      ["migrate-once", store.string, "--model", subject.model.string, "--to", change.version]
      + change.via.flatMap { ["--via", $0] }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let fields = text.split(separator: "\t", omittingEmptySubsequences: false)
    guard process.terminationStatus == 0, fields.count >= 3, let seconds = Double(fields[0]),
      let memory = Double(fields[1])
    else { throw ValidationError("The migration failed: \(text)") }
    self.seconds = seconds
    peakMegabytes = memory
    phases = fields[2].trimmingCharacters(in: .whitespacesAndNewlines)
    try folder.remove()
  }
}

/// Migrates one store in this process and prints seconds, megabytes and phases, for ``MigrationRun``.
struct MigrateOnceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "migrate-once", shouldDisplay: false)

  @Argument var store: String
  @Option var model: String
  @Option var to: String
  @Option var via: [String] = []

  func run() throws {
    let bundle = try ModelBundle.load(path: FilePath(model))
    var options = Migrator.Options()
    options.version = to
    options.via = via
    let clock = ContinuousClock()
    let trace = PhaseTrace()
    var surroundings = Surroundings.machine
    surroundings.fileSystem = trace.fileSystem
    let start = clock.now
    let result = try Migrator(bundle, surroundings: surroundings).migrate(FilePath(store), options: options)
    let elapsed = clock.now - start
    let ways = result.steps.map(\.way.rawValue).joined(separator: "+")
    print("\(inSeconds(elapsed))\t\(peakMemory() ?? 0)\t\(ways); \(trace.text(from: start, clock.now))")
  }
}

/// A folder that is removed after use.
struct ScratchFolder {
  let path: FilePath

  init() throws {
    path = FilePath(FileManager.default.temporaryDirectory.path).appending("lazaret-bench-\(UUID().uuidString)")
    try FileSystem().makeDirectory(path)
  }

  func remove() throws { try FileManager.default.removeItem(atPath: path.string) }
}

/// A span of time in seconds.
func inSeconds(_ duration: Duration) -> Double {
  Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
}

/// The middle of some numbers.
func median(_ values: [Double]) -> Double { values.isEmpty ? 0 : values.sorted()[values.count / 2] }
