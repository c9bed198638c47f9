import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Other processes that want the same store while it is migrated.
@Suite(.serialized)
struct ConcurrentMigratingTests {
  private static func arguments(_ scene: MigratingScene, _ store: FilePath? = nil) -> [String] {
    [
      "open", (store ?? scene.store).string, "--model", scene.model.string, "--home", scene.home.string, "--json",
    ]
  }

  @Test func twoProcessesMigrateAStoreOnce() throws {
    let seed: UInt64 = 4_711
    var generator = SeededGenerator(seed: seed)
    var outcomes: [[Int32]] = []
    for round in 1...(environment("LAZARET_MUTATIONS") == nil ? 8 : 100) {
      let rows = [3, 500, 4_000][round % 3]
      let scene = try MigratingScene(rows: rows)
      let before = try scene.parts(scene.store)
      let first = try ChildProcess(ChildProcess.tool, Self.arguments(scene))
      Thread.sleep(forTimeInterval: Double.random(in: 0...0.05, using: &generator))
      let second = try ChildProcess(ChildProcess.tool, Self.arguments(scene))
      // In every fourth round the first one does not survive.
      if round.isMultiple(of: 4) {
        Thread.sleep(forTimeInterval: Double.random(in: 0...0.05, using: &generator))
        first.kill()
      }
      let results = try [first, second].map { try $0.finish() }
      outcomes.append(results.map(\.status))
      let report: Comment = "seed \(seed) round \(round): \(results.map { "\($0.status) \($0.errors)" })"
      #expect(results.contains { $0.status == 0 }, report)
      for result in results where result.status != 0 && result.status != 128 + SIGKILL {
        // It is told so.
        #expect(result.status == 3 && result.errors.contains("\"hint\""), report)
      }
      try scene.expectMigrated(rows: rows, before, report)
    }
    print("two processes: \(outcomes)")
  }

  // MARK: States of the store

  private static let python = "python3 is not here"

  /// Committed rows that are only in the log, and another process that has the store open.
  @Test(.enabled(if: ChildProcess.exists("python3"), "\(python)"))
  func aStoreThatAnotherProcessHasOpenWaits() throws {
    let scene = try MigratingScene(rows: 40)
    let script = """
      import sqlite3, sys
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA wal_autocheckpoint = 0")
      c.execute("INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (41, 1, 1, 'Geheimnis41')")
      c.execute("SELECT count(*) FROM ZCAR").fetchall()
      print("ready", flush=True)
      sys.stdin.readline()
      """
    let holder = try ChildProcess("python3", ["-c", script, scene.store.string])
    try #require(try holder.waits(for: "ready"))
    let before = try scene.parts(scene.store)
    #expect(before["wal"] != nil)
    let refused = try ChildProcess.run(ChildProcess.tool, Self.arguments(scene))
    #expect(refused.status == 3, "\(refused.output) \(refused.errors)")
    #expect(refused.errors.contains("python"), "\(refused.errors)")
    #expect(try scene.parts(scene.store) == before)
    #expect(try scene.backupFiles().isEmpty)
    // It dies without checkpointing: the row is in the log alone.
    holder.kill()
    _ = try holder.finish()
    #expect(try scene.parts(scene.store) == before)
    let opened = try ChildProcess.run(ChildProcess.tool, Self.arguments(scene))
    #expect(opened.status == 0, "\(opened.errors)")
    try scene.expectMigrated(rows: 41, before)
  }

  /// A rollback journal that has to be undone: the change in it was never committed.
  @Test(arguments: [false, true])
  func aHotJournalIsUndoneInTheCopy(isThroughLink: Bool) throws {
    let scene = try MigratingScene(rows: 0, store: "Elsewhere/Hot.sqlite")
    let origin = scene.folder.appending("Elsewhere/Hot.sqlite")
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: origin.string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2;
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, 1, 1, '\(MigratingScene.secret)' || i FROM n;
          UPDATE Z_PRIMARYKEY SET Z_MAX = 3000; BEGIN IMMEDIATE;
          UPDATE ZCAR SET ZNAME = 'never committed' || ZNAME
          """)
      // Both files as a crash would leave them now.
      for suffix in ["", "-journal"] {
        let bytes = try scene.system.contents(of: origin.sibling(suffix: suffix), limit: 1 << 26)
        try scene.folder.write(bytes, to: "Stores/App.sqlite" + suffix)
      }
      try database.execute(sql: "ROLLBACK")
    }
    try queue.close()
    let before = try scene.parts(scene.store)
    #expect(before["journal"] != nil)
    var path = scene.store
    if isThroughLink {
      path = scene.folder.appending("link.sqlite")
      _ = try ChildProcess.run("ln", ["-s", "Stores/App.sqlite", path.string])
    }
    let opened = try ChildProcess.run(ChildProcess.tool, Self.arguments(scene, path))
    #expect(opened.status == 0, "\(opened.errors)")
    try scene.expectMigrated(rows: 3000, before)
    if isThroughLink { #expect(try scene.system.linkTarget(path) == "Stores/App.sqlite") }
  }

  /// Not root: root writes everywhere.
  @Test(.enabled(if: geteuid() != 0 || ChildProcess.exists("setpriv"), "root writes everywhere"))
  func aReadOnlyFolderLeavesEverythingAsItIs() throws {
    let scene = try MigratingScene(in: "/tmp")
    let before = try scene.parts(scene.store)
    // Everything can be read by others; only the home can be written.
    for folder in [scene.folder.path, scene.stores] { _ = try ChildProcess.run("chmod", ["755", folder.string]) }
    try scene.system.makeDirectory(scene.home)
    _ = try ChildProcess.run("chmod", ["777", scene.home.string])
    _ = try ChildProcess.run("chmod", ["-R", "a-w,a+rX", scene.stores.string])
    defer { _ = try? ChildProcess.run("chmod", ["-R", "u+w", scene.stores.string]) }
    let prefix = geteuid() == 0 ? ["setpriv", "--reuid=65534", "--clear-groups"] : ["env"]
    let result = try ChildProcess.run(
      prefix[0], Array(prefix.dropFirst()) + [ChildProcess.tool] + Self.arguments(scene))
    #expect(result.status == 3, "\(result.status) \(result.output) \(result.errors)")
    #expect(result.errors.contains("\"hint\""))
    #expect(try scene.parts(scene.store) == before)
  }
}
