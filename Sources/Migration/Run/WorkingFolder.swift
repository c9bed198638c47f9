internal import Foundation
internal import Platform
internal import SystemPackage

/// The hidden folder beside a store in which it is migrated: `.App.sqlite.migrating`.
struct WorkingFolder {
  let path: FilePath
  let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".migrating")
    self.fileSystem = fileSystem
  }

  var journalPath: FilePath { path.appending("journal.json") }

  /// The journal of the move of the original.
  var movePath: FilePath { path.appending("swap.moving") }

  /// The file of a finished step; 0 is the copy of the original.
  func step(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite") }

  /// Where a step is carried out.
  func unfinished(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite.unfinished") }

  /// What a repair of records takes out.
  var asidePath: FilePath { path.appending("step-aside.sqlite") }

  /// The copy that a stage changes before a step.
  func prepared(_ number: Int) -> FilePath { path.appending("step-\(number).prepared.unfinished") }

  // MARK: The journal

  /// The journal; nil where there is none, or one of an earlier version that has moved nothing.
  ///
  /// - Throws: `migration-journal-unreadable` for one that says what only a later version understands, or nothing at all:
  ///   the folder may then hold the only whole store.
  func journal() throws(FileError) -> MigrationJournal? {
    // A link, or a file, is none of ours, wherever it leads.
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory,
      try fileSystem.status(of: journalPath, followingLinks: false) != nil
    else { return nil }
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try fileSystem.contents(of: journalPath, limit: 1 << 26)
    } catch {
      // Another process has finished meanwhile.
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

  /// Writes the journal, whole or not at all.
  func write(_ journal: MigrationJournal) throws(MigrationError) {
    do {
      let bytes = try JSON.bytes(of: journal, .line, to: "write the journal of a migration", at: journalPath)
      try fileSystem.writeAtomically(bytes, to: journalPath, replacing: true)
    } catch {
      throw MigrationError(database: error, path: journalPath)
    }
  }

  // MARK: Making and removing

  /// Makes the folder, readable by its owner alone until its files are in place.
  ///
  /// - Throws: `file-exists` where something else has its name, `permission-denied` where it is another user's.
  func make() throws(FileError) {
    if try fileSystem.status(of: path, followingLinks: false) == nil {
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
    }
    try check()
  }

  /// Makes sure that what has the folder's name is a folder of this user's own; none at all is as good.
  ///
  /// The superuser also takes one of the owner of the folder that it lies in.
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

  /// Removes what a killed run left of a step.
  func removeUnfinished(_ number: Int) throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try fileSystem.unlink(path.appending("step-\(number).sqlite.unfinished" + suffix))
      try fileSystem.unlink(path.appending("step-\(number).prepared.unfinished" + suffix))
    }
  }

  /// Removes what a repair of records has set aside.
  func removeAside() throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] { try fileSystem.unlink(asidePath.sibling(suffix: suffix)) }
  }

  /// Removes everything in the folder, the journal last, where no store is just being replaced.
  ///
  /// - Throws: `place-taken` where one is, `migration-journal-unreadable` where that cannot be known, and `file-exists` where
  ///   something else lies in the folder; nothing is removed then.
  func clear() throws(FileError) {
    if let phase = try journal()?.phase, phase != .stepping {
      throw FileError(
        .placeTaken, operation: "remove the working folder", path: path,
        detail: "a migration was interrupted while it was replacing the store beside it",
        hint: "Migrate or open that store first, which finishes it.")
    }
    try clearEnded()
  }

  /// Removes everything in the folder, the journal last: what it says is done, or void.
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

  /// Whether a name is one that a migration gives.
  private static func isOwn(_ name: String) -> Bool {
    ["step-", "journal.json", "swap.moving"].contains { name.hasPrefix($0) || name.hasPrefix("." + $0) }
  }

  /// Removes the folder with everything in it, the journal last, where no store is just being replaced.
  ///
  /// - Throws: as `clear` does.
  func remove() throws(FileError) { try remove(emptying: clear) }

  /// The same, where what the journal says is done, or void.
  func removeEnded() throws(FileError) { try remove(emptying: clearEnded) }

  private func remove(emptying empty: () throws(FileError) -> Void) throws(FileError) {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    try empty()
    try fileSystem.removeDirectory(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }
}
