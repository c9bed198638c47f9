internal import Platform
package import SystemPackage

extension Migrator {
  /// Puts the original back, because the migrated store does not open.
  ///
  /// Only for an unwritten one, which is discarded. After a kill `finishInterrupted` continues.
  ///
  /// - Parameter backup: From `Result.backup`.
  package func takeBack(_ path: FilePath, from backup: FilePath) throws {
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
      place.release()
      lock.release()
    } catch {
      throw MigrationError(any: error, path: path)
    }
  }

  /// Journals the reverting and does it; the caller holds the locks of working folder and store.
  ///
  /// - Returns: false if another process just wrote to the migrated store, which then stays.
  func revert(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws -> Bool {
    var journal = journal
    let files = try original.members(in: fileSystem)
    // The check or another process may have changed it; keep it.
    journal.keepsResult = !journal.isUntouched(files)
    journal.placed = MigrationJournal.content(files)
    journal.phase = .reverting
    try folder.write(journal)
    return try bringBack(original, folder, journal)
  }

  /// Continues under the working folder's lock.
  ///
  /// - Returns: The backup if the migrated store stays, because another process wrote to it.
  func finishReverting(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> FilePath? {
    let place = try FolderLock(original.folder, in: fileSystem)
    let saved = try backup(journal, original, folder)
    let isBack = try bringBack(original, folder, journal)
    if isBack { try folder.clearEnded() } else { try folder.removeEnded() }
    place.release()
    return isBack ? nil : saved
  }

  /// Puts the original back from any point of interruption; keeps the working folder.
  ///
  /// - Returns: Whether the original is back.
  private func bringBack(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> Bool {
    try finishMove(original, folder, journal)
    let saved = StoreFileSet(main: try backup(journal, original, folder))
    let now = try fileSystem.status(of: original.main, followingLinks: false)
    // The original is complete while its main file is there.
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
      lock.release()
    }
    try move(saved, to: original, folder)
    // Its records are live again.
    try fileSystem.unlink(OnlyHereNote.path(beside: saved.main))
    try fileSystem.unlink(saved.main.sibling(suffix: RepairAccount.asideSuffix))
    return true
  }

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

  /// Removes the migrated store, its main file last because it identifies the rest.
  private func removeResult(_ place: StoreFileSet) throws(FileError) {
    try removeExternalData(place)
    for part in [StoreFileSet.Part.wal, .sharedMemory, .journal, .main] {
      try fileSystem.unlink(place.path(of: part))
    }
    try fileSystem.synchronizeDirectory(place.folder)
  }
}
