internal import StoreFiles
package import SystemPackage

extension Migrator {
  /// Brings the original back from where the migration has kept it, because the migrated store does not open.
  ///
  /// Only for a store that nobody has written to since it was migrated: the migrated one is thrown away. A kill at any
  /// moment leaves a journal by which `finishInterrupted` goes on.
  ///
  /// - Parameters:
  ///   - path: the migrated store in its place.
  ///   - backup: the original, as `Result.backup` names it.
  package func takeBack(_ path: FilePath, from backup: FilePath) throws(MigrationError) {
    do {
      let original = try StoreFileSet.locate(path, in: fileSystem)
      let folder = WorkingFolder(for: original, in: fileSystem)
      let lock = try takeLock(folder)
      var journal = MigrationJournal(
        request: "", store: PathText(original.main),
        members: MigrationJournal.members(try StoreFileSet(main: backup).members(in: fileSystem)),
        begun: surroundings.now().rfc3339, steps: [])
      journal.backup = PathText(backup)
      journal.result = try fileSystem.status(of: original.main, followingLinks: false)?.identity
      let place = try FolderLock(original.folder, in: fileSystem)
      try revert(original, folder, journal)
      _ = consume place
      _ = consume lock
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  /// Writes down that the original comes back, and brings it back.
  ///
  /// The caller holds the locks of the working folder and of the store's.
  func revert(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws {
    var journal = journal
    journal.phase = .reverting
    try folder.write(journal)
    try bringBack(original, folder, journal)
  }

  /// Goes on with bringing the original back; the caller holds the lock of the working folder.
  func finishReverting(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws {
    let place = try FolderLock(original.folder, in: fileSystem)
    try bringBack(original, folder, journal)
    _ = consume place
  }

  /// Does whatever of it has not been done, from whatever moment it was interrupted at.
  private func bringBack(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws {
    guard let backup = journal.backup?.path else {
      throw FileError(
        .other, operation: "bring the original back", path: folder.path, detail: "the journal names no backup")
    }
    if try fileSystem.status(of: folder.movePath, followingLinks: false) != nil {
      _ = try Relocation.finish(journal: folder.movePath, in: fileSystem)
    }
    let saved = StoreFileSet(main: backup)
    let now = try fileSystem.status(of: original.main, followingLinks: false)?.identity
    // As long as its main file is there, so is all of the original.
    if try fileSystem.status(of: backup, followingLinks: false) != nil {
      guard now == nil || now == journal.result else {
        throw FileError(
          .changed, operation: "bring the original back", path: original.main,
          hint: "The original is whole at \(quoted(backup)).")
      }
      if now != nil {
        let lock = try StoreLock(on: original, in: fileSystem)
        try removeResult(original)
        _ = consume lock
      }
      var relocation = try Relocation(of: saved, to: original, note: "migration", in: fileSystem)
      try relocation.run(
        journal: folder.movePath, in: fileSystem, progress: { _, _ in }, whenArrived: { _ in }, whenMoved: {},
        whenTakenBack: {})
    }
    try folder.remove()
  }

  /// Removes the migrated store; its main file last, by which whoever comes next knows what lies there.
  private func removeResult(_ place: StoreFileSet) throws(FileError) {
    let external = place.path(of: .externalData)
    if try fileSystem.status(of: external, followingLinks: false)?.kind == .directory {
      // Second names or copies of the original's.
      let content = try fileSystem.descendants(of: external)
      for file in content.files { try fileSystem.unlink(file.path) }
      for folder in content.folders.reversed() { try fileSystem.removeDirectory(external.appending(folder)) }
      try fileSystem.removeDirectory(external)
    }
    for part in [StoreFileSet.Part.wal, .sharedMemory, .journal, .main] {
      try fileSystem.unlink(place.path(of: part))
    }
    try fileSystem.synchronizeDirectory(place.folder)
  }
}
