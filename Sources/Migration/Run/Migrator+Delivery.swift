internal import Platform
internal import SystemPackage

extension Migrator {
  /// Rejects a link as, or in, the folder of large values: it can't be moved with the store.
  func checkExternalData(_ original: StoreFileSet) throws(FileError) {
    let values = try original.largeValues(in: fileSystem).files
    guard let strange = values.first(where: { $0.isLink || $0.status.kind != .regular }) else { return }
    throw StoreFileSet.unmovable(strange.path, "migrate the store")
  }

  /// Copies external files, or hard-links them if the old store is no longer opened.
  ///
  /// New folders take the old ones' permissions.
  func copyExternalData(of old: StoreFileSet, to new: StoreFileSet, sharing: Bool) throws {
    let (source, target) = (old.path(of: .externalData), new.path(of: .externalData))
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: source)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      try place(file, at: target.appending(file.relative), sharing: sharing)
    }
    // Inner folders first.
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

  func removeExternalData(_ place: StoreFileSet) throws(FileError) {
    let external = place.path(of: .externalData)
    guard try fileSystem.status(of: external, followingLinks: false)?.kind == .directory else { return }
    try fileSystem.removeTree(external)
  }

  // MARK: Output

  func deliver(
    _ original: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal, resumed: Int
  ) throws -> Result {
    do {
      do {
        try copyUnchanged(original, to: place, journal)
        // A new file is its owner's alone; the superuser writes it for the owner.
        if var status = try fileSystem.status(of: original.main) {
          status.permissions = .ownerReadWrite
          try fileSystem.adoptAccess(of: status, to: folder.step(journal.steps.count))
        }
        try placeAside(journal, folder, beside: place.main, like: original)
        try fileSystem.install(folder.step(journal.steps.count), at: place.main, replacing: false)
      } catch {
        // The name was free. Report the first error only.
        if (try? fileSystem.status(of: place.main, followingLinks: false)) == .some(nil) {
          try? removeExternalData(place)
        }
        throw error
      }
      try checkOpening(place.main)
      try folder.remove()
    } catch { throw MigrationError(any: error, path: place.main) }
    return Result(store: place.main, journal, resumed: resumed)
  }

  /// Copies the external files of the records read.
  ///
  /// - Throws: `changed-meanwhile` if another process wrote to the store since.
  private func copyUnchanged(_ original: StoreFileSet, to place: StoreFileSet, _ journal: MigrationJournal) throws {
    // The lock blocks writers in rollback mode; in WAL mode their traces show.
    let lock = try SharedStoreLock(on: original, in: fileSystem)
    try checkUnchanged(original, journal)
    let before = try externalFiles(original)
    try copyExternalData(of: original, to: place, sharing: false)
    guard try externalFiles(original) == before else { throw changed(original) }
    try checkUnchanged(original, journal)
    lock.release()
  }

  private func externalFiles(
    _ store: StoreFileSet
  ) throws(FileError) -> [[FilePath.Component]: MigrationJournal.FileStamp] {
    let folder = store.path(of: .externalData)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return [:] }
    return try fileSystem.descendants(of: folder).files.reduce(into: [:]) { files, file in
      files[file.relative] = MigrationJournal.FileStamp(file.status)
    }
  }
}
