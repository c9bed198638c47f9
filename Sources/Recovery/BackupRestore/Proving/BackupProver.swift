import Archives
package import Backup
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
