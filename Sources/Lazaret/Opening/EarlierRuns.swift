import Backup
import Logging
import Migration
import Platform
package import SystemPackage

package struct EarlierRuns {
  let path: FilePath
  let home: FilePath?

  /// Nil for a schema without Core Data's tables.
  let migrator: Migrator?

  let surroundings: Surroundings
  let logger: Logger

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Finishes or undoes a killed process's moves and restores at a path, as the next opening does.
  package static func finish(at path: FilePath) throws {
    let logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
    _ = try EarlierRuns(path: path, home: nil, migrator: nil, surroundings: .machine, logger: logger).finish()
  }

  /// Finishes or undoes interrupted moves, restores and migrations.
  ///
  /// Moves come first, because the others move stores themselves.
  func finish() throws -> [OpeningEvent] { try finishMoves() + finishRestore() + finishMigration() }

  /// Finishes quarantine moves, and removes staged files.
  private func finishMoves() throws -> [OpeningEvent] {
    let place = try StoreFileSet.locateTarget(path, in: fileSystem)
    let folder = PlaceQuarantine(place: place, surroundings: surroundings).folder
    let hasLeftover = try StagedStore.hasLeftover(for: place, in: fileSystem)
    guard try hasLeftover || folder.hasInterrupted() else { return [] }
    let lock = try FolderLock(place.folder, in: fileSystem)
    // Large values of a store never installed; a staged store exists too.
    if hasLeftover { try SalvageInstallation.removeHalf(of: place, in: fileSystem) }
    try StagedStore.removeLeftover(for: place, in: fileSystem)
    let finished = try folder.finishInterrupted()
    lock.release()
    return finished.filter { $0.path == nil || $0.path == place.main }.map { step in
      logger.notice("finished an interrupted step", metadata: ["kind": "\(step.kind)", "id": "\(step.id)"])
      return OpeningEvent(
        .recovery, at: surroundings.now(), path: folder.path,
        words: step.isDone
          ? "An interrupted \(step.kind.rawValue) of an earlier run was finished."
          : "An interrupted \(step.kind.rawValue) of an earlier run was taken back; nothing was lost.", id: step.id)
    }
  }

  /// Installs a restored store at an empty place, or removes the leftover.
  private func finishRestore() throws -> [OpeningEvent] {
    let place = try StoreFileSet.locateTarget(path, in: fileSystem)
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

  private func finishMigration() throws -> [OpeningEvent] {
    guard let migrator else { return [] }
    do throws(MigrationError) {
      guard let result = try migrator.finishInterruptedSwap(path) else { return [] }
      logger.notice("finished an interrupted migration", metadata: ["steps": "\(result.steps.count)"])
      return OpeningEvent.migrated(result, at: surroundings.now())
    } catch {
      // The store was taken back; the repeated migration reports its failure.
      if !error.isEnvironmental, error.kind == .verificationFailed { return [] }
      throw error
    }
  }

  /// Removes a finished migration's leftovers.
  func removeLeftovers(of place: StoreFileSet) {
    do throws(FileError) {
      try migrator?.removeLeftovers(place)
    } catch {
      logger.debug("leftovers of a migration stay for now", metadata: ["code": "\(error.code)"])
    }
  }
}

struct PlaceSearch {
  let path: FilePath
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Returns the store's place; for a link to a quarantined store, the emptied one.
  ///
  /// - Throws: `dangling-link` if no record shows a store at the target.
  func place() throws -> StoreFileSet {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      let target = try StoreFileSet.locateTarget(path, in: fileSystem)
      guard try PlaceQuarantine(place: target, surroundings: surroundings).newest() != nil else { throw error }
      return target
    }
  }
}
