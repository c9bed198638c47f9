package import Backup
import Foundation
package import ManagedObjectModel
internal import PersistentStore
package import Platform
package import SystemPackage

/// The backups of a home.
///
/// ```swift
/// let backups = Backups(home: "/var/lib/app")
/// let preview = try backups.preview(of: "Stores/App.sqlite")
/// if preview.isHarmless { _ = try backups.restore(over: "Stores/App.sqlite") }
/// ```
///
/// Each store has its own folder in `Backups/`; ``place(of:)`` finds it.
package struct Backups: Sendable {
  let home: FilePath
  let surroundings: Surroundings

  /// The secret keys that decrypt backups.
  package var identities: [AgeIdentity] = []

  package init(home: FilePath, surroundings: Surroundings = .machine) {
    self.home = home
    self.surroundings = surroundings
  }

  package var folders: BackupPlaces {
    var places = BackupPlaces(home: home, surroundings: surroundings)
    places.identities = identities
    return places
  }

  /// Returns the place for the backups of a store, without creating it.
  ///
  /// A store is identified by its path in the home, or by its identifier after a move, as `owner` records. Stores of
  /// one name, and copies, never share a place.
  package func place(of store: FilePath) throws -> FolderPlace { try folders.find(store).unlocked(with: identities) }

  /// Returns every place with backups of a store, that of ``place(of:)`` first.
  ///
  /// A machine that lost its note of an encrypted place starts another; one of ``identities`` then identifies the
  /// earlier one.
  package func places(of store: FilePath) throws -> [FolderPlace] {
    try folders.findAll(store).map { $0.unlocked(with: identities) }
  }

  /// Claims the place for the backups of an existing store with a note, encrypted if the home's policy says so.
  ///
  /// Other stores' backups from an earlier version move to their own places.
  func claimPlace(of store: FilePath) throws -> FolderPlace {
    let encryption = try? BackupPolicy.load(home: home, in: surroundings.fileSystem).encryption()
    return try folders.claim(store, encryptedTo: encryption?.recipients ?? []).unlocked(with: identities)
  }

  package func places() throws -> [FolderPlace] { try folders.all().map { $0.unlocked(with: identities) } }

  /// Takes a backup of a store, which may be in use; see ``BackupCreator``.
  ///
  /// - Parameter place: a place outside the home; nil takes the store's own in it.
  package func create(
    _ store: FilePath, _ request: BackupRequest = BackupRequest(), in place: (any BackupPlace)? = nil
  ) throws -> StoredBackup {
    let request = try completed(request, for: store, in: place)
    if let place {
      try place.claim(for: store, isEncrypted: request.encryption != nil, in: surroundings.fileSystem)
      return try BackupCreator(surroundings: surroundings).create(store, in: place, request)
    }
    var attempts = 3
    while true {
      let place = try folders.claim(store, encryptedTo: request.encryption?.recipients ?? []).unlocked(with: identities)
      var request = request
      if request.encryption != nil, request.encryption?.deltaKeyFile == nil {
        request.encryption?.deltaKeyFile = deltaKeyFile(of: place)
      }
      do {
        return try BackupCreator(surroundings: surroundings).create(store, in: place, request)
      } catch {
        let error = BackupError(any: error)
        if error.kind == .encryptionMissing, request.reason != .manual {
          throw BackupError(
            .encryptionMissing, operation: error.operation, path: error.path, detail: error.detail,
            hint:
              "Name the recipients in \(printable(home.appending(BackupPolicy.fileName).string)): {\"encryptTo\": [\"age1…\"]}"
          )
        }
        // Another process has given the folder its opaque name: look again.
        attempts -= 1
        guard error.fileError?.kind == .changed, attempts > 0, try !isThere(place) else { throw error }
      }
    }
  }

  /// Completes a request by the home, with its key for the next delta if the place is outside it.
  private func completed(
    _ request: BackupRequest, for store: FilePath, in place: (any BackupPlace)?
  ) throws -> BackupRequest {
    var request = request
    if request.lineage == nil { request.lineage = try evidence(of: store).lineage }
    if request.encryption == nil, !request.allowsPlain {
      request.encryption = try BackupPolicy.load(home: home, in: surroundings.fileSystem).encryption()
    }
    if let place, request.encryption != nil, request.encryption?.deltaKeyFile == nil {
      // The file name identifies the place only to those who know it.
      let digest = FileDigest(of: Array(place.location.utf8)).hexadecimal.prefix(32)
      request.encryption?.deltaKeyFile = keysFolder.appending("storage-\(digest).key")
    }
    return request
  }

  private func isThere(_ place: FolderPlace) throws -> Bool {
    try surroundings.fileSystem.status(of: place.path) != nil
  }

  /// The key file, in the home but outside `Backups/`, that lets the next encrypted backup be a delta.
  private func deltaKeyFile(of place: FolderPlace) -> FilePath? {
    place.path.lastComponent.flatMap { FilePath.Component("\($0.string).key") }.map { keysFolder.appending($0) }
  }

  private var keysFolder: FilePath { surroundings.fileSystem.homeFolder("BackupKeys", of: home) }

  /// Returns the scope of backups that concern a store: its own generation, or those before its quarantine.
  package func evidence(of store: FilePath) throws -> EvidenceScope {
    try EvidenceScope(of: store, surroundings: surroundings)
  }

  /// Reads every place of the home, and again those renamed meanwhile, as encrypted places are once.
  package func catalogs() throws -> [BackupCatalog] { try catalogs { try places() } }

  package func catalogs(of store: FilePath) throws -> [BackupCatalog] { try catalogs { try places(of: store) } }

  private func catalogs(of find: () throws -> [FolderPlace]) throws -> [BackupCatalog] {
    var attempts = 5
    while true {
      attempts -= 1
      let places = try find()
      var (catalogs, there) = ([BackupCatalog](), [FolderPlace]())
      for place in places where try isThere(place) { there.append(place) }
      for place in places { catalogs.append(try BackupCatalog(of: place)) }
      var isSteady = true
      for place in there where try !isThere(place) { isSteady = false }
      if isSteady || attempts == 0 { return catalogs }
    }
  }

  package func catalog(of store: FilePath) throws -> BackupCatalog { try BackupCatalog(of: place(of: store)) }

  /// Finds a backup by name in all places.
  ///
  /// - Throws: `no-such-backup`, or `ambiguous-id` if two stores have that name.
  package func find(_ id: BackupIdentifier) throws -> (catalog: BackupCatalog, backup: StoredBackup) {
    var found: [(BackupCatalog, StoredBackup)] = []
    for catalog in try catalogs() {
      if let backup = catalog.backups.first(where: { $0.id == id }) { found.append((catalog, backup)) }
    }
    guard let first = found.first else {
      throw BackupError(
        .notFound, operation: "find the backup", path: home.appending("Backups"), detail: "there is no backup \(id)")
    }
    guard found.count == 1 else {
      throw BackupError(
        .ambiguous, operation: "find the backup", path: home.appending("Backups"),
        detail: "\(found.count) stores have a backup \(id)")
    }
    return first
  }

  /// Verifies a backup and notes the result beside it; see ``BackupProver``.
  package func prove(
    _ id: BackupIdentifier, in place: any BackupPlace, _ options: BackupProver.Options = .init()
  ) throws -> BackupProof {
    try BackupProver(surroundings: surroundings).prove(id, in: place, options)
  }
}

extension Backups {
  /// Backs up a store before its migration or replacement, if the home's policy wants that.
  ///
  /// - Returns: nil if not wanted, missing, or damaged: quarantine keeps a damaged store byte for byte.
  /// - Throws: `backup-policy-unreadable`, or the error of the backup.
  func backUp(
    _ store: StoreFileSet, before reason: BackupManifest.Reason, appVersion: String? = nil
  ) throws -> StoredBackup? {
    let policy = try BackupPolicy.load(home: home, in: surroundings.fileSystem)
    switch reason {
    case .beforeMigration: guard policy.beforeMigration else { return nil }
    case .beforeInstall: guard policy.beforeInstall else { return nil }
    case .beforeRestore: guard policy.beforeRestore else { return nil }
    case .manual, .scheduled: break
    }
    let examination = try Examiner(fileSystem: surroundings.fileSystem).examine(
      store.main, options: .init(depth: .full, countsRecords: false))
    guard examination.verdict != .missing, examination.verdict != .damaged, examination.isReadable else { return nil }
    var request = BackupRequest()
    request.reason = reason
    (request.compression, request.level) = policy.usablePacking
    request.appVersion = appVersion
    let backup = try create(store.main, request)
    // Raw files kept because of damaged indexes cannot be restored.
    return backup.isApart ? nil : backup
  }

  /// Releases an original with records that its migration removed, so that pruning treats it like any other.
  ///
  /// Until then the policy cannot prune it; `StoredBackup.onlyHere` names the records' entities.
  ///
  /// - Parameter place: nil searches the places of all stores.
  /// - Returns: the note; nil if released before or without such records.
  /// - Throws: `no-such-backup`, `ambiguous-id` if two stores have that name, or the place's error.
  @discardableResult
  package func release(
    _ id: BackupIdentifier, in place: (any BackupPlace)? = nil
  ) throws -> OnlyHereNote? {
    let found: any BackupPlace = if let place { place } else { try find(id).catalog.place }
    return try BackupPruner(of: found, surroundings: surroundings).release(id)
  }

  /// Confirms an intended fall in record counts, so that pruning treats the last backup before it like any other.
  ///
  /// - Parameters:
  ///   - id: `BackupManifest.Fall.backup`.
  ///   - place: nil searches the places of all stores.
  /// - Returns: the falls that kept it.
  /// - Throws: `no-such-backup`, `ambiguous-id` if two stores have that name, or the place's error.
  @discardableResult
  package func acknowledgeFalls(
    since id: BackupIdentifier, in place: (any BackupPlace)? = nil
  ) throws -> [BackupManifest.Fall] {
    let found: any BackupPlace = if let place { place } else { try find(id).catalog.place }
    return try BackupPruner(of: found, surroundings: surroundings).acknowledge(id)
  }

  package struct Scheduled: Sendable {
    /// Nil if not due.
    package var backup: StoredBackup?

    /// Nil without a backup or for a damaged store.
    package var proof: BackupProof?

    /// Nil without a backup, for a damaged store, or after a failed verification, when no backup is dropped.
    package var pruning: PruningReport?
  }

  /// Backs up a store if the home's policy says so, verifies the backup, and prunes.
  ///
  /// A damaged store is kept as its raw files, without pruning. An app calls this when idle after opening; each call
  /// counts as an opening.
  ///
  /// - Throws: `backup-policy-unreadable`, or the error of taking or pruning; the store is never changed.
  package func backUpIfDue(
    _ store: FilePath, appVersion: String? = nil, modelVersion: String? = nil,
    progress: @escaping BackupProgress = { _, _, _ in true }
  ) throws -> Scheduled {
    let policy = try BackupPolicy.load(home: home, in: surroundings.fileSystem)
    let place = try claimPlace(of: store)
    let openings = try OpeningCounter(place: place).next(policy)
    // Incomplete or failed backups, and originals of migrations, do not count. Of a damaged store one backup is enough
    // until the next is due.
    let dates = try BackupCatalog(of: place).backups.filter { backup in
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

/// Openings since the last backup, if the policy counts them.
private struct OpeningCounter {
  let place: FolderPlace
  private let name = "openings.json"

  private struct Content: Codable {
    var openings: Int
  }

  func next(_ policy: BackupPolicy) throws -> Int {
    guard let every = policy.everyOpenings else { return 0 }
    var count = 0
    if try place.list(.kept).contains(where: { $0.name == name }) {
      let bytes = try place.read(name, in: .kept, at: 0, length: 4096)
      // An unreadable counter only delays the backup by some openings.
      count = (try? JSONDecoder().decode(Content.self, from: Data(bytes)))?.openings ?? 0
    }
    // Once due, a backup stays due.
    count = max(0, min(count, every)) + 1
    try write(count)
    return count
  }

  func reset(_ policy: BackupPolicy) throws {
    if policy.everyOpenings != nil { try write(0) }
  }

  private func write(_ count: Int) throws {
    let bytes = try JSON.bytes(of: Content(openings: count), .line, to: "count the openings")
    try place.replace(name, with: bytes, in: .kept)
  }
}

/// The copy of a log or journal, not fully understood, that SQLite would fold in or remove.
struct KeptLog {
  let place: StoreFileSet
  let home: FilePath?
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Copies log and journal byte for byte into `Evidence/` of the backup folder, once.
  func keep() throws -> [OpeningEvent] {
    var events: [OpeningEvent] = []
    for part in [StoreFileSet.Part.wal, .journal] {
      let source = place.path(of: part)
      guard let status = try fileSystem.status(of: source), status.size > 0 else { continue }
      let folder = try Backups(home: home ?? place.folder, surroundings: surroundings).claimPlace(of: place.main).path
        .appending("Evidence")
      try fileSystem.makeDirectory(folder)
      let name = part == .wal ? "write-ahead log" : "rollback journal"
      events.append(
        OpeningEvent(
          .backup, at: surroundings.now(),
          path: try copy(source, status.size, named: ".sqlite-\(part.rawValue)", into: folder),
          words: "The store's \(name) does not end as it should: it was kept as it was before the store was opened."))
    }
    return events
  }

  private func copy(_ source: FilePath, _ size: Int64, named ending: String, into folder: FilePath) throws -> FilePath {
    var digest: FileDigest?
    for entry in try fileSystem.entries(of: folder) where entry.string.hasSuffix(ending) {
      let other = folder.appending(entry)
      guard try fileSystem.status(of: other, followingLinks: false)?.size == size else { continue }
      let own = try digest ?? FileDigest(of: fileSystem.open(source))
      digest = own
      if try FileDigest(of: fileSystem.open(other)) == own { return other }
    }
    let unfinished = folder.appending(".log.unfinished")
    _ = try fileSystem.copy(source, to: unfinished)
    var number = 1
    while true {
      let path = folder.appending("\(BackupIdentifier(date: surroundings.now(), number: number))\(ending)")
      number += 1
      if try fileSystem.status(of: path, followingLinks: false) != nil { continue }
      try fileSystem.install(unfinished, at: path, replacing: false)
      try fileSystem.synchronizeDirectory(folder.folder)
      return path
    }
  }
}

extension Backups {
  private var fileSystem: FileSystem { surroundings.fileSystem }

  private func restorer(of store: FilePath, _ place: (any BackupPlace)?) throws -> BackupRestorer {
    let found: any BackupPlace = if let place { place } else { try self.place(of: store) }
    return BackupRestorer(of: found, surroundings: surroundings)
  }

  private func refuseOther(_ backup: StoredBackup, _ place: (any BackupPlace)?, _ store: FilePath) throws {
    guard let place = place as? FolderPlace, place.owner != nil, try !folders.isBackup(backup, of: store) else {
      return
    }
    let own = try places(of: store).first { $0.path == place.path }
    guard let own, try !BackupCatalog(of: own).isOther(backup.id) else { throw BackupError.ofOtherStore(backup) }
  }

  /// Previews the changes of a restore over a store.
  ///
  /// - Parameters:
  ///   - id: nil takes the newest restorable backup.
  ///   - time: the latest time of the backup.
  ///   - place: nil takes the store's place in the home.
  /// - Throws: `backup-of-other-store`, or the error of the restore or of reading the store.
  package func preview(
    of path: FilePath, _ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil,
    from place: (any BackupPlace)? = nil, allowsOtherStore: Bool = false, options: BackupRestorer.Options = .init(),
    models: [ModelBundle] = []
  ) throws -> RestorePreview {
    let restorer = try restorer(of: path, place)
    let backup = try restorer.choose(id, notLaterThan: time)
    if !allowsOtherStore { try refuseOther(backup, place, path) }
    return try restorer.preview(backup.id, over: path, options: options, models: models)
  }

  package struct Restored: Sendable {
    package var report: RestoreReport

    /// The previous store.
    package var quarantined: QuarantinedStore?

    /// The backup of the previous store; nil if it was damaged or no backup was wanted.
    package var backup: StoredBackup?

    /// The newer backups passed over; empty if the caller named the backup.
    var passedOver: [BackupChoice.PassedOver] = []

    /// Damage that was in the store at its backup; nil if sound, salvaged, or unknown.
    package var damage: (code: String, words: String)?
  }

  /// Restores a backup over a store and quarantines the present store unchanged.
  ///
  /// The backup is restored beside the store, checked and synced before any move. After a kill, the old store is at its
  /// path, or the next opening or restore installs the restored one.
  ///
  /// - Parameters:
  ///   - id: nil takes the newest restorable backup.
  ///   - time: the latest time of the backup.
  ///   - place: nil takes the store's place in the home.
  ///   - takesBackup: first backs up the present store if it is sound and the home's policy allows it.
  /// - Throws: `backup-of-other-store`; `locked` or `in-use` if another process has the store open, `no-space`,
  ///   `backup-damaged`, or the error of a step; the store is then unchanged.
  package func restore(
    over path: FilePath, _ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil,
    from place: (any BackupPlace)? = nil, takesBackup: Bool = true, allowsOtherStore: Bool = false,
    options: BackupRestorer.Options = .init()
  ) throws -> Restored {
    let store = try StoreFileSet.locate(path, in: fileSystem)
    let restorer = try restorer(of: path, place)
    let choice = try restorer.choice(id, notLaterThan: time)
    let backup = choice.backup
    if !allowsOtherStore { try refuseOther(backup, place, path) }
    let chosen = backup.id
    let restored = StoreLineage.Restored(
      backup: chosen.description, date: chosen.date, generation: backup.manifest?.lineage?.generation)
    _ = try finishInterrupted(store)
    // Report a store in use first.
    let attempt = try StoreLock(on: store, in: fileSystem)
    attempt.release()
    let mark = PrivateFolder.mark(of: store.main)
    defer { withExtendedLifetime(mark) {} }
    let folder = RestoreFolder(for: store, in: fileSystem)
    let present = takesBackup ? try backUp(store, before: .beforeRestore) : nil
    func done(_ report: RestoreReport, _ quarantined: QuarantinedStore?) -> Restored {
      Restored(
        report: report, quarantined: quarantined, backup: present, passedOver: choice.passedOver,
        damage: report.damage(backup))
    }
    var staged: RestoreReport?
    do {
      let working = try folder.make()
      let report = try restorer.stage(chosen, in: folder, options: options)
      staged = report
      let quarantined = try exchange(store, folder, report, restored)
      working.release()
      return done(report, quarantined)
    } catch {
      // Finish a half-done quarantine: the restored store is then installed or removed. The next opening handles the
      // rest; report the first error.
      if let staged, (try? finishInterrupted(store)) == .some(chosen) {
        let quarantined = try QuarantineFolder(beside: store, surroundings: surroundings).stores()
          .first { $0.receipt?.originalPath.path == store.main }
        return done(staged, quarantined)
      }
      if staged == nil { try? folder.removeUnlessInstalling() }
      throw error
    }
  }

  private func exchange(
    _ store: StoreFileSet, _ folder: RestoreFolder, _ report: RestoreReport, _ restored: StoreLineage.Restored
  ) throws -> QuarantinedStore? {
    let lock = try FolderLock(store.folder, in: fileSystem)
    if let access = try fileSystem.access(to: store.main), access.status.kind == .regular {
      try fileSystem.adoptAccess(of: access.usable, to: folder.store.main)
    }
    try folder.markReady(report.id, report)
    var quarantined: QuarantinedStore?
    if try !store.members(in: fileSystem).isEmpty {
      quarantined = try Quarantines(home: home, surroundings: surroundings).add(
        store, model: nil, reason: "Backup \(report.id) was restored in its place.", appVersion: nil,
        holding: [store.folder], makingRoomFor: restored, OpeningObserver())
    }
    do {
      try folder.install()
      if quarantined == nil { note(restored, at: store) }
    } catch {
      if let quarantined, try store.members(in: fileSystem).isEmpty {
        _ = try QuarantineFolder(beside: store, surroundings: surroundings).release(quarantined.id, to: store)
      }
      throw error
    }
    lock.release()
    return quarantined
  }

  private func note(_ restored: StoreLineage.Restored, at store: StoreFileSet) {
    let quarantine = QuarantineFolder(beside: store, surroundings: surroundings)
    do {
      guard try fileSystem.status(of: quarantine.path)?.kind == .directory else { return }
      let salvaging = try quarantine.salvageLock()
      try quarantine.noteRestored(restored, at: store.main)
      salvaging.release()
    } catch {
      // Without the note the store only starts its own generation.
    }
  }

  /// Finishes an interrupted restore, after the quarantine.
  package func finishInterrupted(_ store: StoreFileSet) throws -> BackupIdentifier? {
    let folder = RestoreFolder(for: store, in: fileSystem)
    guard try folder.isThere() else { return nil }
    let lock = try FolderLock(store.folder, in: fileSystem)
    _ = try QuarantineFolder(beside: store, surroundings: surroundings).finishInterrupted()
    let outcome = try folder.finishInterrupted()
    lock.release()
    if case .installed(let id) = outcome { return id }
    return nil
  }
}
