import Backup
import GRDB
import Platform
import SystemPackage
import TestSupport

/// A plain store in a folder of its own, and a place for its backups.
struct BackupScene {
  let folder: TemporaryFolder
  let store: FilePath

  /// - Parameters:
  ///   - rows: each has about 200 bytes.
  ///   - settings: pragmas for a new database.
  init(rows: Int = 4000, pageSize: Int = 4096, mode: String = "wal", settings: String = "") throws {
    folder = try TemporaryFolder()
    try FileSystem().makeDirectory(folder.appending("Stores"))
    store = folder.appending("Stores/App.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA page_size = \(pageSize); \(settings); PRAGMA journal_mode = \(mode)")
      try database.execute(
        sql: """
          CREATE TABLE cars (id INTEGER PRIMARY KEY, flags INTEGER NOT NULL, name TEXT);
          CREATE INDEX cars_name ON cars (name);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
          INSERT INTO cars SELECT i, 0, hex(i * 7919 % 10007) || hex(zeroblob(60)) || i FROM n;
          """)
    }
    try queue.close()
  }

  var placePath: FilePath { folder.appending("Backups/App") }
  var place: FolderPlace { FolderPlace(placePath, in: FileSystem()) }

  func creator(at time: String = "2026-11-21T10:11:12Z", fileSystem: FileSystem = FileSystem()) -> BackupCreator {
    BackupCreator(surroundings: .still(at: time, fileSystem: fileSystem), temporary: folder.path)
  }

  /// Takes a backup at a minute of an hour.
  @discardableResult
  func back(
    up minute: Int = 0, fileSystem: FileSystem = FileSystem(), _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> StoredBackup {
    var request = BackupRequest()
    change(&request)
    let time = "2026-11-21T10:\(minute < 10 ? "0" : "")\(minute):12Z"
    return try creator(at: time, fileSystem: fileSystem).create(
      store, in: FolderPlace(placePath, in: fileSystem), request)
  }

  /// Runs SQL on the store, and closes it.
  func run(_ sql: String) throws {
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  /// What a store holds, in short.
  static func summary(of path: FilePath) throws -> String {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction { database in
      let check = try String.fetchOne(database, sql: "PRAGMA integrity_check") ?? "?"
      let sums = try String.fetchOne(
        database, sql: "SELECT count(*) || ' ' || sum(flags) || ' ' || sum(length(name)) || ' ' || max(name) FROM cars")
      return "\(check) \(sums ?? "?")"
    }
  }

  /// Unpacks a backup, and says what came of it.
  func extract(_ id: BackupIdentifier, to name: String, isTolerant: Bool = false) throws -> BackupExtraction.Result {
    let extraction = try BackupExtraction(
      id, in: try BackupCatalog(of: place), isTolerant: isTolerant, fileSystem: FileSystem())
    return try extraction.writeDatabase(to: folder.appending(name))
  }

  func bytes(_ path: FilePath) throws -> [UInt8] { try FileSystem().contents(of: path, limit: 1 << 28) }
}
