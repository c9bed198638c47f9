internal import ManagedObjectModel
public import Platform
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
      try folder.check()
      let result = try finishLocked(original, folder)
      // What was void is gone, and so is the journal.
      if result == nil, try folder.journal() == nil { try folder.remove() }
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
    guard let lock = try lockIfThere(folder, patience: 0) else { return }
    if try folder.journal().map({ $0.phase == .stepping }) ?? true { try folder.remove() }
    _ = consume lock
  }

  /// The lock of the working folder; nil where there is none, or another process has finished and removed it meanwhile.
  ///
  /// A third process may have made a new folder by then, which is not this one's to remove: the lock would be on nothing.
  private func lockIfThere(_ folder: WorkingFolder, patience: Int = 10_000) throws(FileError) -> FolderLock? {
    guard let before = try fileSystem.status(of: folder.path, followingLinks: false), before.kind == .directory else {
      return nil
    }
    do throws(FileError) {
      let lock = try FolderLock(folder.path, patience: patience, in: fileSystem)
      let after = try fileSystem.status(of: folder.path, followingLinks: false)
      guard after?.identity == before.identity else { return nil }
      return lock
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
  }

  /// Ends what an interrupted run was at; the folder itself stays, empty, where its migration is to begin anew.
  ///
  /// The caller holds the lock of the working folder.
  ///
  /// - Returns: nil where the original is in its place, untouched or brought back.
  func finishLocked(_ original: StoreFileSet, _ folder: WorkingFolder) throws -> Result? {
    // Another process may have finished it meanwhile.
    guard let journal = try folder.journal() else { return nil }
    let backup: FilePath?
    switch journal.phase {
    case .stepping: return nil
    case .reverting: backup = try finishReverting(original, folder, journal)
    case .swapping: backup = try finishSwap(original, folder, journal)
    }
    guard let backup else { return nil }
    return Result(
      store: original.main, backup: backup, accounts: journal.steps.compactMap(\.account),
      resumed: journal.steps.count)
  }

  /// The set that a path stands for, there or not; nil where not even its folder is there.
  private func place(_ path: FilePath) throws(FileError) -> StoreFileSet? {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      switch error.kind {
      case .danglingLink: return StoreFileSet(main: try linkedPlace(path))
      case .notFound: return nil
      case .alreadyExists, .permissionDenied, .readOnlyFileSystem, .noSpace, .inputOutput, .locked, .inUse,
        .isDirectory, .notRegularFile, .notDownloaded, .crossDevice, .tooLarge, .nameTooLong, .changed, .outOfMemory,
        .tooManyOpenFiles, .noLocks, .cannotOpen, .verificationFailed, .journalUnreadable, .placeTaken, .encodingFailed,
        .other:
        throw error
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
    try wrapping(MigrationError.init) { () throws(FileError) in
      let backups = try makeBackups(original, in: home ?? original.folder)
      try adoptAccess(of: original, file)
      journal.setBackup(try freeName(in: backups), from: folder)
      journal.result = try fileSystem.status(of: file, followingLinks: false)?.identity
      journal.placed = MigrationJournal.content(try StoreFileSet(main: file).members(in: fileSystem))
      try checkUnchanged(original, journal)
    }
    journal.phase = .swapping
    try folder.write(journal)
    guard let backup = try finishSwap(original, folder, journal) else {
      throw MigrationError(changed(original))
    }
    return Result(
      store: original.main, backup: backup, accounts: journal.steps.compactMap(\.account), resumed: resumed)
  }

  /// The new store may be read and written by those who may read and write the old one.
  func adoptAccess(of original: StoreFileSet, _ file: FilePath) throws(FileError) {
    try fileSystem.adoptAccess(of: original.main, to: file)
  }

  func checkUnchanged(_ original: StoreFileSet, _ journal: MigrationJournal) throws(FileError) {
    guard try isUnchanged(original, journal) else { throw changed(original) }
  }

  private func isUnchanged(_ original: StoreFileSet, _ journal: MigrationJournal) throws(FileError) -> Bool {
    MigrationJournal.members(try original.members(in: fileSystem)) == journal.members
  }

  func changed(_ original: StoreFileSet) -> FileError {
    FileError(
      .changed, operation: "migrate the store", path: original.main,
      detail: "another process has written to it during the migration",
      hint: "Quit the app that uses it, then run the same command again.")
  }

  /// Makes the folder of a store's backups, and says where it is from the root on: the process that finishes the swap may have
  /// another working directory.
  ///
  /// The superuser makes it for the owner of the store's folder.
  private func makeBackups(_ original: StoreFileSet, in home: FilePath) throws(FileError) -> FilePath {
    let root = home.appending("Backups")
    var missing: [FilePath] = []
    for folder in [home, root] where try fileSystem.status(of: folder) == nil { missing.append(folder) }
    let backups = try backupsFolder(of: original, in: home)
    if try fileSystem.status(of: backups) == nil {
      missing.append(backups)
      try fileSystem.makeDirectory(backups)
    }
    if FileSystem.effectiveUser == 0, var model = try fileSystem.status(of: original.folder) {
      model.permissions = .ownerReadWriteExecute
      for folder in missing { try fileSystem.adoptAccess(of: model, to: folder) }
    }
    return try fileSystem.realPath(backups)
  }

  /// The folder that is asked for, or else the first one with the store's name that is not noted to be of another store.
  private func backupsFolder(of original: StoreFileSet, in home: FilePath) throws(FileError) -> FilePath {
    if let backupsFolder { return try backupsFolder(original, home) }
    let (stem, root) = (original.main.stem ?? "Store", home.appending("Backups"))
    let path = try original.main.relative(to: fileSystem.resolved(home))
    var number = 1
    while true {
      let folder = root.appending(number == 1 ? stem : "\(stem)-\(number)")
      guard let note = try StorePlaceNote.read(in: folder, fileSystem), note.path.path != path else { return folder }
      number &+= 1
    }
  }

  /// A name for the backup that nothing has yet.
  func freeName(in folder: FilePath) throws(FileError) -> FilePath {
    let name = surroundings.now().backupName
    // A backup of the same second has other files, but may not have the same name.
    let taken = Set(try fileSystem.entries(of: folder).compactMap { $0.string.split(separator: ".").first })
    var number = 1
    while true {
      let stem = number == 1 ? name : "\(name)-\(number)"
      let path = folder.appending("\(stem).sqlite")
      if !taken.contains(Substring(stem)), try fileSystem.status(of: path, followingLinks: false) == nil { return path }
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
  ///
  /// - Returns: nil where nothing has been moved, and nothing is to be, because the original has been written to.
  private func finishSwapLocked(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> FilePath? {
    var journal = journal
    try finishMove(original, folder, journal)
    let now = try fileSystem.status(of: original.main, followingLinks: false)
    if journal.isResult(now) {
      guard journal.isUntouched(try original.members(in: fileSystem)) else {
        // Another process has opened it and written to it: it is the store, and the swap is over.
        let backup = try backup(journal, original, folder)
        try folder.removeEnded()
        return backup
      }
    } else {
      if now != nil, try !moveAway(original, folder, &journal) {
        try folder.clearEnded()
        return nil
      }
      // Where it has not got its name in the very step in which the original lost it.
      if try !journal.isResult(fileSystem.status(of: original.main, followingLinks: false)) {
        try put(folder.step(journal.steps.count), try backup(journal, original, folder), into: original)
      }
    }
    let backup = try backup(journal, original, folder)
    do {
      try checkOpening(original.main)
    } catch {
      let reason = MigrationError(database: error, path: original.main)
      // A lock or a full disk passes; the next process tries again.
      guard !reason.isEnvironmental else { throw reason }
      let isBack = try revert(original, folder, journal)
      try folder.removeEnded()
      guard isBack else { return backup }
      throw MigrationError(
        .verificationFailed, operation: "open the migrated store", path: original.main,
        detail: "it does not open in its place: \(reason.detail)")
    }
    try folder.removeEnded()
    return backup
  }

  /// Ends the move of a store that was interrupted.
  func finishMove(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws {
    guard try fileSystem.status(of: folder.movePath, followingLinks: false) != nil else { return }
    var moved: [(FilePath, FilePath)] = []
    if let store = journal.store.path { moved.append((store.folder, original.folder)) }
    if let written = journal.backup?.path {
      moved.append((written.folder, try backup(journal, original, folder).folder))
    }
    _ = try Relocation.finish(journal: folder.movePath, in: fileSystem, moved: moved)
  }

  /// Where the original is, or goes: where the journal says, or beside where the store has been moved to since.
  func backup(
    _ journal: MigrationJournal, _ original: StoreFileSet, _ folder: WorkingFolder
  ) throws(FileError) -> FilePath {
    guard let written = journal.backup?.path else {
      throw FileError(
        .other, operation: "finish the migration", path: folder.path, detail: "the journal names no backup")
    }
    guard journal.store.path != original.main, let here = journal.backupFromHere?.path else { return written }
    let near = folder.path.pushing(here).lexicallyNormalized()
    if try fileSystem.status(of: near, followingLinks: false) != nil { return near }
    return try fileSystem.status(of: written, followingLinks: false) == nil ? near : written
  }

  /// Makes the original the backup.
  ///
  /// Another store of the same name may have taken the backup's name meanwhile; then it gets another one.
  ///
  /// - Returns: false where nothing has been moved, because the original has been written to.
  /// - Throws: `place-taken` where the original has been moved already, and this is another store.
  private func moveAway(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: inout MigrationJournal
  ) throws -> Bool {
    let lock = try StoreLock(on: original, in: fileSystem)
    var saved = StoreFileSet(main: try backup(journal, original, folder))
    guard try isUnchanged(original, journal) else {
      if try fileSystem.status(of: saved.main, followingLinks: false) == nil { return false }
      throw placeTaken(original, saved, "finish the migration")
    }
    try fileSystem.makeDirectory(saved.folder)
    if try isSameFolder(saved.folder, original.folder) {
      try writeNote(journal, of: original, for: saved)
      try placeAside(journal, folder, beside: saved.main, like: original)
      try move(original, to: saved, folder, leaving: folder.step(journal.steps.count))
    } else {
      let backups = try FolderLock(saved.folder, patience: 60_000, in: fileSystem)
      if try fileSystem.status(of: saved.main, followingLinks: false) != nil {
        saved = StoreFileSet(main: try freeName(in: try fileSystem.realPath(saved.folder)))
        journal.setBackup(saved.main, from: folder)
        journal.store = PathText(original.main)
        try folder.write(journal)
      }
      try writeNote(journal, of: original, for: saved)
      try placeAside(journal, folder, beside: saved.main, like: original)
      try move(original, to: saved, folder, leaving: folder.step(journal.steps.count))
      _ = consume backups
    }
    _ = consume lock
    return true
  }

  /// Notes beside an original, before it arrives there, that records which the migration has left out are only in it: it is
  /// not pruned until the app releases it.
  private func writeNote(_ journal: MigrationJournal, of original: StoreFileSet, for saved: StoreFileSet) throws {
    guard let note = journal.onlyHere else { return }
    let path = OnlyHereNote.path(beside: saved.main)
    try fileSystem.writeAtomically(try note.json(), to: path, replacing: true, permissions: .init(rawValue: 0o600))
    // The superuser writes it for the owner of the store.
    if FileSystem.effectiveUser == 0, var status = try fileSystem.status(of: original.main) {
      status.permissions = .init(rawValue: 0o600)
      try fileSystem.adoptAccess(of: status, to: path)
    }
  }

  /// Puts what a repair of records has set aside beside the original, before that arrives there.
  ///
  /// It stays in the working folder as well, until that goes: a run that is killed in between does it again.
  func placeAside(
    _ journal: MigrationJournal, _ folder: WorkingFolder, beside file: FilePath, like original: StoreFileSet
  ) throws(FileError) {
    guard journal.steps.first?.account?.repair?.setsAside == true else { return }
    let path = file.sibling(suffix: RepairAccount.asideSuffix)
    try fileSystem.duplicate(folder.asidePath, to: path)
    try adoptAccess(of: original, path)
    try fileSystem.synchronizeFile(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }

  private func isSameFolder(_ one: FilePath, _ other: FilePath) throws(FileError) -> Bool {
    try fileSystem.status(of: one)?.identity == fileSystem.status(of: other)?.identity
  }

  /// The error of a store that another process has made in the place whose own store is in the backups already.
  func placeTaken(_ original: StoreFileSet, _ saved: StoreFileSet, _ operation: String) -> FileError {
    FileError(
      .placeTaken, operation: operation, path: original.main,
      detail: "another store was put in the place of the one that was being migrated; the original lies whole in "
        + quoted(saved.main),
      hint: "Move the store that is in the way elsewhere, then run the same command again: the migration is finished.")
  }

  /// Moves the original away.
  ///
  /// - Parameter result: the file that gets its name at once, where nothing is in a log or a journal of the original; those
  ///   have to be gone before another main file has the name, and the store is not whole without them.
  private func move(
    _ original: StoreFileSet, to saved: StoreFileSet, _ folder: WorkingFolder, leaving result: FilePath
  ) throws {
    var relocation = try Relocation(of: original, to: saved, note: "migration", in: fileSystem)
    let hasLog = relocation.steps.contains { [.wal, .journal].contains($0.part) && $0.bytes > 0 }
    if !hasLog { relocation.replacement = PathText(result) }
    try relocation.run(
      journal: folder.movePath, in: fileSystem, takesDigests: false, progress: { _, _ in }, whenArrived: { _ in },
      whenMoved: {},
      whenTakenBack: {})
  }

  /// Puts the new store into its empty place, its external files first.
  private func put(_ file: FilePath, _ backup: FilePath, into place: StoreFileSet) throws {
    guard try fileSystem.status(of: backup, followingLinks: false) != nil else {
      throw FileError(
        .notFound, operation: "finish the migration", path: backup,
        detail: "the original is not where the migration has put it, and its large values with it",
        hint: "Bring it back there, or mount its volume, then run the same command again. The migrated store is "
          + quoted(file) + ".")
    }
    try copyExternalData(of: StoreFileSet(main: backup), to: place, sharing: true)
    try fileSystem.install(file, at: place.main, replacing: false)
  }
}

extension MigrationJournal {
  /// What the steps have left out with its entity; nil where that is nothing.
  fileprivate var onlyHere: OnlyHereNote? {
    var rows: [String: Int] = [:]
    for account in steps.compactMap(\.account) { rows.merge(account.removedRows) { $0 + $1 } }
    guard !rows.isEmpty, let first = steps.first, let last = steps.last else { return nil }
    return OnlyHereNote(
      step: MigrationStep.name(from: first.source.isEmpty ? nil : first.source, to: last.destination),
      entities: rows.ordered { precedesByCodeUnit($0.key, $1.key) }.map { .init(name: $0.key, rows: Int64($0.value)) })
  }

  /// Notes where the original goes, from the root on and from the working folder.
  fileprivate mutating func setBackup(_ path: FilePath, from folder: WorkingFolder) {
    backup = PathText(path)
    let (from, to) = (Array(folder.path.components), Array(path.components))
    let common = zip(from, to).prefix { $0 == $1 }.count
    var relative = FilePath()
    for _ in from.dropFirst(common) { relative.append("..") }
    relative.append(to.dropFirst(common))
    backupFromHere = PathText(relative)
  }
}
