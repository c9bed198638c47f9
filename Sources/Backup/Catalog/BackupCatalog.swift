public import StoreFiles

/// What lies in a place: backups whole and broken, and what belongs to none.
public struct BackupCatalog: Sendable {
  /// The place.
  public let place: any BackupPlace

  /// The part of the place.
  public let section: BackupSection

  /// All backups, newest first, broken ones included.
  public let backups: [StoredBackup]

  /// The objects that belong to no backup, by name; other software, or a migration, may have put them there.
  public let strays: [BackupObject]

  private let byIdentifier: [BackupIdentifier: StoredBackup]

  /// Reads a place: names, sizes, manifests and proofs.
  ///
  /// A backup that is broken is listed with what is wrong with it; only a place that cannot be read is an error.
  public init(of place: any BackupPlace, section: BackupSection = .kept) throws(BackupError) {
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
    var found: [BackupIdentifier: StoredBackup] = [:]
    for (id, objects) in groups {
      let (own, others) = Self.sorted(objects, of: id)
      strays += others
      if !own.isEmpty { found[id] = try Self.read(id, own, place, section) }
    }
    // What a migration keeps does not say of which store it is; the others of the place do.
    let known = found.values.filter { $0.manifest.map { $0.kind != .original } ?? false }.max { $0.id < $1.id }
    if let store = known?.manifest?.store {
      for id in found.keys where found[id]?.manifest?.kind == .original {
        found[id]?.manifest?.store = .init(path: store.path, kind: store.kind)
      }
    }
    // Parents come before their children, so that what is wrong with one is known to the next.
    for id in found.keys.sorted() {
      if let problem = found[id].flatMap({ Self.parentProblem(of: $0, in: found) }) {
        found[id]?.problems.append(problem)
      }
    }
    byIdentifier = found
    backups = found.values.sorted { $0.id > $1.id }
    self.strays = strays.sorted { $0.name < $1.name }
  }

  /// The backup of that name.
  ///
  /// - Throws: `no-such-backup`.
  public func backup(_ id: BackupIdentifier) throws(BackupError) -> StoredBackup {
    guard let backup = byIdentifier[id] else {
      throw BackupError(
        .notFound, operation: "find the backup", path: nil,
        detail: "no backup \(id) lies in \(printable(place.location))",
        hint: "List what is there with: lazaret backup list")
    }
    return backup
  }

  /// The backups that restoring one reads, the full one first and itself last.
  ///
  /// - Throws: `no-such-backup`, or `backup-chain-broken` where one of them is missing or not whole.
  public func chain(of id: BackupIdentifier) throws(BackupError) -> [StoredBackup] {
    var chain = [try backup(id)]
    while let first = chain.first, let parent = first.manifest?.parent {
      // Parents are older than their children, so that this comes to an end.
      guard let next = byIdentifier[parent], parent < first.id else {
        throw BackupError(
          .chainBroken, operation: "follow the chain of backup \(id)",
          detail: "backup \(parent), whose pages backup \(first.id) leaves out, is not there")
      }
      chain.insert(next, at: 0)
    }
    if let broken = chain.first(where: { !$0.isWhole }), let problem = broken.problems.first {
      throw BackupError(
        broken.id == id ? .damaged : .chainBroken, operation: "follow the chain of backup \(id)",
        detail: "backup \(broken.id) is not whole: \(problem.words)",
        hint: "Restore another backup, or restore what is left of this one with --salvage.")
    }
    return chain
  }

  /// What is there of the chain of a backup, however broken; the earliest first and itself last.
  ///
  /// - Throws: `no-such-backup`.
  public func remains(of id: BackupIdentifier) throws(BackupError) -> [StoredBackup] {
    var chain = [try backup(id)]
    while let first = chain.first, let parent = first.manifest?.parent, parent < first.id,
      let next = byIdentifier[parent]
    {
      chain.insert(next, at: 0)
    }
    return chain
  }

  /// The backups that need this one, directly or by others that do.
  public func descendants(of id: BackupIdentifier) -> [StoredBackup] {
    var needed: Set<BackupIdentifier> = [id]
    // A child is newer than its parent, so that one pass from the oldest on finds all.
    for backup in backups.reversed() {
      if let parent = backup.manifest?.parent, needed.contains(parent) { needed.insert(backup.id) }
    }
    return backups.filter { $0.id != id && needed.contains($0.id) }
  }

  // MARK: Reading

  /// The identifier that a name begins with, where a backup's file can be called so.
  static func identifier(of name: String) -> BackupIdentifier? {
    for suffix in suffixes where name.hasSuffix(suffix) {
      if let id = BackupIdentifier(String(name.dropLast(suffix.count))) { return id }
    }
    return nil
  }

  private static let suffixes =
    Set(
      BackupManifest.File.Role.allCases.flatMap { role in
        BackupCompression.allCases.map { role.suffix(packedBy: $0) }
      }
    ).sorted() + [BackupManifest.suffix, BackupProof.suffix]

  private static func read(
    _ id: BackupIdentifier, _ objects: [BackupObject], _ place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> StoredBackup {
    var backup = StoredBackup(id: id, manifest: nil, proof: nil, objects: objects, problems: [])
    let sizes = Dictionary(objects.map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
    if let bytes = try content("\(id)\(BackupProof.suffix)", sizes, limit: 1 << 20, place, section) {
      backup.proof = BackupProof(json: bytes, of: id)
    }
    if let manifest = try originalManifest(id, objects, place, section) {
      backup.manifest = manifest
      backup.onlyHere = onlyHereNote(id, objects, place, section)
      return backup
    }
    guard sizes["\(id)\(BackupManifest.suffix)"] != nil else {
      backup.problems.append(
        .init(code: .manifestMissing, words: "it has no manifest: it was not finished, or the manifest was removed"))
      return backup
    }
    do throws(BackupError) {
      guard
        let bytes = try content("\(id)\(BackupManifest.suffix)", sizes, limit: BackupManifest.limit, place, section)
      else {
        backup.problems.append(.init(code: .manifestUnreadable, words: "its manifest is too large to be one"))
        return backup
      }
      backup.manifest = try BackupManifest(json: bytes, of: id)
    } catch {
      guard error.kind == .manifestUnreadable || error.kind == .manifestTooNew else { throw error }
      backup.problems.append(.init(code: .manifestUnreadable, words: "its manifest cannot be read: \(error.detail)"))
    }
    for file in backup.manifest?.files ?? [] {
      if let size = sizes[file.name] {
        guard size != file.bytes else { continue }
        backup.problems.append(
          .init(
            code: .fileSizeWrong, words: "\(file.name) has \(size) bytes, and the manifest says \(file.bytes)"))
      } else {
        backup.problems.append(.init(code: .fileMissing, words: "\(file.name) is missing"))
      }
    }
    return backup
  }

  /// A small object; nil where it is not there or is larger than it can be.
  private static func content(
    _ name: String, _ sizes: [String: Int64], limit: Int, _ place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> [UInt8]? {
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
      return .init(code: .parentBroken, words: "backup \(parent), whose pages it leaves out, is not whole")
    }
    guard other.database?.pageSize == manifest.database?.pageSize, ![.evidence, .original].contains(other.kind),
      other.depth == manifest.depth - 1
    else {
      return .init(code: .parentBroken, words: "backup \(parent) is not the one whose pages it leaves out")
    }
    return nil
  }
}
