import GRDB
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Real stores and damaged files", .enabled(if: RealMaterial.isAvailable, Comment(rawValue: RealMaterial.skipped)))
struct RealFileTests {
  static func files(of path: FilePath) throws -> StoreFixture.Files {
    func bytes(_ ending: String) throws -> [UInt8]? {
      let path = FilePath(path.string + ending)
      guard try FileSystem().status(of: path)?.kind == .regular else { return nil }
      return try FileSystem().contents(of: path, limit: 1 << 30)
    }
    return StoreFixture.Files(main: try bytes("") ?? [], log: try bytes("-wal"), journal: try bytes("-journal"))
  }

  @Test("Every real store gives the rows that SQLite gives", arguments: RealMaterial.stores)
  func stores(path: FilePath) throws {
    let files = try Self.files(of: path)
    let database = try files.open()
    #expect(!database.findings.hasDamage, "\(database.findings.items.map(\.description))")
    let expected = try SQLiteOpening.content(of: files)
    let found = try database.content()
    for (table, rows) in expected {
      #expect(found[table] == rows, "\(table)")
      let root = try #require(database.schema().table(named: table)?.rootPage)
      #expect(try database.countRows(root: root).count == rows.count, "\(table)")
    }
    #expect(expected.count >= 3)
    let report = try database.checkIntegrity()
    #expect(report.isSound, "\(report.findings.items.map(\.description))")
  }

  static let damaged = RealMaterial.files(below: "damaged").filter { path in
    [".db", ".sqlite", "-wal", "-journal", "-shm"].contains { path.string.hasSuffix($0) }
  }

  @Test("Every damaged file is read to its end in a moment", arguments: damaged)
  func damagedFiles(path: FilePath) throws {
    let files = try Self.files(of: path)
    let time = try processorTime { try Exercise.everything(files) }
    #expect(time < .seconds(1), "\(path): \(time)")
    try Exercise.everything(files, pageSize: 1024)
  }

  @Test(
    "The forensic corpus is sound, and its live rows are SQLite's",
    arguments: damaged.filter { $0.string.hasSuffix(".db") })
  func forensicCorpus(path: FilePath) throws {
    guard path.string.contains("forensic-corpus") else { return }
    let files = try Self.files(of: path)
    let found = try files.open().content()
    guard let expected = try? SQLiteOpening.content(of: files) else { return }
    for (table, rows) in expected { #expect(found[table] == rows, "\(table)") }
  }
}
