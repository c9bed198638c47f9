import Platform
import SQLiteFormat
package import Salvage

/// The backups and stray objects of a place.
package struct BackupCatalog: Sendable {
  package let place: any BackupPlace

  let section: BackupSection

  /// The store's backups, newest first, broken ones included.
  package let backups: [StoredBackup]

  /// Backups of other or unknown stores in the folder, newest first.
  package let others: [StoredBackup]

  /// Objects of no backup, by name.
  package let strays: [BackupObject]

  /// All backups, of any store.
  var all: [StoredBackup] { backups + others }

  private let byIdentifier: [BackupIdentifier: StoredBackup]

  /// Reads names, sizes, manifests and proofs.
  ///
  /// A broken backup is listed with its problems.
  package init(of place: any BackupPlace, section: BackupSection = .kept) throws {
    self.place = place
    self.section = section
    var groups: [BackupIdentifier: [BackupObject]] = [:]
    var strays: [BackupObject] = []
    for object in try place.list(section) {
      if let id = Self.identifier(of: object.name) {
        groups[id, default: []].append(object)
      } else {
        strays.append(object)
      }
    }
    if section == .kept { try Self.leaveOutOnTheirWay(&groups, place) }
    var named: [(id: BackupIdentifier, objects: [BackupObject])] = []
    for (id, objects) in groups.ordered(by: { $0.key < $1.key }) {
      let (own, others) = Self.sorted(objects, of: id)
      strays += others
      if !own.isEmpty { named.append((id, own)) }
    }
    let read = try place.atOnce(named) { id, objects in try Self.readUnlessGone(id, objects, place, section) }
    var found = Dictionary(read.compactMap(\.self).map { ($0.id, $0) }) { $1 }
    // Originals do not name their store; the other backups do.
    let owner = place.owner
    let owned = { (backup: StoredBackup) in owner?.owns(backup.id, backup.manifest) ?? true }
    let own = Set(found.values.filter(owned).map(\.id))
    let known = found.values.filter { own.contains($0.id) && $0.manifest.map { !$0.namesNoStore } ?? false }
      .max { $0.id < $1.id }
    if let store = known?.manifest?.store {
      for id in own where found[id]?.manifest?.kind == .original {
        found[id]?.manifest?.store = .init(path: store.path, kind: store.kind)
      }
    }
    // Parents come first, as children inherit their problems.
    for id in found.keys.sorted() {
      guard let backup = found[id] else { continue }
      let parent = backup.manifest?.parent.flatMap { found[$0] }
      found[id]?.isUndecided = backup.isUnlabelled || backup.isWhole && parent?.isUndecided == true
      if let problem = Self.parentProblem(of: backup, in: found) { found[id]?.problems.append(problem) }
    }
    byIdentifier = found
    backups = found.values.filter { own.contains($0.id) }.ordered { $0.id > $1.id }
    others = found.values.filter { !own.contains($0.id) }.ordered { $0.id > $1.id }
    self.strays = strays.ordered { $0.name < $1.name }
  }

  /// - Throws: `no-such-backup`.
  package func backup(_ id: BackupIdentifier) throws -> StoredBackup {
    guard let backup = byIdentifier[id] else {
      throw BackupError(
        .notFound, operation: "find the backup", path: nil,
        detail: "no backup \(id) lies in \(printable(place.location))",
        hint: "List what is there with: lazaret backup list")
    }
    return backup
  }

  package func isOther(_ id: BackupIdentifier) -> Bool { others.contains { $0.id == id } }

  /// Returns a backup's chain, from the full one to itself.
  ///
  /// - Throws: `no-such-backup`, or `backup-chain-broken` if any is missing or not whole.
  package func chain(of id: BackupIdentifier) throws -> [StoredBackup] {
    let chain = try remains(of: id)
    if let first = chain.first, let parent = first.manifest?.parent {
      throw BackupError(
        .chainBroken, operation: "follow the chain of backup \(id)",
        detail: "backup \(parent), whose pages backup \(first.id) leaves out, is not there")
    }
    if let broken = chain.first(where: { !$0.isWhole }), let problem = broken.problems.first {
      throw BackupError(
        broken.id == id ? .damaged : .chainBroken, operation: "follow the chain of backup \(id)",
        detail: "backup \(broken.id) is not whole: \(problem.words)",
        hint: "Restore another backup, \(BackupErrorKind.orWhatIsLeft)")
    }
    return chain
  }

  /// Returns the existing part of a chain, however broken.
  ///
  /// - Throws: `no-such-backup`.
  func remains(of id: BackupIdentifier) throws -> [StoredBackup] {
    var chain = [try backup(id)]
    // Parents are older than their children, so the loop ends.
    while let id = chain[0].manifest?.parent, id < chain[0].id, let parent = byIdentifier[id] {
      chain.insert(parent, at: 0)
    }
    return chain
  }

  /// Returns all backups that depend on this one.
  package func descendants(of id: BackupIdentifier) -> [StoredBackup] {
    var needed: Set<BackupIdentifier> = [id]
    // Children are newer than parents, so one pass suffices.
    let all = all.ordered { $0.id > $1.id }
    for backup in all.reversed() {
      if let parent = backup.manifest?.parent, needed.contains(parent) { needed.insert(backup.id) }
    }
    return all.filter { $0.id != id && needed.contains($0.id) }
  }

  // MARK: Reading

  /// Returns the identifier in the name of a backup's file.
  static func identifier(of name: String) -> BackupIdentifier? {
    for suffix in suffixes where name.hasSuffix(suffix) {
      if let id = BackupIdentifier(String(name.dropLast(suffix.count))) { return id }
    }
    return nil
  }

  private static let suffixes =
    BackupManifest.File.Role.suffixes + BackupManifest.File.Role.allCases.filter(\.isOriginal).map(\.suffix) + [
      BackupManifest.suffix, BackupProof.suffix, releaseSuffix,
    ]

  /// The suffix of a user's note that releases a backup kept for a drop in records.
  static let releaseSuffix = ".released.json"

  private static func readUnlessGone(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) throws -> StoredBackup? {
    if let backup = try unlessMissing({ try read(id, objects, place, section) }) { return backup }
    // Without its head, which goes first, another process is removing it.
    let names = Set(try place.list(section).map(\.name))
    let left = objects.filter { names.contains($0.name) }
    if left.count == objects.count || !hasHead(left, of: id) { return nil }
    return try unlessMissing { try read(id, left, place, section) }
  }

  private static func read(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) throws -> StoredBackup {
    var backup = StoredBackup(id: id, manifest: nil, proof: nil, objects: objects, problems: [])
    let sizes = objects.sizes
    let proof = "\(id)\(BackupProof.suffix)"
    if let bytes = try content(proof, sizes, limit: 1 << 20, place, section) {
      backup.proof = BackupProof(json: bytes, of: id)
      if backup.proof == nil { backup.warnings.append(.unreadableProof(proof, "is not what was written")) }
    }
    if let manifest = try originalManifest(id, objects, place, section) {
      backup.manifest = manifest
      backup.onlyHere = onlyHereNote(id, objects, place, section)
      return backup
    }
    try readManifest(into: &backup, sizes, place, section)
    if let named = backup.proof?.manifest, let own = backup.manifestDigest, named != own {
      // The proof of an encrypted backup names its label.
      if named == (try place.label(of: id)?.manifest.digest) {
        backup.proof?.manifest = own
      } else {
        backup.proof = nil
        backup.warnings.append(.unreadableProof(proof, "is that of another manifest"))
      }
    }
    for file in backup.manifest?.files ?? [] {
      if backup.manifest?.rebuilt == true, let size = sizes[file.name], size >= file.bytes { continue }
      let tail = file.tailLength(manifest: backup.manifestLength)
      guard let problem = problem(of: file, size: sizes[file.name], tail: tail) else { continue }
      let isHelper = file.role.isHelper || problem.code == .manifestCopyDamaged || problem.code == .seekTableDamaged
      if isHelper { backup.warnings.append(problem) } else { backup.problems.append(problem) }
    }
    if let missing = backup.manifest?.externalData?.missing, !missing.isEmpty {
      let verb = missing.count == 1 ? "is" : "are"
      backup.warnings.append(
        .init(
          code: .largeValueMissing,
          words: "\(counted(missing.count, "large value")) that records refer to \(verb) missing from it"))
    }
    backup.problems = try place.named(backup.problems, \.words, of: id, in: section)
    backup.warnings = try place.named(backup.warnings, \.words, of: id, in: section)
    return backup
  }

  private static func problem(of file: BackupManifest.File, size: Int64?, tail: Int64) -> StoredBackup.Problem? {
    guard let size else { return .init(code: .fileMissing, words: "\(file.name) is missing", file: file.name) }
    let whole = file.bytes + tail
    if size == whole { return nil }
    if size >= file.bytes, size < whole, file.carriesManifest != true {
      return .init(code: .seekTableDamaged, words: "the seek table of \(file.name) is cut off", file: file.name)
    }
    if size >= file.bytes, size < whole {
      return .init(
        code: .manifestCopyDamaged, words: "the copy of the manifest in \(file.name) is cut off", file: file.name)
    }
    return .init(
      code: .fileSizeWrong, words: "\(file.name) has \(size) bytes, and the manifest says \(whole)", file: file.name)
  }

  static func content(
    _ name: String, _ sizes: [String: Int64], limit: Int, _ place: any BackupPlace, _ section: BackupSection
  ) throws -> [UInt8]? {
    guard let size = sizes[name], size <= Int64(limit) else { return nil }
    return try place.read(name, in: section, at: 0, length: limit)
  }

  private static func parentProblem(
    of backup: StoredBackup, in all: [BackupIdentifier: StoredBackup]
  ) -> StoredBackup.Problem? {
    guard let manifest = backup.manifest, let parent = manifest.parent else { return nil }
    guard let found = all[parent] else {
      return .init(code: .parentMissing, words: "backup \(parent), whose pages it leaves out, is missing")
    }
    guard found.isWhole, let other = found.manifest else {
      let state = found.isUndecided ? "cannot be judged without a key" : "is not whole"
      return .init(code: .parentBroken, words: "backup \(parent), whose pages it leaves out, \(state)")
    }
    // Without a key the page size is unknown.
    let isSame = other.isLocked || manifest.isLocked || other.database?.pageSize == manifest.database?.pageSize
    guard isSame, ![.evidence, .original].contains(other.kind), other.depth == manifest.depth - 1 else {
      return .init(code: .parentBroken, words: "backup \(parent) is not the one whose pages it leaves out")
    }
    return nil
  }

  static func originalRole(of name: String, _ id: BackupIdentifier) -> BackupManifest.File.Role? {
    // Formatting the identifier is slow, so the suffix is checked first.
    BackupManifest.File.Role.originals.first { name.hasSuffix($0.suffix) && name == "\(id)\($0.suffix)" }?.role
  }

  static func noteIdentifier(of name: String) -> BackupIdentifier? {
    name.hasSuffix(OnlyHereNote.suffix) ? BackupIdentifier(String(name.dropLast(OnlyHereNote.suffix.count))) : nil
  }

  /// Separates an original's parts from a backup's objects of the same name.
  ///
  /// - Returns: the objects of one of them, and the others.
  static func sorted(
    _ objects: [BackupObject], of id: BackupIdentifier
  ) -> (own: [BackupObject], strays: [BackupObject]) {
    let parts = objects.filter { originalRole(of: $0.name, id) != nil }
    if parts.isEmpty { return (objects, []) }
    let others = objects.filter { originalRole(of: $0.name, id) == nil }
    // A proof alone is no backup.
    guard others.allSatisfy({ $0.name == "\(id)\(BackupProof.suffix)" }) else { return (others, parts) }
    return parts.contains { originalRole(of: $0.name, id) == .originalMain } ? (objects, []) : ([], objects)
  }

  static func originalManifest(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) throws -> BackupManifest? {
    let files = objects.compactMap { object in
      originalRole(of: object.name, id).map {
        BackupManifest.File(role: $0, name: object.name, bytes: object.bytes, sha256: "")
      }
    }
    guard let main = files.first(where: { $0.role == .originalMain }) else { return nil }
    var manifest = BackupManifest(
      id: id, kind: .original, reason: .beforeMigration, files: files, check: .init(isSound: true))
    let header = DatabaseHeader(try place.read(main.name, in: section, at: 0, length: DatabaseHeader.length))
    let pageSize = header?.pageSize ?? 4096
    manifest.database = BackupManifest.Content(
      bytes: main.bytes, sha256: "", blocks: [], pageSize: pageSize,
      pageCount: UInt32(clamping: main.bytes / Int64(pageSize)))
    return manifest
  }

  /// Reads the note of records only in an original.
  ///
  /// An unreadable note counts, without entities.
  static func onlyHereNote(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) -> OnlyHereNote? {
    guard let object = objects.first(where: { originalRole(of: $0.name, id) == .originalOnlyHere }) else { return nil }
    let unreadable = OnlyHereNote(step: nil, entities: [])
    guard object.bytes > 0, object.bytes <= Int64(OnlyHereNote.limit) else { return unreadable }
    do {
      let bytes = try place.read(object.name, in: section, at: 0, length: OnlyHereNote.limit)
      return OnlyHereNote(json: bytes) ?? unreadable
    } catch {
      // An unreadable note keeps the original too.
      return unreadable
    }
  }

  private static let kitLimit: Int64 = 256 << 20

  /// Reads a backup's recovery kit, unless missing or changed.
  package func recoveryKit(of backup: StoredBackup) throws -> RecoveryKit? {
    guard let file = backup.manifest?.file(.recoveryKit), file.bytes <= Self.kitLimit,
      backup.objects.contains(where: { $0.name == file.name })
    else { return nil }
    let bytes = try place.read(file.name, in: section, at: 0, length: Int(file.bytes))
    guard FileDigest(of: bytes).hexadecimal == file.sha256 else { return nil }
    // Its digest is correct, so it is of a later version.
    return try? RecoveryKit(bytes: bytes)
  }

  /// Reads a backup's manifest, else its copy, else the block headers.
  static func readManifest(
    into backup: inout StoredBackup, _ sizes: [String: Int64], _ place: any BackupPlace, _ section: BackupSection
  ) throws {
    let name = "\(backup.id)\(BackupManifest.suffix)"
    var problem = StoredBackup.Problem(
      code: .manifestMissing, words: "it has no manifest: it was not finished, or the manifest was removed")
    if backup.isUnlabelled { problem.words = "its label \(name) is missing, and no key that opens its files was given" }
    let changed = StoredBackup.Problem(
      code: .manifestChanged, words: "its manifest was changed after it was written", file: name)
    if sizes[name] != nil {
      do {
        guard let bytes = try content(name, sizes, limit: BackupManifest.limit, place, section) else {
          throw BackupError(.manifestUnreadable, operation: "read the manifest", detail: "it is too large to be one")
        }
        let manifest = try BackupManifest(json: bytes, of: backup.id)
        if try note(manifest, bytes, into: &backup, sizes, place, section) { return }
        problem = changed
      } catch {
        let error = BackupError(any: error)
        switch error.kind {
        case .manifestChanged: problem = changed
        case .manifestUnreadable, .manifestTooNew:
          problem = .init(code: .manifestUnreadable, words: "its manifest cannot be read: \(error.detail)", file: name)
        default: throw error
        }
        // A later version's manifest must not be rebuilt.
        if error.kind == .manifestTooNew { return backup.problems.append(problem) }
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
  static func leaveOutOnTheirWay(_ groups: inout [BackupIdentifier: [BackupObject]], _ place: any BackupPlace) throws {
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
