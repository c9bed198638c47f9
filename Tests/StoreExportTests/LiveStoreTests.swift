import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Stores that are open, in this process and beside it.
struct LiveStoreTests {
  @Test(arguments: ["WAL", "DELETE"])
  func anOpenStoreIsExportedAsOfACommit(_ mode: String) throws {
    let scene = try ExportScene()
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = \(mode); PRAGMA wal_autocheckpoint = 0")
      try database.execute(sql: "CREATE TABLE pairs (a INTEGER, b INTEGER)")
      for number in 1...400 {
        try database.execute(sql: "INSERT INTO pairs VALUES (?, ?)", arguments: [number, -number])
      }
    }
    let before = try FolderContents(of: scene.stores)
    let (_, received) = try scene.export(.full)
    #expect(try FolderContents(of: scene.stores) == before)
    let copy = try DatabaseQueue(path: try #require(received.storePath).string)
    #expect(try copy.read { try Int.fetchOne($0, sql: "SELECT sum(a + b) + count(*) FROM pairs") } == 400)
    #expect(try copy.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    try copy.close()
    // The connection's own locks are as they were.
    try queue.write { try $0.execute(sql: "INSERT INTO pairs VALUES (1, 1)") }
    try queue.close()
  }

  @Test func aWriterThatHasTheStoreToItselfIsAnEnvironmentalError() throws {
    let scene = try ExportScene()
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: scene.store.string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE t (a); PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    }
    let error = #expect(throws: FileError.self) { try scene.export(.facts) }
    #expect(error?.isEnvironmental == true)
    try queue.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
    try queue.close()
    try scene.expectTidy()
  }
}
