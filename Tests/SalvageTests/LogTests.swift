import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Rows out of logs and journals")
struct LogTests {
  static let changes = [
    "BEGIN", "UPDATE ZBOOK SET ZTITLE = 'new ' || Z_PK WHERE Z_PK % 7 = 0", "COMMIT",
    "BEGIN", "UPDATE ZBOOK SET ZTITLE = 'newer ' || Z_PK WHERE Z_PK % 14 = 0", "COMMIT",
    "BEGIN", "INSERT INTO ZREADER SELECT 200 + Z_PK, 2, 1, 'late' FROM ZREADER", "COMMIT",
  ]

  private func scene() throws -> SalvageScene { try SalvageScene(seed: 3, finish: Self.changes, keepsLog: true) }

  @Test("Committed frames are laid over the file")
  func committed() throws {
    let scene = try scene()
    #expect(scene.log != nil)
    let result = try scene.salvage()
    #expect(result.rows == scene.truth)
    #expect(result.report.isComplete)
  }

  @Test("Frames behind a bad one are used, and marked")
  func badFrame() throws {
    let scene = try scene()
    let frames = ((scene.log?.count ?? 0) - 32) / 4120
    let place = 32 + frames / 2 * 4120 + 24 + 3000
    let damaged = scene.changing { $0.log?[place] ^= 0x40 }
    let result = try damaged.salvage()
    #expect(scene.missingRows(result) <= 1)
    #expect(scene.falseRows(result) <= 1)
    #expect(result.report.doubtful > 0)
    #expect(!result.report.isComplete)
  }

  @Test("A log without its header is read by what its frames say")
  func noHeader() throws {
    let scene = try scene()
    let damaged = scene.changing { for index in 0..<32 { $0.log?[index] = UInt8(index) &* 37 } }
    let result = try damaged.salvage()
    #expect(result.rows == scene.truth)
    #expect(result.report.doubtful > 0)
  }

  /// What can be wrong with a log, and whether all of it can be read all the same.
  static let damages: [(name: String, isReadable: Bool, change: @Sendable (inout [UInt8]) -> Void)] = [
    ("header gone", true, { $0.removeFirst(32) }),
    ("bytes before it", true, { $0 = [UInt8](repeating: 0x6a, count: 100) + $0 }),
    ("a byte more in a frame that is written again", true, { $0.insert(0, at: 500) }),
    ("a byte less", true, { $0.remove(at: 500) }),
    ("bytes between frames", true, { $0.insert(contentsOf: [UInt8](repeating: 9, count: 77), at: 32 + 4120) }),
    ("salts of the last frame", true, { $0[$0.count - 4120 + 10] ^= 0x3c }),
    ("zeros", false, { $0 = [UInt8](repeating: 0, count: $0.count) }),
    (
      "no commit", false,
      { log in
        for frame in stride(from: 32, to: log.count, by: 4120) { for place in 4..<8 { log[frame + place] = 0 } }
      }
    ),
    ("the database", false, { $0 = Array("SQLite format 3".utf8) + [UInt8](repeating: 0, count: 9000) }),
    ("cut within a frame", false, { $0.removeLast(3000) }),
    ("cut to its half", false, { $0.removeLast($0.count / 2) }),
  ]

  @Test("A log of which anything is not read to a commit is never complete", arguments: damages.indices)
  func damagedLog(index: Int) throws {
    let (name, isReadable, change) = Self.damages[index]
    var scene = try PlainScene(schema: "CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT)") { db in
      for number in 1...900 { try db.execute(sql: "INSERT INTO a VALUES (?, 'old')", arguments: [number]) }
    }
    let path = try scene.folder.write(scene.main, to: "Logged.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    let truth = try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
      for round in 1...4 {
        try db.execute(sql: "UPDATE a SET b = 'new ' || ? || id WHERE id % 40 = 7", arguments: [round])
      }
      return try PlainScene.tables(db)
    }
    scene.main = try FileSystem().contents(of: path, limit: 1 << 26)
    scene.log = try FileSystem().contents(of: StoreFileSet(main: path).path(of: .wal), limit: 1 << 26)
    try queue.close()
    let whole = try scene.salvage()
    #expect(whole.report.isComplete && whole.rows["a"] == truth["a"])
    let result = try scene.changing { damaged in
      var log = damaged.log ?? []
      change(&log)
      damaged.log = log
    }.salvage()
    #expect(!result.report.isComplete, "\(name)")
    #expect(result.report.remarks.contains { $0.contains("log") }, "\(name)")
    if isReadable { #expect(result.rows["a"] == truth["a"], "\(name)") }
  }

  @Test("A transaction that never ended is not live")
  func uncommitted() throws {
    let scene = try SalvageScene(seed: 4, finish: Self.changes, keepsLog: true)
    // Without the last frame the last transaction has no commit.
    let damaged = scene.changing { $0.log?.removeLast(4120) }
    let result = try damaged.salvage()
    #expect(result.rows["ZREADER"]?.count == 200)
    #expect(result.rows["ZBOOK"] == scene.truth["ZBOOK"])
  }

  @Test("Uncommitted frames are kept apart where deleted rows are asked for, and a cut-off log is told of")
  func uncommittedApart() throws {
    let scene = try SalvageScene(seed: 4, finish: Self.changes, keepsLog: true)
    let damaged = scene.changing { $0.log?.removeLast(4120 - 1000) }
    let result = try damaged.salvage(deleted: true)
    #expect(result.rows["ZREADER"]?.count == 200)
    #expect(result.report.remarks.contains { $0.contains("cut off in the middle of a frame") })
    #expect(!result.report.isComplete)
    #expect(result.apart["lazaret_other_ZREADER"] ?? 0 > 0)
  }

  @Test("A store of Core Data's in log mode without any log may have been copied without it, and that is said")
  func noLogAtAll() throws {
    let scene = try SalvageScene(seed: 4)
    let words = "there is no write-ahead log"
    let result = try scene.salvage()
    #expect(result.report.remarks.contains { $0.contains(words) })
    #expect(result.report.isComplete)
    let journalled = try scene.changing { store in
      store.main[18] = 1
      store.main[19] = 1
    }.salvage()
    #expect(!journalled.report.remarks.contains { $0.contains(words) })
  }

  @Test("An index that knows of more frames than the log has gives a missing log away")
  func index() throws {
    var scene = try PlainScene(schema: "CREATE TABLE a (b)") { db in try db.execute(sql: "INSERT INTO a VALUES (1)") }
    let path = try scene.folder.write(scene.main, to: "Logged.sqlite")
    let files = StoreFileSet(main: path)
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
      for number in 2...9 { try db.execute(sql: "INSERT INTO a VALUES (?)", arguments: [number]) }
    }
    scene.main = try FileSystem().contents(of: path, limit: 1 << 26)
    scene.log = try FileSystem().contents(of: files.path(of: .wal), limit: 1 << 26)
    scene.logIndex = try FileSystem().contents(of: files.path(of: .sharedMemory), limit: 1 << 26)
    try queue.close()
    let whole = try scene.salvage()
    #expect(whole.report.isComplete)
    #expect(whole.rows["a"]?.count == 9)
    let gone = try scene.changing { $0.log = nil }.salvage()
    #expect(gone.report.remarks.contains { $0.contains("the write-ahead log is gone") })
    #expect(!gone.report.isComplete)
    let cut = try scene.changing { $0.log?.removeLast(2 * 4120) }.salvage()
    #expect(cut.report.remarks.contains { $0.contains("the write-ahead log is cut off: 2 of its frames are gone") })
    #expect(!cut.report.isComplete)
  }

  @Test("Without its log, the store is what the file has")
  func missing() throws {
    let scene = try scene()
    let result = try scene.changing { $0.log = nil }.salvage()
    #expect(result.rows["ZREADER"]?.count == 200)
    #expect(result.rows["ZBOOK"]?.count == 1500)
  }
}
