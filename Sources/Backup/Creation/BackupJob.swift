import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage

/// One attempt at backing a store up.
struct BackupJob {
  let id: BackupIdentifier
  let files: StoreFileSet
  let catalog: BackupCatalog
  let request: BackupRequest
  let surroundings: Surroundings
  let temporary: FilePath

  let attempt: Int

  var place: any BackupPlace { catalog.place }

  /// Takes the backup; also returns whether the store is open elsewhere.
  func run() throws -> (manifest: BackupManifest, isInUse: Bool) {
    let snapshot = try StoreSnapshot(of: files, temporary: temporary, surroundings: surroundings)
    defer { snapshot.release() }
    // An unhurried run leaves the processors to the app.
    guard snapshot.isUnhurried else { return (try take(snapshot), snapshot.isInUse) }
    return (try QuietThread.run { try take(snapshot) }, true)
  }

  private func take(_ snapshot: StoreSnapshot) throws -> BackupManifest {
    let examination = try examine(snapshot, isFull: request.isEvidence)
    let isUnreadable = examination.verdict == .damaged || examination.isEncryptedOrRandom
    var damaged: Examination?
    if !request.isEvidence, !isUnreadable {
      switch try runDatabase(snapshot, examination) {
      case .taken(let manifest): return manifest
      case .damaged(let found): damaged = found
      }
    }
    // Another process may have caused the apparent damage.
    try snapshot.requireUnchanged()
    if let damaged { return try runEvidence(snapshot, damaged) }
    return try runEvidence(snapshot, request.isEvidence ? examination : try examine(snapshot, isFull: true))
  }

  /// A backup of which files are being written.
  private struct Draft {
    var manifest: BackupManifest
    private(set) var uploads: [any BackupUpload] = []

    init(_ manifest: BackupManifest) { self.manifest = manifest }

    mutating func add(_ packed: BlockPacker.Packed) {
      manifest.files.append(packed.file)
      uploads.append(packed.upload)
    }

    mutating func add(_ values: BackupManifest.ExternalData, _ archive: BlockPacker.Packed?) {
      manifest.externalData = values
      if let archive { add(archive) }
    }
  }

  // MARK: A sound store

  private enum Taken {
    case taken(BackupManifest)
    /// The store is damaged; the packed data was discarded.
    case damaged(Examination)
  }

  private func runDatabase(_ snapshot: StoreSnapshot, _ examination: Examination) throws -> Taken {
    let database = try database(of: snapshot)
    // The WAL index must match the checksums.
    guard snapshot.committedFrames == nil || snapshot.committedFrames == database.writeAheadLog?.committedFrameCount
    else { throw BackupError(FileError(.changed, operation: "read the store's log", path: files.path(of: .wal))) }
    let content = DatabaseContent(database)
    let parent = try request.isFull ? nil : self.parent(for: content, examination)
    let isWhole = isWholeCheckDue(parent)
    let check = StoreCheck(content, snapshot, of: self, scope: isWhole ? .whole : nil)
    defer { check.stop() }
    do { return try pack(content, snapshot, examination, parent, check, isWhole: isWhole) } catch {
      let error = BackupError(any: error)
      // The check may not have reached the damage yet.
      guard check.isDamaged || error.kind == .store else { throw error }
      check.compare(.whole)
      let found = try check.outcome().examination
      guard found.verdict == .damaged else { throw error }
      return .damaged(found)
    }
  }

  private func pack(
    _ content: DatabaseContent, _ snapshot: StoreSnapshot, _ examination: Examination, _ parent: StoredBackup?,
    _ check: StoreCheck, isWhole: Bool
  ) throws -> Taken {
    let packer = BlockPacker(job: self, snapshot: snapshot, check: check)
    var draft = Draft(manifest(parent == nil ? .full : .delta, snapshot, examination))
    let hashes = try HashedPages(id, content, in: place)
    var comparison: ContentComparison?
    if let parent { comparison = try packer.compare(content, with: parent, hashes) }
    if let parent, let comparison, comparison.isWorthDelta {
      check.compare(isWhole ? .whole : .changed(comparison.runs, schema: parent.manifest?.check.schema))
      draft.manifest.check.depth = isWhole ? .whole : .changed
      try pack(content, comparison, on: parent, packer, into: &draft)
    } else {
      check.compare(.whole)
      draft.manifest.check.depth = .whole
      try pack(content, packer, comparison == nil ? hashes : nil, into: &draft)
    }
    draft.add(hashes.packed)
    let external = ExternalDataJob(
      job: self, packer: packer, parent: draft.manifest.parent.flatMap { id in catalog.backups.first { $0.id == id } })
    if let (data, archive) = try external.run(content, model: examination.storeModel) { draft.add(data, archive) }
    let outcome = try check.outcome()
    guard outcome.examination.verdict != .damaged else { return .damaged(outcome.examination) }
    draft.manifest.note(outcome)
    draft.manifest.falls = falls(of: draft.manifest)
    if let kit = outcome.kit { draft.add(try write(kit: kit)) }
    return .taken(try commit(draft, snapshot))
  }

  private func pack(
    _ content: DatabaseContent, _ comparison: ContentComparison, on parent: StoredBackup, _ packer: BlockPacker,
    into draft: inout Draft
  ) throws {
    draft.add(try packer.pack(ChangedPages(content: content, runs: comparison.runs), as: .delta, hashes: nil))
    draft.manifest.parent = parent.id
    draft.manifest.depth = (parent.manifest?.depth ?? 1) + 1
    draft.manifest.pages = comparison.runs.flatMap { [$0.first, $0.count] }
    draft.manifest.database = comparison.content
  }

  private func pack(
    _ content: DatabaseContent, _ packer: BlockPacker, _ hashes: HashedPages?, into draft: inout Draft
  ) throws {
    var packed = try packer.pack(content, as: .database, hashes: hashes)
    draft.manifest.kind = .full
    draft.manifest.database = packed.file.content
    draft.manifest.database?.pageSize = content.pageSize
    draft.manifest.database?.pageCount = content.pageCount
    packed.file.content = nil
    draft.add(packed)
  }

  /// Returns whether all indexes are due for comparison: for a full backup, after an unknown depth, and once a day.
  private func isWholeCheckDue(_ parent: StoredBackup?) -> Bool {
    guard let parent, parent.manifest?.check.depth != nil else { return true }
    let last = catalog.backups.first { backup in
      backup.isWhole && !backup.isApart && backup.manifest?.check.depth == .whole && backup.id < id
    }
    guard let last else { return true }
    let age = id.date.secondsSince1970 &- last.id.date.secondsSince1970
    return age < 0 || age >= 86400
  }

  func database(of snapshot: StoreSnapshot) throws -> Database {
    do throws(FileError) {
      return try Database(main: snapshot.main, writeAheadLog: snapshot.log, rollbackJournal: snapshot.journal)
    } catch { throw BackupError(error, store: files.main) }
  }

  /// - Parameter isFull: whether to check every page and index and count records, as ``StoreCheck`` does otherwise.
  private func examine(_ snapshot: StoreSnapshot, isFull: Bool) throws -> Examination {
    do {
      return try Examiner(fileSystem: surroundings.fileSystem).examine(
        main: snapshot.main, log: snapshot.log, journal: snapshot.journal, of: files, members: snapshot.members,
        options: .init(depth: isFull ? .full : .quick, countsRecords: isFull) { [request] done, total in
          request.progress(.checking, Int64(done), Int64(max(1, total)))
        })
    } catch let error as FileError {
      if error.kind == .cancelled { throw BackupError.cancelled("back up the store") }
      throw BackupError(error, store: files.main)
    } catch {
      throw BackupError(
        .store, operation: "examine the store", path: files.main, detail: "an unforeseen failure",
        hint: "Please report this, with what you did.")
    }
  }

  private func parent(for content: DatabaseContent, _ examination: Examination) throws -> StoredBackup? {
    for backup in catalog.backups where backup.isWhole && !backup.isApart && backup.id < id {
      guard let manifest = backup.manifest, backup.proof?.result != .failed,
        manifest.database?.pageSize == content.pageSize, manifest.file(.pageHashes) != nil,
        manifest.store.uuid == examination.metadata?.uuid
      else { continue }
      guard manifest.depth < request.chainLimit else { return nil }
      // The ancestors must be good too.
      let chain = try catalog.chain(of: backup.id)
      // Earlier versions could mix stores in a chain.
      if chain.contains(where: { $0.proof?.result == .failed || catalog.isOther($0.id) }) { return nil }
      // A parent that cannot be unpacked prevents verification.
      return chain.allSatisfy { $0.manifest?.files.allSatisfy(\.packing.isAvailable) ?? false } ? backup : nil
    }
    return nil
  }

  // MARK: Evidence

  private func runEvidence(_ snapshot: StoreSnapshot, _ examination: Examination) throws -> BackupManifest {
    let packer = BlockPacker(job: self, snapshot: snapshot, check: nil)
    var draft = Draft(manifest(.evidence, snapshot, examination))
    draft.manifest.store.journalMode = nil
    let roles: [BackupManifest.File.Role] = [
      .evidenceMain, .evidenceLog, .evidenceSharedMemory, .evidenceJournal,
    ]
    for role in roles {
      if let source = try evidence(role, snapshot) { draft.add(try packer.pack(source, as: role, hashes: nil)) }
    }
    let external = ExternalDataJob(job: self, packer: packer, parent: nil)
    if let (data, archive) = try external.run(nil, model: nil) { draft.add(data, archive) }
    return try commit(draft, snapshot)
  }

  private func evidence(_ role: BackupManifest.File.Role, _ snapshot: StoreSnapshot) throws -> (any ByteSource)? {
    guard let part = role.part, snapshot.members.contains(where: { $0.part == part }) else { return nil }
    if part == .main { return snapshot.main }
    // Only the copied WAL matches the copied file.
    if snapshot.isCopied { return part == .wal ? snapshot.log : nil }
    let path = files.path(of: part)
    // Connections of this process hold locks on the WAL index.
    if part == .sharedMemory { return try LastingFile(path, in: surroundings.fileSystem) }
    return try surroundings.fileSystem.open(path)
  }

  // MARK: The end

  /// Releases the store, if it is unchanged, and gives all files their names, the manifest last.
  ///
  /// The unnamed manifest is on disk first, so that the next backup recognizes and removes the remains of a killed run.
  private func commit(_ draft: Draft, _ snapshot: StoreSnapshot) throws -> BackupManifest {
    try snapshot.requireUnchanged()
    snapshot.release()
    let uploads = draft.uploads
    var manifest = draft.manifest
    manifest.files.sort { $0.name < $1.name }
    manifest.version = manifest.neededVersion
    manifest.chooseCarrier()
    let json = try manifest.json()
    // Parsing first prevents writing an unreadable manifest.
    manifest = try BackupManifest(json: json, of: id)
    for file in manifest.files where file.members != nil {
      let content = (file.content ?? manifest.database)?.bytes ?? 0
      let tail = file.packing.tail(of: file, content: content, manifest: file.carriesManifest == true ? json : nil)
      if let upload = uploads.first(where: { $0.name == file.name }) { try upload.append(tail[...]) }
    }
    for upload in uploads { try upload.synchronize() }
    let head = try place.begin("\(id)\(BackupManifest.suffix)")
    try head.append(json[...])
    try head.synchronize()
    do {
      for upload in uploads { try upload.commit() }
      try head.commit()
    } catch {
      // The first error is reported. If the manifest cannot be deleted, all files stay as a whole backup.
      do {
        try place.delete("\(id)\(BackupManifest.suffix)", in: .kept)
        for upload in uploads { try? place.delete(upload.name, in: .kept) }
      } catch {}
      throw error
    }
    return manifest
  }

  /// Reports progress; throws if the caller cancels.
  func advance(_ phase: BackupPhase, _ done: Int64, _ total: Int64) throws {
    guard request.progress(phase, done, total) else { throw BackupError.cancelled("back up the store") }
  }

  /// Returns the entities that lost more than half of their records since the last good backup of this generation.
  ///
  /// Entities removed by a migration are skipped, as it keeps a note.
  func falls(of manifest: BackupManifest) -> [BackupManifest.Fall]? {
    let earlier = catalog.backups.first { backup in
      guard let other = backup.manifest, backup.id < id, backup.isWhole, !backup.isApart, other.kind != .original,
        backup.proof?.result != .failed
      else { return false }
      return other.lineage?.generation == manifest.lineage?.generation
    }
    guard let earlier, let counted = earlier.manifest?.entities else { return nil }
    let isSameModel = earlier.manifest?.model?.entityHashes == manifest.model?.entityHashes
    let now = Dictionary((manifest.entities ?? []).map { ($0.name, $0.rows) }, uniquingKeysWith: { first, _ in first })
    var falls: [BackupManifest.Fall] = []
    for entity in counted {
      guard let before = entity.rows, before > 0 else { continue }
      guard let after = now[entity.name] ?? (isSameModel ? 0 : nil) else { continue }
      if after >= 0, after < before - after {
        falls.append(.init(name: entity.name, before: before, after: after, backup: earlier.id))
      }
    }
    return falls.isEmpty ? nil : falls
  }

  func manifest(_ kind: BackupManifest.Kind, _ snapshot: StoreSnapshot, _ examination: Examination) -> BackupManifest {
    let isSound = examination.verdict != .damaged && !examination.isEncryptedOrRandom
    var manifest = BackupManifest(
      id: id, kind: kind, reason: request.reason,
      store: .init(
        path: PathText(files.main), kind: examination.kind.rawValue, uuid: examination.metadata?.uuid,
        journalMode: snapshot.manner == .rollback ? "delete" : "wal"), files: [],
      check: .init(
        isSound: isSound, code: isSound ? nil : examination.reason.code, words: isSound ? nil : examination.reason.words
      ),
      versions: .init(
        app: request.appVersion, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
        storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem))
    manifest.store.relativePath = place.owner?.path
    manifest.tags = request.tags
    manifest.lineage = request.lineage
    if let metadata = examination.metadata {
      manifest.model = .init(
        version: request.modelVersion, identifiers: metadata.versionIdentifiers, checksum: metadata.versionChecksum,
        entityHashes: metadata.versionHashes.mapValues(\.description))
    }
    if !examination.entities.isEmpty { manifest.entities = examination.entities }
    return manifest
  }

  /// 1/32 of the content, but at least 64 KiB.
  static func kitLimit(_ content: DatabaseContent) -> Int64 { max(64 << 10, content.count / 32) }

  func write(kit bytes: [UInt8]) throws -> BlockPacker.Packed {
    let name = "\(id)\(BackupManifest.File.Role.recoveryKit.suffix)"
    let upload = try place.begin(name)
    try upload.append(bytes[...])
    let file = BackupManifest.File(
      role: .recoveryKit, name: name, bytes: Int64(bytes.count), sha256: FileDigest(of: bytes).hexadecimal)
    return BlockPacker.Packed(file: file, upload: upload)
  }
}

extension BackupManifest {
  mutating func note(_ outcome: StoreCheck.Outcome) {
    let counted = outcome.examination.entities
    entities = counted.isEmpty ? nil : counted
    check.schema = outcome.schema
    let unchecked = outcome.examination.unchecked.map(\.words)
    check.notChecked = unchecked.isEmpty ? nil : Array(unchecked.prefix(1000))
    check.uncompared = outcome.uncompared.isEmpty ? nil : Array(outcome.uncompared.sorted().prefix(1000))
  }
}
