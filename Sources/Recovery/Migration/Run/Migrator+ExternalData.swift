internal import StoreFiles
internal import SystemPackage

extension Migrator {
  /// Refuses a store whose folder of large values is a link, or holds one: neither can be moved with the store.
  func checkExternalData(_ original: StoreFileSet) throws(FileError) {
    let folder = original.path(of: .externalData)
    guard let status = try fileSystem.status(of: folder, followingLinks: false), status.kind != .regular else { return }
    var strange: FilePath?
    if status.kind == .directory {
      strange = try fileSystem.descendants(of: folder).files.first { $0.status.kind != .regular }?.path
    } else {
      strange = folder
    }
    guard let strange else { return }
    throw FileError(
      .notRegularFile, operation: "migrate the store", path: strange,
      detail: "the store's large values are reached through a link, which cannot be moved with the store",
      hint: "Put the folder or the file itself in the link's place, then run the same command again.")
  }

  /// Copies every external file beside the new store, or gives it a second name where the old store is not opened any more.
  ///
  /// The folders may be read and written by those who may read and write the old ones.
  func copyExternalData(of old: StoreFileSet, to new: StoreFileSet, sharing: Bool) throws {
    let (source, target) = (old.path(of: .externalData), new.path(of: .externalData))
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: source)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      try place(file, at: target.appending(file.relative), sharing: sharing)
    }
    // Each before the one that it is in.
    for folder in content.folders.reversed() + [[]] {
      try fileSystem.adoptAccess(ofFolder: source.appending(folder), to: target.appending(folder))
      try fileSystem.synchronizeDirectory(target.appending(folder))
    }
  }

  private func place(_ file: FileSystem.Descendant, at destination: FilePath, sharing: Bool) throws {
    if try fileSystem.status(of: destination, followingLinks: false) != nil { return }
    if try sharing && hasLinked(file.path, destination) { return }
    let unfinished = destination.hiddenSibling(suffix: ".unfinished")
    _ = try fileSystem.copy(file.path, to: unfinished)
    try fileSystem.adoptAccess(of: file.path, to: unfinished)
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

  /// Removes the external files of a store that were made from another's: second names or copies.
  func removeExternalData(_ place: StoreFileSet) throws(FileError) {
    let external = place.path(of: .externalData)
    guard try fileSystem.status(of: external, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: external)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(external.appending(folder)) }
    try fileSystem.removeDirectory(external)
  }

  // MARK: Elsewhere

  /// Writes the result elsewhere; the original stays.
  func deliver(
    _ original: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal, resumed: Int
  ) throws(MigrationError) -> Result {
    do {
      do {
        try copyUnchanged(original, to: place, journal)
        // It stands in for no file: it is its owner's alone. The superuser writes it for the owner.
        if var status = try fileSystem.status(of: original.main) {
          status.permissions = .ownerReadWrite
          try fileSystem.adoptAccess(of: status, to: folder.step(journal.steps.count))
        }
        try placeAside(journal, folder, beside: place.main, like: original)
        try fileSystem.install(folder.step(journal.steps.count), at: place.main, replacing: false)
      } catch {
        // There was nothing of that name. The first error is the one to report.
        if (try? fileSystem.status(of: place.main, followingLinks: false)) == .some(nil) {
          try? removeExternalData(place)
        }
        throw error
      }
      try checkOpening(place.main)
      try folder.remove()
    } catch {
      throw MigrationError(database: error, path: place.main)
    }
    return Result(store: place.main, backup: nil, accounts: journal.steps.compactMap(\.account), resumed: resumed)
  }

  /// Copies the external files that belong to the records as they were read.
  ///
  /// - Throws: `changed-meanwhile` where another process has written to the store since, or while they were copied.
  private func copyUnchanged(
    _ original: StoreFileSet, to place: StoreFileSet, _ journal: MigrationJournal
  ) throws {
    // In rollback mode the lock keeps writers out; in WAL mode they are seen by what they leave behind.
    let lock = try SharedStoreLock(on: original, in: fileSystem)
    try checkUnchanged(original, journal)
    let before = try externalFiles(original)
    try copyExternalData(of: original, to: place, sharing: false)
    guard try externalFiles(original) == before else { throw changed(original) }
    try checkUnchanged(original, journal)
    _ = consume lock
  }

  private func externalFiles(
    _ store: StoreFileSet
  ) throws(FileError) -> [[FilePath.Component]: MigrationJournal.FileStamp] {
    let folder = store.path(of: .externalData)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return [:] }
    var files: [[FilePath.Component]: MigrationJournal.FileStamp] = [:]
    for file in try fileSystem.descendants(of: folder).files {
      files[file.relative] = MigrationJournal.FileStamp(file.status)
    }
    return files
  }
}
