import Foundation
import GRDB
package import ManagedObjectModel
import PersistentStore
package import Platform
import Salvage
package import SystemPackage

/// Proves backups: that what lies in a place can be restored, opens, is sound, and has the records that the manifest says.
package struct BackupProver: Sendable {
  /// What to prove, and for how long.
  package struct Options: Sendable {
    /// How far to go.
    package var depth = BackupProof.Depth.restored

    /// The app's model, to which the restored store is migrated at depth `migrated`.
    package var model: ModelBundle?

    /// When to stop; a proof that is under way then is inconclusive.
    package var deadline: ContinuousClock.Instant?

    /// Called now and then with what is done.
    package var progress: BackupProgress

    /// Restores, opens and checks, without a deadline.
    package init(progress: @escaping BackupProgress = { _, _, _ in true }) { self.progress = progress }
  }

  let surroundings: Surroundings
  let temporary: FilePath?
  private var files: BackupFileCheck { BackupFileCheck(surroundings: surroundings) }

  /// Proves with this machine's file system and clock.
  package init() { self.init(surroundings: .machine) }

  /// - Parameter temporary: the folder to restore into; the system's own, or that of the backups, if nil.
  package init(surroundings: Surroundings, temporary: FilePath? = nil) {
    self.surroundings = surroundings
    self.temporary = temporary
  }

  /// Proves a backup, and writes the result beside it.
  ///
  /// An environmental error, such as a full disk or a place that cannot be read, makes a proof inconclusive; the last one that was not is kept then.
  ///
  /// - Throws: `no-such-backup`, `cancelled`, or what the place says where the result cannot be written.
  package func prove(
    _ id: BackupIdentifier, in place: any BackupPlace, _ options: Options = Options()
  ) throws(BackupError) -> BackupProof {
    try prove(id, in: try BackupCatalog(of: place), options)
  }

  /// Proves a backup of a place that was read, and writes the result beside it.
  ///
  /// One that was removed since is the error `no-such-backup`.
  package func prove(
    _ id: BackupIdentifier, in catalog: BackupCatalog, _ options: Options = Options()
  ) throws(BackupError) -> BackupProof {
    let place = catalog.place
    let backup = try catalog.backup(id)
    var proof: BackupProof
    do throws(BackupError) {
      proof = try look(at: backup, in: catalog, options)
      for index in proof.problems.indices {
        proof.problems[index].words = try place.named(proof.problems[index].words, of: id, in: .kept)
      }
      var warnings = proof.warnings ?? []
      for index in warnings.indices {
        warnings[index].words = try place.named(warnings[index].words, of: id, in: .kept)
      }
      proof.warnings = warnings.isEmpty ? nil : warnings
    } catch {
      try tellIfGone(backup, in: place)
      throw error
    }
    try tellIfGone(backup, in: place)
    // A proof that could not be finished says nothing against the one before.
    if proof.result != .inconclusive || backup.proof == nil {
      try place.replace("\(id)\(BackupProof.suffix)", with: try proof.json(), in: .kept)
    }
    return proof
  }

  /// Tells of a backup that was there that a pruning, or a person, has taken it away meanwhile: nothing that was read then
  /// says anything, and no proof is written.
  ///
  /// - Throws: `no-such-backup` where it is gone.
  private func tellIfGone(_ backup: StoredBackup, in place: any BackupPlace) throws(BackupError) {
    // What it is listed by leaves first.
    let heads = ["\(backup.id)\(BackupManifest.suffix)", "\(backup.id)\(BackupManifest.File.Role.originalMain.suffix)"]
    let head = backup.objects.first { heads.contains($0.name) } ?? backup.objects.first
    guard let head, try !place.contains(head.name, in: .kept) else { return }
    throw BackupError(
      .notFound, operation: "verify the backup", detail: "backup \(backup.id) was removed meanwhile",
      hint: "List what is there with: lazaret backup list")
  }

  /// The order in which to prove backups: those never restored first, then those longest ago; newest first among equals.
  package static func order(_ backups: [StoredBackup]) -> [StoredBackup] {
    backups.ordered { left, right in
      let dates = (left.proof?.lastRestored ?? "", right.proof?.lastRestored ?? "")
      return dates.0 == dates.1 ? left.id > right.id : dates.0 < dates.1
    }
  }

  // MARK: Looking

  /// What is said of a backup whose files are as they were written, though the store in them is not sound.
  private static func evidence(_ backup: StoredBackup) -> BackupProof.Problem {
    let words = backup.damage?.words ?? "The store is damaged."
    return .init(
      code: BackupProof.evidenceCode,
      words: "it is the evidence of a store that was not sound, and no backup to go back to: \(words)")
  }

  private func look(
    at backup: StoredBackup, in catalog: BackupCatalog, _ options: Options
  ) throws(BackupError) -> BackupProof {
    func proof(
      _ result: BackupProof.Result, _ depth: BackupProof.Depth, _ found: BackupFileCheck.Found = BackupFileCheck.Found()
    ) -> BackupProof {
      BackupProof(
        id: backup.id, date: surroundings.now(), result: result, depth: depth, problems: found.problems,
        warnings: (result == .proven && backup.isApart ? [Self.evidence(backup)] : []) + found.warnings
          + backup.warnings.filter { $0.code == .proofUnreadable }.map { .init($0) },
        // What was restored by a manifest that nothing speaks for is restored anew.
        lastRestored: backup.isUnverified ? nil : backup.proof?.lastRestored,
        manifest: found.manifest ?? backup.manifestDigest)
    }
    guard let manifest = backup.manifest, backup.isWhole else {
      return proof(.failed, .files, BackupFileCheck.Found(problems: backup.problems.map { .init($0) }))
    }
    let end = options.deadline
    let watched: BackupProgress = { phase, done, total in
      if let end, ContinuousClock.now > end { return false }
      return options.progress(phase, done, total)
    }
    do throws(BackupError) {
      if manifest.isLocked {
        // Without a key there are only the digests of the files as they lie there.
        let found = try files.look(at: manifest, catalog.place, watched)
        // Whether the copy of a manifest that is lost is whole, only a key tells.
        let sealed = manifest.files.first { $0.role == .manifest }?.name
        let isOpen = found.warnings.contains { $0.file == sealed }
        return proof(!found.problems.isEmpty ? .failed : isOpen ? .inconclusive : .proven, .files, found)
      }
      // Of an original there are no digests to compare with.
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
      found.warnings += try mendedManifest(of: backup, in: catalog.place, found)
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
}

extension BackupProver {
  /// Writes a manifest anew that was lost or changed, where the copy in the backup's file is whole; what is to be said of it.
  func mendedManifest(
    of backup: StoredBackup, in place: any BackupPlace, _ found: BackupFileCheck.Found
  ) throws(BackupError) -> [BackupProof.Problem] {
    guard try !place.isSealed(backup.id, in: .kept), backup.manifestSource == .copy,
      let carrier = backup.manifest?.carrier,
      let object = backup.objects.first(where: { $0.name == carrier.name })
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

  /// Writes a manifest anew of a backup that has lost both, and that was restored and checked.
  ///
  /// - Returns: its digest; nil where there was none to write.
  func writeAnew(
    _ backup: StoredBackup, in place: any BackupPlace, from store: ReadableFile
  ) throws(BackupError) -> String? {
    guard try !place.isSealed(backup.id, in: .kept), backup.manifestSource == .rebuilt, let known = backup.manifest,
      var manifest = try RebuiltManifest(place: place, section: .kept).withDigests(known)
    else { return nil }
    if let owner = place.owner {
      manifest.store.relativePath = owner.path
      manifest.store.path = owner.present.map { PathText($0) } ?? manifest.store.path
    }
    // The store was examined a moment ago; what cannot be told of it now is left out.
    let examination = try? Examiner(fileSystem: surroundings.fileSystem).examine(
      main: store, log: nil, journal: nil, of: StoreFileSet(main: store.path), members: [],
      options: .init(countsRecords: true))
    if let examination { manifest.note(examination) }
    let name = "\(backup.id)\(BackupManifest.suffix)"
    let json = try manifest.json()
    let written = try BackupManifest(json: json, of: backup.id)
    return try write(json, as: name, of: backup, in: place) ? written.digest : nil
  }

  /// Writes a manifest in the place of what the catalogue has found there; false where that is not there any more.
  private func write(
    _ bytes: [UInt8], as name: String, of backup: StoredBackup, in place: any BackupPlace
  ) throws(BackupError) -> Bool {
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    let now = try place.list(.kept)
    let objects = backup.objects.filter { !$0.name.hasSuffix(BackupProof.suffix) }
    // A pruning may have taken it away meanwhile, and another process may have made the manifest anew.
    let names = Set(now.map(\.name))
    guard objects.allSatisfy({ names.contains($0.name) }), try !place.unfinished().contains(name) else { return false }
    guard names.contains(name) == objects.contains(where: { $0.name == name }) else { return false }
    try place.replace(name, with: bytes, in: .kept)
    return true
  }
}

extension BackupManifest {
  /// Takes down what a look at the restored store tells, where both manifests were lost.
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

extension BackupProver {
  /// Makes the helpers anew that are not what was written, of what the backup restores to.
  ///
  /// - Returns: the warnings, with what was done about each.
  func mended(
    _ warnings: [BackupProof.Problem], of manifest: BackupManifest, in place: any BackupPlace,
    from store: ReadableFile
  ) throws(BackupError) -> [BackupProof.Problem] {
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

  /// Writes a helper as it was; false where it cannot be made as it was.
  private func write(
    _ file: BackupManifest.File, of manifest: BackupManifest, in place: any BackupPlace, from content: ReadableFile
  ) throws(BackupError) -> Bool {
    // What is encrypted is never written anew: nothing says to whom.
    if try place.isSealed(manifest.id, in: .kept) { return false }
    let bytes: [UInt8]
    do throws(FileError) {
      switch file.role {
      case .pageHashes:
        guard let pageSize = manifest.database?.pageSize else { return false }
        bytes = try Self.hashes(of: content, pageSize: pageSize)
      case .recoveryKit:
        guard let made = Self.kit(of: content, manifest, file) else { return false }
        bytes = made
      case .database, .delta, .manifest, .externalData, .evidenceMain, .evidenceLog, .evidenceSharedMemory,
        .evidenceJournal, .originalMain, .originalLog, .originalSharedMemory, .originalJournal, .originalSupport,
        .originalOnlyHere, .originalSetAside:
        return false
      }
    } catch {
      throw BackupError(error)
    }
    guard Int64(bytes.count) == file.bytes, FileDigest(of: bytes).hexadecimal == file.sha256 else { return false }
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    // A pruning may have taken the backup away meanwhile.
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

  /// The kit as it was made; nil where none can be, such as by another version of this software.
  private static func kit(
    of content: any ByteSource, _ manifest: BackupManifest, _ file: BackupManifest.File
  ) -> [UInt8]? {
    do throws(RecoveryKitError) {
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
}
