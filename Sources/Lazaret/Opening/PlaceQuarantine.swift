import Platform
import SystemPackage

/// The quarantine of one place: what came from there, and how its store is moved there.
struct PlaceQuarantine {
  let place: StoreFileSet
  let surroundings: Surroundings

  /// The folder with the catalogue of quarantined stores; nil for none.
  var home: FilePath?

  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var mark: PendingNotice { PendingNotice(for: place, in: fileSystem) }

  /// The folder beside the place.
  var folder: QuarantineFolder { QuarantineFolder(beside: place, surroundings: surroundings) }

  // MARK: Looking

  /// The newest store that came from the place; nil where there is none.
  func newest() throws -> QuarantinedStore? {
    try folder.stores().first { $0.receipt?.originalPath.path == place.main }
  }

  /// The store whose salvage an opening has begun, or whose salvaged store was being put into the empty place.
  func waiting() throws -> QuarantinedStore? {
    let installing = try mark.installation()?.id
    return try folder.stores().first { stored in
      guard let salvage = stored.receipt?.salvage, stored.receipt?.originalPath.path == place.main else {
        return stored.id == installing && stored.receipt?.salvage?.result?.isUsable == true
      }
      return salvage.isWanted || stored.id == installing && salvage.result?.isUsable == true
    }
  }

  /// Whether a store still waits for its salvage, or for its salvaged store to be put into the place.
  func isWaiting(_ id: String) throws -> Bool {
    do {
      let now = try folder.store(named: id)
      let installing = try mark.installation()?.id
      return now.receipt?.salvage?.isWanted == true || installing == id
    } catch let error as QuarantineError where error.kind == .notFound || error.kind == .evidenceMissing {
      return false
    }
  }

  /// What an earlier run did with the store of the place and could not tell any more.
  ///
  /// The caller does not hold the folder's lock.
  func untold() throws -> [OpeningEvent] {
    guard try mark.isThere() else { return [] }
    if let stored = try endedInstallation() {
      return [
        try found(stored), .salvaged(stored, at: surroundings.now()),
      ]
    }
    guard let stored = try newest(), try stored.id != mark.previousID() else { return [] }
    return [try found(stored)]
  }

  /// The event that tells of a store that an earlier run, or another process, has moved into quarantine.
  func found(_ stored: QuarantinedStore) throws -> OpeningEvent {
    .foundInQuarantine(stored, undo: try undo(of: stored), at: surroundings.now())
  }

  /// The command that puts a quarantined store back, with what is in its place now quarantined first.
  func undo(of stored: QuarantinedStore) throws -> String? {
    stored.undo(home: try home.map { try Quarantines.absolute($0, in: fileSystem) }, replacing: true)
  }

  /// Ends, on the receipt, what a run that was killed had put into the place.
  ///
  /// - Returns: the store that it was salvaged of; nil where no salvaged store was being put there.
  private func endedInstallation() throws -> QuarantinedStore? {
    guard let installing = try mark.installation(),
      let main = try fileSystem.status(of: place.main, followingLinks: false),
      main.identity.inode == installing.inode,
      let stored = try folder.stores().first(where: { $0.id == installing.id })
    else { return nil }
    if stored.receipt?.salvage?.state == .installed { return stored }
    let lock = try folder.salvageLock(patience: 10_000)
    // The run that put it there may only have been about to note it.
    var now = try folder.store(named: stored.id)
    if now.receipt?.salvage?.state != .installed {
      now = try SalvageInstallation(place: place, folder: folder, stored: now, surroundings: surroundings).note()
    }
    _ = consume lock
    return now
  }

  // MARK: Moving

  /// Moves what lies at the place into quarantine, after marking that this has to be told.
  ///
  /// The caller holds the folder's lock.
  ///
  /// - Parameters:
  ///   - progress: called with the bytes done and the bytes in all; what it throws takes the move back.
  /// - Throws: what is met on the way; the store is then where it was.
  func add(
    because facts: QuarantineCase, progress: (Int64, Int64) throws -> Void
  ) throws -> QuarantinedStore {
    // The catalogue first: one that cannot be written is met before anything is moved.
    if let home {
      try QuarantineCatalogue(home: home, surroundings: surroundings).add(folder, holding: [place.folder])
    }
    try mark.write(previousID: try newest()?.id)
    do {
      return try folder.add(place, because: facts, progress: progress)
    } catch {
      // The first error is the one to report; a mark that stays behind tells of nothing that did not happen.
      try? mark.remove()
      throw error
    }
  }

  /// Notes that an empty store is in the place now, so that no opening goes on with a salvage by itself.
  ///
  /// The caller holds the salvage lock.
  func stopWaiting(_ id: String) throws -> QuarantinedStore {
    let date = surroundings.now()
    return try folder.update(id) { receipt in
      receipt.salvage?.isWanted = false
      receipt.add(Receipt.Moment(.replaced, at: date, words: "An empty store was created.", path: PathText(place.main)))
    }
  }
}
