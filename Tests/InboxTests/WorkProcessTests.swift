import Foundation
import Inbox
import StoreFiles
import SystemPackage
import TestSupport
import Testing

/// Workers as processes: how their ends are told apart.
@Suite("Worker processes")
struct WorkProcessTests {
  private func order(_ folder: TemporaryFolder, seconds: Int = 20) -> WorkOrder {
    var resources = WorkLimits()
    resources.seconds = seconds
    return WorkOrder(
      kind: .open, home: PathText(folder.path), bundle: "00000000-0000-0000-0000-000000000000", sender: "me",
      date: "2026-11-21T10:11:12Z", isEncrypted: false, models: [], unpackedBytes: 1, unpackedRatio: 1,
      unpackedEntries: 1, resources: resources, result: PathText(folder.appending("result.json")))
  }

  private func code(_ script: String, seconds: Int = 20) throws -> String {
    let folder = try TemporaryFolder()
    let result = folder.appending("result.json").string
    do throws(InboxError) {
      let answer = try WorkProcess("/bin/sh", ["-c", script.replacing("RESULT", with: result)]).run(
        order(folder, seconds: seconds), beat: {}, isCancelled: { false })
      let left = try? FileSystem().entries(of: folder.path)
      #expect(left == [], "what was told and answered is removed")
      return answer?.failure?.code ?? "none"
    } catch {
      return error.code
    }
  }

  @Test(arguments: [
    ("exit 3", "worker-crashed"), ("exit 0", "file-not-found"), ("kill -SEGV $$", "worker-crashed"),
    ("kill -KILL $$", "worker-memory"), ("kill -XCPU $$", "worker-time"), ("kill -XFSZ $$", "worker-file-size"),
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

  @Test func anAnswerWithoutEndIsNotRead() throws {
    #expect(try code("head -c 20000000 /dev/zero > RESULT") == "worker-failed")
  }

  @Test func onesThatAreNotWantedAreKilled() throws {
    let folder = try TemporaryFolder()
    let start = ContinuousClock.now
    let result = try WorkProcess("/bin/sh", ["-c", "exec sleep 100"]).run(
      order(folder), beat: {}, isCancelled: { true })
    #expect(result == nil)
    #expect(start.duration(to: .now) < .seconds(10))
    #expect(throws: InboxError.self) {
      _ = try WorkProcess("/nowhere/at/all", []).run(order(folder), beat: {}, isCancelled: { false })
    }
  }
}
