import Logging

extension StoreCoordinator {
  /// Ends a restore that an earlier run left, before anything is looked at: a restored store whose place is empty already
  /// is put there, any other leftover goes.
  func finishRestore(_ path: FilePath) throws -> [OpeningEvent] {
    let place = try locate(path)
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
}
