import GRDB
import Platform
import SQLiteFormat
import TestSupport
import Testing

@Suite("The write-ahead log")
struct LogTests {
  /// A store whose log holds two commits, and then frames of a transaction that is not over.
  private func midTransaction() throws -> (files: StoreFixture.Files, before: [String: [[Value]]]) {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 1024", "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0",
      "CREATE TABLE t(a, b, c, d)",
      "PRAGMA wal_checkpoint(TRUNCATE)", StoreFixture.insert(100), "DELETE FROM t WHERE rowid = 50",
      "PRAGMA cache_size = 3")
    let before = try fixture.content()
    let files = try fixture.queue.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN")
      try db.execute(sql: "UPDATE t SET b = b || 'x', d = 9")
      try db.execute(sql: StoreFixture.insert(300))
      let files = try fixture.files()
      try db.execute(sql: "ROLLBACK")
      return files
    }
    return (files, before)
  }

  @Test("Only committed frames are seen")
  func uncommitted() throws {
    let (files, before) = try midTransaction()
    let database = try files.open()
    let log = try #require(database.writeAheadLog)
    #expect(log.header?.isChecksumRight == true)
    #expect(log.header?.pageSize == 1024)
    #expect(log.commitCount == 2)
    #expect(log.uncommittedFrameCount > 10)
    // Pages that the transaction wrote twice are overwritten in the log, without their checksums until the commit.
    #expect(log.validFrameCount + log.framesBehindBreak == log.frameCount)
    #expect(log.staleFrameCount == 0)
    #expect(database.findings.contains(.logUncommittedFrames))
    #expect(!database.findings.hasDamage)
    #expect(try database.content() == before)
    #expect(before["t"]?.count == 99)
    let report = try database.checkIntegrity()
    #expect(report.isSound)
    let page = try #require(try database.page(2))
    guard case .writeAheadLog(let frame, let offset) = page.origin else {
      Issue.record("page 2 is not from the log")
      return
    }
    #expect(log.frame(of: 2) == frame && log.pageOffset(ofFrame: frame) == offset)
  }

  @Test("Without the log the database is what it was at the last checkpoint")
  func withoutLog() throws {
    var (files, _) = try midTransaction()
    files.log = nil
    #expect(try files.open().content() == ["t": []])
  }

  @Test("Frames of an earlier round are stale")
  func stale() throws {
    let fixture = try StoreFixture(
      "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE t(a, b, c, d)",
      StoreFixture.insert(400), "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t(a) VALUES ('last')")
    let files = try fixture.files()
    let database = try files.open()
    let log = try #require(database.writeAheadLog)
    #expect(log.staleFrameCount > 5)
    #expect(log.validFrameCount >= 1 && log.validFrameCount < 5)
    #expect(log.validFrameCount + log.staleFrameCount == log.frameCount)
    #expect(log.header?.checkpointSequence == 1)
    #expect(try database.content() == fixture.content())
    #expect(!database.findings.hasDamage)
  }

  @Test("Both byte orders of the checksum are right")
  func byteOrders() throws {
    var (files, before) = try midTransaction()
    let log = try #require(files.log)
    // The same log as a machine of the other byte order would have written it.
    let other = LogRewriter.rewritten(log, bigEndian: log[3] & 1 == 0)
    #expect(other != log)
    files.log = other
    let database = try files.open()
    #expect(try database.content() == before)
    #expect(try database.writeAheadLog?.committedFrameCount == WriteAheadLog(MemoryBytes(log)).committedFrameCount)
  }

  @Test("A frame that is damaged ends the log")
  func damagedFrame() throws {
    var (files, _) = try midTransaction()
    let intact = try #require(try files.open().writeAheadLog)
    let offset = Int(try #require(intact.pageOffset(ofFrame: intact.committedFrameCount)))
    files.log?[offset + 500] ^= 1
    let log = try #require(try files.open().writeAheadLog)
    #expect(log.validFrameCount == intact.committedFrameCount - 1)
    #expect(log.commitCount == 1)
    #expect(log.findings.contains(.logFrameChecksumWrong))
    #expect(log.framesBehindBreak > 0)
    #expect(try files.open().content()["t"]?.count == 100)
  }

  @Test("A log with a damaged header is not read, and said to be damaged")
  func damagedHeader() throws {
    let (files, _) = try midTransaction()
    for (offset, kind) in [
      (3, Finding.Kind.logMagicWrong), (6, .logVersionUnknown), (9, .logPageSizeInvalid), (17, .logHeaderChecksumWrong),
    ] {
      var damaged = files
      damaged.log?[offset] ^= 0x41
      let database = try damaged.open()
      #expect(database.findings.contains(kind), "\(kind)")
      #expect(!database.isLogApplied)
      #expect(try database.content() == ["t": []])
    }
    var short = files
    short.log = Array(try #require(files.log).prefix(20))
    #expect(try short.open().findings.contains(.logHeaderTruncated))
    short.log = []
    #expect(try short.open().findings.isEmpty)
    short.log = try #require(files.log).dropLast(5)
    #expect(try short.open().findings.contains(.logPartialFrame))
  }

  @Test("A log is read to its end where all of it is committed or of an earlier round, and nowhere else")
  func readToItsEnd() throws {
    let fixture = try StoreFixture(
      "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE t(a, b, c, d)",
      StoreFixture.insert(400), "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t(a) VALUES ('last')",
      "INSERT INTO t(a) VALUES ('very last')")
    let bytes = try #require(try fixture.files().log)
    func log(_ change: (inout [UInt8]) -> Void) throws -> WriteAheadLog {
      var changed = bytes
      change(&changed)
      return try WriteAheadLog(MemoryBytes(changed))
    }
    let whole = try log { _ in }
    #expect(whole.isReadToItsEnd && whole.staleFrameCount > 0)
    // What is left of an earlier round may end anywhere, as a limit to the log's size leaves it.
    #expect(try log { $0.removeLast(700) }.isReadToItsEnd)
    let end = 32 + whole.committedFrameCount * 4120
    #expect(try log { $0.removeLast($0.count - end) }.isReadToItsEnd)
    #expect(try log { $0.removeLast($0.count - end + 700) }.findings.contains(.logPartialFrame))
    #expect(try !log { $0.removeLast($0.count - end + 700) }.isReadToItsEnd)
    #expect(try !log { $0 += [UInt8](repeating: 0, count: 4120) }.isReadToItsEnd)
    // The salts alone of the last commit are wrong: its checksum tells that it is one.
    let salts = try log { $0[end - 4120 + 9] ^= 0x55 }
    #expect(salts.findings.contains(.logFrameSaltsWrong) && salts.commitsBehindBreak == 1)
    #expect(salts.commitCount == whole.commitCount - 1)
    for shifted in [try log { $0.insert(7, at: 500) }, try log { $0.remove(at: 500) }] {
      #expect(shifted.findings.contains(.logUnknownBytes) && shifted.commitsBehindBreak > 0)
      #expect(shifted.findings.hasDamage && !shifted.isReadToItsEnd)
    }
  }

  @Test("The log's index tells a transaction that never ended from a log that was cut")
  func indexTells() throws {
    let (files, _) = try midTransaction()
    let log = try #require(try files.open().writeAheadLog)
    func index(_ frames: Int, salts: [UInt8]) throws -> WriteAheadLogIndex? {
      func word(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
      var head =
        word(3_007_000) + word(0) + word(0) + [1, 0, 0, 4] + word(frames) + word(9) + word(0) + word(0) + salts
      var sum = LogChecksum()
      sum.add(head.span.extracting(0..<40), bigEndian: false)
      head += word(Int(sum.first)) + word(Int(sum.second))
      return WriteAheadLogIndex(head + head + [UInt8](repeating: 0, count: 40))
    }
    let salts = try #require(log.header?.salts)
    #expect(!log.isReadToItsEnd && !log.endsWithUnfinishedTransaction(by: nil))
    let own = try #require(try index(log.committedFrameCount, salts: salts))
    #expect(log.endsWithUnfinishedTransaction(by: own) && own.missingFrames(of: log) == 0)
    #expect(own.missingFrames(of: nil) == log.committedFrameCount)
    let longer = try #require(try index(log.frameCount + 2, salts: salts))
    #expect(!log.endsWithUnfinishedTransaction(by: longer) && longer.missingFrames(of: log) == 2)
    let other = try #require(try index(log.committedFrameCount, salts: salts.reversed()))
    #expect(!log.endsWithUnfinishedTransaction(by: other) && other.missingFrames(of: log) == 0)
  }

  @Test("Another database's log is not laid over this one")
  func foreign() throws {
    var (files, _) = try midTransaction()
    let other = try StoreFixture("PRAGMA page_size = 4096", "CREATE TABLE other(a)").files()
    files.main = other.main
    let database = try files.open()
    #expect(database.findings.contains(.logPageSizeDiffers))
    #expect(try database.content() == ["other": []])
    // The same page size: the change counter of the database is ahead.
    let (same, _) = try midTransaction()
    let busy = try StoreFixture("PRAGMA page_size = 1024", "CREATE TABLE other(a)")
    for _ in 0..<20 { try busy.run("INSERT INTO other VALUES (1)") }
    files = same
    files.main = try busy.files().main
    #expect(try files.open().findings.contains(.logBehindDatabase))
  }

  @Test("A log whose database is cut off says which pages are missing")
  func missingPages() throws {
    let fixture = try StoreFixture(
      "PRAGMA journal_mode = WAL", "CREATE TABLE t(a, b, c, d)", StoreFixture.insert(400),
      "PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t(a) VALUES (1)")
    var files = try fixture.files()
    #expect(try files.open().findings.isEmpty)
    files.main.removeLast(files.main.count - 4096 * 3)
    #expect(try files.open().findings.contains(.logMissingPages))
  }

  @Test("A log beside an empty database is still read")
  func emptyDatabase() throws {
    let fixture = try StoreFixture(
      "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE t(a, b, c, d)",
      StoreFixture.insert(30))
    var files = try fixture.files()
    // Every page has been written since the log began.
    files.main = []
    let database = try files.open()
    #expect(database.findings.contains(.logBesideEmptyDatabase))
    #expect(try database.content()["t"]?.count == 30)
  }
}

/// Writes a log's checksums anew.
enum LogRewriter {
  static func rewritten(_ log: [UInt8], bigEndian: Bool) -> [UInt8] {
    var bytes = log
    bytes[3] = bigEndian ? 0x83 : 0x82
    let pageSize = Int(bytes.span.uint32(at: 8) ?? 0)
    var sum = LogChecksum()
    sum.add(bytes.span.extracting(0..<24), bigEndian: bigEndian)
    put(sum, into: &bytes, at: 24)
    var start = 32
    while start + 24 + pageSize <= bytes.count {
      sum.add(bytes.span.extracting(start..<(start + 8)), bigEndian: bigEndian)
      sum.add(bytes.span.extracting((start + 24)..<(start + 24 + pageSize)), bigEndian: bigEndian)
      put(sum, into: &bytes, at: start + 16)
      start += 24 + pageSize
    }
    return bytes
  }

  private static func put(_ sum: LogChecksum, into bytes: inout [UInt8], at offset: Int) {
    for (index, word) in [sum.first, sum.second].enumerated() {
      for byte in 0..<4 {
        bytes[offset + index * 4 + byte] = UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32(byte)))
      }
    }
  }
}
