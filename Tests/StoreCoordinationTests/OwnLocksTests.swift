import Backup
import GRDB
import Lazaret
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// A process that has a store open through SQLite, and looks at it, or backs it up, through ours.
///
/// SQLite's locks belong to the process; a descriptor of the store that anything in the process closes would end them.
@Suite(.serialized) struct OwnLocksTests {
  private static func store(_ mode: String, _ folder: TemporaryFolder) throws -> FilePath {
    let store = folder.appending("App.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = \(mode)")
      try database.execute(
        sql: "CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO cars VALUES (1, 'a')")
    }
    try queue.close()
    return store
  }

  /// Whether another process can begin to write.
  private static func isWritableElsewhere(_ store: FilePath) throws -> Bool {
    let other = try ChildProcess.run("sqlite3", [store.string, "BEGIN IMMEDIATE; ROLLBACK"])
    return other.status == 0
  }

  private static let looks: [(String, @Sendable (FilePath, TemporaryFolder) throws -> Void)] = [
    ("examine", { store, _ in _ = try Examiner().examine(store, options: .init(depth: .full)) }),
    ("note a kit", { store, _ in _ = try RecoveryKit(of: store) }),
    ("note a kit of an open store", { store, _ in _ = try RecoveryKit(ofOpen: store) }),
    ("copy", { store, folder in _ = try FileSystem().copy(store, to: folder.appending("Copy.sqlite")) }),
    ("copy the set", { store, folder in _ = try PrivateCopy(of: StoreFileSet(main: store), in: folder.path) }),
    (
      "salvage",
      { store, folder in _ = try Salvager().salvageRaw(store, to: folder.appending("Raw.sqlite"), model: nil) }
    ),
    ("back up", { store, folder in _ = try Backups(home: folder.appending("Home")).create(store) }),
    (
      "back up as evidence",
      { store, folder in
        var request = BackupRequest()
        request.isEvidence = true
        _ = try Backups(home: folder.appending("Home")).create(store, request)
      }
    ),
  ]

  @Test(arguments: ["delete", "wal"], Self.looks.map(\.0))
  func noLookGivesUpTheLocksOfThisProcess(mode: String, look: String) throws {
    let folder = try TemporaryFolder()
    let store = try Self.store(mode, folder)
    let body = try #require(Self.looks.first { $0.0 == look }).1
    let queue = try DatabaseQueue(path: store.string)
    try queue.inDatabase { database in
      try database.execute(sql: "BEGIN IMMEDIATE; UPDATE cars SET name = 'b'")
      #expect(try !Self.isWritableElsewhere(store))
      // GRDB ends the process where a transaction is left open.
      #expect(throws: Never.self) { try body(store, folder) }
      #expect(try !Self.isWritableElsewhere(store), "\(look), \(mode): the lock is gone")
      try database.execute(sql: "COMMIT")
    }
    #expect(try Self.isWritableElsewhere(store))
    try queue.close()
  }

  #if os(Linux)
    @Test func aStoreThatNothingHasOpenIsNotKeptOpen() throws {
      let folder = try TemporaryFolder()
      let store = try Self.store("delete", folder)
      let queue = try DatabaseQueue(path: store.string)
      try queue.inDatabase { database in
        try database.execute(sql: "BEGIN IMMEDIATE")
        _ = try Examiner().examine(store)
        try database.execute(sql: "COMMIT")
      }
      try queue.close()
      // The next look finds that nothing needs what was kept.
      _ = try Examiner().examine(store)
      let open = try FileSystem().entries(of: "/proc/self/fd").filter { name in
        // One that was closed meanwhile, by another test, is none of these.
        (try? FileSystem().linkTarget(FilePath("/proc/self/fd").appending(name))) == store
      }
      #expect(open.isEmpty)
    }
  #endif
}
