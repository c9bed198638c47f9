import Foundation
import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Databases that are no files")
struct VirtualFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A database with an index, made by a connection of GRDB's own.
  private func image(pageSize: Int = 4096, rows: Int = 3000) throws -> [UInt8] {
    let path = folder.appending("App-\(UUID().uuidString).sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA page_size = \(pageSize); VACUUM; CREATE TABLE t (k INTEGER PRIMARY KEY, a TEXT, b BLOB);
          CREATE INDEX i ON t (a);
          WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT \(rows))
            INSERT INTO t SELECT n, 'name ' || (n % 97), zeroblob(n % 300) FROM c
          """)
    }
    try queue.close()
    return try FileSystem().contents(of: path, limit: 1 << 30)
  }

  /// Attaches a file to a new database, and asks it something.
  private func ask<Value>(_ file: VirtualFile, _ body: (Database) throws -> Value) throws -> Value {
    let queue = try EvidenceConnection.open(
      new: folder.appending("New-\(UUID().uuidString).sqlite"), label: "test", attaching: file)
    return try queue.writeWithoutTransaction { database in
      try database.execute(sql: "ATTACH DATABASE ? AS other", arguments: [file.address])
      return try body(database)
    }
  }

  @Test("It holds what the file holds, and nothing can be written", arguments: [512, 4096, 65_536])
  func content(pageSize: Int) throws {
    let file = try VirtualFile(MemoryBytes(try image(pageSize: pageSize)))
    try ask(file) { database throws in
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM other.t") == 3000)
      #expect(
        try Int.fetchOne(database, sql: "SELECT sum(length(b)) FROM other.t")
          == (1...3000).map { $0 % 300 }.reduce(0, +))
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM other.t WHERE a = 'name 5'") == 31)
      #expect(try String.fetchAll(database, sql: "PRAGMA other.integrity_check") == ["ok"])
      let error = #expect(throws: DatabaseError.self) { try database.execute(sql: "DELETE FROM other.t") }
      #expect(error?.resultCode == .SQLITE_READONLY)
    }
    #expect(file.failure == nil)
  }

  /// Bytes that are read, of which it is noted where, and some of which cannot be.
  private final class WatchedBytes: ByteSource {
    let bytes: MemoryBytes
    let failsFrom: Int64
    let offsets = Mutex<Set<Int64>>([])
    var count: Int64 { bytes.count }

    init(_ bytes: [UInt8], failsFrom: Int64 = .max) {
      self.bytes = MemoryBytes(bytes)
      self.failsFrom = failsFrom
    }

    func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
      guard offset < failsFrom else { throw FileError(.inputOutput, operation: "read", detail: "the disk is gone") }
      offsets.withLock { _ = $0.insert(offset / 4096) }
      return try bytes.read(at: offset, length: length, into: &buffer)
    }
  }

  @Test("Only the pages are read that a statement needs")
  func pages() throws {
    let source = WatchedBytes(try image())
    let file = try VirtualFile(source)
    try ask(file) { database throws in
      #expect(try String.fetchOne(database, sql: "SELECT a FROM other.t WHERE k = 1700") == "name 51")
    }
    let read = source.offsets.withLock(\.count)
    #expect(read < 10 && source.count / 4096 > 100, "\(read) of \(source.count / 4096)")
  }

  @Test("What cannot be read is an error with its reason, never an empty page")
  func failure() throws {
    let source = WatchedBytes(try image(), failsFrom: 200_000)
    let file = try VirtualFile(source)
    let error = #expect(throws: DatabaseError.self) {
      try ask(file) { database throws in _ = try Int.fetchOne(database, sql: "SELECT sum(length(b)) FROM other.t") }
    }
    #expect(error?.resultCode == .SQLITE_IOERR)
    #expect(file.failure?.detail == "the disk is gone")
  }

  @Test("Several are open beside each other; one that is gone cannot be opened")
  func several() throws {
    let files = try (1...4).map { try VirtualFile(MemoryBytes(try image(pageSize: 1024, rows: 100 * $0))) }
    let counts = try files.map { file in try ask(file) { try Int.fetchOne($0, sql: "SELECT count(*) FROM other.t") } }
    #expect(counts == [100, 200, 300, 400])
    var file: VirtualFile? = try VirtualFile(MemoryBytes(try image()))
    let address = try #require(file?.address)
    file = nil
    let error = #expect(throws: DatabaseError.self) {
      let queue = try DatabaseQueue()
      try queue.writeWithoutTransaction {
        try $0.execute(sql: "ATTACH DATABASE ? AS other", arguments: [address])
      }
    }
    #expect(error?.resultCode == .SQLITE_CANTOPEN)
  }
}
