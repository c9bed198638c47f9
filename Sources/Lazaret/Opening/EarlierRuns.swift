import Backup
import Logging
import Migration
import Platform
import SystemPackage

/// What earlier runs at a place have left unfinished, and its end.
struct EarlierRuns {
  let path: FilePath
  let home: FilePath?

  /// The migrator of the app's model; nil for a schema without Core Data's tables.
  let migrator: Migrator?

  let surroundings: Surroundings
  let logger: Logger

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Brings moves, restores and migrations that were interrupted to their end, or takes them back.
  ///
  /// Moves come first, because the other two move stores themselves.
  func finish() throws -> [OpeningEvent] {
    try finishMoves() + finishRestore() + finishMigration()
  }

  /// Ends moves into quarantine and out of it, and removes what was staged for the place.
  private func finishMoves() throws -> [OpeningEvent] {
    let place = try PlaceSearch(path: path, surroundings: surroundings).target()
    let folder = PlaceQuarantine(place: place, surroundings: surroundings).folder
    let hasLeftover = try StagedStore.hasLeftover(for: place, in: fileSystem)
    guard try hasLeftover || folder.hasInterrupted() else { return [] }
    let lock = try FolderLock(place.folder, in: fileSystem)
    // Large values whose store never came; while they are there the staged store is too.
    if hasLeftover { try SalvageInstallation.removeHalf(of: place, in: fileSystem) }
    try StagedStore.removeLeftover(for: place, in: fileSystem)
    let finished = try folder.finishInterrupted()
    _ = consume lock
    return finished.filter { $0.path == nil || $0.path == place.main }.map { step in
      logger.notice("finished an interrupted step", metadata: ["kind": "\(step.kind)", "id": "\(step.id)"])
      return OpeningEvent(
        .recovery, at: surroundings.now(), path: folder.path,
        words: step.isDone
          ? "An interrupted \(step.kind.rawValue) of an earlier run was finished."
          : "An interrupted \(step.kind.rawValue) of an earlier run was taken back; nothing was lost.",
        id: step.id)
    }
  }

  /// Ends a restore: a restored store whose place is empty already is put there, any other leftover goes.
  private func finishRestore() throws -> [OpeningEvent] {
    let place = try PlaceSearch(path: path, surroundings: surroundings).place()
    let backups = Backups(home: home ?? place.folder, surroundings: surroundings)
    guard let id = try backups.finishInterrupted(place) else { return [] }
    logger.notice("finished an interrupted restore", metadata: ["backup": "\(id)"])
    return [
      OpeningEvent(
        .recovery, at: surroundings.now(), path: place.main,
        words: "An interrupted restore of backup \(id) was finished; the store that was here before is in quarantine.",
        id: id.description)
    ]
  }

  /// Ends a migration that was replacing the store by its migrated self.
  private func finishMigration() throws -> [OpeningEvent] {
    guard let migrator else { return [] }
    do throws(MigrationError) {
      guard let result = try migrator.finishInterruptedSwap(path) else { return [] }
      logger.notice("finished an interrupted migration", metadata: ["steps": "\(result.steps.count)"])
      return OpeningEvent.migrated(result, at: surroundings.now())
    } catch {
      // What does not open has been taken back; the migration is begun anew, and its failure is the one to tell of.
      if !error.isEnvironmental, error.kind == .verificationFailed { return [] }
      throw error
    }
  }

  /// Removes what an ended migration has left beside a store that is of the app's version.
  func removeLeftovers(of place: StoreFileSet) {
    do throws(FileError) {
      try migrator?.removeLeftovers(place)
    } catch {
      // Nothing hangs on it; the next opening tries again.
      logger.debug("leftovers of a migration stay for now", metadata: ["code": "\(error.code)"])
    }
  }
}

/// Finds the place of a store by the path that an app has for it.
struct PlaceSearch {
  let path: FilePath
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The set that the path stands for; a link whose store is in quarantine leads to the empty place it left.
  ///
  /// - Throws: `dangling-link` where nothing says that what a link leads to was ever a store.
  func place() throws -> StoreFileSet {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      let target = try endOfLink()
      guard try PlaceQuarantine(place: target, surroundings: surroundings).newest() != nil else { throw error }
      return target
    }
  }

  /// The set that the path stands for, or would if there were something at the end of its link.
  func target() throws(FileError) -> StoreFileSet {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      return try endOfLink()
    }
  }

  /// Where a chain of symbolic links ends that leads to nothing.
  private func endOfLink() throws(FileError) -> StoreFileSet {
    var target = path
    // As many links as the kernel of Linux follows.
    for _ in 0..<40 {
      target = target.folder.pushing(try fileSystem.linkTarget(target))
      guard let name = target.lastComponent, try fileSystem.status(of: target.folder) != nil else { break }
      if try fileSystem.status(of: target, followingLinks: false)?.kind == .symbolicLink { continue }
      return StoreFileSet(main: try fileSystem.realPath(target.folder).appending(name))
    }
    throw FileError(.danglingLink, operation: "find the store", path: path)
  }
}
