internal import StoreFiles
package import SystemPackage

extension Migrator {
  /// Brings the original back from where the migration has kept it, because the migrated store does not open.
  ///
  /// Only for a store that has not been written to since it was migrated: the migrated one is thrown away. A kill at any
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
      journal.placed = MigrationJournal.content(try original.members(in: fileSystem))
      let place = try FolderLock(original.folder, in: fileSystem)
      let isBack = try revert(original, folder, journal)
      try folder.removeEnded()
      guard isBack else { throw changed(original) }
      _ = consume place
      _ = consume lock
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  /// Writes down that the original comes back, and brings it back.
  ///
  /// The caller holds the locks of the working folder and of the store's.
  ///
  /// - Returns: false where another process has written to the migrated store at this moment; then that stays.
  func revert(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws -> Bool {
    var journal = journal
    let files = try original.members(in: fileSystem)
    // The look at it may have changed it, or another process: that cannot be told apart, and so it is kept.
    journal.keepsResult = !journal.isUntouched(files)
    journal.placed = MigrationJournal.content(files)
    journal.phase = .reverting
    try folder.write(journal)
    return try bringBack(original, folder, journal)
  }

  /// Goes on with bringing the original back; the caller holds the lock of the working folder.
  ///
  /// - Returns: the backup where the migrated store stays, because another process has written to it since.
  func finishReverting(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> FilePath? {
    let place = try FolderLock(original.folder, in: fileSystem)
    let saved = try backup(journal, original, folder)
    let isBack = try bringBack(original, folder, journal)
    if isBack { try folder.clearEnded() } else { try folder.removeEnded() }
    _ = consume place
    return isBack ? nil : saved
  }

  /// Does whatever of it has not been done, from whatever moment it was interrupted at; the working folder stays.
  ///
  /// - Returns: whether the original is back.
  private func bringBack(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> Bool {
    try finishMove(original, folder, journal)
    let saved = StoreFileSet(main: try backup(journal, original, folder))
    let now = try fileSystem.status(of: original.main, followingLinks: false)
    // As long as its main file is there, so is all of the original.
    guard try fileSystem.status(of: saved.main, followingLinks: false) != nil else {
      if now != nil { return true }
      throw FileError(.notFound, operation: "bring the original back", path: saved.main)
    }
    guard now == nil || journal.isResult(now) else { throw placeTaken(original, saved, "bring the original back") }
    if now != nil {
      guard journal.isUntouched(try original.members(in: fileSystem)) else { return false }
      let lock = try StoreLock(on: original, in: fileSystem)
      if journal.keepsResult == true {
        try move(original, to: try unopenedPlace(saved), folder)
      } else {
        try removeResult(original)
      }
      _ = consume lock
    }
    try move(saved, to: original, folder)
    // Its records are in its place again.
    try fileSystem.unlink(OnlyHereNote.path(beside: saved.main))
    try fileSystem.unlink(saved.main.sibling(suffix: RepairAccount.asideSuffix))
    return true
  }

  /// A free name beside the backup for the migrated store that did not open.
  private func unopenedPlace(_ saved: StoreFileSet) throws(FileError) -> StoreFileSet {
    let name = (saved.main.stem ?? "Store") + "-unopened"
    var number = 1
    while true {
      let path = saved.folder.appending(number == 1 ? "\(name).sqlite" : "\(name)-\(number).sqlite")
      if try fileSystem.status(of: path, followingLinks: false) == nil { return StoreFileSet(main: path) }
      number &+= 1
    }
  }

  private func move(_ store: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder) throws {
    var relocation = try Relocation(of: store, to: place, note: "migration", in: fileSystem)
    try relocation.run(
      journal: folder.movePath, in: fileSystem, progress: { _, _ in }, whenArrived: { _ in }, whenMoved: {},
      whenTakenBack: {})
  }

  /// Removes the migrated store; its main file last, by which the next process knows what lies there.
  private func removeResult(_ place: StoreFileSet) throws(FileError) {
    try removeExternalData(place)
    for part in [StoreFileSet.Part.wal, .sharedMemory, .journal, .main] {
      try fileSystem.unlink(place.path(of: part))
    }
    try fileSystem.synchronizeDirectory(place.folder)
  }
}
