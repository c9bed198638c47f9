import Backup
import GRDB
import SystemPackage
import TestSupport
import Testing

@Suite("Backups beside a writer that never pauses", .serialized)
struct LiveTests {
  /// Moves flags from one row to another, so that their sum is 0 at every commit, and text along with it;
  /// ends with the process that has started it.
  static let writer = """
    import sqlite3, sys, random, os
    parent = os.getppid()
    c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
    c.execute('PRAGMA synchronous=OFF')
    r = random.Random(5)
    n = c.execute('SELECT max(id) FROM cars').fetchone()[0]
    print('ready', flush=True)
    while os.getppid() == parent:
        try:
            c.execute('BEGIN IMMEDIATE')
            for _ in range(20):
                a, b = r.randint(1, n), r.randint(1, n)
                c.execute('UPDATE cars SET flags=flags+1, name=? WHERE id=?', (str(a) * r.randint(1, 900), a))
                c.execute('UPDATE cars SET flags=flags-1 WHERE id=?', (b,))
            c.execute('COMMIT')
        except sqlite3.OperationalError:
            try: c.execute('ROLLBACK')
            except sqlite3.Error: pass
    """

  @Test("Each backup is one commit of the store", arguments: ["wal", "delete", "truncate"])
  func live(mode: String) throws {
    let scene = try BackupScene(rows: 20_000, mode: mode == "truncate" ? "delete" : mode)
    if mode == "truncate" { try scene.run("PRAGMA journal_mode = truncate") }
    let writer = try ChildProcess("python3", ["-c", Self.writer, scene.store.string])
    defer { writer.kill() }
    #expect(try writer.waits(for: "ready"))
    for round in 0..<6 {
      let backup = try scene.back(up: round) { $0.level = 1 }
      #expect(backup.isProvenGood)
      let result = try scene.extract(backup.id, to: "Restored\(round).sqlite")
      #expect(result.isWhole)
      let summary = try BackupScene.summary(of: scene.folder.appending("Restored\(round).sqlite"))
      #expect(summary.hasPrefix("ok 20000 0 "), "\(mode), round \(round): \(summary)")
    }
  }
}
