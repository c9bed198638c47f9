import Backup
import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Backups of real stores: restored, previewed, and taken apart.
@Suite(.enabled(if: RealMaterial.isAvailable, Comment(rawValue: RealMaterial.skipped)))
struct RealRestoreTests {
  /// Real stores that are not too large for a test that reads each several times.
  private static let stores = RealMaterial.stores.filter { path in
    ((try? FileSystem().status(of: path))??.size ?? .max) < 4 << 20
  }

  @Test func everyRealStoreComesBackAndIsComparedWithItself() throws {
    var compared = 0
    for original in Self.stores {
      let folder = try TemporaryFolder()
      let store = try RealMaterial.copy(original, into: folder)
      let place = FolderPlace(folder.appending("Backups"))
      let creator = BackupCreator(surroundings: .still(), temporary: folder.path)
      let told = Comment(rawValue: original.string)
      let backup = try creator.create(store, in: place)
      let restorer = BackupRestorer(of: place, surroundings: .still())
      guard !backup.isApart else {
        let files = folder.appending("Evidence.sqlite")
        _ = try restorer.restore(backup.id, to: files)
        #expect(try FileDigest(of: FileSystem().open(files)) == FileDigest(of: FileSystem().open(store)), told)
        continue
      }
      let path = folder.appending("Restored.sqlite")
      let report = try restorer.restore(backup.id, to: path)
      #expect(report.isContentRight && report.lostBlocks.isEmpty, told)
      // Some of the stores were collected without the files of their large values.
      let lost = try Self.references(path).filter { try !Self.isThere($0, beside: store) }
      #expect(report.lostValues == lost, told)
      let preview = try restorer.preview(backup.id, over: store, temporary: folder.path)
      #expect(preview.present == .sound && preview.isHarmless, told)
      #expect(preview.entities.allSatisfy { $0.added == 0 && $0.lost == 0 && $0.changed == 0 }, told)
      for count in backup.manifest?.entities ?? [] where preview.entities.contains(where: { $0.name == count.name }) {
        #expect(preview.entities.first { $0.name == count.name }?.unchanged == count.rows, "\(told) \(count.name)")
      }
      compared += 1
      try takeApart(restorer, backup, preview, folder, told)
    }
    #expect(compared > 0)
  }

  /// The files of large values that a store refers to, as SQLite finds what has their form: 2, 36 letters, 0.
  private static func references(_ store: FilePath) throws -> [String] {
    let queue = try DatabaseQueue(path: store.string)
    defer { try? queue.close() }
    return try queue.read { database in
      var names: Set<String> = []
      let tables = try String.fetchAll(
        database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z*'")
      for table in tables {
        for column in try database.columns(in: table).map(\.name) {
          names.formUnion(
            try String.fetchAll(
              database,
              sql: """
                SELECT CAST(substr("\(column)", 2, 36) AS TEXT) FROM "\(table)" WHERE typeof("\(column)") = 'blob'
                  AND length("\(column)") = 38 AND hex(substr("\(column)", 1, 1)) = '02' AND hex(substr("\(column)", 38)) = '00'
                """))
        }
      }
      return names.sorted().map { "_EXTERNAL_DATA/\($0)" }
    }
  }

  private static func isThere(_ name: String, beside store: FilePath) throws -> Bool {
    try FileSystem().status(of: StoreFileSet(main: store).path(of: .externalData).appending(name)) != nil
  }

  /// Takes the entity with the most records out of a backup.
  private func takeApart(
    _ restorer: BackupRestorer, _ backup: StoredBackup, _ preview: RestorePreview, _ folder: TemporaryFolder,
    _ told: Comment
  ) throws {
    guard backup.manifest?.store.kind == "core-data",
      let largest = preview.entities.max(by: { $0.unchanged < $1.unchanged }), largest.unchanged > 0
    else { return }
    let path = folder.appending("Some.sqlite")
    do {
      let report = try restorer.extract(
        EntitySelection(entities: [largest.name]), from: backup.id, to: path, temporary: folder.path)
      #expect(report.entities.first { $0.name == largest.name }?.records == largest.unchanged, told)
      let store = try PersistentStore(opening: path)
      #expect(try store.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"], told)
      try store.close()
    } catch let error as BackupError where error.kind == .request {
      // Old stores carry no model.
    }
  }
}
