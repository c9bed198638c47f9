package import ManagedObjectModel
package import Platform
import SQLiteFormat
import Salvage
package import SystemPackage

extension BackupRestorer {
  /// Says what restoring a backup over a store would change; neither is touched.
  ///
  /// The backup is restored into a private folder, and the store is copied there; a store that is damaged is compared as
  /// far as its rows can be salvaged.
  ///
  /// - Parameters:
  ///   - path: the present store, whether it is there or not.
  ///   - models: the models by which versions are named.
  ///   - temporary: where the private folder is made; among the system's temporary files if nil.
  /// - Throws: what restoring the backup, or reading the store, failed with.
  package func preview(
    _ id: BackupIdentifier, over path: FilePath, options: Options = Options(), models: [ModelBundle] = [],
    temporary: FilePath? = nil
  ) throws(BackupError) -> RestorePreview {
    try withRestored(id, options: options, temporary: temporary, or: path.folder) {
      store, folder, restored throws(BackupError) in
      do {
        let files = try StoreFileSet.locate(path, in: fileSystem)
        let present = try PresentStore(files, in: folder, surroundings: surroundings)
        var preview = try RestorePreview(
          backup: store.main, present: present.file, state: present.state, models: models)
        if let version = preview.versions?.backup, version.name == nil {
          // Who took the backup may have known its version.
          preview.versions?.backup?.name = try BackupCatalog(of: place).backup(id).manifest?.model?.version
        }
        preview.values = try LargeValueDifference(fileSystem).compare(
          try referencedValues(of: store.main).names, backup: store, present: files)
        if !restored.isContentRight || !restored.lostBlocks.isEmpty {
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

  /// A folder that nobody else may look into, in the one for temporary files or in another.
  package func privateFolder(
    in temporary: FilePath?, or alternative: FilePath? = nil
  ) throws(BackupError) -> PrivateFolder {
    do throws(FileError) {
      return try PrivateFolder(
        in: temporary, or: alternative ?? (place as? FolderPlace)?.path, needing: 0, to: "restore the backup",
        surroundings)
    } catch {
      throw BackupError(error)
    }
  }

  /// Restores a backup into a private folder for as long as the body runs.
  ///
  /// - Parameters:
  ///   - temporary: where the private folder is made; among the system's temporary files if nil.
  ///   - alternative: where it is made if nothing can be made there; the folder of the backups if nil.
  package func withRestored<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ store: StoreFileSet, _ folder: FilePath, _ report: RestoreReport) throws(BackupError) -> Value
  ) throws(BackupError) -> Value {
    // It goes, with everything in it, when this function ends.
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let folder = RestoreFolder(for: StoreFileSet(main: home.path.appending("Store.sqlite")), in: fileSystem)
    let working = try folder.make()
    let report = try stage(id, in: folder, options: options)
    let value = try body(folder.store, home.path, report)
    _ = consume working
    return value
  }
}

extension BackupError {
  /// What a salvage failed with.
  init(salvaging error: SalvageError) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else {
      self.init(.damaged, because: error)
    }
  }
}

/// A private copy of the present store as one file, for comparing; the store itself is only read, and may be in use.
struct PresentStore: ~Copyable {
  let state: RestorePreview.Present

  /// The file that stands for it; nil where there is no store.
  let file: FilePath?

  private let copy: PrivateCopy?

  /// Copies a store as of one commit; of a damaged one, what rows can be salvaged.
  ///
  /// - Parameter folder: a private folder for the copy.
  /// - Throws: `locked` or `changed-meanwhile` where a writer does not let it be read, or what copying throws.
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

/// The comparison of the files that records of a restored backup refer to with those beside the present store.
struct LargeValueDifference {
  private let fileSystem: FileSystem

  /// How much of two files is compared at once, in bytes.
  private static let stride = 1 << 20

  init(_ fileSystem: FileSystem) { self.fileSystem = fileSystem }

  /// Compares the files of some names, which tell what they hold: each value that is written gets a new one.
  func compare(
    _ names: Set<String>, backup: StoreFileSet, present: StoreFileSet
  ) throws(FileError) -> RestorePreview.LargeValues {
    var values = RestorePreview.LargeValues()
    for name in names.sorted() {
      let path = FilePath(ReferencedValues.path(name)).components
      let own = backup.path(of: .externalData).appending(path)
      let other = present.path(of: .externalData).appending(path)
      let isOther = try fileSystem.status(of: other)?.kind == .regular
      if try fileSystem.status(of: own)?.kind != .regular {
        if isOther { values.lost += 1 }
      } else if !isOther {
        values.added += 1
      } else if try !isSame(own, other) {
        values.changed += 1
      }
    }
    return values
  }

  /// Whether two files have the same content.
  func isSame(_ one: FilePath, _ other: FilePath) throws(FileError) -> Bool {
    let (first, second) = (try fileSystem.open(one), try fileSystem.open(other))
    guard first.count == second.count else { return false }
    var offset: Int64 = 0
    while offset < first.count {
      let bytes = try first.bytes(at: offset, length: Self.stride)
      guard try second.bytes(at: offset, length: Self.stride) == bytes, !bytes.isEmpty else { return false }
      offset += Int64(bytes.count)
    }
    return true
  }
}

/// A copy of a sound store in use, as of one commit, with its log folded in: one file that SQLite can open anywhere.
package enum StoreCopy {
  /// How often a store is tried that is changed meanwhile by a process that keeps to no lock.
  private static let attempts = 5

  /// Makes the copy in a private folder; nil for a store with damaged pages, of which nothing is left there.
  ///
  /// - Throws: `locked` or `changed-meanwhile` where a writer does not let it be read, or what copying throws.
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
    do throws(FormatError) {
      database = try Database(main: snapshot.main, writeAheadLog: snapshot.log, rollbackJournal: snapshot.journal)
      isSound = try database.checkIntegrity(findingLimit: 1).isSound
    } catch {
      if let fileError = error.fileError { throw fileError }
      try snapshot.finish()
      return nil
    }
    guard isSound else {
      // What looks like damage may be the work of a process that came meanwhile.
      try snapshot.finish()
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
    try snapshot.finish()
    return path
  }
}
