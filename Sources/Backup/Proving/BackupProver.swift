import Foundation
import GRDB
package import ManagedObjectModel
import Migration
import PersistentStore
package import Platform
import SQLiteFormat
import Salvage
package import SystemPackage

/// Proves that backups can be restored and opened, are sound, and have the records of the manifest.
package struct BackupProver: Sendable {
  package struct Options: Sendable {
    package var depth = BackupProof.Depth.restored

    /// The app's model, to which depth `migrated` migrates the restored store.
    package var model: ModelBundle?

    /// The time limit; an unfinished proof is inconclusive.
    package var deadline: ContinuousClock.Instant?

    var progress: BackupProgress

    package init(progress: @escaping BackupProgress = { _, _, _ in true }) { self.progress = progress }
  }

  let surroundings: Surroundings
  let temporary: FilePath?
  private var files: BackupFileCheck { BackupFileCheck(surroundings: surroundings) }

  init() { self.init(surroundings: .machine) }

  /// - Parameter temporary: the folder for restoring; if nil, that of the system or of the backups.
  package init(surroundings: Surroundings, temporary: FilePath? = nil) {
    self.surroundings = surroundings
    self.temporary = temporary
  }

  /// Proves a backup, and writes the result beside it.
  ///
  /// After an environmental error, such as a full disk or an unreadable place, the proof is inconclusive, and the last
  /// conclusive one stays.
  ///
  /// - Throws: `no-such-backup`, `cancelled`, or errors of writing the result.
  package func prove(
    _ id: BackupIdentifier, in place: any BackupPlace, _ options: Options = Options()
  ) throws -> BackupProof {
    try prove(id, in: try BackupCatalog(of: place), options)
  }

  /// Proves a backup of a catalog, and writes the result beside it.
  ///
  /// Throws `no-such-backup` if it was removed since.
  package func prove(
    _ id: BackupIdentifier, in catalog: BackupCatalog, _ options: Options = Options()
  ) throws -> BackupProof {
    let place = catalog.place
    let backup = try catalog.backup(id)
    var proof: BackupProof
    do {
      proof = try look(at: backup, in: catalog, options)
      proof.problems = try place.named(proof.problems, \.words, of: id, in: .kept)
      proof.warnings = try proof.warnings.map { try place.named($0, \.words, of: id, in: .kept) }
    } catch {
      try tellIfGone(backup, in: place)
      throw error
    }
    try tellIfGone(backup, in: place)
    // An unfinished proof is no evidence against the one before.
    if proof.result != .inconclusive || backup.proof == nil {
      try place.replace("\(id)\(BackupProof.suffix)", with: try proof.json(), in: .kept)
    }
    return proof
  }

  /// Throws `no-such-backup` if the backup was removed meanwhile, which makes the result void.
  private func tellIfGone(_ backup: StoredBackup, in place: any BackupPlace) throws {
    // The object that lists a backup is removed first.
    let heads = BackupCatalog.heads(of: backup.id)
    let head = backup.objects.first { heads.contains($0.name) } ?? backup.objects.first
    guard let head, try !place.contains(head.name, in: .kept) else { return }
    throw BackupError(
      .notFound, operation: "verify the backup", detail: "backup \(backup.id) was removed meanwhile",
      hint: "List what is there with: lazaret backup list")
  }

  /// Sorts backups for proving: never or longest ago restored first; among equals the newest first.
  package static func order(_ backups: [StoredBackup]) -> [StoredBackup] {
    backups.ordered { left, right in
      let dates = (left.proof?.lastRestored ?? "", right.proof?.lastRestored ?? "")
      return dates.0 == dates.1 ? left.id > right.id : dates.0 < dates.1
    }
  }

  // MARK: Looking

  /// The warning for an intact backup of an unsound store.
  private static func evidence(_ backup: StoredBackup) -> BackupProof.Problem {
    let words = backup.damage?.words ?? "The store is damaged."
    return .init(
      code: BackupProof.evidenceCode,
      words: "it is the evidence of a store that was not sound, and no backup to go back to: \(words)")
  }

  private func look(at backup: StoredBackup, in catalog: BackupCatalog, _ options: Options) throws -> BackupProof {
    func proof(
      _ result: BackupProof.Result, _ depth: BackupProof.Depth, _ found: BackupFileCheck.Found = BackupFileCheck.Found()
    ) -> BackupProof {
      BackupProof(
        id: backup.id, date: surroundings.now(), result: result, depth: depth, problems: found.problems,
        warnings: (result == .proven && backup.damage != nil ? [Self.evidence(backup)] : []) + found.warnings
          + backup.warnings.filter { $0.code == .proofUnreadable }.map { .init($0) },
        // A restore by an unconfirmed manifest does not count.
        lastRestored: backup.isUnverified ? nil : backup.proof?.lastRestored,
        manifest: found.manifest ?? backup.manifestDigest)
    }
    guard let manifest = backup.manifest, backup.isWhole else {
      let result = backup.isUndecided ? BackupProof.Result.inconclusive : .failed
      return proof(result, .files, BackupFileCheck.Found(problems: backup.problems.map { .init($0) }))
    }
    let end = options.deadline
    let watched: BackupProgress = { phase, done, total in
      if let end, ContinuousClock.now > end { return false }
      return options.progress(phase, done, total)
    }
    do {
      if manifest.isLocked {
        // Without a key, only the digests of the stored files can be checked.
        let found = try files.look(at: manifest, catalog.place, watched)
        // Without a key, the copy of a lost manifest cannot be checked.
        let sealed = manifest.files.first { $0.role == .manifest }?.name
        let isOpen = found.warnings.contains { $0.file == sealed }
        return proof(!found.problems.isEmpty ? .failed : isOpen ? .inconclusive : .proven, .files, found)
      }
      // An original has no digests.
      var found =
        manifest.kind == .original ? BackupFileCheck.Found() : try files.look(at: manifest, catalog.place, watched)
      if let label = try catalog.place.label(of: backup.id) {
        found.add(try files.look(at: label.manifest, label.place, watched))
      } else if try catalog.place.isSealed(backup.id, in: .kept) {
        let name = "\(backup.id)\(BackupManifest.suffix)"
        found.warnings.append(
          .init(
            code: StoredBackup.Problem.Code.manifestChanged.rawValue,
            words: "\(name) is missing or not what was written; the holder of a key restores without it", file: name))
      }
      found.warnings += try mendedManifest(of: backup, in: catalog.place)
      if options.depth == .files, manifest.kind != .original {
        found.warnings += backup.warnings.filter { $0.code == .largeValueMissing }.map { .init($0) }
        return proof(found.problems.isEmpty ? .proven : .failed, .files, found)
      }
      for problem in try restored(backup, manifest, in: catalog, options, watched, &found)
      where !found.problems.contains(where: { $0.code == problem.code && $0.file == problem.file && $0.file != nil }) {
        found.problems.append(problem)
      }
      return proof(found.problems.isEmpty ? .proven : .failed, max(options.depth, .restored), found)
    } catch {
      let error = BackupError(any: error)
      if error.kind == .cancelled {
        guard let end, ContinuousClock.now > end else { throw error }
        return proof(
          .inconclusive, options.depth,
          BackupFileCheck.Found(problems: [.init(code: "out-of-time", words: "the time for it ran out")]))
      }
      guard error.isEnvironmental || error.kind == .chainBroken || error.kind == .damaged else { throw error }
      let problem = BackupProof.Problem(code: error.code, words: "cannot \(error.operation): \(error.detail)")
      return proof(
        error.isEnvironmental ? .inconclusive : .failed, options.depth, BackupFileCheck.Found(problems: [problem]))
    }
  }

  /// Rewrites a lost or changed manifest from its intact copy; returns the warnings.
  func mendedManifest(of backup: StoredBackup, in place: any BackupPlace) throws -> [BackupProof.Problem] {
    guard try !place.isSealed(backup.id, in: .kept), backup.manifestSource == .copy,
      let carrier = backup.manifest?.carrier, let object = backup.objects.first(where: { $0.name == carrier.name })
    else { return [] }
    let name = "\(backup.id)\(BackupManifest.suffix)"
    guard
      let copy = try ManifestCopy.read(carrier.name, packedBy: carrier.packing, size: object.bytes, in: place, .kept),
      DigestedText.digest(of: copy) == backup.manifestDigest, try write(copy, as: name, of: backup, in: place)
    else { return backup.warnings.filter { $0.file == name }.map { .init($0) } }
    let isThere = backup.objects.contains { $0.name == name }
    return [
      .init(
        code: "manifest-made-anew",
        words: "\(name) was \(isThere ? "not what was written" : "missing"), and was made anew of its copy", file: name)
    ]
  }

  /// Rewrites the manifest of a restored and checked backup that lost both.
  ///
  /// - Returns: its digest, if written.
  func writeAnew(_ backup: StoredBackup, in place: any BackupPlace, from store: ReadableFile) throws -> String? {
    guard try !place.isSealed(backup.id, in: .kept), backup.manifestSource == .rebuilt, let known = backup.manifest,
      var manifest = try RebuiltManifest(place: place, section: .kept).withDigests(known)
    else { return nil }
    if let owner = place.owner {
      manifest.store.relativePath = owner.path
      manifest.store.path = owner.present.map { PathText($0) } ?? manifest.store.path
    }
    // The store was just examined; facts unreadable now are omitted.
    let examination = try? Examiner(fileSystem: surroundings.fileSystem).examine(store, .init(countsRecords: true))
    if let examination { manifest.note(examination) }
    let name = "\(backup.id)\(BackupManifest.suffix)"
    let json = try manifest.json()
    let written = try BackupManifest(json: json, of: backup.id)
    return try write(json, as: name, of: backup, in: place) ? written.digest : nil
  }

  /// Writes a manifest, unless the backup's objects have changed since the listing.
  private func write(
    _ bytes: [UInt8], as name: String, of backup: StoredBackup, in place: any BackupPlace
  ) throws -> Bool {
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    let now = try place.list(.kept)
    let objects = backup.objects.filter { !$0.name.hasSuffix(BackupProof.suffix) }
    // Another process may have removed the backup or rewritten the manifest.
    let names = Set(now.map(\.name))
    guard objects.allSatisfy({ names.contains($0.name) }), try !place.unfinished().contains(name),
      names.contains(name) == objects.contains(where: { $0.name == name })
    else { return false }
    try place.replace(name, with: bytes, in: .kept)
    return true
  }

  /// Rebuilds damaged helpers from the restored content.
  ///
  /// - Returns: the warnings, with the outcome of each.
  func mended(
    _ warnings: [BackupProof.Problem], of manifest: BackupManifest, in place: any BackupPlace, from store: ReadableFile
  ) throws -> [BackupProof.Problem] {
    var told: [BackupProof.Problem] = []
    for var warning in warnings {
      defer { told.append(warning) }
      guard let file = manifest.files.first(where: { $0.name == warning.file }), file.role.isHelper else { continue }
      if try write(file, of: manifest, in: place, from: store) {
        warning.code = "helper-made-anew"
        warning.words = "\(file.name) was not what was written, and was made anew"
      } else {
        warning.code = "helper-damaged"
        warning.words = "\(file.name) is not what was written; the backup restores without it"
      }
    }
    return told
  }

  /// Rewrites a helper; returns false unless the original bytes can be made.
  private func write(
    _ file: BackupManifest.File, of manifest: BackupManifest, in place: any BackupPlace, from content: ReadableFile
  ) throws -> Bool {
    // Encrypted files can't be rewritten, as the recipients are unknown.
    if try place.isSealed(manifest.id, in: .kept) { return false }
    let made: [UInt8]? =
      switch file.role {
      case .pageHashes: try manifest.database?.pageSize.map { try Self.hashes(of: content, pageSize: $0) }
      case .recoveryKit: Self.kit(of: content, manifest, file)
      default: nil
      }
    guard let bytes = made, Int64(bytes.count) == file.bytes, FileDigest(of: bytes).hexadecimal == file.sha256 else {
      return false
    }
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    // The backup may have been pruned meanwhile.
    let manifestName = "\(manifest.id)\(BackupManifest.suffix)"
    guard try place.list(.kept).contains(where: { $0.name == manifestName }) else { return false }
    try place.replace(file.name, with: bytes, in: .kept)
    return true
  }

  private static func hashes(of content: any ByteSource, pageSize: Int) throws(FileError) -> [UInt8] {
    var bytes = PageHash.header(pageSize: pageSize)
    var offset: Int64 = 0
    while offset < content.count {
      let block = try content.bytes(at: offset, length: BackupManifest.blockLength)
      if block.isEmpty { break }
      bytes += PageHash.hashes(of: block, pageSize: pageSize)
      offset += Int64(block.count)
    }
    return bytes
  }

  /// Rebuilds the original kit; fails for a kit of another software version.
  private static func kit(
    of content: any ByteSource, _ manifest: BackupManifest, _ file: BackupManifest.File
  ) -> [UInt8]? {
    do {
      var kit = try RecoveryKit(reading: content, at: manifest.id.date)
      kit.generation = manifest.lineage?.generation
      for level in RecoveryKit.levels {
        let bytes = try kit.bytes(level: level)
        if FileDigest(of: bytes).hexadecimal == file.sha256 { return bytes }
      }
      return nil
    } catch {
      // The backup restores without a kit.
      return nil
    }
  }

  /// Restores a backup into an unnamed file and returns its problems.
  func restored(
    _ backup: StoredBackup, _ manifest: BackupManifest, in catalog: BackupCatalog, _ options: Options,
    _ progress: @escaping BackupProgress, _ found: inout BackupFileCheck.Found
  ) throws -> [BackupProof.Problem] {
    let extraction = try BackupExtraction(
      backup.id, in: catalog, fileSystem: surroundings.fileSystem, progress: progress)
    let folder = try PrivateFolder(
      in: temporary, or: (catalog.place as? FolderPlace)?.path, needing: manifest.contentBytes,
      to: "restore the backup to prove it", surroundings)
    defer { withExtendedLifetime(folder) {} }
    let path = folder.path.appending("Store.sqlite")
    var problems: [BackupProof.Problem] = []
    let (result, files) = try extraction.writeUnnamed(at: StoreFileSet(main: path))
    problems += Self.problems(result)
    // Damaged evidence cannot be opened; equal bytes are the only proof.
    if manifest.kind != .evidence, let store = files[.main] {
      if problems.isEmpty { problems += try check(store, manifest, progress) }
      let missing = problems.isEmpty ? try missingValues(store, extraction) : []
      // With a rebuilt manifest, a missing value may have been lost with the blocks.
      if manifest.rebuilt == true { problems += missing.prefix(100).map { Self.lost($0) } }
      if problems.isEmpty {
        found.warnings = try mended(found.warnings, of: manifest, in: catalog.place, from: store)
        found.manifest = try writeAnew(backup, in: catalog.place, from: store)
        if !missing.isEmpty { found.warnings.append(Self.missing(missing.count)) }
      }
    }
    problems += Self.problems(try extraction.checkExternalData())
    if problems.isEmpty, options.depth == .migrated, manifest.kind != .evidence, let model = options.model {
      // A migration creates files beside the store, so it needs a name.
      _ = try extraction.writeDatabase(to: path)
      problems += try migrated(path, to: model)
    }
    return problems
  }

  private static func problems(_ result: BackupExtraction.Result) -> [BackupProof.Problem] {
    var problems = result.damage.ordered { $0.key < $1.key }.map { BackupProof.Problem.damaged($0.value, $0.key) }
    if problems.isEmpty, !result.lostBlocks.isEmpty {
      problems.append(
        .init(
          code: "content-changed", words: "\(result.lostBlocks.count) blocks are not what was backed up",
          blocks: Array(result.lostBlocks.prefix(1000))))
    } else if problems.isEmpty, !result.isDigestRight {
      problems.append(.init(code: "content-changed", words: "the database is not what was backed up"))
    }
    return problems + result.lostItems.prefix(100).map { lost($0) }
  }

  private static func lost(_ item: String) -> BackupProof.Problem {
    .init(code: "large-value-lost", words: "the large value \(item) is damaged or missing")
  }

  private static func missing(_ count: Int) -> BackupProof.Problem {
    let words = "\(counted(count, "large value")) that records refer to \(count == 1 ? "is" : "are") not in the backup"
    return .init(code: StoredBackup.Problem.Code.largeValueMissing.rawValue, words: words)
  }

  /// Returns external values that records refer to but the backup lacks.
  private func missingValues(_ store: ReadableFile, _ extraction: BackupExtraction) throws -> [String] {
    let manifest = try extraction.manifest
    let referenced = try ReferencedValues.read(in: store, of: store.path)
    guard manifest.kind == .original, let place = extraction.place as? FolderPlace else {
      return referenced.missing(from: manifest.externalData)
    }
    return try referenced.missing(
      from: place.original(manifest.id, in: extraction.section), in: surroundings.fileSystem)
  }

  // MARK: The restored database

  private func check(
    _ store: ReadableFile, _ manifest: BackupManifest, _ progress: @escaping BackupProgress
  ) throws -> [BackupProof.Problem] {
    var problems: [BackupProof.Problem] = []
    // Lazaret's own check: one use per page, consistent trees and indexes, all records counted.
    let examination: Examination
    do {
      let options = Examiner.Options(depth: .full) { done, total in progress(.checking, Int64(done), Int64(total)) }
      examination = try Examiner(fileSystem: surroundings.fileSystem).examine(store, options)
    } catch let error as FileError where error.kind != .cancelled {
      throw BackupError(error)
    } catch {
      throw BackupError.cancelled("prove the backup")
    }
    if examination.verdict == .unavailable {
      throw BackupError(
        FileError(.other, operation: "examine the restored store", path: store.path, detail: examination.reason.words))
    }
    if examination.verdict == .damaged {
      problems.append(.init(code: examination.reason.code, words: "the restored store is damaged"))
    }
    let counted = Dictionary(examination.entities.map { ($0.name, $0.rows) }, uniquingKeysWith: { first, _ in first })
    for entity in manifest.entities ?? [] where counted[entity.name] != .some(entity.rows) {
      let rows = counted[entity.name].flatMap { $0 }.map(String.init) ?? "an unknown number of"
      problems.append(
        .init(
          code: "count-differs",
          words: "\(printable(entity.name)) has \(rows) records, and had \(entity.rows.map(String.init) ?? "?")"))
    }
    if !progress(.checking, 0, 1) { throw BackupError.cancelled("prove the backup") }
    return problems + (try Self.checkWithSQLite(store))
  }

  /// Opens the store in SQLite and runs its integrity check, without expressions of the schema.
  private static func checkWithSQLite(_ store: ReadableFile) throws -> [BackupProof.Problem] {
    let path = store.path
    do {
      let file = try VirtualFile(store)
      defer { withExtendedLifetime(file) {} }
      let queue = try EvidenceConnection.open(
        file, label: "Lazaret.Backup", cacheKilobytes: 8000, prepare: addCoreDataFunctions)
      let findings = try queue.inDatabase { database in try IntegrityCheck.evidenceLines(of: database, limit: 1).lines }
      try queue.close()
      // SQLite's messages may contain values, so only their presence counts.
      return findings == ["ok"]
        ? [] : [.init(code: "integrity-check", words: "SQLite's integrity check found damage in the restored store")]
    } catch let error as DatabaseError {
      if let kind = ResultCodeCause(error.extendedResultCode).fileErrorKind {
        throw BackupError(FileError(kind, operation: "check the restored store", path: path))
      }
      // The app's own collations and functions are unknown here, and schema expressions may exceed the limits;
      // Lazaret's own check has passed.
      if [.SQLITE_ERROR, .SQLITE_TOOBIG, .SQLITE_INTERRUPT].contains(error.resultCode) { return [] }
      return [.init(code: "integrity-check", words: "SQLite cannot open the restored store (\(error.resultCode))")]
    } catch { throw BackupError(FileError(.other, operation: "check the restored store", path: path)) }
  }

  // MARK: Migrating

  private func migrated(_ store: FilePath, to model: ModelBundle) throws -> [BackupProof.Problem] {
    do throws(MigrationError) {
      _ = try Migrator(model, surroundings: surroundings).migrate(store)
      return []
    } catch {
      if error.isEnvironmental {
        throw BackupError(FileError(.other, because: error, operation: "migrate the restored store", path: store))
      }
      return [.init(code: "migration-failed", words: "it cannot be migrated to the current model: \(error.detail)")]
    }
  }
}

extension BackupManifest {
  /// Adds facts about the restored store, if both manifests were lost.
  fileprivate mutating func note(_ examination: Examination) {
    store.kind = examination.kind.rawValue
    store.uuid = examination.metadata?.uuid
    if let metadata = examination.metadata {
      model = .init(
        identifiers: metadata.versionIdentifiers, checksum: metadata.versionChecksum,
        entityHashes: metadata.versionHashes.mapValues(\.description))
    }
    entities = examination.entities.isEmpty ? nil : examination.entities
    versions.library = LibraryVersion.current
    versions.operatingSystem = LibraryVersion.operatingSystem
    versions.storeWrittenBySQLite = examination.health.writtenBySQLite
  }
}
