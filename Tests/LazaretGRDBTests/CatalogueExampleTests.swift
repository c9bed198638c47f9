import Foundation
import GRDB
import Lazaret
import LazaretGRDB
import SystemPackage
import TestSupport
import Testing

/// The code of the catalogue's tutorial about GRDB does what the tutorial says.
struct CatalogueExampleTests {
  private let folder: TemporaryFolder
  private let store: RecoverableStore

  init() throws {
    folder = try TemporaryFolder()
    let article = RealMaterial.projectRoot.appending("Sources/Lazaret/Lazaret.docc/GRDB.md")
    let text = try String(contentsOfFile: article.string, encoding: .utf8)
    // The schema that the tutorial shows.
    let schema = try #require(
      text.components(separatedBy: "```sql\n").dropFirst().first?.components(separatedBy: "```").first)
    try folder.write(schema, to: "Notes.sql")
    store = try notesStore(
      in: URL(fileURLWithPath: folder.path.string), schema: URL(fileURLWithPath: folder.appending("Notes.sql").string))
  }

  /// The database, with so many notes.
  private func filled(_ count: Int) async throws -> DatabasePool {
    let (pool, notice) = try await openNotes(store)
    #expect(notice == nil)
    try migrateNotes(pool)
    try await pool.write { database in
      for id in 1...count { try database.execute(sql: "INSERT INTO note VALUES (?, 'Note', 0)", arguments: [id]) }
    }
    return pool
  }

  @Test func theDatabaseOpensMigratesAndIsBackedUp() async throws {
    let pool = try await filled(3)
    #expect(try await backUpNotes(store))
    #expect(try await !backUpNotes(store))
    try pool.close()
    let path = try await pathOfNotes(store)
    #expect(path == folder.appending("Notes.sqlite").string)
    #expect(try await DatabaseQueue(path: path).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") } == 3)
  }

  @Test func damageThatAQueryMeetsIsSalvaged() async throws {
    try await filled(5000).close()
    let file = URL(fileURLWithPath: folder.appending("Notes.sqlite").string)
    let queue = try DatabaseQueue(path: file.path)
    let pages = try #require(try await queue.read { try Int.fetchOne($0, sql: "PRAGMA page_count") })
    try queue.close()
    let handle = try FileHandle(forUpdating: file)
    // Every fourth page of the table is no page any more; the first two hold the schema and the table's root.
    for page in stride(from: 4, to: pages, by: 4) {
      try handle.seek(toOffset: UInt64(page) * 4096)
      try handle.write(contentsOf: Data(repeating: 0xAA, count: 4096))
    }
    try handle.close()
    var pool = try DatabasePool(path: file.path)
    let ids = try await readNotes(&pool, of: store) { try Int.fetchAll($0, sql: "SELECT id FROM note ORDER BY id") }
    #expect(ids.count > 1000 && ids.count < 5000)
    #expect(Set(ids).isSubset(of: Set(1...5000)))
    #expect(try await pool.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    try pool.close()
  }
}
