internal import Platform

/// Compares backup files with their manifests, not their restored content.
struct BackupFileCheck: Sendable {
  let surroundings: Surroundings

  /// Compares one backup's files with its manifest, without its parents.
  func prove(
    _ manifest: BackupManifest, in place: any BackupPlace, isInUse: Bool = false, progress: @escaping BackupProgress
  ) throws -> BackupProof {
    let found = try look(at: manifest, place, isFresh: true, isInUse: isInUse, progress)
    // Just after writing, a difference means an unreliable disk.
    let problems = found.problems + found.warnings
    return BackupProof(
      id: manifest.id, date: surroundings.now(), result: problems.isEmpty ? .proven : .failed, depth: .files,
      problems: problems, manifest: manifest.digest)
  }

  struct Found {
    /// Problems of files that restoring needs.
    var problems: [BackupProof.Problem] = []
    /// Problems of files that restoring does not need.
    var warnings: [BackupProof.Problem] = []
    /// The digest of the rewritten manifest.
    var manifest: String?

    /// Adds problems of the encrypted files, if new.
    mutating func add(_ sealed: Found) {
      func isNew(_ problem: BackupProof.Problem) -> Bool {
        !(problems + warnings).contains { own in own.file.map { problem.file == $0 + ".age" } ?? false }
      }
      problems += sealed.problems.filter(isNew)
      warnings += sealed.warnings.filter(isNew)
    }
  }

  func look(
    at manifest: BackupManifest, _ place: any BackupPlace, isFresh: Bool = false, isInUse: Bool = false,
    _ progress: @escaping BackupProgress
  ) throws -> Found {
    var result = Found()
    let total = manifest.totalBytes
    var done: Int64 = 0
    for file in manifest.files {
      var digest = RunningDigest()
      var damaged: [Int] = []
      if let reader = try MemberReader(file, of: manifest, in: place, .kept), let members = file.members {
        try BlockPipeline.run(count: members.count, threads: BlockPacker.threads(isInUse: isInUse)) {
          () throws -> ((Int) throws -> (member: [UInt8], isGood: Bool)) in
          { (block) throws -> (member: [UInt8], isGood: Bool) in
            guard let member = try reader.member(block) else { return ([], false) }
            // The digest verifies these bytes; this verifies that they unpack.
            if isFresh { return (member, file.packing.unpack(member: member, count: reader.length(of: block)) != nil) }
            if reader.blockCount == 0 { return (member, file.packing.unpack(member: member, count: 0) != nil) }
            return (member, reader.unpack(member, block) != nil)
          }
        } deliver: { block, read in
          digest.add(read.member)
          done += Int64(read.member.count)
          if !read.isGood { damaged.append(block) }
          try advance(progress, done, total)
        }
      } else {
        var offset: Int64 = 0
        while offset < file.bytes {
          // A missing helper has no bytes, and is reported as damaged.
          let bytes =
            try file.role.isHelper
            ? place.readIfThere(file.name, in: .kept, at: offset, length: 1 << 20) ?? []
            : place.read(file.name, in: .kept, at: offset, length: 1 << 20)
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

  private func advance(_ progress: BackupProgress, _ done: Int64, _ total: Int64) throws {
    guard progress(.proving, done, total) else { throw BackupError.cancelled("prove the backup") }
  }

  /// Checks the manifest copy or seek table after the blocks.
  private func copyWarning(
    _ file: BackupManifest.File, of manifest: BackupManifest, in place: any BackupPlace
  ) throws -> BackupProof.Problem? {
    guard file.members != nil, file.carriesManifest == true || file.packing == .zstd else { return nil }
    let content = (file.content ?? manifest.database)?.bytes ?? 0
    let rest = try rest(of: file, in: place)
    guard file.carriesManifest == true else {
      // A rebuilt manifest does not show whether there was a copy.
      if manifest.rebuilt == true || rest == file.packing.tail(of: file, content: content, manifest: nil) { return nil }
      return .init(
        code: StoredBackup.Problem.Code.seekTableDamaged.rawValue,
        words: "the seek table of \(file.name) is not what was written; the backup restores without it", file: file.name
      )
    }
    let size = file.bytes + Int64(rest.count)
    if let copy = try ManifestCopy.read(file.name, packedBy: file.packing, size: size, in: place, .kept),
      DigestedText.digest(of: copy) == manifest.digest,
      // A tail that gunzip or zstd would reject is damaged too.
      rest == file.packing.tail(of: file, content: content, manifest: copy)
    {
      return nil
    }
    return .init(
      code: StoredBackup.Problem.Code.manifestCopyDamaged.rawValue,
      words: "the copy of the manifest in \(file.name) is not what was written; the backup restores without it",
      file: file.name)
  }

  private func rest(of file: BackupManifest.File, in place: any BackupPlace) throws -> [UInt8] {
    var rest: [UInt8] = []
    while rest.count <= 2 * BackupManifest.limit {
      let bytes = try place.read(
        file.name, in: .kept, at: file.bytes + Int64(rest.count), length: BackupManifest.blockLength)
      rest += bytes
      if bytes.count < BackupManifest.blockLength { break }
    }
    return rest
  }
}

extension BackupProof.Problem {
  init(_ problem: StoredBackup.Problem) {
    self.init(code: problem.code.rawValue, words: problem.words, file: problem.file)
  }

  static func damaged(_ blocks: [Int], _ file: String) -> BackupProof.Problem {
    let words =
      blocks.count == 1 ? "block \(blocks[0]) of \(file) is damaged" : "\(blocks.count) blocks of \(file) are damaged"
    return .init(code: "block-damaged", words: words, file: file, blocks: Array(blocks.prefix(1000)))
  }
}
