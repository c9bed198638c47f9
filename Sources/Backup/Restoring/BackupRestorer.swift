import ManagedObjectModel
import PersistentStore
package import Platform
package import Salvage
package import SystemPackage

/// Restores backups of a place.
package struct BackupRestorer: Sendable {
  package struct Options: Sendable {
    /// Whether to salvage the remains of a damaged backup instead of failing.
    var salvages: Bool

    /// Facts about the store, for a salvage.
    var model: SalvageModel?

    /// Called with the progress; false ends the restore.
    var progress: BackupProgress

    package init(
      salvages: Bool = false, model: SalvageModel? = nil, progress: @escaping BackupProgress = { _, _, _ in true }
    ) {
      self.salvages = salvages
      self.model = model
      self.progress = progress
    }
  }

  let place: any BackupPlace

  let surroundings: Surroundings

  var fileSystem: FileSystem { surroundings.fileSystem }

  package init(of place: any BackupPlace, surroundings: Surroundings = .machine) {
    self.place = place
    self.surroundings = surroundings
  }

  // MARK: Choosing

  /// Chooses the named backup or the newest suitable one; see ``choice(_:notLaterThan:)``.
  ///
  /// - Throws: `no-such-backup`, `backup-of-other-store`.
  package func choose(_ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil) throws -> StoredBackup {
    try choice(id, notLaterThan: time).backup
  }

  // MARK: Restoring

  /// Restores a backup to a free path.
  ///
  /// It is written under a hidden name, verified by block and as a whole, checked, and synchronized before it gets its
  /// name.
  ///
  /// - Throws: `place-taken`, `no-space`, `backup-damaged`, `backup-chain-broken`, or errors of a step; no file is left
  ///   then.
  package func restore(
    _ id: BackupIdentifier, to path: FilePath, options: Options = Options()
  ) throws -> RestoreReport {
    let target = try StoreFileSet.locate(path, in: fileSystem)
    let folder = RestoreFolder(for: target, in: fileSystem)
    if let report = try finishInterrupted(folder, id, options) { return report }
    try refuseWhatIsThere(target)
    return try removingLeftovers(of: folder) {
      let working = try folder.make()
      let report = try stage(id, in: folder, options: options)
      try install(id, from: folder, report)
      working.release()
      return report
    }
  }

  /// Finishes an interrupted restore; returns its report if it installed this backup.
  private func finishInterrupted(
    _ folder: RestoreFolder, _ id: BackupIdentifier, _ options: Options
  ) throws -> RestoreReport? {
    guard try folder.isThere() else { return nil }
    let note = try folder.readyNote()
    // The note is still present, so a failure here can be retried.
    if let note, note.id == id, note.restored == nil, note.isWhole != false {
      return try finishInterrupted(folder, without: note, options)
    }
    let outcome = try installLeftover(of: folder)
    // Its losses remain; a store of selected records has no restore report.
    guard outcome == .installed(id), let account = note?.restored else { return nil }
    return RestoreReport(
      id: id, chain: account.chain, path: folder.target.main, bytes: account.bytes, values: account.values,
      lostBlocks: account.lostBlocks, isContentRight: account.isContentRight, lostValues: account.lostValues,
      salvage: account.salvage, lacksMetadata: account.lacksMetadata ?? false)
  }

  /// Finishes an interrupted restore without an account by restoring the backup again, privately.
  ///
  /// - Returns: nil unless the installed store is that of the whole backup.
  private func finishInterrupted(
    _ folder: RestoreFolder, without note: RestoreFolder.Note, _ options: Options
  ) throws -> RestoreReport? {
    var options = options
    // The interrupted restore may have salvaged too.
    options.salvages = true
    return try withRestored(note.id, options: options, temporary: nil, or: folder.target.folder) { store, _, restored in
      guard try installLeftover(of: folder) == .installed(note.id) else { return nil }
      if note.isWhole == nil {
        do {
          let digest = try FileDigest(of: fileSystem.open(store.main))
          guard try FileDigest(of: fileSystem.open(folder.target.main)) == digest else { return nil }
        } catch { throw BackupError(moving: error, path: folder.target.main) }
      }
      var report = restored
      report.path = folder.target.main
      return report
    }
  }

  private func installLeftover(of folder: RestoreFolder) throws -> RestoreFolder.Outcome? {
    let lock = try FolderLock(folder.target.folder, in: fileSystem)
    let outcome = try folder.finishInterrupted()
    lock.release()
    return outcome
  }

  /// Restores a backup into its target's hidden folder: whole, checked and synchronized.
  ///
  /// The caller holds the folder's lock, marks it as ready, and installs it.
  package func stage(
    _ id: BackupIdentifier, in folder: RestoreFolder, options: Options = Options()
  ) throws -> RestoreReport {
    let extraction = try BackupExtraction(
      id, in: try BackupCatalog(of: place), isTolerant: options.salvages, fileSystem: fileSystem,
      progress: options.progress)
    let manifest = try extraction.manifest
    try checkSpace(manifest, extraction.chain, for: folder.target)
    let isEvidence = manifest.kind == .evidence
    var isRight = true
    let losses =
      isEvidence ? try extraction.writeEvidence(to: folder.store) : try extraction.writeDatabase(to: folder.store.main)
    let values = try extraction.writeExternalData(into: folder.store.path(of: .externalData))
    // A database has a digest, despite damage in its chain; for evidence each file counts.
    let isContentRight = isEvidence ? losses.isWhole : losses.isContentRight
    let isNothingLeft = Self.isNothingLeft(manifest, losses)
    guard options.salvages || isContentRight && values.isWhole else {
      throw try damaged(id, losses, values, isNothingLeft: isNothingLeft)
    }
    var salvaged: SalvageReport?
    var lacksMetadata = false
    if !isEvidence {
      isRight = try isContentRight && isSound(folder.store.main, manifest, options)
      if !isRight {
        guard !isNothingLeft else { throw try damaged(id, losses, values, isNothingLeft: true) }
        try refuseWhatWasSetAside(folder.asideTarget)
        salvaged = try salvage(folder, manifest, try extraction.recoveryKit(), options)
        lacksMetadata =
          manifest.store.kind == StoreKind.coreData.rawValue && identity(of: folder.store.main).metadata == nil
      }
    }
    let missing = isEvidence ? [] : try missingValues(of: folder.store)
    try synchronize(folder.store)
    let damage = (isContentRight ? [:] : losses.damage).merging(values.damage) { first, _ in first }
    var lost: [RestoreReport.LostBlock] = []
    for (file, blocks) in damage.ordered(by: { $0.key < $1.key }) {
      let name = try place.nameOnDisk(file, in: .kept)
      lost += blocks.map { .init(file: name, block: $0) }
    }
    return RestoreReport(
      id: id, chain: extraction.chain.map(\.id), path: folder.target.main, bytes: manifest.contentBytes,
      values: try valueCount(of: folder.store), lostBlocks: lost, isContentRight: isContentRight && isRight,
      lostValues: values.lostItems + missing.filter { !values.lostItems.contains($0) }, salvage: salvaged,
      lacksMetadata: lacksMetadata)
  }

  /// Restores a backup into unnamed files, verified and checked like a restore; its external values are only verified.
  ///
  /// - Parameter path: the name that the main file has for a moment.
  /// - Throws: as ``restore(_:to:options:)``.
  package func restoreUnnamed(
    _ id: BackupIdentifier, at path: FilePath, progress: @escaping BackupProgress
  ) throws -> (files: OpenedFiles, extraction: BackupExtraction) {
    let extraction = try BackupExtraction(
      id, in: try BackupCatalog(of: place), fileSystem: fileSystem, progress: progress)
    let manifest = try extraction.manifest
    let store = StoreFileSet(main: path)
    try checkSpace(manifest, extraction.chain, for: store, writesValues: false)
    let (losses, files) = try extraction.writeUnnamed(at: store)
    let values = try extraction.checkExternalData()
    let isEvidence = manifest.kind == .evidence
    guard isEvidence ? losses.isWhole : losses.isContentRight, values.isWhole else {
      throw try damaged(id, losses, values, isNothingLeft: Self.isNothingLeft(manifest, losses))
    }
    if !isEvidence, let main = files[.main] { try check(main, id) }
    return (files, extraction)
  }

  /// Whether no block is left; a delta still has its changed pages.
  private static func isNothingLeft(_ manifest: BackupManifest, _ losses: BackupExtraction.Result) -> Bool {
    let count = BackupManifest.blockCount(of: max(0, manifest.database?.bytes ?? 0))
    return manifest.kind == .full && losses.lostBlocks.count >= max(1, count)
  }

  /// Returns external values that records refer to but are missing.
  func missingValues(of store: StoreFileSet) throws -> [String] {
    try ReferencedValues.read(in: fileSystem.open(store.main), of: store.main).missing(from: store, in: fileSystem)
  }

  func valueCount(of store: StoreFileSet) throws -> Int {
    let folder = store.path(of: .externalData)
    guard try fileSystem.isFolder(folder) else { return 0 }
    return try fileSystem.descendants(of: folder).files.count
  }

  private func damaged(
    _ id: BackupIdentifier, _ losses: BackupExtraction.Result, _ values: BackupExtraction.Result, isNothingLeft: Bool
  ) throws -> BackupError {
    let what =
      if let (file, blocks) = (losses.damage.min { $0.key < $1.key } ?? values.damage.first), let block = blocks.first {
        "block \(block) of \(try place.nameOnDisk(file, in: .kept)) is damaged"
      } else if let item = values.lostItems.first {
        "the large value \(item) is damaged or missing"
      } else {
        "what it unpacks to is not what its manifest says"
      }
    return BackupError(
      .damaged, operation: "restore backup \(id)", detail: what,
      hint: isNothingLeft
        ? "Restore another backup; no block of this one's database can be read."
        : "Restore another backup, \(BackupErrorKind.orWhatIsLeft)")
  }

  /// Synchronizes the restored files; external values already are.
  private func synchronize(_ store: StoreFileSet) throws {
    for member in try store.members(in: fileSystem) {
      guard member.part == .externalData else {
        try fileSystem.synchronizeFile(member.path)
        continue
      }
      for folder in try fileSystem.descendants(of: member.path).folders + [[]] {
        try fileSystem.synchronizeDirectory(member.path.appending(folder))
      }
    }
    try fileSystem.synchronizeDirectory(store.folder)
  }

  /// Returns whether the file is sound; throws for damage unless it may be salvaged.
  private func isSound(_ path: FilePath, _ manifest: BackupManifest, _ options: Options) throws -> Bool {
    do {
      try check(try fileSystem.open(path), manifest.id)
      return true
    } catch {
      let error = BackupError(any: error)
      guard error.kind == .verificationFailed, options.salvages else { throw error }
      return false
    }
  }

  /// Checks every page and index, and that SQLite can read the schema.
  func check(_ file: ReadableFile, _ id: BackupIdentifier) throws {
    let path = file.path
    let isSound: Bool
    do {
      let health = try Examiner(fileSystem: fileSystem).examine(file, .init(depth: .full, countsRecords: false)).health
      isSound = health.isRead && !health.isDamaged
    } catch { throw BackupError(moving: error, path: path) }
    guard isSound else {
      throw BackupError(
        .verificationFailed, operation: "check the restored store", path: path,
        detail: "backup \(id) is of a store that was damaged",
        hint: "Restore an earlier backup, \(BackupErrorKind.orWhatIsLeft)")
    }
  }

  // MARK: The place

  /// Throws if any file of a store exists at the target.
  func refuseWhatIsThere(_ target: StoreFileSet) throws {
    guard let member = try target.members(in: fileSystem).first else { return }
    throw FileError(
      .placeTaken, operation: "restore the backup", path: member.path,
      detail: "a store, or a part of one, is in its place", hint: BackupErrorKind.otherPath)
  }

  private func refuseWhatWasSetAside(_ path: FilePath) throws {
    guard try fileSystem.hasEntry(at: path) else { return }
    throw FileError(
      .placeTaken, operation: "restore the backup", path: path,
      detail: "what an earlier salvage set aside has the name of what this one sets aside",
      hint: BackupErrorKind.otherPath)
  }

  /// Installs a complete store from its hidden folder.
  ///
  /// - Parameter report: nil for a store of selected records.
  func install(_ id: BackupIdentifier, from folder: RestoreFolder, _ report: RestoreReport?) throws {
    let lock = try FolderLock(folder.target.folder, in: fileSystem)
    try folder.markReady(id, report)
    try folder.install()
    lock.release()
  }

  private func checkSpace(
    _ manifest: BackupManifest, _ chain: [StoredBackup], for target: StoreFileSet, writesValues: Bool = true
  ) throws {
    let highest = chain.map { $0.manifest?.database?.bytes ?? 0 }.max() ?? 0
    let values = writesValues ? manifest.externalData?.totalBytes ?? manifest.file(.originalSupport)?.bytes ?? 0 : 0
    let needed = max(manifest.contentBytes, highest) + (manifest.file(.originalLog)?.bytes ?? 0) + values
    let free = try fileSystem.freeSpace(at: target.folder)
    guard free < needed else { return }
    throw FileError(
      .noSpace, operation: "restore the backup", path: target.folder,
      detail: "the store needs \(needed) bytes and \(free) are free", hint: "Free \(needed - free) bytes there.",
      details: .init(neededBytes: needed))
  }

  /// Runs a restore, and deletes its files on failure.
  func removingLeftovers<Value>(of folder: RestoreFolder, _ body: () throws -> Value) throws -> Value {
    do { return try body() } catch {
      // The first error is reported; the next restore deletes the remains, except a store being installed.
      try? folder.removeUnlessInstalling()
      throw error
    }
  }

  /// Reads a restored backup while the body runs.
  ///
  /// Only a damaged backup that is to be salvaged gets names, in a private folder.
  ///
  /// - Parameters:
  ///   - temporary: the parent of the private folder; the system's if nil.
  ///   - alternative: a second parent; the backups' folder if nil.
  func withContent<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ content: RestoredContent, _ folder: FilePath) throws -> Value
  ) throws -> Value {
    // A salvage unpacks the backup once more.
    var options = options
    options.progress = RisingProgress(options.progress).report
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let content: RestoredContent
    do { content = try unnamedContent(id, at: home.path.appending("Store.sqlite"), options) } catch {
      let error = BackupError(any: error)
      guard options.salvages, error.kind != .cancelled, !error.isEnvironmental else { throw error }
      return try withRestored(id, options: options, temporary: temporary, or: alternative) { store, folder, report in
        let values = RestoredContent.Values.files(store.path(of: .externalData))
        return try body(RestoredContent(main: try fileSystem.open(store.main), values: values, report: report), folder)
      }
    }
    return try body(content, home.path)
  }

  private func unnamedContent(_ id: BackupIdentifier, at path: FilePath, _ options: Options) throws -> RestoredContent {
    let (files, extraction) = try restoreUnnamed(id, at: path, progress: options.progress)
    guard let main = files[.main] else { throw FileError(.notFound, operation: "read the restored store", path: path) }
    var values = RestoredContent.Values.packed(extraction)
    if try extraction.manifest.kind == .original, let place = place as? FolderPlace {
      values = .files(place.support(of: id, in: extraction.section))
    }
    return RestoredContent(main: main, values: values, report: nil)
  }

  /// The maximum number of other backups to restore in search of metadata.
  private static let attempts = 3

  /// Replaces a database with lost pages by its salvaged remains.
  func salvage(
    _ folder: RestoreFolder, _ manifest: BackupManifest, _ kit: RecoveryKit?, _ options: Options
  ) throws -> SalvageReport {
    let (own, taken) = (folder.store.path(of: .externalData), folder.remains.path(of: .externalData))
    try fileSystem.rename(folder.store.main, to: folder.remains.main)
    // The salvage expects the external values beside its input.
    let hasValues = try fileSystem.hasEntry(at: own)
    if hasValues { try fileSystem.rename(own, to: taken) }
    var salvaging = Salvager.Options(migrates: false, kit: kit.map { .kit($0) } ?? .none)
    salvaging.isKitOfThisState = true
    salvaging.standIn = try standIn(for: folder.remains, manifest, options, folder.target.folder)
    var report: SalvageReport
    do throws(SalvageError) {
      report = try Salvager(surroundings: surroundings).salvage(
        folder.remains.main, to: folder.store.main, model: options.model, options: salvaging)
    } catch { throw BackupError(salvaging: error) }
    try fileSystem.unlink(folder.remains.main)
    if hasValues {
      // Without a known model none were copied.
      if try !fileSystem.hasEntry(at: own) {
        try fileSystem.rename(taken, to: own)
      } else {
        try fileSystem.removeTree(taken)
      }
    }
    report.store = nil
    report.output = PathText(folder.target.main)
    if report.rebuild?.setAsideFile != nil { report.rebuild?.setAsideFile = folder.asideTarget }
    return report
  }

  /// Returns substitutes for missing metadata and model: from another backup of the same model version, else from the
  /// manifest.
  private func standIn(
    for remains: StoreFileSet, _ manifest: BackupManifest, _ options: Options, _ alternative: FilePath
  ) throws -> StandInIdentity? {
    let hashes = (manifest.model?.entityHashes ?? [:]).compactMapValues { VersionHash(hex: $0) }
    guard manifest.store.kind == StoreKind.coreData.rawValue, !hashes.isEmpty else { return nil }
    let seen = identity(of: remains.main)
    if seen.metadata != nil, seen.model != nil { return nil }
    let noted = StandInIdentity(
      metadata: StoreMetadata(
        versionHashes: hashes, identifiers: manifest.model?.identifiers ?? [],
        uuid: manifest.store.uuid ?? surroundings.makeUUID().description),
      model: nil, origin: "the manifest of backup \(manifest.id)")
    if case .coreData(let bundle) = options.model, bundle.version(matching: hashes) != nil { return noted }
    let others = try BackupCatalog(of: place).backups.filter { other in
      other.id != manifest.id && !other.isApart && other.isWhole && other.proof?.result != .failed
        && other.manifest?.store.uuid == manifest.store.uuid
        && other.manifest?.model?.entityHashes == manifest.model?.entityHashes
    }
    for other in others.prefix(Self.attempts) {
      var reading = Options(progress: options.progress)
      reading.salvages = false
      do {
        let found = try withContent(other.id, options: reading, temporary: nil, or: alternative) {
          content, _ throws in identity(of: content.main)
        }
        guard let metadata = found.metadata else { continue }
        return StandInIdentity(metadata: metadata, model: found.model, origin: "backup \(other.id)")
      } catch {
        let error = BackupError(any: error)
        // An unreadable backup is no help, but does not prevent the salvage.
        if error.kind == .cancelled { throw error }
      }
    }
    return noted
  }

  /// Returns a store's metadata and model, as far as readable.
  func identity(of path: FilePath) -> (metadata: StoreMetadata?, model: ManagedObjectModel?) {
    // The salvage itself reports an unreadable store.
    let found = try? Examiner(fileSystem: fileSystem).examine(path, options: .init(depth: .quick, countsRecords: false))
    return (found?.metadata, found?.storeModel)
  }

  private func identity(of file: ReadableFile) -> (metadata: StoreMetadata?, model: ManagedObjectModel?) {
    let found = try? Examiner(fileSystem: fileSystem).examine(file, .init(depth: .quick, countsRecords: false))
    return (found?.metadata, found?.storeModel)
  }
}

extension Examiner {
  /// Examines a restored store, which is one file.
  func examine(_ file: ReadableFile, _ options: Options) throws -> Examination {
    try examine(main: file, log: nil, journal: nil, of: StoreFileSet(main: file.path), members: [], options: options)
  }
}

/// A restored backup for reading: in unnamed files, or in a private folder if it was salvaged.
struct RestoredContent {
  enum Values {
    /// Whole, in the backup.
    case packed(BackupExtraction)

    /// Below the support folder of a salvaged store or an original.
    case files(FilePath)

    /// Returns the digests of the named values that are there, by path.
    func digests(of names: Set<String>, in fileSystem: FileSystem) throws -> [String: String] {
      let paths = Set(names.map(ReferencedValues.path))
      var digests: [String: String] = [:]
      switch self {
      case .packed(let extraction):
        for item in try extraction.manifest.externalData?.items ?? [] where paths.contains(item.name.text) {
          digests[item.name.text] = item.sha256
        }
      case .files(let folder):
        for path in paths {
          let file = folder.appending(FilePath(path).components)
          guard try fileSystem.status(of: file)?.kind == .regular else { continue }
          digests[path] = try FileDigest(of: fileSystem.open(file)).hexadecimal
        }
      }
      return digests
    }
  }

  /// The database, or the main file of evidence.
  let main: ReadableFile

  let values: Values

  /// The losses; nil if there are none.
  let report: RestoreReport?
}
