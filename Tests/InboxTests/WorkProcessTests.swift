import Foundation
import Inbox
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Workers as processes: how their ends are told apart.
@Suite("Worker processes")
struct WorkProcessTests {
  private func order(_ folder: TemporaryFolder, seconds: Int = 20) throws -> WorkOrder {
    let text = """
      {
        "kind": "open", "home": "\(folder.path)", "bundle": "00000000-0000-0000-0000-000000000000", "sender": "me",
        "date": "2026-11-21T10:11:12Z", "isEncrypted": false, "models": [], "unpackedBytes": 1, "unpackedRatio": 1,
        "unpackedEntries": 1, "resources": RESOURCES, "result": "\(folder.appending("result.json"))"
      }
      """
    var resources = WorkLimits()
    resources.seconds = seconds
    let limits = String(decoding: try JSONEncoder().encode(resources), as: UTF8.self)
    return try JSONDecoder().decode(WorkOrder.self, from: Data(text.replacing("RESOURCES", with: limits).utf8))
  }

  private func code(_ script: String, seconds: Int = 20) throws -> String {
    let folder = try TemporaryFolder()
    let result = folder.appending("result.json").string
    let order = try order(folder, seconds: seconds)
    do throws(InboxError) {
      let answer = try WorkProcess("/bin/sh", ["-c", script.replacing("RESULT", with: result)]).run(
        order, beat: {}, isCancelled: { false })
      let left = try? FileSystem().entries(of: folder.path)
      #expect(left == [], "what was told and answered is removed")
      return answer?.failure?.code ?? "none"
    } catch {
      return error.code
    }
  }

  @Test(arguments: [
    ("exit 2", "worker-crashed"), ("exit 3", "worker-failed"), ("exit 127", "worker-failed"),
    ("exit 0", "file-not-found"), ("kill -SEGV $$", "worker-crashed"),
    ("kill -KILL $$", "worker-killed"),
    ("echo 'Could not allocate memory' >&2; exit 1", "worker-memory"), ("echo nonsense > RESULT", "worker-failed"),
    (
      "printf '{\"failure\":{\"code\":\"archive-name\",\"words\":\"x\",\"isEnvironmental\":false}}' > RESULT",
      "archive-name"
    ),
    ("printf '{}' > RESULT", "none"), ("exec cat", "worker-time"),
  ])
  func endsAreToldApart(_ script: String, _ expected: String) throws {
    let code = try code(script, seconds: script.hasPrefix("exec cat") ? 1 : 20)
    // A result that is missing is a failure of the worker's.
    #expect(code == expected || expected == "file-not-found" && code == "worker-failed", "\(code)")
  }

  /// How a process ended, and whether that says something of the bundle.
  @Test(arguments: [
    ("kill -KILL $$", true), ("exit 3", true), ("exit 126", true), ("exit 2", false), ("kill -SEGV $$", false),
    ("echo 'Could not allocate memory' >&2; exit 3", false), ("echo '{\"code\":\"no-space\"}' >&2; exit 3", true),
  ])
  func whatEndsAWorkerFromOutsideIsNoFaultOfTheBundle(_ script: String, _ isEnvironmental: Bool) throws {
    let folder = try TemporaryFolder()
    let error = #expect(throws: InboxError.self) {
      try WorkProcess("/bin/sh", ["-c", script]).run(order(folder), beat: {}, isCancelled: { false })
    }
    #expect(error?.isEnvironmental == isEnvironmental, "\(String(describing: error))")
  }

  @Test func anAnswerWithoutEndIsNotRead() throws {
    #expect(try code("head -c 20000000 /dev/zero > RESULT") == "worker-failed")
  }

  /// A bundle whose report is so many numbers that reading it takes hundreds of megabytes.
  private static let large: Result<[UInt8], any Error> = Result {
    let report = "[" + String(repeating: "0,", count: 15_000_000) + "0]"
    return try InboxDesk().bundle([("salvage.json", Array(report.utf8))], level: .facts)
  }

  @Test(
    arguments: [
      ("none", 1 << 30, 16 << 30), ("worker-memory", 300 << 20, 16 << 30), ("worker-memory", 64 << 20, 16 << 30),
      ("worker-file-size", 1 << 30, 1 << 20),
    ] as [(String, UInt64, UInt64)])
  func limitsHold(_ expected: String, memory: UInt64, fileBytes: UInt64) throws {
    let desk = try InboxDesk()
    let id = try desk.send(try Self.large.get())
    var options = WorkerPool.Options()
    options.unpackedRatio = 2000
    options.resources = WorkLimits(memory: memory, fileBytes: fileBytes)
    let pool = desk.pool(options: options, runner: WorkProcess(FilePath(ChildProcess.tool), ["inbox-worker"]))
    while try pool.workOnce() { desk.clock.pass(1000) }
    let bundle = try #require(try desk.inbox.records.bundle(id))
    #expect((bundle.failure?.code ?? "none") == expected, "\(bundle.failure?.words ?? "")")
    #expect(try FileSystem().entries(of: desk.folders.work).isEmpty)
  }

  /// A signal of the runtime, whose own report needs memory: said where none is left, and only there.
  @Test func aWorkerWithoutMemorySaysSo() async throws {
    for memory: UInt64 in [1 << 20, 1 << 40] {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        [memory = memory as UInt64] in
        try WorkLimits(memory: memory).apply()
        _ = raise(SIGILL)
      }
      let report = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
      #expect(report.contains("out of memory") == (memory == 1 << 20))
    }
  }

  @Test func onesThatAreNotWantedAreKilled() throws {
    let folder = try TemporaryFolder()
    let start = ContinuousClock.now
    let result = try WorkProcess("/bin/sh", ["-c", "exec sleep 100"]).run(
      order(folder), beat: {}, isCancelled: { true })
    #expect(result == nil)
    #expect(start.duration(to: .now) < .seconds(60))
    #expect(throws: InboxError.self) {
      _ = try WorkProcess("/nowhere/at/all", []).run(order(folder), beat: {}, isCancelled: { false })
    }
  }
}
