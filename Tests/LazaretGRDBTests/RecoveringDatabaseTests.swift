import Foundation
import GRDB
import Lazaret
import LazaretGRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// A plain database that GRDB opens through the library.
struct RecoveringDatabaseTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try folder.write("CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT NOT NULL);", to: "Cars.sql")
  }

  private func store() throws -> RecoverableStore {
    RecoverableStore(
      at: folder.appending("Cars.sqlite"), model: try StoreModel(contentsOf: folder.appending("Cars.sql")))
  }

  private func fill(_ writer: some DatabaseWriter) throws {
    try writer.write { database in
      for id in 1...2000 { try database.execute(sql: "INSERT INTO cars VALUES (?, ?)", arguments: [id, "Car \(id)"]) }
    }
  }

  @Test func aMissingDatabaseIsCreatedAndOpened() async throws {
    let queue = try await DatabaseQueue(recovering: try store())
    try fill(queue)
    try queue.close()
    let pool = try await DatabasePool(recovering: try store()) { opening in
      #expect(opening.events.isEmpty)
    }
    #expect(try await pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM cars") } == 2000)
    // A pool works with a log, which the library leaves to GRDB.
    #expect(try await pool.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") } == "wal")
    try pool.close()
  }

  @Test func aDamagedDatabaseIsSalvagedAndOpened() async throws {
    let queue = try await DatabaseQueue(recovering: try store())
    try fill(queue)
    try queue.close()
    let url = URL(fileURLWithPath: folder.appending("Cars.sqlite").string)
    let handle = try FileHandle(forUpdating: url)
    // Header and first page gone: SQLite itself opens nothing of it.
    try handle.write(contentsOf: Data(repeating: 0xAA, count: 4096))
    try handle.close()
    let told = Mutex<RecoverableStore.Opening?>(nil)
    let pool = try await DatabasePool(recovering: try store()) { opening in told.withLock { $0 = opening } }
    let opening = try #require(told.withLock { $0 })
    #expect(opening.condition.verdict == .damaged)
    #expect(opening.notice != nil)
    let salvage = try #require(opening.salvage)
    let names = try await pool.read { try String.fetchAll($0, sql: "SELECT name FROM cars") }
    #expect(Set(names).isSubset(of: Set((1...2000).map { "Car \($0)" })))
    #expect(Int64(names.count) == salvage.recovered)
    #expect(names.count > 1000)
    try pool.close()
  }

  @Test func whatThePolicyRefusesIsThrownAndNothingIsOpened() async throws {
    try folder.write("\u{1}\u{2}" + String(repeating: "nothing like a database\n", count: 300), to: "Cars.sqlite")
    var store = try store()
    store.policy = .refusing
    let before = try FolderContents(of: folder.path)
    await #expect(throws: StoreError.self) { _ = try await DatabasePool(recovering: store) }
    #expect(try FolderContents(of: folder.path) == before)
  }
}
