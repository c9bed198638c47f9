import GRDB
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("The rollback journal")
struct JournalTests {
  /// A store as it lies on the disk in the middle of a transaction that has written to it.
  private func midTransaction(_ pragmas: String...) throws -> (files: StoreFixture.Files, before: [String: [[Value]]]) {
    let fixture = try StoreFixture("PRAGMA page_size = 1024", "CREATE TABLE t(a, b, c, d)", StoreFixture.insert(300))
    for pragma in pragmas { try fixture.run(pragma) }
    try fixture.run("PRAGMA cache_size = 3")
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

  @Test("A hot journal is rolled back in what is read", arguments: ["FULL", "NORMAL", "OFF"])
  func hot(synchronous: String) throws {
    var (files, before) = try midTransaction("PRAGMA synchronous = \(synchronous)")
    let database = try files.open()
    let journal = try #require(database.rollbackJournal)
    #expect(journal.state == .hot)
    #expect(database.isJournalApplied)
    #expect(database.findings.contains(.journalHot))
    #expect(!database.findings.hasDamage)
    if synchronous == "FULL" { #expect(journal.segmentCount > 1) }
    if synchronous == "OFF" { #expect(journal.header?.storedRecordCount == .max) }
    #expect(journal.recordCount == journal.pages.count)
    #expect(database.pageCount == journal.header?.originalPageCount)
    #expect(try database.content() == before)
    #expect(try database.checkIntegrity().isSound)
    let expected = try SQLiteOpening.content(of: files)
    #expect(expected == before)
    files.journal = nil
    // Without its journal the file is a mixture of before and after.
    #expect(try files.open().content() != before)
  }

  @Test("A journal that is over changes nothing", arguments: ["PERSIST", "TRUNCATE"])
  func finished(mode: String) throws {
    let fixture = try StoreFixture(
      "CREATE TABLE t(a, b, c, d)", "PRAGMA journal_mode = \(mode)", StoreFixture.insert(100), "UPDATE t SET d = 1")
    let files = try fixture.files()
    let database = try files.open()
    let journal = try #require(database.rollbackJournal)
    #expect(journal.state == (mode == "PERSIST" ? .finished : .empty))
    #expect(!database.isJournalApplied)
    #expect(!database.findings.hasDamage)
    #expect(try database.content() == fixture.content())
  }

  @Test("A record that is damaged ends the rollback where SQLite ends it")
  func damagedRecord() throws {
    var (files, _) = try midTransaction()
    let whole = try #require(try files.open().rollbackJournal)
    // The checksum looks at every 200th byte from the page's end.
    let third = whole.pages[2]
    let offset = Int(try #require(whole.pageOffset(of: third))) + 1024 - 200
    files.journal?[offset] ^= 0x40
    let journal = try #require(try files.open().rollbackJournal)
    #expect(journal.findings.contains(.journalRecordChecksumWrong))
    #expect(journal.recordCount < whole.recordCount)
  }

  @Test("Whole records with right checksums are rolled back, whatever the count says and wherever the journal ends")
  func asFarAsItGoes() throws {
    let (files, before) = try midTransaction("PRAGMA synchronous = FULL")
    let journal = try #require(files.journal)
    let whole = try #require(try files.open().rollbackJournal)
    #expect(whole.segmentCount > 2 && !whole.isCutShort)
    for count in [[0, 0, 0, 0], [0, 0, 0, 1], [255, 255, 255, 255]] as [[UInt8]] {
      var wiped = files
      wiped.journal?.replaceSubrange(8..<12, with: count)
      let database = try wiped.open()
      #expect(database.rollbackJournal?.pages == whole.pages, "\(count)")
      #expect(try database.content() == before, "\(count)")
      // SQLite undoes less and deletes the journal.
      let theirs = try? SQLiteOpening.content(of: wiped)
      #expect(database.findings.hasDamage == (theirs != before), "\(count)")
      #expect(count[3] == 1 || theirs != before, "\(count)")
    }
    var magic = files
    magic.journal?.replaceSubrange(8..<12, with: [0, 0, 9, 9])
    #expect(try magic.open().rollbackJournal?.isCutShort == true)
    for part in 1...7 {
      var cut = files
      cut.journal = Array(journal.prefix(journal.count * part / 8))
      let found = try #require(try cut.open().rollbackJournal)
      for page in found.pages { #expect(found.pageOffset(of: page) == whole.pageOffset(of: page)) }
      let there = whole.pages.filter { (whole.pageOffset(of: $0) ?? 0) + 1028 <= Int64(journal.count * part / 8) }
      #expect(found.pages == there)
    }
  }

  @Test("A journal without its header may be of a transaction that did not end, as long as the file has other pages")
  func withoutHeader() throws {
    let (files, before) = try midTransaction()
    var zeroed = try #require(files.journal)
    for place in 0..<28 { zeroed[place] = 0 }
    let remains = try #require(try HeaderlessJournal(MemoryBytes(zeroed), pageSize: 1024))
    let header = DatabaseHeader(files.main)
    #expect(try remains.mayBeUnfinished(MemoryBytes(files.main), header: header))
    // Without the header's sector the same records begin at byte 0.
    let cut = MemoryBytes(Array(zeroed.dropFirst(512)))
    #expect(try HeaderlessJournal(cut, pageSize: 1024)?.pageOffsets == remains.pageOffsets.mapValues { $0 - 512 })
    #expect(try RollbackJournal(cut).state == .invalid)
    var undone = files.main
    for (page, offset) in remains.pageOffsets where Int(page) * 1024 <= undone.count {
      undone.replaceSubrange(Int(page - 1) * 1024..<Int(page) * 1024, with: zeroed[Int(offset)..<Int(offset) + 1024])
    }
    #expect(try !remains.mayBeUnfinished(MemoryBytes(undone), header: header))
    var rest = files
    rest.main = undone
    rest.journal = nil
    #expect(try rest.open().content() == before)
  }

  @Test("A cut journal, and one without its magic, are told of")
  func cut() throws {
    let (files, _) = try midTransaction("PRAGMA synchronous = FULL")
    let journal = try #require(files.journal)
    var cut = files
    cut.journal = Array(journal.prefix(512 + 500))
    #expect(try cut.open().findings.contains(.journalTruncated))
    cut.journal = Array(journal.prefix(20))
    #expect(try cut.open().rollbackJournal?.state == .invalid)
    cut.journal = [UInt8](repeating: 0, count: 28) + journal.dropFirst(28)
    #expect(try cut.open().rollbackJournal?.state == .finished)
    cut.journal = journal
    cut.journal?[2] = 0
    #expect(try cut.open().findings.contains(.journalHeaderInvalid))
    cut.journal = journal
    cut.journal?[26] = 8
    #expect(try cut.open().rollbackJournal?.pageSize == 2048)
  }

  @Test("A journal that ends between two segments is cut short, and one without a later header is undone all the same")
  func segments() throws {
    let (files, before) = try midTransaction("PRAGMA synchronous = FULL")
    let journal = try #require(files.journal)
    let headers = stride(from: 0, to: journal.count - 28, by: 512).filter {
      journal[$0..<($0 + 8)].elementsEqual(RollbackJournal.magic)
    }
    try #require(headers.count > 3)
    var other = files
    for start in headers.dropFirst() {
      other.journal = Array(journal[..<start])
      let cut = try other.open()
      #expect(cut.findings.contains(.journalTruncated) && cut.rollbackJournal?.isCutShort == true, "\(start)")
      other.journal = journal
      for place in start..<(start + 28) { other.journal?[place] = 0 }
      let wiped = try other.open()
      // A segment of a single record proves no nonce.
      guard wiped.findings.contains(.journalSegmentHeaderLost) else {
        #expect(wiped.findings.contains(.journalTruncated), "\(start)")
        continue
      }
      #expect(try wiped.content() == before, "\(start)")
      #expect(wiped.findings.hasDamage && wiped.rollbackJournal?.isCutShort == false)
      // SQLite undoes what is before it alone.
      let theirs = try? SQLiteOpening.content(of: other)
      #expect(theirs != before)
    }
    other.journal = journal
    #expect(try other.open().rollbackJournal?.isReadToItsEnd == true)
    other.journal = journal + Array("bytes that are no part of it".utf8)
    let junk = try other.open()
    #expect(try junk.rollbackJournal?.isReadToItsEnd == false && junk.content() == before)
  }

  @Test("A segment that was not on the disk for certain is left out, as SQLite leaves it out")
  func unsynced() throws {
    let (files, _) = try midTransaction("PRAGMA synchronous = FULL")
    let journal = try #require(files.journal)
    let headers = stride(from: 0, to: journal.count - 28, by: 512).filter {
      journal[$0..<($0 + 8)].elementsEqual(RollbackJournal.magic)
    }
    func word(_ place: Int) -> UInt32 { journal[place..<(place + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
    /// The pages in the segments before an offset.
    func pages(before end: Int) -> Set<UInt32> {
      Set(
        headers.filter { $0 < end }.flatMap { header in
          (0..<Int(word(header + 8))).map { word(header + 512 + $0 * 1032) }
        })
    }
    try #require(headers.count > 3)
    for start in headers.dropFirst() {
      var changed = journal
      // Magic bytes and count are written when the segment is on the disk.
      for place in start..<(start + 12) { changed[place] = 0 }
      #expect(try Set(RollbackJournal(MemoryBytes(changed)).pages) == pages(before: start), "\(start)")
      let all = try RollbackJournal(MemoryBytes(changed), takesUnsynced: true)
      #expect(try Set(all.pages).isSuperset(of: pages(before: .max)) && all.isReadToItsEnd, "\(start)")
    }
  }

  @Test("The super-journal's name is read from the end, and decides")
  func superJournal() throws {
    var (files, before) = try midTransaction()
    let name = Array("/tmp/Store.sqlite-mj0123".utf8)
    let sum = name.reduce(UInt32(0)) { $0 &+ UInt32($1) }
    func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) } }
    files.journal? += word(1_048_577) + name + word(UInt32(name.count)) + word(sum) + RollbackJournal.magic
    let database = try files.open()
    #expect(database.rollbackJournal?.superJournal == name)
    #expect(database.findings.contains(.superJournalNamed))
    #expect(try database.content() == before)
    let gone = try SQLiteFormat.Database(
      main: MemoryBytes(files.main), rollbackJournal: files.journal.map { MemoryBytes($0) },
      superJournalExists: { $0 != name })
    #expect(gone.findings.contains(.superJournalGone))
    #expect(!gone.isJournalApplied)
  }
}

/// What SQLite makes of a set of files.
enum SQLiteOpening {
  static func content(of files: StoreFixture.Files) throws -> [String: [[Value]]] {
    let folder = try TemporaryFolder()
    let path = try folder.write(files.main, to: "Copy.sqlite")
    if let log = files.log { try folder.write(log, to: "Copy.sqlite-wal") }
    if let journal = files.journal { try folder.write(journal, to: "Copy.sqlite-journal") }
    return try DatabaseQueue(path: path.string).read { try SQLiteContent.of($0) }
  }
}
