internal import Foundation
internal import Platform
internal import SystemPackage

/// The folder next to a store: `.App.sqlite.migrating`.
struct WorkingFolder {
  let path: FilePath
  let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".migrating")
    self.fileSystem = fileSystem
  }

  var journalPath: FilePath { path.appending("journal.json") }

  var movePath: FilePath { path.appending("swap.moving") }

  /// The file of a finished step; 0 is the original's copy.
  func step(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite") }

  func unfinished(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite.unfinished") }

  var asidePath: FilePath { path.appending("step-aside.sqlite") }

  /// The copy that a stage changes before a step.
  func prepared(_ number: Int) -> FilePath { path.appending("step-\(number).prepared.unfinished") }

  // MARK: The journal

  /// The journal; nil if missing, or older and without moved files.
  ///
  /// - Throws: `migration-journal-unreadable` if damaged or of a later version, because the folder may then hold the
  ///   only complete store.
  func journal() throws(FileError) -> MigrationJournal? {
    // A link or file is foreign.
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory,
      try fileSystem.status(of: journalPath, followingLinks: false) != nil
    else { return nil }
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try fileSystem.contents(of: journalPath, limit: 1 << 26)
    } catch {
      // Another process has finished.
      guard error.kind == .notFound else { throw error }
      return nil
    }
    do {
      let head = try JSONDecoder().decode(Head.self, from: Data(bytes))
      if head.version == MigrationJournal.currentVersion {
        return try JSONDecoder().decode(MigrationJournal.self, from: Data(bytes))
      }
      let stepping = MigrationJournal.Phase.stepping.rawValue
      if head.version < MigrationJournal.currentVersion, head.phase ?? stepping == stepping { return nil }
      throw unreadable("it is of version \(head.version), and this is code for \(MigrationJournal.currentVersion)")
    } catch {
      throw error as? FileError ?? unreadable("the journal of the migration cannot be read")
    }
  }

  private struct Head: Decodable {
    var version: Int
    var phase: String?
  }

  private func unreadable(_ detail: String) -> FileError {
    FileError(.journalUnreadable, operation: "read the journal of a migration", path: journalPath, detail: detail)
  }

  /// Writes the journal atomically.
  func write(_ journal: MigrationJournal) throws {
    do {
      let bytes = try JSON.bytes(of: journal, .line, to: "write the journal of a migration", at: journalPath)
      try fileSystem.writeAtomically(bytes, to: journalPath, replacing: true)
    } catch {
      throw MigrationError(any: error, path: journalPath)
    }
  }

  // MARK: Making and removing

  /// Makes the folder, private to its owner.
  ///
  /// - Throws: `file-exists` if the name is taken, `permission-denied` if it is another user's.
  func make() throws(FileError) {
    if try fileSystem.status(of: path, followingLinks: false) == nil {
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
    }
    try check()
  }

  /// Accepts a missing folder or the user's own.
  ///
  /// The superuser also accepts its parent's owner.
  func check() throws(FileError) {
    guard let status = try fileSystem.status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else {
      throw FileError(
        .alreadyExists, operation: "make the working folder", path: path,
        detail: "something that is no folder of this library's has the name of the migration's working folder",
        hint: "Move it away, then run the same command again.")
    }
    let user = FileSystem.effectiveUser
    if status.owner == user { return }
    if user == 0, status.owner == (try fileSystem.status(of: path.folder)?.owner) { return }
    throw FileError(
      .permissionDenied, operation: "use the working folder", path: path, detail: "it belongs to another user",
      hint: "Run as its owner, or move the folder away if it is none of a migration's.")
  }

  func removeUnfinished(_ number: Int) throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try fileSystem.unlink(path.appending("step-\(number).sqlite.unfinished" + suffix))
      try fileSystem.unlink(path.appending("step-\(number).prepared.unfinished" + suffix))
    }
  }

  func removeAside() throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] { try fileSystem.unlink(asidePath.sibling(suffix: suffix)) }
  }

  /// Empties the folder, journal last, unless a swap is under way.
  ///
  /// - Throws: `place-taken` during a swap, `migration-journal-unreadable`, or `file-exists` for foreign files, before
  ///   removing any.
  func clear() throws(FileError) {
    if let phase = try journal()?.phase, phase != .stepping {
      throw FileError(
        .placeTaken, operation: "remove the working folder", path: path,
        detail: "a migration was interrupted while it was replacing the store beside it",
        hint: "Migrate or open that store first, which finishes it.")
    }
    try clearEnded()
  }

  /// Empties the folder, journal last, when the journal is done or void.
  func clearEnded() throws(FileError) {
    try check()
    let names = try fileSystem.entries(of: path)
    if let stranger = names.first(where: { !Self.isOwn($0.string) }) {
      throw FileError(
        .alreadyExists, operation: "empty the working folder", path: path.appending(stranger),
        detail: "something that no migration has made lies in the migration's working folder",
        hint: "Move it away, then run the same command again.")
    }
    for name in names where name.string != "journal.json" { try fileSystem.unlink(path.appending(name)) }
    try fileSystem.unlink(journalPath)
  }

  private static func isOwn(_ name: String) -> Bool {
    ["step-", "journal.json", "swap.moving"].contains { name.hasPrefix($0) || name.hasPrefix("." + $0) }
  }

  /// Removes the folder and its contents, journal last, unless a swap is under way.
  ///
  /// - Throws: The errors of `clear`.
  func remove() throws(FileError) { try remove(emptying: clear) }

  /// Removes the folder when the journal is done or void.
  func removeEnded() throws(FileError) { try remove(emptying: clearEnded) }

  private func remove(emptying empty: () throws(FileError) -> Void) throws(FileError) {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    try empty()
    try fileSystem.removeDirectory(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }
}
