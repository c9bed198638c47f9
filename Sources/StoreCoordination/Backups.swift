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

  private var folders: BackupPlaces { BackupPlaces(home: home, surroundings: surroundings) }

  /// Where the backups of a store are kept, whether there are any or not; nothing is written.
  ///
  /// A store is told by its path in the home, and by its identifier where it has moved to a path of its own; its `owner`
  /// says so. Stores of one name, and copies of a store, never share a place.
  package func place(of store: FilePath) throws(BackupError) -> FolderPlace {
    try folders.find(store).unlocked(with: identities)
  }

  /// The place for the backups of a store that is there, with a note of the store in it.
  ///
  /// What an earlier version put there of other stores is given a place of its own.
  package func claimPlace(of store: FilePath) throws(BackupError) -> FolderPlace {
    try folders.claim(store).unlocked(with: identities)
  }

  /// The places of the home in which something lies, one for each store, by name.
  package func places() throws(BackupError) -> [FolderPlace] {
    try folders.all().map { $0.unlocked(with: identities) }
  }

  /// Takes a backup of a store that others may go on using; see ``BackupCreator``.
  package func create(_ store: FilePath, _ request: BackupRequest = BackupRequest()) throws(BackupError) -> StoredBackup
  {
    var request = request
    if request.lineage == nil { request.lineage = try evidence(of: store).lineage }
    let place = try claimPlace(of: store)
    if request.encryption == nil, !request.allowsPlain {
      request.encryption = try BackupPolicy.load(home: home, in: surroundings.fileSystem).encryption()
    }
    if request.encryption != nil, request.encryption?.deltaKeyFile == nil {
      request.encryption?.deltaKeyFile = deltaKeyFile(of: place)
    }
    return try BackupCreator(surroundings: surroundings).create(store, in: place, request)
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
  package func catalogs() throws(BackupError) -> [BackupCatalog] {
    var catalogs: [BackupCatalog] = []
    for place in try places() { catalogs.append(try BackupCatalog(of: place)) }
    return catalogs
  }

  /// What lies there of one store.
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
