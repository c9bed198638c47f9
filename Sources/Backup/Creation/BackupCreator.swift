package import Platform
package import SystemPackage

/// Takes backups: consistent copies of stores in use, or raw files of damaged ones.
///
/// The store's folder is not written to. The manifest is written last, so that incomplete backups are never listed.
package struct BackupCreator: Sendable {
  let surroundings: Surroundings
  let temporary: FilePath?

  /// The attempts for a store changed without locks.
  private static let attempts = 5

  package init() { self.init(surroundings: .machine) }

  /// - Parameter temporary: the folder for copies; if nil, that of the system or of the backups.
  package init(surroundings: Surroundings, temporary: FilePath? = nil) {
    self.surroundings = surroundings
    self.temporary = temporary
  }

  /// Backs a store up.
  ///
  /// A damaged or evidence store is kept as raw files; any other becomes a database file, or a delta if less than half
  /// of its pages changed.
  ///
  /// - Returns: the backup, with a proof if requested.
  /// - Throws: `nothing-to-back-up`, `cancelled`, or errors of file system and place; no whole backup is left.
  package func create(
    _ store: FilePath, in place: any BackupPlace, _ request: BackupRequest = BackupRequest()
  ) throws -> StoredBackup {
    try request.check()
    let (place, deltaKey) = sealed(place, request)
    let files: StoreFileSet
    do throws(FileError) {
      files = try StoreFileSet.locate(store, in: surroundings.fileSystem)
      guard try isThere(files) else { throw FileError(.notFound, operation: "find the store", path: store) }
    } catch {
      guard error.kind == .notFound else { throw BackupError(error) }
      throw BackupError(.nothingToBackUp, operation: "back up the store", path: store, detail: "there is no such store")
    }
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    try place.removeUnfinished()
    // The next pruning moves the rest.
    try? BackupTrash(place: place, surroundings: surroundings).finishInterrupted()
    let catalog = try BackupCatalog(of: place)
    if request.encryption == nil, !request.allowsPlain { try Self.requirePlain(catalog, store) }
    let id = try freeIdentifier(catalog)
    let temporary = temporary ?? PrivateFolder.temporary(or: folder(of: place), surroundings)
    for attempt in 1...Self.attempts {
      do {
        let job = BackupJob(
          id: id, files: files, catalog: catalog, request: request, surroundings: surroundings, temporary: temporary,
          attempt: attempt)
        let (manifest, isInUse) = try job.run()
        let backup = try readBack(manifest, isInUse: isInUse, in: place, request)
        if let deltaKey { deltaKey.key.write(deltaKey.next, of: id) }
        return backup
      } catch {
        let error = BackupError(any: error)
        // Another process started to use or replaced the store.
        let isChange = error.fileError.map { $0.kind == .changed || $0.kind == .notFound } ?? false
        guard isChange, attempt < Self.attempts else { throw error }
        LogReadLock.rest()
      }
    }
    throw BackupError(FileError(.changed, operation: "back up the store", path: store))
  }

  /// Returns whether the store exists.
  ///
  /// While another process replaces it under the folder lock, its name may be missing.
  private func isThere(_ files: StoreFileSet) throws(FileError) -> Bool {
    if try surroundings.fileSystem.status(of: files.main) != nil { return true }
    let lock = try FolderLock(files.folder, in: surroundings.fileSystem)
    let isThere = try surroundings.fileSystem.status(of: files.main) != nil
    lock.release()
    return isThere
  }

  /// Returns the place for writing, and the key for the next delta.
  private func sealed(
    _ place: any BackupPlace, _ request: BackupRequest
  ) -> (place: any BackupPlace, deltaKey: (key: DeltaKey, next: AgeIdentity)?) {
    guard let encryption = request.encryption else { return (place, nil) }
    var (base, identities) = (place, [AgeIdentity]())
    if let folder = place as? FolderPlace {
      identities = folder.keys?.identities ?? []
      base = folder.unlocked(with: [])
    }
    let key = encryption.deltaKeyFile.map { DeltaKey(file: $0, fileSystem: surroundings.fileSystem) }
    if let known = key?.read() { identities.append(known) }
    let next = AgeIdentity()
    let keys = BackupKeys(
      identities, writing: .init(recipients: encryption.recipients, delta: key == nil ? nil : next.recipient))
    return (SealedPlace(base: base, keys: keys), key.map { ($0, next) })
  }

  private func folder(of place: any BackupPlace) -> FilePath? {
    ((place as? SealedPlace)?.base as? FolderPlace ?? place as? FolderPlace)?.path
  }

  /// Throws if the last backup is encrypted and the new one would be plain.
  ///
  /// The recipients cannot be taken from the place, which others may have written to.
  private static func requirePlain(_ catalog: BackupCatalog, _ store: FilePath) throws {
    guard let last = catalog.backups.first(where: { $0.manifest.map { $0.kind != .original } ?? false }),
      try catalog.place.isSealed(last.id, in: .kept)
    else { return }
    throw BackupError(
      .encryptionMissing, operation: "back up the store", path: store,
      detail: "its last backup \(last.id) is encrypted, and this one would not be")
  }

  private func readBack(
    _ manifest: BackupManifest, isInUse: Bool, in place: any BackupPlace, _ request: BackupRequest
  ) throws -> StoredBackup {
    if request.proves {
      let check = BackupFileCheck(surroundings: surroundings)
      let read: @Sendable () throws -> BackupProof = {
        try check.prove(manifest, in: place, isInUse: isInUse, progress: request.progress)
      }
      let proof = try isInUse ? QuietThread.run(read) : read()
      try place.replace("\(manifest.id)\(BackupProof.suffix)", with: try proof.json(), in: .kept)
      if let problem = proof.problems.first {
        throw BackupError(
          .verificationFailed, operation: "back up the store", detail: "what was written is damaged: \(problem.words)")
      }
    }
    return try BackupCatalog(of: place).backup(manifest.id)
  }

  private func freeIdentifier(_ catalog: BackupCatalog) throws -> BackupIdentifier {
    var names = (catalog.backups + catalog.others).flatMap(\.objects).map(\.name) + catalog.strays.map(\.name)
    names += try catalog.place.list(.trash).map(\.name)
    let taken = Set(names.compactMap { $0.split(separator: ".").first.map(String.init) })
    let date = surroundings.now()
    for number in 1...100_000 {
      let id = BackupIdentifier(date: date, number: number)
      if !taken.contains(id.description) { return id }
    }
    throw BackupError(
      .nameTaken, operation: "name the backup", detail: "too many backups were taken in one second",
      hint: "Check the clock.")
  }
}

/// The options of a backup.
package struct BackupRequest: Sendable {
  package var compression = BackupCompression.gzip

  /// The level: 1, 6 or 9 for gzip, 1 to 19 for Zstandard; nil for the default.
  package var level: Int?

  var chosenLevel: Int { level ?? compression.usualLevel }

  package var encryption: BackupEncryption?

  /// Whether a plain backup may follow an encrypted one.
  package var allowsPlain = false

  /// Whether to pack all pages even if few changed.
  package var isFull = false

  package var reason = BackupManifest.Reason.manual

  /// Words for retention; letters, digits, `-`, `_` and `.`.
  package var tags: [String] = []

  /// The maximum chain length.
  package var chainLimit = 8

  /// Whether to keep raw files, as always for a damaged store.
  package var isEvidence = false

  /// Whether to read back and compare the written files.
  package var proves = true

  package var appVersion: String?

  /// The app's name of the model version.
  package var modelVersion: String?

  /// The store's generation, if known.
  package var lineage: StoreLineage?

  var progress: BackupProgress

  /// Creates a manual request with gzip at level 6.
  package init(progress: @escaping BackupProgress = { _, _, _ in true }) { self.progress = progress }

  func check() throws {
    try compression.requireAvailable(to: "back up the store")
    guard compression.has(level: chosenLevel) else {
      throw BackupError.request(
        "\(compression.rawValue) has no level \(chosenLevel)", hint: "Use level \(compression.levelWords).")
    }
    guard (1...1000).contains(chainLimit) else {
      throw BackupError.request("a chain cannot have \(chainLimit) backups", hint: "Use a length from 1 to 1000.")
    }
    for tag in tags {
      guard tag.utf8.allSatisfy(\.isOfWord), (1...64).contains(tag.utf8.count) else {
        throw BackupError.request(
          "\(printable(tag)) cannot be a tag", hint: "Use up to 64 letters, digits, points, hyphens and underscores.")
      }
    }
  }
}

extension BackupError {
  fileprivate static func request(_ detail: String, hint: String) -> BackupError {
    BackupError(.request, operation: "back up the store", detail: detail, hint: hint)
  }
}

/// A phase of a backup or restore.
package enum BackupPhase: String, Sendable, Hashable {
  case comparing, packing

  case externalData = "external-data"

  /// Written files are read back.
  case proving

  case unpacking, checking
}

/// Called with the phase, bytes done and total; false stops the work.
package typealias BackupProgress = @Sendable (_ phase: BackupPhase, _ done: Int64, _ total: Int64) -> Bool
