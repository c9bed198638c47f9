import GRDB
import Platform
import SQLiteFormat
import Testing

@Suite("The database header, and what is no database")
struct HeaderTests {
  @Test("Every field is read from its place")
  func fields() throws {
    let fixture = try StoreFixture(
      "PRAGMA page_size = 1024", "PRAGMA auto_vacuum = 2", "PRAGMA encoding = 'UTF-16be'", "CREATE TABLE t(a)",
      "CREATE INDEX i ON t(a)", "PRAGMA user_version = -7", "PRAGMA application_id = 305419896",
      "PRAGMA default_cache_size = 0", "INSERT INTO t VALUES (zeroblob(20000))", "DELETE FROM t")
    var files = try fixture.files()
    let header = try #require(DatabaseHeader(files.main))
    #expect(header.findings.isEmpty)
    #expect(header.pageSize == 1024)
    #expect(header.usableSize == 1024)
    #expect(header.encoding == .utf16BigEndian)
    #expect(header.userVersion == -7)
    #expect(header.applicationID == 0x1234_5678)
    #expect(header.isAutoVacuum && header.incrementalVacuum == 1)
    #expect(header.isPageCountValid && Int(header.pageCount) == files.main.count / 1024)
    #expect(header.freelistCount > 10)
    #expect(header.schemaFormat == 4)
    #expect(!header.usesWriteAheadLog)
    let version = try fixture.queue.read { try String.fetchOne($0, sql: "SELECT sqlite_version()") }
    #expect(header.sqliteVersionName == version)
    try fixture.run("PRAGMA journal_mode = WAL")
    files = try fixture.files()
    #expect(DatabaseHeader(files.main)?.usesWriteAheadLog == true)
  }

  @Test("Each odd field has its finding")
  func findings() throws {
    let sound = try StoreFixture("CREATE TABLE t(a)").files().main
    let cases: [(Int, UInt8, Finding.Kind)] = [
      (0, 0, .magicMissing), (16, 0x11, .pageSizeInvalid), (18, 9, .writeVersionUnknown), (19, 9, .readVersionUnknown),
      (21, 63, .payloadFractionsWrong), (23, 0, .payloadFractionsWrong), (47, 5, .schemaFormatUnknown),
      (59, 4, .encodingUnknown), (67, 1, .vacuumFieldsContradict), (80, 1, .expansionNotZero),
    ]
    for (offset, byte, kind) in cases {
      var bytes = sound
      bytes[offset] = byte
      let header = try #require(DatabaseHeader(bytes))
      #expect(header.findings.contains(kind), "\(kind)")
      #expect(header.findings.total == 1, "\(kind)")
    }
    var bytes = sound
    bytes[16] = 2
    bytes[17] = 0
    bytes[20] = 100
    #expect(try #require(DatabaseHeader(bytes)).findings.contains(.reservedBytesInvalid))
    bytes[16] = 0
    bytes[17] = 1
    #expect(try #require(DatabaseHeader(bytes)).pageSize == 65536)
    #expect(DatabaseHeader(Array(sound.prefix(99))) == nil)
  }

  @Test("A file's length is compared with its page count")
  func lengths() throws {
    var files = try StoreFixture("CREATE TABLE t(a)").files()
    #expect(try files.open().findings.isEmpty)
    files.main += [1, 2, 3]
    #expect(try files.open().findings.contains(.partialPage))
    #expect(try files.open().findings.contains(.fileTooLong))
    files.main.removeLast(4)
    #expect(try files.open().findings.contains(.fileTooShort))
    #expect(try files.open().page(2)?.presentCount == 4095)
    files.main[92] ^= 1
    #expect(try files.open().findings.contains(.pageCountStale))
    #expect(try files.open().pageCount == 2)
  }

  @Test(
    "A file of another kind is called by its name",
    arguments: [
      ([], FileKind.empty), ([0, 0, 0, 0], .zeros), (Array("Hello, world\n".utf8), .text),
      (Array("  <!DOCTYPE html><html>".utf8), .markup), (Array("<?xml version=\"1.0\"?><plist/>".utf8), .propertyList),
      (Array("<?xml version=\"1.0\"?><svg/>".utf8), .markup),
      (Array("#!/bin/sh\nexit\n".utf8), .script), ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], .picture),
      ([0x7f, 0x45, 0x4c, 0x46, 2], .program), (Array("%PDF-1.4".utf8), .document),
      (Array("MZ is no program".utf8), .text),
      ([0, 0, 0, 0x18] + Array("ftypheic".utf8), .picture), ([0, 0, 0, 0x18] + Array("ftypisom".utf8), .media),
      ([UInt8](repeating: 0x61, count: 257) + Array("ustar".utf8) + [0], .archive),
      ([0xef, 0xbb, 0xbf] + Array("{\"a\": 1}".utf8), .json), (Array("[1, 2]".utf8), .json),
      ([0xff, 0xfe, 0x61, 0], .text), ([0x1f, 0x8b, 8, 0, 0], .gzip), (Array("PK\u{3}\u{4}".utf8), .zip),
      (Array("bplist00".utf8) + [0xd1], .binaryPropertyList), (DatabaseHeader.magic, .database),
      (Array("** This file contains an SQLite 2.1 database **".utf8) + [0], .databaseOfVersion2),
      ([0x37, 0x7f, 0x06, 0x83, 0, 0x2d], .writeAheadLog), (RollbackJournal.magic, .rollbackJournal),
      ([1, 2, 3, 4, 0, 0, 0, 255], .other),
    ] as [([UInt8], FileKind)])
  func kinds(bytes: [UInt8], kind: FileKind) throws {
    #expect(FileKind(firstBytes: bytes) == kind)
    if kind != .database {
      #expect(throws: FileError.self) { try StoreFixture.Files(main: bytes).open() }
    }
  }

  @Test("Random bytes look encrypted, and a database's pages do not")
  func entropy() throws {
    var generator = SystemRandomNumberGenerator()
    let random = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &generator) }
    #expect(FileKind(firstBytes: [0x80] + random) == .encrypted)
    let page = try StoreFixture("CREATE TABLE t(a, b, c, d)", StoreFixture.insert(200)).files().main
    #expect(FileKind(firstBytes: Array(page[4096..<8192])) == .other)
    #expect(FileKind(firstBytes: Array(repeating: UInt8(ascii: "e"), count: 9000)) == .text)
    #expect(FileKind(firstBytes: Array(String(repeating: "é𝄞", count: 2000).utf8)) == .text)
  }

  @Test("The error for a file that is no database says what it is")
  func errorWords() throws {
    do {
      _ = try StoreFixture.Files(main: Array("<html>".utf8)).open()
      Issue.record("it was opened")
    } catch let error as FileError {
      #expect(error.code == "not-a-database")
      #expect(error.detail == "it is an HTML or XML document")
      #expect(!error.isEnvironmental)
    }
  }
}
