package import StoreFiles
package import SystemPackage

/// The files of one result of a salvage, beside the quarantined store: `….salvaged.sqlite` and its companions.
///
/// A repeated salvage takes the names of the other number, so that the earlier result stays until the new one is whole.
package struct SalvageFiles: Sendable, Hashable {
  /// The salvaged store.
  package let store: StoreFileSet

  /// The report.
  package let report: FilePath

  /// What is not part of the store.
  package var setAside: FilePath { store.main.sibling(suffix: "-set-aside") }

  init(of id: String, number: Int, in folder: FilePath) {
    let mark = number == 1 ? "" : "-\(number)"
    store = StoreFileSet(main: folder.appending("\(id).salvaged\(mark).sqlite"))
    report = folder.appending("\(id).salvage\(mark).json")
  }
}

// MARK: - Salvaging

extension QuarantineFolder {
  /// The lock of whoever salvages a store of this folder, or writes into the receipts; held until the value ends.
  ///
  /// Whoever also needs the lock of a folder with stores and has it already must not wait for this one.
  ///
  /// - Throws: `locked` when the patience is over.
  package func salvageLock(patience: Int = 0) throws(FileError) -> FolderLock {
    do throws(FileError) {
      return try FolderLock(path, patience: patience, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw FileError(
        .locked, operation: "lock the quarantine", path: path,
        detail: "another process is salvaging a store in it",
        hint: "Wait until it is done, then run the same command again.")
    }
  }

  /// The private folder in which a store is salvaged.
  package func workingFolder(of id: String) -> FilePath { path.appending(".\(id).salvaging") }

  /// Makes the private folder for a salvage, and removes what a killed one left of its results.
  ///
  /// The caller holds the salvage lock.
  package func beginSalvage(of id: String) throws -> FilePath {
    let folder = workingFolder(of: id)
    try fileSystem.removeTree(folder)
    try remove(try freeResult(of: id))
    try fileSystem.makeDirectory(folder, permissions: .init(rawValue: 0o700))
    return folder
  }

  /// Removes the private folder.
  package func endSalvage(of id: String) throws(FileError) { try fileSystem.removeTree(workingFolder(of: id)) }

  /// The names that a new result gets: those that the receipt's does not have.
  package func freeResult(of id: String) throws -> SalvageFiles {
    let first = SalvageFiles(of: id, number: 1, in: path)
    let second = SalvageFiles(of: id, number: 2, in: path)
    guard let receipt = try store(named: id).receipt else {
      // Nothing says which one counts: the first one stays.
      return try fileSystem.status(of: first.store.main, followingLinks: false) == nil ? first : second
    }
    return receipt.salvage?.result?.name.path?.lastComponent == first.store.main.lastComponent ? second : first
  }

  /// The files of the result that a receipt names; nil where there is none, or a name is not one that this folder gives.
  package func result(of stored: QuarantinedStore) -> SalvageFiles? {
    guard let name = stored.receipt?.salvage?.result?.name.path?.lastComponent else { return nil }
    return [1, 2].map { SalvageFiles(of: stored.id, number: $0, in: path) }
      .first { $0.store.main.lastComponent == name }
  }

  /// Gives a finished result its names, the store's last.
  ///
  /// The caller holds the salvage lock.
  package func keep(
    _ made: StoreFileSet, setAside: FilePath?, report: [UInt8], as files: SalvageFiles
  ) throws {
    do {
      let external = made.path(of: .externalData)
      if try fileSystem.status(of: external, followingLinks: false)?.kind == .directory {
        try fileSystem.rename(external, to: files.store.path(of: .externalData))
      }
      if let setAside {
        try fileSystem.synchronizeFile(setAside)
        try fileSystem.install(setAside, at: files.setAside, replacing: false)
      }
      try fileSystem.writeAtomically(report, to: files.report, replacing: true)
      try fileSystem.synchronizeFile(made.main)
      try fileSystem.install(made.main, at: files.store.main, replacing: false)
    } catch {
      // The first error is the one to report; what cannot be removed now is removed by the next salvage.
      try? remove(files)
      throw error
    }
  }

  /// Removes a result, the store first.
  package func remove(_ files: SalvageFiles) throws(FileError) {
    for part in [StoreFileSet.Part.main, .wal, .sharedMemory, .journal] {
      try removeIfThere(files.store.path(of: part))
    }
    try fileSystem.removeTree(files.store.path(of: .externalData))
    try removeIfThere(files.setAside)
    try removeIfThere(files.report)
  }

  private func removeIfThere(_ path: FilePath) throws(FileError) {
    if try fileSystem.status(of: path, followingLinks: false) != nil { try fileSystem.unlink(path) }
  }

  /// Changes a receipt, whole or not at all; nothing is done where it is missing or cannot be read.
  ///
  /// The caller holds the salvage lock.
  ///
  /// - Returns: the store with its receipt as it is now.
  @discardableResult
  package func update(_ id: String, _ change: (inout Receipt) -> Void) throws -> QuarantinedStore {
    let stored = try store(named: id)
    guard var receipt = stored.receipt else { return stored }
    change(&receipt)
    if receipt == stored.receipt { return stored }
    try fileSystem.writeAtomically(try receipt.json(), to: stored.receiptPath, replacing: true)
    return try store(named: id)
  }
}
