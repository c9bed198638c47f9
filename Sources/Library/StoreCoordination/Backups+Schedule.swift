import Foundation

extension Backups {
  /// What came of looking whether a backup is due.
  package struct Scheduled: Sendable {
    /// The backup that was taken; nil where none was due.
    package var backup: StoredBackup?

    /// What came of restoring and checking it; nil where none was taken, or the store was damaged.
    package var proof: BackupProof?

    /// What was pruned after it; nil where none was taken, the store was damaged or the backup could not be verified:
    /// nothing is dropped then.
    package var pruning: PruningReport?
  }

  /// Takes a backup of a store where the home's policy says that one is due, verifies it, and prunes by the policy.
  ///
  /// A store that is damaged is kept as its raw files, and nothing is pruned.
  ///
  /// For an app to call when it has opened its store and has nothing better to do; the store may be in use. Each call counts
  /// as an opening.
  ///
  /// - Throws: `backup-policy-unreadable`, or what taking or pruning failed with; the store is not touched in any case.
  package func backUpIfDue(
    _ store: FilePath, appVersion: String? = nil, modelVersion: String? = nil,
    progress: @escaping BackupProgress = { _, _, _ in true }
  ) throws(BackupError) -> Scheduled {
    let policy = try BackupPolicy.load(home: home, in: surroundings.fileSystem)
    let place = try claimPlace(of: store)
    let openings = try OpeningCounter(place: place).next(policy)
    // A backup that lacks something, or failed, is none that a store could go back to; what a migration kept is of another
    // version. Of a damaged store one backup is enough, until the next is due.
    let dates = try BackupCatalog(of: place).backups
      .filter { backup in
        backup.isWhole && backup.manifest?.kind != .original && backup.proof?.result != .failed
          && (!backup.isApart || backup.manifest?.reason == .scheduled)
      }.map(\.id.date)
    guard BackupSchedule(policy).isDue(dates, openings: openings, now: surroundings.now()) else { return Scheduled() }
    var request = BackupRequest(progress: progress)
    (request.compression, request.level) = policy.usablePacking
    request.reason = .scheduled
    request.appVersion = appVersion
    request.modelVersion = modelVersion
    let backup = try create(store, request)
    try OpeningCounter(place: place).reset(policy)
    guard !backup.isApart else { return Scheduled(backup: backup) }
    let proof = try prove(backup.id, in: place)
    guard proof.result == .proven else { return Scheduled(backup: backup, proof: proof) }
    let pruning = try BackupPruner(of: place, surroundings: surroundings).prune(
      policy.keep, options: .init(trashDays: policy.trashDays))
    return Scheduled(backup: try BackupCatalog(of: place).backup(backup.id), proof: proof, pruning: pruning)
  }
}

/// How many times a store was opened since its last backup, kept in the place of its backups where the policy counts them.
private struct OpeningCounter {
  let place: FolderPlace
  private let name = "openings.json"

  private struct Content: Codable {
    var openings: Int
  }

  /// Counts one more.
  func next(_ policy: BackupPolicy) throws(BackupError) -> Int {
    guard let every = policy.everyOpenings else { return 0 }
    var count = 0
    if try place.list(.kept).contains(where: { $0.name == name }) {
      let bytes = try place.read(name, in: .kept, at: 0, length: 4096)
      // A counter that cannot be read begins anew: a backup too late by some openings, and none lost.
      count = (try? JSONDecoder().decode(Content.self, from: Data(bytes)))?.openings ?? 0
    }
    // Once one is due it is due until it has been taken.
    count = max(0, min(count, every)) + 1
    try write(count)
    return count
  }

  func reset(_ policy: BackupPolicy) throws(BackupError) {
    if policy.everyOpenings != nil { try write(0) }
  }

  private func write(_ count: Int) throws(BackupError) {
    let bytes = try BackupError.json(Content(openings: count), .line, to: "count the openings")
    try place.replace(name, with: bytes, in: .kept)
  }
}
