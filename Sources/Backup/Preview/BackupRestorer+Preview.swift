package import ManagedObjectModel
package import Platform
import SQLiteFormat
import Salvage
package import SystemPackage

extension BackupRestorer {
  /// Previews a restore without touching backup and store.
  ///
  /// The backup is unpacked into an unnamed file, the store copied into a private folder; a damaged one is compared by
  /// its salvageable rows.
  ///
  /// - Parameters:
  ///   - path: the present store, which may be missing.
  ///   - models: the models that name versions.
  ///   - temporary: the parent of the private folder; the system's if nil.
  /// - Throws: errors of restoring or reading.
  package func preview(
    _ id: BackupIdentifier, over path: FilePath, options: Options = Options(), models: [ModelBundle] = [],
    temporary: FilePath? = nil
  ) throws -> RestorePreview {
    try withContent(id, options: options, temporary: temporary, or: path.folder) {
      content, folder in
      do {
        let files = try StoreFileSet.locate(path, in: fileSystem)
        let present = try PresentStore(files, in: folder, surroundings: surroundings)
        var preview = try RestorePreview(
          backup: content.main, present: present.file, state: present.state, models: models)
        if let version = preview.versions?.backup, version.name == nil {
          // The manifest may name a version unknown here.
          preview.versions?.backup?.name = try BackupCatalog(of: place).backup(id).manifest?.model?.version
        }
        let names = try referencedValues(of: content.main).names
        preview.values = RestorePreview.LargeValues(
          backup: try content.values.digests(of: names, in: fileSystem),
          present: try RestoredContent.Values.files(files.path(of: .externalData)).digests(of: names, in: fileSystem))
        if let report = content.report, !report.isContentRight || !report.lostBlocks.isEmpty {
          preview.remarks.insert("the backup is damaged, and is compared as far as it can be salvaged", at: 0)
        }
        return preview
      } catch let error as SalvageError {
        throw BackupError(salvaging: error)
      } catch {
        throw BackupError(database: error, operation: "compare the backup with the store", path: path)
      }
    }
  }

  /// Makes a folder with access only for this user.
  func privateFolder(
    in temporary: FilePath?, or alternative: FilePath? = nil
  ) throws -> PrivateFolder {
    try PrivateFolder(
      in: temporary, or: alternative ?? (place as? FolderPlace)?.path, needing: 0, to: "restore the backup",
      surroundings)
  }

  /// Restores a backup into a private folder while the body runs.
  ///
  /// - Parameters:
  ///   - temporary: the parent of the private folder; the system's if nil.
  ///   - alternative: a second parent; the backups' folder if nil.
  func withRestored<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ store: StoreFileSet, _ folder: FilePath, _ report: RestoreReport) throws -> Value
  ) throws -> Value {
    // Deleted with its content at the end.
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let folder = RestoreFolder(for: StoreFileSet(main: home.path.appending("Store.sqlite")), in: fileSystem)
    let working = try folder.make()
    let report = try stage(id, in: folder, options: options)
    let value = try body(folder.store, home.path, report)
    working.release()
    return value
  }
}

/// A private copy of the present store, possibly in use, in one file.
struct PresentStore: ~Copyable {
  let state: RestorePreview.Present

  let file: FilePath?

  private let copy: PrivateCopy?

  /// Copies a store as of one commit; of a damaged one, the salvageable rows.
  ///
  /// - Throws: `locked` or `changed-meanwhile` because of a writer; errors of copying.
  init(_ files: StoreFileSet, in folder: FilePath, surroundings: Surroundings) throws {
    let fileSystem = surroundings.fileSystem
    guard try fileSystem.status(of: files.main) != nil else {
      state = .missing
      file = nil
      copy = nil
      return
    }
    if let path = try StoreCopy.make(of: files, in: folder, surroundings: surroundings) {
      state = .sound
      file = path
      copy = nil
      return
    }
    let evidence = try PrivateCopy(of: files, in: folder, surroundings: surroundings)
    let raw = folder.appending("Raw.sqlite")
    _ = try Salvager(surroundings: surroundings).salvageRaw(evidence.files.main, to: raw)
    state = .damaged
    file = raw
    copy = consume evidence
  }
}

extension RestorePreview.LargeValues {
  /// Compares digests by file name, which is new for each written value.
  init(backup: [String: String], present: [String: String]) {
    added = Int64(backup.keys.count { present[$0] == nil })
    changed = Int64(backup.count { present[$0.key] != nil && present[$0.key] != $0.value })
    lost = Int64(present.keys.count { backup[$0] == nil })
  }
}

/// Copies a sound store in use, as of one commit with its WAL, into one file.
package enum StoreCopy {
  /// The attempts for a store changed without locks.
  private static let attempts = 5

  /// Makes the copy in a private folder; returns nil if pages are damaged.
  ///
  /// - Throws: `locked` or `changed-meanwhile` because of a writer; errors of copying.
  package static func make(
    of files: StoreFileSet, in folder: FilePath, surroundings: Surroundings
  ) throws -> FilePath? {
    for attempt in 1...attempts {
      do throws(FileError) {
        return try copyOnce(files, to: folder.appending("Present.sqlite"), surroundings)
      } catch {
        guard error.kind == .changed, attempt < attempts else { throw error }
        LogReadLock.rest()
      }
    }
    throw FileError(.changed, operation: "compare the backup with the store", path: files.main)
  }

  private static func copyOnce(
    _ files: StoreFileSet, to path: FilePath, _ surroundings: Surroundings
  ) throws(FileError) -> FilePath? {
    let snapshot = try StoreSnapshot(of: files, temporary: path.folder, surroundings: surroundings)
    defer { snapshot.release() }
    let database: Database
    let isSound: Bool
    do throws(FileError) {
      database = try Database(main: snapshot.main, writeAheadLog: snapshot.log, rollbackJournal: snapshot.journal)
      isSound = try database.checkIntegrity(findingLimit: 1).isSound
    } catch {
      if let fileError = error.fileError { throw fileError }
      try snapshot.requireUnchanged()
      return nil
    }
    guard isSound else {
      // Another process may have caused the apparent damage.
      try snapshot.requireUnchanged()
      return nil
    }
    let content = DatabaseContent(database)
    let file = try surroundings.fileSystem.create(path, permissions: .ownerReadWrite, truncating: true)
    var offset: Int64 = 0
    while offset < content.count {
      let bytes = try content.bytes(at: offset, length: 1 << 20)
      try file.write(bytes)
      offset += Int64(bytes.count)
      try snapshot.giveWay()
    }
    try snapshot.requireUnchanged()
    return path
  }
}
