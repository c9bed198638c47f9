import Platform

extension BackupCatalog {
  /// Reads a backup's manifest, else its copy, else the block headers.
  static func readManifest(
    into backup: inout StoredBackup, _ sizes: [String: Int64], _ place: any BackupPlace, _ section: BackupSection
  ) throws {
    let name = "\(backup.id)\(BackupManifest.suffix)"
    var problem = StoredBackup.Problem(
      code: .manifestMissing, words: "it has no manifest: it was not finished, or the manifest was removed")
    if backup.isUnlabelled {
      problem.words = "its label \(name) is missing, and no key that opens its files was given"
    }
    let changed = StoredBackup.Problem(
      code: .manifestChanged, words: "its manifest was changed after it was written", file: name)
    if sizes[name] != nil {
      do {
        guard let bytes = try content(name, sizes, limit: BackupManifest.limit, place, section) else {
          throw BackupError(
            .manifestUnreadable, operation: "read the manifest", detail: "it is too large to be one")
        }
        let manifest = try BackupManifest(json: bytes, of: backup.id)
        if try note(manifest, bytes, into: &backup, sizes, place, section) { return }
        problem = changed
      } catch {
        let error = BackupError(any: error)
        switch error.kind {
        case .manifestChanged: problem = changed
        case .manifestUnreadable, .manifestTooNew:
          problem = .init(
            code: .manifestUnreadable, words: "its manifest cannot be read: \(error.detail)", file: name)
        default: throw error
        }
        // A later version's manifest must not be rebuilt.
        if error.kind == .manifestTooNew {
          backup.problems.append(problem)
          return
        }
      }
    }
    if try !readCopy(into: &backup, sizes, place, section, insteadOf: problem) { backup.problems.append(problem) }
  }

  private static func note(
    _ manifest: BackupManifest, _ bytes: [UInt8], into backup: inout StoredBackup, _ sizes: [String: Int64],
    _ place: any BackupPlace, _ section: BackupSection
  ) throws -> Bool {
    if manifest.digest == nil {
      let digest = FileDigest(of: bytes).hexadecimal
      // Another manifest was verified.
      if let verified = backup.proof?.manifest, verified != digest { return false }
      // With a copy after the blocks, the manifest lost its digest.
      for file in manifest.files where file.members != nil {
        guard let size = sizes[file.name], size > file.bytes,
          try ManifestCopy.read(file.name, packedBy: file.packing, size: size, in: place, section) != nil
        else { continue }
        return false
      }
      backup.manifestSource = .earlier
      backup.manifestDigest = digest
    } else {
      backup.manifestDigest = manifest.digest
    }
    backup.manifest = manifest
    backup.manifestLength = bytes.count
    return true
  }

  /// Reads a backup without a valid manifest; returns false if its files reveal none.
  private static func readCopy(
    into backup: inout StoredBackup, _ sizes: [String: Int64], _ place: any BackupPlace, _ section: BackupSection,
    insteadOf problem: StoredBackup.Problem
  ) throws -> Bool {
    let id = backup.id
    func note(_ manifest: BackupManifest, from source: StoredBackup.ManifestSource, _ words: String) {
      backup.manifest = manifest
      backup.manifestSource = source
      let lack = problem.file == nil ? "its manifest is missing" : problem.words
      backup.warnings.append(
        .init(code: problem.code, words: "\(lack); \(words)", file: "\(id)\(BackupManifest.suffix)"))
    }
    for role in BackupManifest.File.Role.allCases where role == .database || role == .delta || role.isEvidence {
      guard let (name, packing) = role.packedFile(of: id, among: sizes), let size = sizes[name],
        let bytes = try ManifestCopy.read(name, packedBy: packing, size: size, in: place, section),
        // With a valid digest an unreadable one has another origin.
        let manifest = try? BackupManifest(json: bytes, of: id), manifest.carrier?.name == name
      else { continue }
      backup.manifestDigest = manifest.digest
      backup.manifestLength = bytes.count
      note(manifest, from: .copy, "the copy in \(name) is used")
      return true
    }
    guard let manifest = try BlockSurvey.manifest(of: id, sizes, place, section) else { return false }
    note(manifest, from: .rebuilt, "what is known of it is read from its blocks")
    return true
  }

  /// Leaves out kept backups that are being written or dropped, or were when a process was killed.
  ///
  /// Backups with a new manifest are listed again.
  static func leaveOutOnTheirWay(
    _ groups: inout [BackupIdentifier: [BackupObject]], _ place: any BackupPlace
  ) throws {
    let headless = groups.filter { id, objects in !hasHead(objects, of: id) }.map(\.key)
    guard !headless.isEmpty else { return }
    let elsewhere = Set(try place.unfinished() + place.list(.trash).map(\.name))
    let now = Dictionary(grouping: try place.list(.kept)) { identifier(of: $0.name) }
    for id in headless {
      if let objects = now[id], hasHead(objects, of: id) {
        groups[id] = objects
      } else if elsewhere.contains("\(id)\(BackupManifest.suffix)") {
        groups[id] = nil
      }
    }
  }

  /// The possible names of the object that lists a backup, and is removed first: its manifest, or an original's file.
  static func heads(of id: BackupIdentifier) -> [String] {
    [BackupManifest.suffix, BackupManifest.File.Role.originalMain.suffix].map { "\(id)\($0)" }
  }

  static func hasHead(_ objects: [BackupObject], of id: BackupIdentifier) -> Bool {
    let heads = heads(of: id)
    return objects.contains { heads.contains($0.name) }
  }
}
