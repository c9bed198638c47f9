import Backup
import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport

/// A home with stores that each carry a mark, and their backups.
struct PlacesScene {
  let folder: TemporaryFolder
  var home: FilePath { folder.appending("Home") }
  let system = FileSystem()

  init() throws {
    folder = try TemporaryFolder()
    try FileSystem().makeDirectory(folder.appending("Home"))
  }

  func path(_ name: String) -> FilePath { home.pushing(FilePath(name)).lexicallyNormalized() }

  /// Makes a store with a mark in it: a plain one, or one with an identifier as Core Data writes it.
  func make(_ name: String, mark: String, uuid: String? = nil, rows: Int = 0) throws {
    let path = path(name)
    try system.makeDirectory(path.folder)
    if let uuid {
      let bytes = try StoreCreation(model: RestoreScene.model, uuid: uuid, modelCache: nil).bytes()
      try system.writeAtomically(bytes, to: path, replacing: true)
    }
    try run(
      name,
      """
      CREATE TABLE marks (mark TEXT, filler TEXT);
      INSERT INTO marks VALUES ('\(mark)', NULL);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
      INSERT INTO marks SELECT NULL, hex(zeroblob(200)) || i FROM n WHERE \(rows) > 0;
      """)
  }

  func run(_ name: String, _ sql: String) throws {
    let queue = try DatabaseQueue(path: path(name).string)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func places(_ fileSystem: FileSystem = FileSystem()) -> BackupPlaces {
    BackupPlaces(home: home, surroundings: .still(fileSystem: fileSystem))
  }

  func find(_ name: String) throws -> FolderPlace { try places().find(path(name)) }

  private func creator(_ minute: Int) -> BackupCreator {
    let time = "2026-11-21T09:\(minute < 10 ? "0" : "")\(minute):12Z"
    return BackupCreator(surroundings: .still(at: time), temporary: folder.path)
  }

  /// Takes a backup of a store at a minute of an hour.
  @discardableResult
  func back(up name: String, _ minute: Int, isFull: Bool = false) throws -> StoredBackup {
    var request = BackupRequest()
    request.isFull = isFull
    return try creator(minute).create(path(name), in: try places().claim(path(name)), request)
  }

  /// Takes a backup as earlier versions did: in the folder of the store's name, with no note and no path in the home.
  @discardableResult
  func backUpAsBefore(_ name: String, _ minute: Int, isFull: Bool = false) throws -> StoredBackup {
    var request = BackupRequest()
    request.isFull = isFull
    let place = FolderPlace(home.appending("Backups").appending(path(name).stem ?? ""))
    return try creator(minute).create(path(name), in: place, request)
  }

  /// The marks in each backup of a place, the newest first, as SQLite reads them from what is restored.
  func marks(in place: FolderPlace) throws -> [[String]] {
    try BackupCatalog(of: place).backups.map { try marks(of: $0.id, in: place) }
  }

  func marks(of id: BackupIdentifier, in place: FolderPlace) throws -> [String] {
    let target = folder.appending("Restored-\(UInt64.random(in: .min ... .max)).sqlite")
    _ = try BackupRestorer(of: place, surroundings: .still()).restore(id, to: target)
    let queue = try DatabaseQueue(path: target.string)
    defer { try? queue.close() }
    return try queue.read {
      try String.fetchAll($0, sql: "SELECT mark FROM marks WHERE mark IS NOT NULL ORDER BY rowid")
    }
  }
}
