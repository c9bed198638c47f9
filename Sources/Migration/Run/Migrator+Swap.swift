internal import ManagedObjectModel
public import Platform
public import SystemPackage

extension Migrator {
  /// Finishes an interrupted swap, so that the live store is complete again.
  ///
  /// Before the swap nothing is done: the original is untouched, and `migrate` resumes.
  ///
  /// - Returns: The backup of a finished swap.
  public func finishInterrupted(_ path: FilePath, home: FilePath? = nil) throws(MigrationError) -> FilePath? {
    try finishInterruptedSwap(path)?.backup
  }

  /// Finishes an interrupted swap; concurrent callers wait.
  ///
  /// - Returns: Nil without a swap, or if the original was put back.
  package func finishInterruptedSwap(_ path: FilePath) throws(MigrationError) -> Result? {
    // A missing store is no error.
    guard path.lastComponent != nil else { return nil }
    do {
      guard let original = try place(path) else { return nil }
      let folder = WorkingFolder(for: original, in: fileSystem)
      guard try isReplacing(original), let lock = try lockIfThere(folder) else { return nil }
      try folder.check()
      let result = try finishLocked(original, folder)
      // The journal was void.
      if result == nil, try folder.journal() == nil { try folder.remove() }
      lock.release()
      return result
    } catch { throw MigrationError(any: error, path: path) }
  }

  /// Whether a swap is under way; until it is finished, the missing store's name is not free.
  package func isReplacing(_ place: StoreFileSet) throws(FileError) -> Bool {
    guard let journal = try WorkingFolder(for: place, in: fileSystem).journal() else { return false }
    return journal.phase != .stepping
  }

  /// Removes leftovers next to a store that needs no migration, unless another process is using them.
  package func removeLeftovers(_ place: StoreFileSet) throws(FileError) {
    let folder = WorkingFolder(for: place, in: fileSystem)
    guard let lock = try lockIfThere(folder, patience: 0) else { return }
    if try folder.journal().map({ $0.phase == .stepping }) ?? true { try folder.remove() }
    lock.release()
  }

  /// The working folder's lock; nil if the folder is missing or was removed meanwhile.
  ///
  /// A third process may have made a new folder.
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

  /// Finishes an interrupted run; keeps the empty folder for a restart.
  ///
  /// The caller holds the working folder's lock.
  ///
  /// - Returns: nil if the original is live, untouched or put back.
  func finishLocked(_ original: StoreFileSet, _ folder: WorkingFolder) throws -> Result? {
    guard let journal = try folder.journal() else { return nil }
    let backup =
      switch journal.phase {
      case .stepping: FilePath?.none
      case .reverting: try finishReverting(original, folder, journal)
      case .swapping: try finishSwap(original, folder, journal)
      }
    return backup.map {
      Result(
        store: original.main, backup: $0, journal, resumed: journal.steps.count)
    }
  }

  /// The set of a path, existing or not; nil without its folder.
  private func place(_ path: FilePath) throws(FileError) -> StoreFileSet? {
    do throws(FileError) {
      return try StoreFileSet.locateTarget(path, in: fileSystem)
    } catch {
      guard [.danglingLink, .notFound].contains(error.kind) else { throw error }
      return nil
    }
  }

  /// Replaces the original by the last step's file.
  func swap(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal, _ home: FilePath?, resumed: Int
  ) throws -> Result {
    var journal = journal
    let file = folder.step(journal.steps.count)
    let backups = try makeBackups(original, in: home ?? original.folder)
    try fileSystem.adoptAccess(of: original.main, to: file)
    journal.setBackup(try freeName(in: backups), from: folder)
    journal.result = try fileSystem.status(of: file, followingLinks: false)?.identity
    journal.placed = MigrationJournal.content(try StoreFileSet(main: file).members(in: fileSystem))
    try checkUnchanged(original, journal)
    journal.phase = .swapping
    try folder.write(journal)
    guard let backup = try finishSwap(original, folder, journal) else { throw MigrationError(changed(original)) }
    return Result(
      store: original.main, backup: backup, journal, resumed: resumed)
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

  /// Makes the backups folder, with an absolute path because another process may finish the swap.
  ///
  /// The superuser makes it for the owner of the store's folder.
  private func makeBackups(_ original: StoreFileSet, in home: FilePath) throws(FileError) -> FilePath {
    let root = fileSystem.homeFolder("Backups", of: home)
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

  /// The requested folder, else the first of the store's name not noted for another store.
  private func backupsFolder(of original: StoreFileSet, in home: FilePath) throws(FileError) -> FilePath {
    if let backupsFolder { return try backupsFolder(original, home) }
    let (stem, root) = (original.main.stem ?? "Store", fileSystem.homeFolder("Backups", of: home))
    let path = try original.main.relative(to: fileSystem.resolved(home))
    return try firstNumbered(stem) { name throws(FileError) in
      let folder = root.appending(name)
      guard let note = try StorePlaceNote.read(in: folder, fileSystem), note.path.path != path else { return folder }
      return nil
    }
  }

  /// The first result for `name`, `name-2`, `name-3` and so on.
  func firstNumbered<Failure: Error>(
    _ name: String, _ find: (String) throws(Failure) -> FilePath?
  ) throws(Failure) -> FilePath {
    var number = 1
    while true {
      if let found = try find(number == 1 ? name : "\(name)-\(number)") { return found }
      number &+= 1
    }
  }

  func freeName(in folder: FilePath) throws(FileError) -> FilePath {
    let name = surroundings.now().backupName
    // Backups of the same second need different names.
    let taken = Set(try fileSystem.entries(of: folder).compactMap { $0.string.split(separator: ".").first })
    return try firstNumbered(name) { stem throws(FileError) in
      let path = folder.appending("\(stem).sqlite")
      guard !taken.contains(Substring(stem)), try fileSystem.status(of: path, followingLinks: false) == nil else {
        return nil
      }
      return path
    }
  }

  /// Completes the swap from any point of interruption.
  private func finishSwap(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> FilePath? {
    do {
      let place = try FolderLock(original.folder, in: fileSystem)
      let backup = try finishSwapLocked(original, folder, journal)
      place.release()
      return backup
    } catch { throw MigrationError(any: error, path: original.main) }
  }

  /// Completes the swap under the store folder's lock.
  ///
  /// - Returns: Nil if the original has been written to and stays.
  private func finishSwapLocked(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal
  ) throws -> FilePath? {
    var journal = journal
    try finishMove(original, folder, journal)
    let now = try fileSystem.status(of: original.main, followingLinks: false)
    if journal.isResult(now) {
      guard journal.isUntouched(try original.members(in: fileSystem)) else {
        // Another process wrote to the new store: the swap is over.
        let backup = try backup(journal, original, folder)
        try folder.removeEnded()
        return backup
      }
    } else {
      if now != nil, try !moveAway(original, folder, &journal) {
        try folder.clearEnded()
        return nil
      }
      // The exchange did not name it yet.
      if try !journal.isResult(fileSystem.status(of: original.main, followingLinks: false)) {
        try put(folder.step(journal.steps.count), try backup(journal, original, folder), into: original)
      }
    }
    let backup = try backup(journal, original, folder)
    do {
      try checkOpening(original.main)
    } catch {
      let reason = MigrationError(any: error, path: original.main)
      // Locks and full disks are transient; the next process retries.
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

  func finishMove(_ original: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal) throws {
    guard try fileSystem.status(of: folder.movePath, followingLinks: false) != nil else { return }
    let store = journal.store.path.map { ($0.folder, original.folder) }
    let saved = try journal.backup?.path.map { ($0.folder, try backup(journal, original, folder).folder) }
    let moved = [store, saved].compactMap(\.self)
    _ = try Relocation.finishInterrupted(journal: folder.movePath, in: fileSystem, moved: moved)
  }

  /// The original's destination: as journaled, or next to the store's new place.
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

  /// Moves the original to the backups, under a new name if the planned one is taken.
  ///
  /// - Returns: False if the original has been written to and stays.
  /// - Throws: `place-taken` if it has moved already.
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
    // The folder of the store is locked already.
    let isSame = try fileSystem.status(of: saved.folder)?.identity == fileSystem.status(of: original.folder)?.identity
    let backups = isSame ? nil : try FolderLock(saved.folder, patience: 60_000, in: fileSystem)
    if !isSame, try fileSystem.status(of: saved.main, followingLinks: false) != nil {
      saved = StoreFileSet(main: try freeName(in: try fileSystem.realPath(saved.folder)))
      journal.setBackup(saved.main, from: folder)
      journal.store = PathText(original.main)
      try folder.write(journal)
    }
    try writeNote(journal, of: original, for: saved)
    try placeAside(journal, folder, beside: saved.main, like: original)
    try move(original, to: saved, folder, leaving: folder.step(journal.steps.count))
    backups?.release()
    lock.release()
    return true
  }

  /// Protects a backup with unique records, before it arrives, from pruning until the app releases it.
  private func writeNote(_ journal: MigrationJournal, of original: StoreFileSet, for saved: StoreFileSet) throws {
    guard let note = journal.onlyHere else { return }
    let path = OnlyHereNote.path(beside: saved.main)
    try fileSystem.writeAtomically(try note.json(), to: path, replacing: true, permissions: .init(rawValue: 0o600))
    // The superuser writes it for the store's owner.
    if FileSystem.effectiveUser == 0, var status = try fileSystem.status(of: original.main) {
      status.permissions = .init(rawValue: 0o600)
      try fileSystem.adoptAccess(of: status, to: path)
    }
  }

  /// Copies a repair's set-aside file next to the backup.
  ///
  /// An interrupted run repeats this from the working folder.
  func placeAside(
    _ journal: MigrationJournal, _ folder: WorkingFolder, beside file: FilePath, like original: StoreFileSet
  ) throws(FileError) {
    guard journal.steps.first?.account?.repair?.setsAside == true else { return }
    let path = file.sibling(suffix: RepairAccount.asideSuffix)
    try fileSystem.duplicate(folder.asidePath, to: path)
    try fileSystem.adoptAccess(of: original.main, to: path)
    try fileSystem.synchronizeFile(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }

  /// The error of another process's new store, while the original is already in the backups.
  func placeTaken(_ original: StoreFileSet, _ saved: StoreFileSet, _ operation: String) -> FileError {
    FileError(
      .placeTaken, operation: operation, path: original.main,
      detail: "another store was put in the place of the one that was being migrated; the original lies whole in "
        + quoted(saved.main),
      hint: "Move the store that is in the way elsewhere, then run the same command again: the migration is finished.")
  }

  /// Moves a store.
  ///
  /// - Parameter result: The file that takes the original's name at once if its WAL and journal are empty; otherwise
  ///   those must go first.
  private func move(
    _ store: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, leaving result: FilePath? = nil
  ) throws {
    var relocation = try Relocation(of: store, to: place, note: "migration", in: fileSystem)
    if let result, !relocation.steps.contains(where: { [.wal, .journal].contains($0.part) && $0.bytes > 0 }) {
      relocation.replacement = PathText(result)
    }
    try relocation.run(
      journal: folder.movePath, in: fileSystem, takesDigests: result == nil, progress: { _, _ in },
      whenArrived: { _ in }, whenMoved: {}, whenTakenBack: {})
  }

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
    } catch { throw MigrationError(any: error, path: path) }
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
    let path = try firstNumbered((saved.main.stem ?? "Store") + "-unopened") { name throws(FileError) in
      let path = saved.folder.appending("\(name).sqlite")
      return try fileSystem.status(of: path, followingLinks: false) == nil ? path : nil
    }
    return StoreFileSet(main: path)
  }

  /// Removes the migrated store, its main file last because it identifies the rest.
  private func removeResult(_ place: StoreFileSet) throws(FileError) {
    try removeExternalData(place)
    for part in [StoreFileSet.Part.wal, .sharedMemory, .journal, .main] { try fileSystem.unlink(place.path(of: part)) }
    try fileSystem.synchronizeDirectory(place.folder)
  }
}

extension MigrationJournal {
  fileprivate var onlyHere: OnlyHereNote? {
    var rows: [String: Int] = [:]
    for account in steps.compactMap(\.account) { rows.merge(account.removedRows) { $0 + $1 } }
    guard !rows.isEmpty, let first = steps.first, let last = steps.last else { return nil }
    return OnlyHereNote(
      step: MigrationStep.name(from: first.source.isEmpty ? nil : first.source, to: last.destination),
      entities: rows.inCodeUnitOrder().map { .init(name: $0.key, rows: Int64($0.value)) })
  }

  /// Records the original's destination, absolute and relative to the working folder.
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
