import Platform

/// Puts a copy of a salvaged store into the empty place of a store.
///
/// The caller holds the salvage lock and the lock of the folder. A run that ends in between leaves a mark; the next one
/// removes what is there in part (`takeBack`), and finds a place that is empty or has the whole store.
struct SalvageInstallation {
  let place: StoreFileSet
  let folder: QuarantineFolder
  let stored: QuarantinedStore
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var mark: PendingNotice { PendingNotice(for: place, in: fileSystem) }

  /// What must be free beside the copy: the index of its log has 32 KiB, receipts are smaller.
  private static let reserve: Int64 = 128 << 10

  /// The salvaged store, as its receipt says; nil where there is none that an app could open.
  func source() throws -> (files: SalvageFiles, result: Receipt.Salvage.Result)? {
    guard let result = stored.receipt?.salvage?.result, result.isUsable, let files = folder.result(of: stored),
      try fileSystem.status(of: files.store.main, followingLinks: false)?.kind == .regular
    else { return nil }
    return (files, result)
  }

  /// Whether the salvaged store has been changed since it was made.
  func isChanged(_ files: SalvageFiles, _ result: Receipt.Salvage.Result) throws -> Bool {
    let log = try fileSystem.status(of: files.store.path(of: .wal))?.size ?? 0
    let journal = try fileSystem.status(of: files.store.path(of: .journal))?.size ?? 0
    guard log == 0, journal == 0 else { return true }
    return try FileDigest(of: fileSystem.open(files.store.main)).hexadecimal != result.sha256
  }

  /// Makes the copy, complete and on the disk, beside the place.
  func stage(_ files: SalvageFiles, _ result: Receipt.Salvage.Result) throws -> StagedStore {
    let staged = try StagedStore(copying: files.store.main, for: place, in: fileSystem) { digest in
      guard digest.hexadecimal == result.sha256 else {
        throw FileError(.changed, operation: "install the salvaged store", path: files.store.main)
      }
    }
    // Who may read and write it is who may read and write the store that it stands in for.
    if let access = try fileSystem.access(to: stored.files.main) {
      try fileSystem.adoptAccess(of: access.usable, to: staged.path)
    }
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "install the salvaged store", path: place.folder)
    }
    return staged
  }

  /// Says, on the disk, that the staged store is about to get the place.
  func announce(_ staged: borrowing StagedStore) throws {
    guard let status = try fileSystem.status(of: staged.path, followingLinks: false) else {
      throw FileError(.changed, operation: "install the salvaged store", path: staged.path)
    }
    try mark.write(.init(id: stored.id, inode: status.identity.inode))
  }

  /// Gives the staged store its place, its large values first, and notes it on the receipt.
  ///
  /// - Returns: the store with its receipt as it is now.
  func install(_ staged: consuming StagedStore, from files: SalvageFiles) throws -> QuarantinedStore {
    if let member = try place.members(in: fileSystem).first {
      throw FileError(.alreadyExists, operation: "install the salvaged store", path: member.path)
    }
    let external = files.store.path(of: .externalData)
    do {
      if try fileSystem.status(of: external, followingLinks: false)?.kind == .directory {
        try fileSystem.copyTree(external, to: place.path(of: .externalData))
        try fileSystem.synchronizeDirectory(place.folder)
      }
      try staged.put()
    } catch {
      // The first error is the one to report; what cannot be removed now is removed by the next opening.
      try? Self.removeHalf(of: place, in: fileSystem)
      throw error
    }
    return try note()
  }

  /// Notes on the receipt that a copy is about to get the place, or that it will not.
  ///
  /// A list of what is in quarantine shows it, for the place may be one that no app opens.
  func noteAttempt(isOver: Bool = false) throws {
    let date = surroundings.now()
    _ = try folder.update(stored.id) { receipt in
      receipt.salvage?.installing = isOver ? nil : Receipt.Release(date: date.rfc3339, path: PathText(place.main))
    }
  }

  /// Notes on the receipt that a copy is in the place.
  func note() throws -> QuarantinedStore {
    let date = surroundings.now()
    return try folder.update(stored.id) { receipt in
      receipt.salvage?.state = .installed
      receipt.salvage?.date = date.rfc3339
      receipt.salvage?.isWanted = false
      receipt.salvage?.installing = nil
      receipt.salvage?.installed = Receipt.Release(date: date.rfc3339, path: PathText(place.main))
      receipt.add(Receipt.Moment(.installed, at: date, path: PathText(place.main)))
    }
  }

  /// Removes the large values of a salvaged store whose main file never got its place: the copy of what is in quarantine.
  ///
  /// The caller holds the folder's lock.
  static func removeHalf(of place: StoreFileSet, in fileSystem: FileSystem) throws {
    guard try PendingNotice(for: place, in: fileSystem).installation() != nil,
      try fileSystem.status(of: place.main, followingLinks: false) == nil
    else { return }
    try fileSystem.removeTree(place.path(of: .externalData))
  }
}
