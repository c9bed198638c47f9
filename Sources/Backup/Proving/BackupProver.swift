import Archives
import Examination
import Foundation
import GRDB
public import ManagedObjectModel
import Migration
import PersistentStore
public import StoreFiles
package import SystemPackage

/// Proves backups: that what lies in a place can be restored, opens, is sound, and has the records that the manifest says.
public struct BackupProver: Sendable {
  /// What to prove, and for how long.
  public struct Options: Sendable {
    /// How far to go.
    public var depth = BackupProof.Depth.restored

    /// The app's model, to which the restored store is migrated at depth `migrated`.
    public var model: ModelBundle?

    /// When to stop; a proof that is under way then is inconclusive.
    public var deadline: ContinuousClock.Instant?

    /// Called now and then with what is done.
    public var progress: BackupProgress

    /// Restores, opens and checks, without a deadline.
    public init(progress: @escaping BackupProgress = { _, _, _ in true }) { self.progress = progress }
  }

  let surroundings: Surroundings
  let temporary: FilePath

  /// Proves with this machine's file system and clock.
  public init() { self.init(surroundings: .machine) }

  /// - Parameter temporary: the folder to restore into; the system's own if nil.
  package init(surroundings: Surroundings, temporary: FilePath? = nil) {
    self.surroundings = surroundings
    self.temporary = temporary ?? FilePath(NSTemporaryDirectory())
  }

  /// Proves a backup, and writes the result beside it.
  ///
  /// An environmental error, such as a full disk or a place that cannot be read, makes a proof inconclusive; the last one that was not is kept then.
  ///
  /// - Throws: `no-such-backup`, `cancelled`, or what the place says where the result cannot be written.
  public func prove(
    _ id: BackupIdentifier, in place: any BackupPlace, _ options: Options = Options()
  ) throws(BackupError) -> BackupProof {
    let catalog = try BackupCatalog(of: place)
    let backup = try catalog.backup(id)
    let proof = try look(at: backup, in: catalog, options)
    // A proof that could not be finished says nothing against the one before.
    if proof.result != .inconclusive || backup.proof == nil {
      try place.replace("\(id)\(BackupProof.suffix)", with: try proof.json(), in: .kept)
    }
    return proof
  }

  /// The order in which to prove backups: those never restored first, then those longest ago; newest first among equals.
  public static func order(_ backups: [StoredBackup]) -> [StoredBackup] {
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
      _ result: BackupProof.Result, _ depth: BackupProof.Depth, _ problems: [BackupProof.Problem] = []
    ) -> BackupProof {
      BackupProof(
        id: backup.id, date: surroundings.now(), result: result, depth: depth, problems: problems,
        lastRestored: backup.proof?.lastRestored)
    }
    guard let manifest = backup.manifest, backup.isWhole else {
      return proof(.failed, .files, backup.problems.map { .init(code: $0.code.rawValue, words: $0.words) })
    }
    let end = options.deadline
    let watched: BackupProgress = { phase, done, total in
      if let end, ContinuousClock.now > end { return false }
      return options.progress(phase, done, total)
    }
    do throws(BackupError) {
      // Of an original there are no digests to compare with.
      if options.depth == .files, manifest.kind != .original {
        let problems = try problems(in: manifest, catalog.place, watched)
        return proof(problems.isEmpty ? .proven : .failed, .files, problems)
      }
      let problems = try restored(backup, manifest, in: catalog, options, watched)
      return proof(problems.isEmpty ? .proven : .failed, max(options.depth, .restored), problems)
    } catch {
      if error.kind == .cancelled {
        guard let end, ContinuousClock.now > end else { throw error }
        return proof(.inconclusive, options.depth, [.init(code: "out-of-time", words: "the time for it ran out")])
      }
      guard error.isEnvironmental || error.kind == .chainBroken || error.kind == .damaged else { throw error }
      let problem = BackupProof.Problem(code: error.code, words: "cannot \(error.operation): \(error.detail)")
      return proof(error.isEnvironmental ? .inconclusive : .failed, options.depth, [problem])
    }
  }

  /// Reads the files of one backup back, and compares them with its manifest; its parents are not looked at.
  func proveFiles(
    _ manifest: BackupManifest, in place: any BackupPlace, isInUse: Bool = false, progress: @escaping BackupProgress
  ) throws(BackupError) -> BackupProof {
    let problems = try problems(in: manifest, place, isFresh: true, isInUse: isInUse, progress)
    return BackupProof(
      id: manifest.id, date: surroundings.now(), result: problems.isEmpty ? .proven : .failed, depth: .files,
      problems: problems)
  }

  private func problems(
    in manifest: BackupManifest, _ place: any BackupPlace, isFresh: Bool = false, isInUse: Bool = false,
    _ progress: @escaping BackupProgress
  ) throws(BackupError) -> [BackupProof.Problem] {
    var problems: [BackupProof.Problem] = []
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
        digest.add(try reader.closing())
      } else {
        var offset: Int64 = 0
        while offset < file.bytes {
          let bytes = try place.read(file.name, in: .kept, at: offset, length: 1 << 20)
          if bytes.isEmpty { break }
          digest.add(bytes)
          offset += Int64(bytes.count)
          done += Int64(bytes.count)
          try advance(progress, done, total)
        }
      }
      if !damaged.isEmpty {
        problems.append(.damaged(damaged, file.name))
      } else if digest.hexadecimal != file.sha256 {
        problems.append(.init(code: "file-damaged", words: "\(file.name) is not what was written", file: file.name))
      }
    }
    return problems
  }

  func advance(_ progress: BackupProgress, _ done: Int64, _ total: Int64) throws(BackupError) {
    guard progress(.proving, done, total) else { throw .cancelled("prove the backup") }
  }
}

extension BackupProof.Problem {
  /// Blocks of a file that are not what was packed.
  static func damaged(_ blocks: [Int], _ file: String) -> BackupProof.Problem {
    let words =
      blocks.count == 1 ? "block \(blocks[0]) of \(file) is damaged" : "\(blocks.count) blocks of \(file) are damaged"
    return .init(code: "block-damaged", words: words, file: file, blocks: Array(blocks.prefix(1000)))
  }
}
