import Archives
import Examination
import Foundation
import GRDB
package import ManagedObjectModel
import Migration
import PersistentStore
package import StoreFiles
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
    let proof: BackupProof
    do throws(BackupError) {
      proof = try look(at: backup, in: catalog, options)
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
    backups.sorted { left, right in
      let dates = (left.proof?.lastRestored ?? "", right.proof?.lastRestored ?? "")
      return dates.0 == dates.1 ? left.id > right.id : dates.0 < dates.1
    }
  }

  // MARK: Looking

  private func look(
    at backup: StoredBackup, in catalog: BackupCatalog, _ options: Options
  ) throws(BackupError) -> BackupProof {
    func proof(
      _ result: BackupProof.Result, _ depth: BackupProof.Depth, _ found: Found = Found()
    ) -> BackupProof {
      BackupProof(
        id: backup.id, date: surroundings.now(), result: result, depth: depth, problems: found.problems,
        warnings: found.warnings + backup.warnings.filter { $0.code == .proofUnreadable }.map { .init($0) },
        // What was restored by a manifest that nothing speaks for is restored anew.
        lastRestored: backup.isUnverified ? nil : backup.proof?.lastRestored,
        manifest: found.manifest ?? backup.manifestDigest)
    }
    guard let manifest = backup.manifest, backup.isWhole else {
      return proof(.failed, .files, Found(problems: backup.problems.map { .init($0) }))
    }
    let end = options.deadline
    let watched: BackupProgress = { phase, done, total in
      if let end, ContinuousClock.now > end { return false }
      return options.progress(phase, done, total)
    }
    do throws(BackupError) {
      if manifest.isLocked {
        // Without a key there are only the digests of the files as they lie there.
        let found = try look(at: manifest, catalog.place, watched)
        return proof(found.problems.isEmpty ? .proven : .failed, .files, found)
      }
      // Of an original there are no digests to compare with.
      var found = manifest.kind == .original ? Found() : try look(at: manifest, catalog.place, watched)
      if let label = try catalog.place.label(of: backup.id) {
        found.add(try look(at: label.manifest, label.place, watched))
      } else if try catalog.place.isSealed(backup.id, in: .kept) {
        let name = "\(backup.id)\(BackupManifest.suffix)"
        found.warnings.append(
          .init(
            code: StoredBackup.Problem.Code.manifestChanged.rawValue,
            words: "\(name) is missing or not what was written; the holder of a key restores without it", file: name))
      }
      found.warnings += try mendedManifest(of: backup, in: catalog.place, found)
      if options.depth == .files, manifest.kind != .original {
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
          .inconclusive, options.depth, Found(problems: [.init(code: "out-of-time", words: "the time for it ran out")]))
      }
      guard error.isEnvironmental || error.kind == .chainBroken || error.kind == .damaged else { throw error }
      let problem = BackupProof.Problem(code: error.code, words: "cannot \(error.operation): \(error.detail)")
      return proof(error.isEnvironmental ? .inconclusive : .failed, options.depth, Found(problems: [problem]))
    }
  }

  /// Reads the files of one backup back, and compares them with its manifest; its parents are not looked at.
  func proveFiles(
    _ manifest: BackupManifest, in place: any BackupPlace, isInUse: Bool = false, progress: @escaping BackupProgress
  ) throws(BackupError) -> BackupProof {
    let found = try look(at: manifest, place, isFresh: true, isInUse: isInUse, progress)
    // What was written a moment ago is whole, or the disk is not to be trusted.
    let problems = found.problems + found.warnings
    return BackupProof(
      id: manifest.id, date: surroundings.now(), result: problems.isEmpty ? .proven : .failed, depth: .files,
      problems: problems, manifest: manifest.digest)
  }

  /// What is wrong with the files of a backup.
  struct Found {
    var problems: [BackupProof.Problem] = []
    /// In files that restoring does not need.
    var warnings: [BackupProof.Problem] = []
    /// The digest of the manifest that was written anew; nil where none was.
    var manifest: String?

    /// Adds what is wrong with the encrypted files themselves, where nothing is said of their content.
    mutating func add(_ sealed: Found) {
      func isNew(_ problem: BackupProof.Problem) -> Bool {
        !(problems + warnings).contains { own in own.file.map { problem.file == $0 + ".age" } ?? false }
      }
      problems += sealed.problems.filter(isNew)
      warnings += sealed.warnings.filter(isNew)
    }
  }

  /// Reads every file of a backup, and compares it with its manifest.
  func look(
    at manifest: BackupManifest, _ place: any BackupPlace, isFresh: Bool = false, isInUse: Bool = false,
    _ progress: @escaping BackupProgress
  ) throws(BackupError) -> Found {
    var result = Found()
    let total = manifest.totalBytes
    var done: Int64 = 0
    for file in manifest.files {
      var digest = RunningDigest()
      var damaged: [Int] = []
      if let reader = try MemberReader(file, of: manifest, in: place, .kept), let members = file.members {
        try BlockPipeline.run(count: members.count, threads: BlockPacker.threads(isInUse: isInUse)) {
          () throws(BackupError) -> ((Int) throws(BackupError) -> (member: [UInt8], isGood: Bool)) in
          { (block) throws(BackupError) -> (member: [UInt8], isGood: Bool) in
            guard let member = try reader.member(block) else { return ([], false) }
            // The digest of the file says that these are the bytes that were made; here, that they unpack.
            if isFresh { return (member, file.packing.unpacks(member: member, count: reader.length(of: block))) }
            if reader.blockCount == 0 { return (member, file.packing.unpack(member: member, count: 0) != nil) }
            return (member, reader.unpack(member, block) != nil)
          }
        } deliver: { (block, read) throws(BackupError) in
          digest.add(read.member)
          done += Int64(read.member.count)
          if !read.isGood { damaged.append(block) }
          try advance(progress, done, total)
        }
      } else {
        var offset: Int64 = 0
        while offset < file.bytes {
          let bytes = try part(of: file, in: place, at: offset)
          if bytes.isEmpty { break }
          digest.add(bytes)
          offset += Int64(bytes.count)
          done += Int64(bytes.count)
          try advance(progress, done, total)
        }
      }
      var problem: BackupProof.Problem?
      if !damaged.isEmpty {
        problem = .damaged(damaged, file.name)
      } else if !file.sha256.isEmpty, digest.hexadecimal != file.sha256 {
        problem = .init(code: "file-damaged", words: "\(file.name) is not what was written", file: file.name)
      }
      guard let problem else {
        if let warning = try copyWarning(file, of: manifest, in: place) { result.warnings.append(warning) }
        continue
      }
      if file.role.isHelper { result.warnings.append(problem) } else { result.problems.append(problem) }
    }
    return result
  }

  /// A part of a file that is not packed; nothing of a helper that is missing, which is told as damaged.
  private func part(
    of file: BackupManifest.File, in place: any BackupPlace, at offset: Int64
  ) throws(BackupError) -> [UInt8] {
    do throws(BackupError) {
      return try place.read(file.name, in: .kept, at: offset, length: 1 << 20)
    } catch {
      guard file.role.isHelper, error.fileError?.kind == .notFound else { throw error }
      return []
    }
  }

  func advance(_ progress: BackupProgress, _ done: Int64, _ total: Int64) throws(BackupError) {
    guard progress(.proving, done, total) else { throw .cancelled("prove the backup") }
  }
}

extension BackupProof.Problem {
  /// What names and sizes tell.
  init(_ problem: StoredBackup.Problem) {
    self.init(code: problem.code.rawValue, words: problem.words, file: problem.file)
  }

  /// Blocks of a file that are not what was packed.
  static func damaged(_ blocks: [Int], _ file: String) -> BackupProof.Problem {
    let words =
      blocks.count == 1 ? "block \(blocks[0]) of \(file) is damaged" : "\(blocks.count) blocks of \(file) are damaged"
    return .init(code: "block-damaged", words: words, file: file, blocks: Array(blocks.prefix(1000)))
  }
}
