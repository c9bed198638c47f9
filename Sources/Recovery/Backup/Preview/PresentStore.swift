import SQLiteFormat
import Salvage
import StoreFiles
import SystemPackage

/// A private copy of the present store as one file, for comparing; the store itself is only read, and may be in use.
struct PresentStore: ~Copyable {
  /// What the store is.
  let state: RestorePreview.Present

  /// The file that stands for it; nil where there is no store.
  let file: FilePath?

  private let copy: PrivateCopy?

  /// How often a store is tried that is changed meanwhile by a process that keeps to no lock.
  private static let attempts = 5

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
    if let path = try Self.copy(files, in: folder, surroundings) {
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

  /// Writes the pages of a sound store into a file, as they are at one commit; nil for a damaged one.
  static func copy(
    _ files: StoreFileSet, in folder: FilePath, _ surroundings: Surroundings
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
    let content = SnapshotContent(database)
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
