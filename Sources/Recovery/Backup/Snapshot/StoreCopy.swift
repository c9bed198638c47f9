import SQLiteFormat
package import StoreFiles
package import SystemPackage

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
