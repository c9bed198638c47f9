import GRDB
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Verdicts: write-ahead logs and rollback journals")
struct LogVerdictTests {
  static let rows = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
    INSERT INTO t SELECT '\(Specimen.secret)-' || i || hex(zeroblob(50)) FROM n
    """

  /// A plain store that a transaction was changing when its process died.
  static func hot() throws -> Specimen {
    try .plain(
      "CREATE TABLE t(a)", rows, "PRAGMA cache_size = 2", "BEGIN", "UPDATE t SET a = 'changed-' || a",
      "DELETE FROM t WHERE rowid % 2")
  }

  /// A statement that adds rows of texts of a length.
  static func filling(rows: Int, length: Int, from first: Int = 1) -> String {
    """
    WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + rows - 1))
    INSERT INTO t SELECT i, substr('\(Specimen.secret)-' || i || hex(zeroblob(\(length))), 1, \(length)) FROM n
    """
  }

  /// A plain store with a log that changes a few rows of its table and leaves the others where they are.
  static func logged(rows: Int, length: Int) throws -> Specimen {
    try .plain(
      "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)",
      filling(rows: rows, length: length), "PRAGMA wal_checkpoint(TRUNCATE)",
      "UPDATE t SET a = substr('x' || a, 1, \(length)) WHERE id % 200 = 0")
  }

  /// A plain store after some transactions that change one row.
  static func settled(rows: Int, from first: Int, transactions: Int) throws -> Specimen {
    var specimen = try Specimen.plain(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)", filling(rows: rows, length: 60, from: first))
    for _ in 0..<transactions {
      specimen = try specimen.running("UPDATE t SET a = substr('x' || a, 1, 60) WHERE id = \(first)")
    }
    return specimen
  }

  static let cases: [VerdictCase] = [
    VerdictCase("all rows in the log", .compatible, "current-version") {
      try Specimen.sound(cars: 0).running(Specimen.insert(20))
    },
    VerdictCase("frames that were never committed", .compatible, "current-version", notes: ["wal-uncommitted-frames"]) {
      try Specimen.sound().running(
        "PRAGMA cache_size = 2", "PRAGMA wal_autocheckpoint = 0", Specimen.insert(3, from: 100), "BEGIN",
        Specimen.insert(600, from: 200))
    },
    VerdictCase("frames of an earlier round", .compatible, "current-version", notes: ["wal-stale-frames"]) {
      try Specimen.sound().running(
        "PRAGMA wal_autocheckpoint = 0", Specimen.insert(200, from: 100), "PRAGMA wal_checkpoint(RESTART)",
        "DELETE FROM ZCAR WHERE Z_PK = 5")
    },
    VerdictCase("a log of other pages", .damaged, "foreign-wal", coreData: 259, sqlite: 11, mentions: ["size"]) {
      var specimen = try Specimen.sound()
      specimen.log = try Specimen.plain("PRAGMA page_size = 1024", "PRAGMA journal_mode = WAL", "CREATE TABLE x(a)").log
      return specimen
    },
    VerdictCase("a log of another store", .damaged, "foreign-wal", coreData: 259, sqlite: 11) {
      var specimen = try Specimen.sound(cars: 300)
      specimen.log = try Specimen.plain(
        "PRAGMA journal_mode = WAL", "CREATE TABLE x(a)", "CREATE TABLE y(a)", "INSERT INTO x VALUES (1)"
      ).log
      return specimen
    },
    VerdictCase(
      "the log of another store of the same app", .damaged, "foreign-wal", coreData: 259, sqlite: 11,
      mentions: ["identifier"]
    ) {
      var specimen = try Specimen.sound(cars: 20)
      specimen.log = try Specimen.store(
        Models.third, cars: 20, cached: Models.third, uuid: "9C2E6F10-0000-4E2B-9E0A-6C1F1B0D8E77"
      )
      .running("UPDATE Z_METADATA SET Z_VERSION = 2", Specimen.insert(5, from: 50)).log
      return specimen
    },
    VerdictCase("the log of another plain store", .damaged, "foreign-wal", coreData: 259, sqlite: 11, model: nil) {
      var specimen = try Specimen.plain("CREATE TABLE a(x)", "CREATE TABLE b(x)")
      specimen.log = try Specimen.plain(
        "PRAGMA journal_mode = WAL", "CREATE TABLE x(a)", "CREATE TABLE y(a)", "CREATE TABLE z(a)"
      ).log
      return specimen
    },
    VerdictCase("a log that drops every table but one", .compatible, "no-model-given", model: nil) {
      try Specimen.plain(
        "PRAGMA journal_mode = WAL", "CREATE TABLE a(x)", "CREATE TABLE b(x)", "PRAGMA wal_checkpoint(TRUNCATE)"
      )
      .running("DROP TABLE a", "CREATE TABLE c(x)")
    },
    VerdictCase("a log from before", .damaged, "foreign-wal", coreData: 259, sqlite: 11, mentions: ["older"]) {
      let sound = try Specimen.sound()
      let early = try sound.running(Specimen.insert(5, from: 100), "CREATE TABLE early(a)")
      var late = sound
      for number in 0..<8 {
        late = try late.running("CREATE TABLE late\(number)(a)", "PRAGMA wal_checkpoint(TRUNCATE)")
      }
      late.log = early.log
      return late
    },
    VerdictCase(
      "the log of another store with the same tables", .damaged, "foreign-wal", coreData: 259, sqlite: 11,
      mentions: ["do not fit"], model: nil
    ) {
      var specimen = try logged(rows: 900, length: 60)
      specimen.log = try logged(rows: 1200, length: 90).log
      return specimen
    },
    VerdictCase("the store's own log of the same kind", .compatible, "no-model-given", model: nil) {
      try logged(rows: 900, length: 60)
    },
    VerdictCase(
      "a log from before that lacks the first page", .damaged, "foreign-wal", coreData: 259, sqlite: 11,
      mentions: ["older"], model: nil
    ) {
      let early = try logged(rows: 900, length: 60)
      var late = try early.running(
        "PRAGMA wal_checkpoint(TRUNCATE)", filling(rows: 600, length: 60, from: 901), "PRAGMA wal_checkpoint(TRUNCATE)")
      late.log = early.log
      return late
    },
    VerdictCase(
      "another store's hot journal, of another number of transactions", .damaged, "foreign-journal", coreData: 259,
      sqlite: 11, mentions: ["number of transactions"], notes: ["journal-hot"], model: nil
    ) {
      var specimen = try settled(rows: 900, from: 1001, transactions: 6)
      specimen.journal = try settled(rows: 900, from: 5001, transactions: 1)
        .running("PRAGMA cache_size = 2", "BEGIN", filling(rows: 900, length: 60, from: 9001)).journal
      return specimen
    },
    VerdictCase(
      "another store's hot journal, without the first page", .damaged, "foreign-journal", coreData: 259, sqlite: 11,
      mentions: ["do not fit"], notes: ["journal-hot"], model: nil
    ) {
      var specimen = try settled(rows: 900, from: 1001, transactions: 1)
      specimen.journal = try settled(rows: 900, from: 5001, transactions: 1)
        .running("PRAGMA cache_size = 2", "BEGIN", "UPDATE t SET a = substr('y' || a, 1, 60)").journal
      return specimen
    },
    VerdictCase("a damaged root beside the store's own log", .damaged, "roots-damaged", coreData: 259, sqlite: 11) {
      let specimen = try Specimen.sound(cars: 20).running("CREATE TABLE extra(a)")
      let page = Int(try specimen.root(of: "ZCAR"))
      return specimen.overwriting((page - 1) * 4096, with: [UInt8](repeating: 0, count: 4096))
    },
    VerdictCase("a log that was cut", .compatible, "current-version") {
      var specimen = try Specimen.sound().running(Specimen.insert(100, from: 100))
      specimen.log = specimen.log.map { Array($0.dropLast(1000)) }
      return specimen
    },
    VerdictCase("a log cut inside its header", .compatible, "current-version", notes: ["wal-header-truncated"]) {
      var specimen = try Specimen.sound()
      specimen.log = [0x37, 0x7f, 6, 0x82, 0]
      return specimen
    },
    VerdictCase(
      "a damaged frame with commits behind it", .damaged, "wal-frame-checksum-wrong", coreData: 259, sqlite: 11
    ) {
      var specimen = try Specimen.sound().running(
        Specimen.insert(3, from: 100), Specimen.insert(3, from: 110), Specimen.insert(3, from: 120))
      specimen.log?[32 + 24 + 2000] ^= 0xFF
      return specimen
    },
    VerdictCase(
      "a damaged first page, but a whole one in the log", .compatible, "current-version", notes: ["header-superseded"]
    ) {
      try Specimen.sound().running("CREATE TABLE extra(a)").overwriting(0, with: Specimen.noise(4096))
    },
    VerdictCase("a hot journal", .compatible, "no-model-given", notes: ["journal-hot"], model: nil) { try hot() },
    VerdictCase(
      "a hot journal without its count", .damaged, "journal-segment-header-lost", coreData: 259, sqlite: 11, model: nil
    ) {
      var specimen = try hot()
      specimen.journal?.replaceSubrange(8..<12, with: [0, 0, 0, 0])
      return specimen
    },
    VerdictCase(
      "a hot journal that no longer fits", .compatible, "no-model-given", notes: ["journal-header-invalid"], model: nil
    ) {
      var specimen = try Specimen.plain("CREATE TABLE t(a)", rows)
      specimen.journal = Specimen.noise(3000)
      return specimen
    },
    VerdictCase("a journal that is done with", .compatible, "no-model-given", notes: ["journal-finished"], model: nil) {
      try .plain("PRAGMA journal_mode = PERSIST", "CREATE TABLE t(a)", rows)
    },
    VerdictCase(
      "a hot journal and a damaged first page", .compatible, "no-model-given", notes: ["header-superseded"], model: nil
    ) {
      let specimen = try Specimen.plain(
        "CREATE TABLE t(a)", rows, "PRAGMA cache_size = 2", "BEGIN", "CREATE TABLE u(a)", "UPDATE t SET a = a || 'x'")
      return specimen.overwriting(0, with: Specimen.noise(4096))
    },
  ]

  @Test("Every state of log and journal", arguments: cases)
  func verdict(_ verdictCase: VerdictCase) throws { try verdictCase.check() }

  @Test("What is compatible in these states is what SQLite opens, with the same rows", arguments: cases)
  func opensInSQLite(_ verdictCase: VerdictCase) throws {
    guard verdictCase.verdict == .compatible else { return }
    let folder = try TemporaryFolder()
    let specimen = try verdictCase.make()
    let examination = try examiner().look(try specimen.place(in: folder), verdictCase.model)
    let copy = try TemporaryFolder()
    let queue = try DatabaseQueue(path: try specimen.place(in: copy).string)
    try queue.read { db throws in
      #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
      #expect(!examination.entities.isEmpty)
      for entity in examination.entities {
        #expect(try Int64.fetchOne(db, sql: "SELECT count(*) FROM \(entity.table)") == entity.rows, "\(entity.table)")
      }
    }
  }

  @Test("Nothing wrong is never said of a log that was not read to its end, and its words say so")
  func unreadLogs() throws {
    func look(_ specimen: Specimen) throws -> Examination {
      let folder = try TemporaryFolder()
      return try examiner().look(try specimen.place(in: folder), nil, .full)
    }
    let whole = try Self.logged(rows: 300, length: 60)
    #expect(try !look(whole).health.mayLackCommits)
    for (name, change) in [
      ("cut", { $0.removeLast(1000) }), ("salts", { $0[$0.count - 4120 + 9] ^= 1 }), ("header", { $0.removeFirst(32) }),
      ("shifted", { $0.insert(0, at: 700) }), ("zeros behind", { $0 += [UInt8](repeating: 0, count: 4120) }),
    ] as [(String, (inout [UInt8]) -> Void)] {
      var specimen = whole
      var log = specimen.log ?? []
      change(&log)
      specimen.log = log
      let examination = try look(specimen)
      #expect(examination.health.hasUnreadLog && examination.health.mayLackCommits, "\(name)")
      #expect(!examination.reason.words.contains("Nothing wrong"), "\(name)")
      #expect(examination.reason.words.contains("log"), "\(name): \(examination.reason.words)")
    }
    var journalled = try Self.hot()
    journalled.journal?.replaceSubrange(0..<28, with: [UInt8](repeating: 0, count: 28))
    #expect(try look(journalled).health.mayLackCommits)
    journalled.journal?.removeFirst(512)
    let beheaded = try look(journalled)
    #expect(beheaded.health.hasUnreadLog && beheaded.health.mayLackCommits)
    #expect(!beheaded.reason.words.contains("Nothing wrong"))
  }

  @Test("The log of a later state beside an earlier copy of the file is not the store's")
  func laterLog() throws {
    let early = try Specimen.plain(
      "PRAGMA journal_mode = WAL", "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)", "CREATE INDEX i ON t(a)",
      Self.filling(rows: 900, length: 60), "PRAGMA wal_checkpoint(TRUNCATE)")
    var specimen = try early.running(
      "PRAGMA wal_autocheckpoint = 0", "DELETE FROM t WHERE id % 3 = 0", "PRAGMA wal_checkpoint(TRUNCATE)",
      Self.filling(rows: 300, length: 60, from: 2001), Self.filling(rows: 300, length: 60, from: 3001))
    specimen.main = early.main
    let folder = try TemporaryFolder()
    let examination = try examiner().look(try specimen.place(in: folder), nil, .full)
    #expect(examination.verdict == .damaged && examination.reason.code == "foreign-wal")
    #expect(examination.reason.words.contains("another state"))
    #expect(examination.entities.first?.rows == 900)
  }

  #if os(Linux)
    @Test("A log that was deleted while a process has it open makes the store unavailable")
    func deletedLog() throws {
      let folder = try TemporaryFolder()
      let path = folder.appending("Store.sqlite")
      let queue = try DatabaseQueue(path: path.string)
      try queue.writeWithoutTransaction { db in
        try db.execute(
          sql: "PRAGMA journal_mode = WAL; CREATE TABLE t(a); PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (1)"
        )
      }
      #expect(try examiner().look(path).verdict == .compatible)
      try FileSystem().unlink(StoreFileSet(main: path).path(of: .wal))
      let examination = try examiner().look(path)
      #expect(examination.verdict == .unavailable)
      #expect(examination.reason.code == "log-deleted-in-use")
      try queue.close()
    }
  #endif

  @Test("A hot journal is undone: the rows are those of before")
  func hotJournal() throws {
    let folder = try TemporaryFolder()
    let specimen = try Self.hot()
    let examination = try examiner().look(try specimen.place(in: folder))
    #expect(examination.health.journal == .hot)
    #expect(examination.entities.first?.rows == 400)
  }

  @Test("Frames are counted")
  func frames() throws {
    let folder = try TemporaryFolder()
    let specimen = try Specimen.sound(cars: 0).running(Specimen.insert(20))
    let examination = try examiner().look(try specimen.place(in: folder), Models.bundle())
    let log = try #require(examination.health.log)
    #expect(log.frames > 0 && log.committedFrames == log.frames)
    #expect(Int64(specimen.log?.count ?? 0) == 32 + Int64(log.frames) * (4096 + 24))
    #expect(examination.entities.first?.rows == 20)
  }
}
