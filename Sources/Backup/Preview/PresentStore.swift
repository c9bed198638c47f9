import GRDB
import PersistentStore
import SQLiteFormat
import Salvage
import StoreFiles
import SystemPackage

/// A private copy of the present store as one file, for comparing; the store itself is only read.
struct PresentStore: ~Copyable {
  /// What the store is.
  let state: RestorePreview.Present

  /// The file that stands for it; nil where there is no store.
  let file: FilePath?

  private let copy: PrivateCopy?

  /// Copies a store, its log brought in; of a damaged one, what rows can be salvaged.
  ///
  /// - Throws: `locked` or `changed-meanwhile` where a writer does not let it be read, or what copying throws.
  init(_ files: StoreFileSet, in temporary: FilePath, surroundings: Surroundings) throws {
    let fileSystem = surroundings.fileSystem
    guard try !files.members(in: fileSystem).isEmpty else {
      state = .missing
      file = nil
      copy = nil
      return
    }
    let copied = try Self.copy(files, in: temporary, surroundings)
    if try Self.isSound(copied.files, in: fileSystem) {
      try Self.foldLog(of: copied.files.main)
      state = .sound
      file = copied.files.main
    } else {
      let raw = copied.files.main.folder.appending("Raw.sqlite")
      _ = try Salvager(surroundings: surroundings).salvageRaw(copied.files.main, to: raw)
      state = .damaged
      file = raw
    }
    copy = consume copied
  }

  /// Copies the set under a reader's lock, anew where it was written to meanwhile.
  private static func copy(
    _ files: StoreFileSet, in temporary: FilePath, _ surroundings: Surroundings
  ) throws -> PrivateCopy {
    let fileSystem = surroundings.fileSystem
    for _ in 0..<5 {
      let lock = try SharedStoreLock(on: files, in: fileSystem)
      let before = try content(files, fileSystem)
      let copy = try PrivateCopy(of: files, in: temporary, surroundings: surroundings)
      let isSame = try content(files, fileSystem) == before
      _ = consume lock
      if isSame { return copy }
    }
    throw FileError(.changed, operation: "compare the backup with the store", path: files.main)
  }

  /// What tells that nobody has written to the store: all of its files but the index of its log.
  private static func content(
    _ files: StoreFileSet, _ fileSystem: FileSystem
  ) throws(FileError) -> [StoreFileSet.Member] {
    try files.members(in: fileSystem).filter { [.main, .wal, .journal].contains($0.part) }
  }

  private static func isSound(_ files: StoreFileSet, in fileSystem: FileSystem) throws -> Bool {
    func open(_ part: StoreFileSet.Part) throws(FileError) -> ReadableFile? {
      let path = files.path(of: part)
      return try fileSystem.status(of: path) == nil ? nil : fileSystem.open(path)
    }
    guard let main = try open(.main) else { return false }
    let (log, journal) = (try open(.wal), try open(.journal))
    do throws(FormatError) {
      return try SQLiteFormat.Database(main: main, writeAheadLog: log, rollbackJournal: journal)
        .checkIntegrity(findingLimit: 1).isSound
    } catch {
      if let fileError = error.fileError { throw fileError }
      return false
    }
  }

  /// Brings the log of a private copy into its main file.
  private static func foldLog(of path: FilePath) throws {
    let queue = try DatabaseQueue(path: PersistentStore.address(of: path, isReadOnly: false))
    try queue.writeWithoutTransaction { database in
      _ = try Row.fetchAll(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
  }
}
