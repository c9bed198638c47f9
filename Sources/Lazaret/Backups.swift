package import Backup
import Foundation
internal import PersistentStore
package import Platform
package import SystemPackage

/// The backups of a home: taking, listing, proving and restoring them, and looking at what restoring would change.
///
/// ```swift
/// let backups = Backups(home: "/var/lib/app")
/// let preview = try backups.preview(of: "Stores/App.sqlite")
/// if preview.isHarmless { _ = try backups.restore(over: "Stores/App.sqlite") }
/// ```
///
/// Each store has a folder of its own in `Backups/`, by its path in the home and its identifier; ``place(of:)`` finds it.
package struct Backups: Sendable {
  /// The folder with `Backups/`.
  package let home: FilePath
  let surroundings: Surroundings

  /// The secret keys with which encrypted backups are read.
  package var identities: [AgeIdentity] = []

  /// The backups of a home.
  ///
  /// - Parameter surroundings: the file system, the clock and the source of identifiers.
  package init(home: FilePath, surroundings: Surroundings = .machine) {
    self.home = home
    self.surroundings = surroundings
  }

  private var folders: BackupPlaces {
    var places = BackupPlaces(home: home, surroundings: surroundings)
    places.identities = identities
    return places
  }

  /// Where the backups of a store are kept, whether there are any or not; nothing is written.
  ///
  /// A store is told by its path in the home, and by its identifier where it has moved to a path of its own; its `owner`
  /// says so. Stores of one name, and copies of a store, never share a place.
  package func place(of store: FilePath) throws(BackupError) -> FolderPlace {
    try folders.find(store).unlocked(with: identities)
  }

  /// Every place in which backups of a store are kept, that of ``place(of:)`` first.
  ///
  /// There is more than one where the machine that takes encrypted backups has lost its note of where they are, and began
  /// anew: with one of ``identities`` the earlier place is known as the store's too.
  package func places(of store: FilePath) throws(BackupError) -> [FolderPlace] {
    try folders.findAll(store).map { $0.unlocked(with: identities) }
  }

  /// The place for the backups of a store that is there, with a note of the store in it, encrypted where the home's policy
  /// has backups encrypted.
  ///
  /// What an earlier version put there of other stores is given a place of its own.
  package func claimPlace(of store: FilePath) throws(BackupError) -> FolderPlace {
    // A policy that cannot be read is told by what takes or prunes backups by it.
    let encryption = try? BackupPolicy.load(home: home, in: surroundings.fileSystem).encryption()
    return try folders.claim(store, encryptedTo: encryption?.recipients ?? []).unlocked(with: identities)
  }

  /// The places of the home in which something lies, one for each store, by name.
  package func places() throws(BackupError) -> [FolderPlace] {
    try folders.all().map { $0.unlocked(with: identities) }
  }

  /// Takes a backup of a store that others may go on using; see ``BackupCreator``.
  package func create(_ store: FilePath, _ request: BackupRequest = BackupRequest()) throws(BackupError) -> StoredBackup
  {
    let request = try prepared(request, for: store)
    var attempts = 3
    while true {
      let place = try folders.claim(store, encryptedTo: request.encryption?.recipients ?? [])
        .unlocked(with: identities)
      var request = request
      if request.encryption != nil, request.encryption?.deltaKeyFile == nil {
        request.encryption?.deltaKeyFile = deltaKeyFile(of: place)
      }
      do throws(BackupError) {
        return try BackupCreator(surroundings: surroundings).create(store, in: place, request)
      } catch {
        // Another process has given the folder the name that tells nothing: it is looked for again.
        attempts -= 1
        guard error.fileError?.kind == .changed, attempts > 0, try !isThere(place) else { throw error }
      }
    }
  }

  /// A request with what the store and the home's policy say besides.
  private func prepared(_ request: BackupRequest, for store: FilePath) throws(BackupError) -> BackupRequest {
    var request = request
    if request.lineage == nil { request.lineage = try evidence(of: store).lineage }
    if request.encryption == nil, !request.allowsPlain {
      request.encryption = try BackupPolicy.load(home: home, in: surroundings.fileSystem).encryption()
    }
    return request
  }

  /// The same for a place that is not in the home; the key that lets the next encrypted backup be a delta is kept in the home.
  package func prepared(
    _ request: BackupRequest, for store: FilePath, in place: any BackupPlace
  ) throws(BackupError) -> BackupRequest {
    var request = try prepared(request, for: store)
    if request.encryption != nil, request.encryption?.deltaKeyFile == nil {
      // The name of the file tells the place to whoever knows it.
      let digest = FileDigest(of: Array(place.location.utf8)).hexadecimal.prefix(32)
      request.encryption?.deltaKeyFile = home.appending("BackupKeys").appending("storage-\(digest).key")
    }
    return request
  }

  private func isThere(_ place: FolderPlace) throws(BackupError) -> Bool {
    do throws(FileError) { return try surroundings.fileSystem.status(of: place.path) != nil } catch {
      throw BackupError(error)
    }
  }

  /// Where the key is kept that lets the next encrypted backup of a place be a delta: in the home, outside of `Backups/`.
  private func deltaKeyFile(of place: FolderPlace) -> FilePath? {
    place.path.lastComponent.flatMap { FilePath.Component("\($0.string).key") }
      .map { home.appending("BackupKeys").appending($0) }
  }

  /// Which backups say something of a store: those of its own generation, and of a quarantined one those from before.
  package func evidence(of store: FilePath) throws(BackupError) -> EvidenceScope {
    do throws(FileError) { return try EvidenceScope(of: store, surroundings: surroundings) } catch {
      throw BackupError(error)
    }
  }

  /// What lies in each place of the home.
  ///
  /// A place that gets another name meanwhile, as one with encrypted backups once does, is looked at again.
  package func catalogs() throws(BackupError) -> [BackupCatalog] {
    try catalogs { () throws(BackupError) in try places() }
  }

  /// What lies in each place of a store.
  package func catalogs(of store: FilePath) throws(BackupError) -> [BackupCatalog] {
    try catalogs { () throws(BackupError) in try places(of: store) }
  }

  /// Reads places until none of them has got another name meanwhile.
  private func catalogs(
    of find: () throws(BackupError) -> [FolderPlace]
  ) throws(BackupError) -> [BackupCatalog] {
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

  /// What lies of one store in the place of ``place(of:)``.
  package func catalog(of store: FilePath) throws(BackupError) -> BackupCatalog {
    try BackupCatalog(of: place(of: store))
  }

  /// The backups of a name, in whichever place of the home.
  ///
  /// - Throws: `no-such-backup`, or `ambiguous-id` where two stores have one of that name.
  package func find(_ id: BackupIdentifier) throws(BackupError) -> (catalog: BackupCatalog, backup: StoredBackup) {
    var found: [(BackupCatalog, StoredBackup)] = []
    for catalog in try catalogs() {
      if let backup = catalog.backups.first(where: { $0.id == id }) { found.append((catalog, backup)) }
    }
    guard let first = found.first else {
      throw BackupError(
        .notFound, operation: "find the backup", path: home.appending("Backups"), detail: "there is no backup \(id)",
        hint: "List what there is with: lazaret backup list. Another home is given with --home.")
    }
    guard found.count == 1 else {
      throw BackupError(
        .ambiguous, operation: "find the backup", path: home.appending("Backups"),
        detail: "\(found.count) stores have a backup \(id)")
    }
    return first
  }

  /// Proves a backup and notes the result beside it; see ``BackupProver``.
  package func prove(
    _ id: BackupIdentifier, in place: any BackupPlace, _ options: BackupProver.Options = .init()
  ) throws(BackupError) -> BackupProof {
    try BackupProver(surroundings: surroundings).prove(id, in: place, options)
  }

  /// Proves a backup of a place that was read, and notes the result beside it; see ``BackupProver``.
  package func prove(
    _ id: BackupIdentifier, in catalog: BackupCatalog, _ options: BackupProver.Options = .init()
  ) throws(BackupError) -> BackupProof {
    try BackupProver(surroundings: surroundings).prove(id, in: catalog, options)
  }
}

extension Backups {
  /// Takes a backup of a store that is about to be migrated or replaced, where the home's policy wants one.
  ///
  /// - Returns: nil where none is wanted, where there is no store, and where it is damaged: quarantine keeps that byte for
  ///   byte.
  /// - Throws: `backup-policy-unreadable`, or what taking the backup failed with.
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
    // Damage in indexes is found while it is taken; the raw files that were kept are no backup to go back to.
    return backup.isApart ? nil : backup
  }
}

extension Backups {
  /// Releases an original whose migration removed records that it still holds: pruning judges it like any other from then on.
  ///
  /// Until then it is kept whatever the policy says; `StoredBackup.onlyHere` says of which entities it holds records. The
  /// original itself is not touched.
  ///
  /// - Parameters:
  ///   - id: the backup.
  ///   - place: where it is; looked for in the places of all stores if nil.
  /// - Returns: what was noted of it; nil where nothing was to be released, because it was released before or no migration
  ///   removed records that it holds.
  /// - Throws: `no-such-backup`, `ambiguous-id` where two stores have one of that name, or what the place says.
  @discardableResult
  package func release(
    _ id: BackupIdentifier, in place: (any BackupPlace)? = nil
  ) throws(BackupError) -> OnlyHereNote? {
    let found: any BackupPlace
    if let place { found = place } else { found = try find(id).catalog.place }
    return try BackupPruner(of: found, surroundings: surroundings).release(id)
  }

  /// Says that records were meant to become few: the last backup of before that is judged by the rules of pruning like any
  /// other from then on.
  ///
  /// - Parameters:
  ///   - id: the backup that is kept because of the fall, as `BackupManifest.Fall.backup` names it.
  ///   - place: where it is; looked for in the places of all stores if nil.
  /// - Returns: the falls that kept it; empty where none did.
  /// - Throws: `no-such-backup`, `ambiguous-id` where two stores have one of that name, or what the place says.
  @discardableResult
  package func acknowledgeFalls(
    since id: BackupIdentifier, in place: (any BackupPlace)? = nil
  ) throws(BackupError) -> [BackupManifest.Fall] {
    let found: any BackupPlace
    if let place { found = place } else { found = try find(id).catalog.place }
    return try BackupPruner(of: found, surroundings: surroundings).acknowledge(id)
  }
}

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
