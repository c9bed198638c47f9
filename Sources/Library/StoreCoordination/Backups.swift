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
