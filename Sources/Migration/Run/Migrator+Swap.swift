internal import PersistentStore
package import StoreFiles
public import SystemPackage

extension Migrator {
  /// Ends a swap that was interrupted, so that the store is whole in its place again.
  ///
  /// A migration that was interrupted before its swap is left alone: the original is untouched, and `migrate` goes on.
  ///
  /// - Returns: the path of the backup where a swap was finished.
  public func finishInterrupted(_ path: FilePath, home: FilePath? = nil) throws(MigrationError) -> FilePath? {
    try finishInterruptedSwap(path)?.backup
  }

  /// The same, with everything that the interrupted run could not tell any more.
  ///
  /// Two processes may do it at once: one does it, and the other waits.
  ///
  /// - Returns: nil where there was nothing to finish, or where the original was brought back.
  package func finishInterruptedSwap(_ path: FilePath) throws(MigrationError) -> Result? {
    // The store itself may be missing from its place just now, which is no error here.
    guard path.lastComponent != nil else { return nil }
    do {
      guard let original = try place(path) else { return nil }
      let folder = WorkingFolder(for: original, in: fileSystem)
      guard try isReplacing(original), let lock = try lockIfThere(folder) else { return nil }
      let result = try finishLocked(original, folder)
      _ = consume lock
      return result
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  /// Whether the store of a place is just being replaced by its migrated self, or was when a run was killed: until that
  /// is finished, a place without a store is not free.
  package func isReplacing(_ place: StoreFileSet) throws(FileError) -> Bool {
    guard let journal = try WorkingFolder(for: place, in: fileSystem).journal() else { return false }
    return journal.phase != .stepping
  }

  /// Removes what a run has left beside a store that needs no migration any more; not where another process is at it.
  package func removeLeftovers(_ place: StoreFileSet) throws(FileError) {
    let folder = WorkingFolder(for: place, in: fileSystem)
    guard try fileSystem.status(of: folder.path, followingLinks: false)?.kind == .directory else { return }
    let lock = try FolderLock(folder.path, patience: 0, in: fileSystem)
    if try folder.journal().map({ $0.phase == .stepping }) ?? true { try folder.remove() }
    _ = consume lock
  }

  /// The lock of the working folder; nil where another process has finished and removed it meanwhile.
  private func lockIfThere(_ folder: WorkingFolder) throws(FileError) -> FolderLock? {
    do throws(FileError) {
      return try FolderLock(folder.path, in: fileSystem)
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
  }

  /// The caller holds the lock of the working folder.
  func finishLocked(_ original: StoreFileSet, _ folder: WorkingFolder) throws -> Result? {
    // Another process may have finished it meanwhile.
    guard let journal = try folder.journal() else { return nil }
    switch journal.phase {
    case .stepping: return nil
    case .reverting:
      try finishReverting(original, folder, journal)
      return nil
    case .swapping:
      let backup = try finishSwap(original, folder, journal)
      return Result(
        store: original.main, backup: backup, steps: journal.steps.compactMap(\.account),
        resumedSteps: journal.steps.count)
    }
  }

  /// The set that a path stands for, there or not; nil where not even its folder is there.
  private func place(_ path: FilePath) throws(FileError) -> StoreFileSet? {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      switch error.kind {
      case .danglingLink: return StoreFileSet(main: try linkedPlace(path))
      case .notFound: return nil
      default: throw error
      }
    }
  }

  /// Where a symbolic link leads whose target is missing.
  private func linkedPlace(_ path: FilePath) throws(FileError) -> FilePath {
    let target = path.folder.pushing(try fileSystem.linkTarget(path))
    guard let name = target.lastComponent else { return target }
    return try fileSystem.realPath(target.folder).appending(name)
  }

  /// Puts the last step's file into the place of the original, which becomes the backup.
  func swap(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal, _ home: FilePath?, resumed: Int
  ) throws(MigrationError) -> Result {
    var journal = journal
    let file = folder.step(journal.steps.count)
    let backups = (home ?? original.folder).appending("Backups").appending(original.main.stem ?? "Store")
    do throws(FileError) {
      try fileSystem.makeDirectory(backups)
      try adoptAccess(of: original, file)
      journal.backup = PathText(try freeName(in: backups))
      journal.result = try fileSystem.status(of: file, followingLinks: false)?.identity
      try checkUnchanged(original, journal)
    } catch {
      throw MigrationError(error)
    }
    journal.phase = .swapping
    try folder.write(journal)
    let backup = try finishSwap(original, folder, journal)
    return Result(
      store: original.main, backup: backup, steps: journal.steps.compactMap(\.account), resumedSteps: resumed)
  }

  /// The new store may be read and written by whoever may read and write the old one.
  private func adoptAccess(of original: StoreFileSet, _ file: FilePath) throws(FileError) {
    guard let status = try fileSystem.status(of: original.main) else { return }
    try fileSystem.adoptAccess(of: status, to: file)
  }

  private func checkUnchanged(_ original: StoreFileSet, _ journal: MigrationJournal) throws(FileError) {
    guard MigrationJournal.members(try original.members(in: fileSystem)) == journal.members else {
      throw FileError(
        .changed, operation: "migrate the store", path: original.main,
        detail: "another process has written to it during the migration",
        hint: "Quit the app that uses it, then run the same command again.")
    }
  }

  /// A name for the backup that nothing has yet.
  private func freeName(in folder: FilePath) throws(FileError) -> FilePath {
    let name = surroundings.now().fileName
    var number = 1
    while true {
      let path = folder.appending(number == 1 ? "\(name).sqlite" : "\(name)-\(number).sqlite")
      if try fileSystem.status(of: path, followingLinks: false) == nil { return path }
      number &+= 1
    }
  }

  /// Does whatever of the swap has not been done, from whatever moment it was interrupted at.
  private func finishSwap(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws(MigrationError) -> FilePath? {
    do {
      let place = try FolderLock(original.folder, in: fileSystem)
      let backup = try finishSwapLocked(original, folder, journal)
      _ = consume place
      return backup
    } catch {
      throw MigrationError(database: error, path: original.main)
    }
  }

  /// The caller holds the lock of the store's folder.
  private func finishSwapLocked(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> FilePath {
    guard let backup = journal.backup?.path else {
      throw FileError(
        .other, operation: "finish the migration", path: folder.path, detail: "the journal names no backup")
    }
    if try fileSystem.status(of: folder.movePath, followingLinks: false) != nil {
      _ = try Relocation.finish(journal: folder.movePath, in: fileSystem)
    }
    let now = try fileSystem.status(of: original.main, followingLinks: false)?.identity
    let saved = StoreFileSet(main: backup)
    if let now, now != journal.result { try moveAway(original, to: saved, folder, journal) }
    if now == nil || now != journal.result {
      try put(folder.step(journal.steps.count), saved, into: original)
    }
    do {
      try checkOpening(original.main)
    } catch {
      let reason = MigrationError(database: error, path: original.main)
      // A lock or a full disk passes; whoever comes next tries again.
      guard !reason.isEnvironmental else { throw reason }
      try revert(original, folder, journal)
      throw MigrationError(
        .verificationFailed, operation: "open the migrated store", path: original.main,
        detail: "it does not open in its place: \(reason.detail)")
    }
    try folder.remove()
    return backup
  }

  private func moveAway(
    _ original: StoreFileSet, to saved: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws {
    let lock = try StoreLock(on: original, in: fileSystem)
    guard MigrationJournal.members(try original.members(in: fileSystem)) == journal.members else {
      // Nothing has been moved: the migration of this state of the store is void.
      try folder.remove()
      throw FileError(
        .changed, operation: "migrate the store", path: original.main,
        detail: "another process has written to it during the migration",
        hint: "Quit the app that uses it, then run the same command again.")
    }
    try move(original, to: saved, folder)
    _ = consume lock
  }

  private func move(_ original: StoreFileSet, to saved: StoreFileSet, _ folder: WorkingFolder) throws {
    try fileSystem.makeDirectory(saved.folder)
    var relocation = try Relocation(of: original, to: saved, note: "migration", in: fileSystem)
    try relocation.run(
      journal: folder.movePath, in: fileSystem, takesDigests: false, progress: { _, _ in }, whenArrived: { _ in },
      whenMoved: {},
      whenTakenBack: {})
  }

  /// Puts the new store into its empty place, its external files first.
  private func put(_ file: FilePath, _ saved: StoreFileSet, into place: StoreFileSet) throws {
    try copyExternalData(of: saved, to: place)
    try fileSystem.install(file, at: place.main, replacing: false)
  }

  /// Gives every external file a second name beside the new store, or a copy where the file system has no second names.
  private func copyExternalData(of old: StoreFileSet, to new: StoreFileSet) throws {
    let (source, target) = (old.path(of: .externalData), new.path(of: .externalData))
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: source)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      try giveSecondName(to: file.path, target.appending(file.relative))
    }
    try fileSystem.synchronizeDirectory(target)
  }

  private func giveSecondName(to file: FilePath, _ destination: FilePath) throws {
    if try fileSystem.status(of: destination, followingLinks: false) != nil { return }
    if try hasLinked(file, destination) { return }
    let unfinished = destination.hiddenSibling(suffix: ".unfinished")
    _ = try fileSystem.copy(file, to: unfinished)
    try fileSystem.install(unfinished, at: destination, replacing: false)
  }

  private func hasLinked(_ file: FilePath, _ destination: FilePath) throws(FileError) -> Bool {
    do throws(FileError) {
      try fileSystem.link(file, to: destination)
      return true
    } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      return false
    }
  }

  /// Writes the result elsewhere; the original stays.
  func deliver(
    _ original: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal, resumed: Int
  ) throws(MigrationError) -> Result {
    do {
      try copyExternalData(of: original, to: place)
      try adoptAccess(of: original, folder.step(journal.steps.count))
      try fileSystem.install(folder.step(journal.steps.count), at: place.main, replacing: false)
      try checkOpening(place.main)
      try folder.remove()
    } catch {
      throw MigrationError(database: error, path: place.main)
    }
    return Result(store: place.main, backup: nil, steps: journal.steps.compactMap(\.account), resumedSteps: resumed)
  }
}
