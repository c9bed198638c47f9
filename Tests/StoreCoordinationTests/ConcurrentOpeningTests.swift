import GRDB
import Lazaret
import PersistentStore
import SystemPackage
import TestSupport
import Testing

/// Other processes that want the same store.
@Suite(.serialized)
struct ConcurrentOpeningTests {
  @Test func twoProcessesQuarantineADamagedStoreOnce() throws {
    for round in 1...20 {
      let scene = try Scene()
      try scene.makeDamagedStore()
      let before = try scene.parts(scene.store())
      let arguments = [
        "open", scene.store().string, "--model", scene.model.string, "--versions", "V1,V2,V3", "--home",
        scene.home.string,
        "--app-version", "7.1", "--json",
      ]
      let children = [
        try ChildProcess(ChildProcess.tool, arguments), try ChildProcess(ChildProcess.tool, arguments),
      ]
      let results = try children.map { try $0.finish() }
      let report = "round \(round): \(results.map { "\($0.status) \($0.errors)" })"
      // One works; the other works too, or says that the first one is at it.
      #expect(results.contains { $0.status == 2 }, "\(report)")
      for result in results where ![0, 2].contains(result.status) {
        #expect(result.status == 3, "\(report)")
        #expect(result.errors.contains("\"hint\""), "\(report)")
      }
      try scene.expectGoodStore(scene.store(), "\(report)")
      try scene.expectQuarantined(before, in: try scene.quarantined(), "\(report)")
      #expect(try scene.names() == ["App.sqlite", "Incompatible"], "\(report)")
    }
  }

  @Test func twoProcessesSalvageADamagedStoreOnce() throws {
    for round in 1...12 {
      let scene = try SalvagingScene()
      let arguments = [
        "open", scene.scene.store().string, "--model", scene.scene.model.string, "--versions", "V1,V2,V3", "--home",
        scene.scene.home.string, "--app-version", "7.1", "--json",
      ]
      let children = [
        try ChildProcess(ChildProcess.tool, arguments), try ChildProcess(ChildProcess.tool, arguments),
      ]
      let results = try children.map { try $0.finish() }
      let report = "round \(round): \(results.map { "\($0.status) \($0.errors)" })"
      #expect(results.contains { [0, 2].contains($0.status) && $0.output.contains("\"salvage\"") }, "\(report)")
      for result in results where ![0, 2].contains(result.status) { #expect(result.status == 3, "\(report)") }
      try scene.expectRescued("\(report)")
      #expect(
        try scene.scene.quarantined().first?.receipt?.history.map(\.kind) == [.quarantined, .salvaged, .installed],
        "\(report)")
    }
  }

  @Test func twoProcessesCreateAMissingStoreOnce() throws {
    for round in 1...10 {
      let scene = try Scene()
      let arguments = ["open", scene.store().string, "--model", scene.model.string, "--home", scene.home.string]
      let children = [
        try ChildProcess(ChildProcess.tool, arguments), try ChildProcess(ChildProcess.tool, arguments),
      ]
      let results = try children.map { try $0.finish() }
      #expect(results.map(\.status) == [0, 0], "round \(round): \(results.map(\.errors))")
      #expect(try scene.names() == ["App.sqlite"], "round \(round)")
    }
  }

  /// How another process has the store open.
  struct Holder: Sendable, CustomTestStringConvertible {
    var mode: String
    var statement: String
    var testDescription: String { "\(mode), \(statement)" }
  }

  static let holders = ["wal", "delete"].flatMap { mode in
    ["SELECT count(*) FROM boats", "BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"].map {
      Holder(mode: mode, statement: $0)
    }
  }

  @Test(.enabled(if: ChildProcess.exists("python3"), "python3 is not here"), arguments: holders)
  func aStoreThatAnotherProcessHasOpenIsNeverMoved(holder: Holder) throws {
    let scene = try Scene()
    // A sound database, but not of the app's model: without the other process it would be moved.
    let script = """
      import sqlite3, sys
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA journal_mode = " + sys.argv[2])
      c.execute("CREATE TABLE boats (id INTEGER PRIMARY KEY, name TEXT)")
      c.execute("INSERT INTO boats (name) VALUES ('Ada')")
      c.execute(sys.argv[3]).fetchall()
      if sys.argv[3] != "SELECT count(*) FROM boats" and "EXCL" not in sys.argv[3]:
        c.execute("SELECT count(*) FROM boats").fetchall()
      print("ready", flush=True)
      sys.stdin.readline()
      """
    let child = try ChildProcess("python3", ["-c", script, scene.store().string, holder.mode, holder.statement])
    try #require(try child.waits(for: "ready"))
    let before = try FolderContents(of: scene.stores)
    let result = try ChildProcess.run(
      ChildProcess.tool,
      [
        "open", scene.store().string, "--model", scene.model.string, "--home", scene.home.string, "--replace-foreign",
        "--json",
      ])
    #expect(result.status == 3, "\(result.errors)")
    #expect(result.output.isEmpty)
    #expect(result.errors.contains("python"), "\(result.errors)")
    #expect(try FolderContents(of: scene.stores) == before)
    // In this process, and by hand, the same.
    var policy = OpeningPolicy()
    policy.whenForeign = .replace
    #expect(throws: (any Error).self) { try scene.coordinator(policy).open(scene.store()) }
    #expect(throws: (any Error).self) { try Quarantines(home: scene.home).add(scene.store()) }
    #expect(try FolderContents(of: scene.stores) == before)
    child.tell("\n")
    #expect(try child.finish().status == 0)
    // It has gone: now the store makes room.
    let opening = try scene.coordinator(policy).open(scene.store())
    // Nothing of it has a place in the app's model.
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage, .create])
    try opening.store.close()
  }

  @Test func aStoreThatThisProcessHasOpenInWALModeIsNotMoved() throws {
    let scene = try Scene()
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: scene.store().string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = wal; CREATE TABLE boats (id INTEGER PRIMARY KEY)")
      try database.execute(sql: "BEGIN IMMEDIATE")
    }
    #expect(throws: (any Error).self) { try scene.coordinator().open(scene.store()) }
    #expect(try scene.quarantined().isEmpty)
    try queue.close()
  }
}
