import Foundation
package import Platform
import SystemPackage

/// The description of a backup, with the digests of its blocks.
///
/// Versioned JSON, described in `Documentation/BACKUP_FORMAT.md`; keys may be added, never changed. A backup without a
/// manifest is not whole.
package struct BackupManifest: Sendable, Hashable, Codable {
  package enum Kind: String, Sendable, Hashable, Codable {
    case full, delta

    /// The files of a damaged or quarantined store.
    case evidence

    /// The unpacked files of a migrated store, without a manifest on disk.
    case original
  }

  package enum Reason: String, Sendable, Hashable, Codable, CaseIterable {
    case manual, scheduled

    case beforeMigration = "before-migration"

    case beforeRestore = "before-restore"

    /// Before a salvaged or new store is installed.
    case beforeInstall = "before-install"
  }

  static let formatName = "lazaret-backup-manifest"

  static let newestVersion = 3

  /// The lowest version able to read it: 3 for a delta, which lacks block digests of the whole; 2 with encryption or
  /// Zstandard; else 1.
  var neededVersion: Int {
    if kind == .delta { return 3 }
    return encryption != nil || files.contains { $0.packing != .gzip } ? 2 : 1
  }

  /// The unpacked size of a member.
  static let blockLength = 1 << 20

  static func blockCount(of bytes: Int64) -> Int { Int((bytes + Int64(blockLength) - 1) / Int64(blockLength)) }

  var format: String = BackupManifest.formatName

  /// The version of the format, from 1.
  package var version: Int = 1

  var id: BackupIdentifier

  /// The time in RFC 3339.
  package var date: String

  package var kind: Kind

  package var reason: Reason

  package var tags: [String] = []

  /// The parent of a delta.
  package var parent: BackupIdentifier?

  /// The length of its chain, from 1.
  package var depth: Int = 1

  /// The store's generation; nil if unknown, and in earlier manifests.
  package var lineage: StoreLineage?

  package var store: Store

  package var database: Content?

  /// The first page and length of each run of a delta, ascending.
  package var pages: [UInt32]?

  package var files: [File]

  package var externalData: ExternalData?

  package var model: Model?

  /// The records per entity, or rows per table; nil if not counted.
  package var entities: [EntityCount]?

  package var check: Check

  package var falls: [Fall]?

  /// Set only in the outer manifest, which has public facts.
  var encryption: Encryption?

  package var isLocked: Bool { encryption != nil }

  var versions: Versions

  /// Whether it was lost and rebuilt from the files.
  package var rebuilt: Bool?

  /// The SHA-256 of the text without this key; nil in earlier manifests.
  package var digest: String?

  package init(
    id: BackupIdentifier, kind: Kind, reason: Reason, store: Store = .init(path: PathText(""), kind: "unknown"),
    files: [File], check: Check, versions: Versions = .init(library: "", operatingSystem: "")
  ) {
    self.id = id
    self.date = id.date.rfc3339
    self.kind = kind
    self.reason = reason
    self.store = store
    self.files = files
    self.check = check
    self.versions = versions
  }

  /// The total size of the backup's files.
  package var totalBytes: Int64 { files.reduce(0) { $0 + $1.bytes } }

  package var contentBytes: Int64 {
    database?.bytes ?? files.filter { $0.role.isEvidence }.reduce(0) { $0 + ($1.content?.bytes ?? 0) }
  }

  /// Whether the store is unknown.
  var namesNoStore: Bool {
    kind == .original || store.relativePath == nil && store.path.text.isEmpty && store.path.bytes == nil
  }

  package var carrier: File? { files.first { $0.carriesManifest == true } }

  /// Chooses the file with the copy: database, delta, or first of evidence.
  mutating func chooseCarrier() {
    let roles: [File.Role] = [.database, .delta, .evidenceMain, .evidenceLog, .evidenceJournal, .evidenceSharedMemory]
    guard let role = roles.first(where: { file($0) != nil }), let place = files.firstIndex(where: { $0.role == role })
    else { return }
    files[place].carriesManifest = true
  }

  package func file(_ role: File.Role) -> File? { files.first { $0.role == role } }

  static let limit = 64 << 20

  package static let suffix = ".json"

  /// Parses a manifest, and rejects contradictions, as it is untrusted.
  ///
  /// - Parameter id: the identifier in its file name.
  /// - Throws: `backup-manifest-unreadable`, `backup-manifest-changed`, `backup-manifest-too-new`.
  init(json bytes: [UInt8], of id: BackupIdentifier) throws {
    let verdict = DigestedText.verdict(bytes)
    guard verdict != .changed else { throw BackupError.changed(id) }
    func decoded<Value: Decodable>(_ type: Value.Type, or words: String) throws -> Value {
      do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch { throw BackupError.unreadable(id, words) }
    }
    let otherwise = "it is not the manifest of a backup"
    let head = try decoded(FormatHead.self, or: otherwise)
    guard head.format == Self.formatName else { throw BackupError.unreadable(id, otherwise) }
    guard (1...Self.newestVersion).contains(head.version) else {
      throw BackupError(
        .manifestTooNew, operation: "read the manifest of backup \(id)",
        detail: "it is of version \(head.version), and this software knows version \(Self.newestVersion)")
    }
    let manifest = try decoded(BackupManifest.self, or: "parts of it are missing or of the wrong kind")
    // Earlier manifests have neither digest nor copy.
    guard verdict == .right || manifest.digest == nil && manifest.carrier == nil else { throw BackupError.changed(id) }
    if let contradiction = manifest.contradiction(id: id) { throw BackupError.unreadable(id, contradiction) }
    self = manifest
  }

  package func json() throws -> [UInt8] {
    var manifest = self
    manifest.digest = nil
    return DigestedText.adding(to: try JSON.bytes(of: manifest, .line, to: "write the manifest of backup \(id)"))
  }

  // MARK: Checking

  /// Returns a contradiction as a sentence without a full stop.
  private func contradiction(id: BackupIdentifier) -> String? {
    guard self.id == id else { return "it is that of backup \(self.id)" }
    guard Set(files.map(\.role)).count == files.count else { return "it names two files of one kind" }
    guard files.filter({ $0.carriesManifest == true }).count <= 1 else { return "it has two copies" }
    for file in files {
      if let words = contradiction(in: file) { return words }
    }
    if encryption != nil { return lockedContradiction }
    switch kind {
    case .full:
      guard parent == nil, pages == nil, depth == 1 else { return "a full backup has no parent" }
      guard let database, let file = file(.database) else { return "it names no database" }
      return contradiction(database: database) ?? contradiction(members: file.members, of: database)
    case .delta:
      guard let parent, parent < id, depth > 1, depth <= 1000 else { return "its place in a chain cannot be" }
      guard let database, let file = file(.delta), let content = file.content, let pages else {
        return "it names no changed pages"
      }
      return contradiction(database: database) ?? contradiction(members: file.members, of: content)
        ?? contradiction(pages: pages, of: database, content: content)
    case .evidence:
      guard parent == nil, pages == nil, depth == 1, database == nil, file(.pageHashes) == nil else {
        return "evidence has neither parent nor pages"
      }
      return files.contains { $0.role.isEvidence } ? nil : "it names no file of the store"
    case .original: return "no manifest is written for what a migration keeps"
    }
  }

  /// A contradiction in an outer manifest.
  private var lockedContradiction: String? {
    guard encryption?.format == "age", kind != .original, file(.manifest) != nil else {
      return "its encryption is not one that there is"
    }
    guard database == nil, pages == nil, externalData == nil, entities == nil else {
      return "it tells what should be encrypted"
    }
    guard files.allSatisfy({ $0.members == nil && $0.content == nil }) else { return "its files cannot have blocks" }
    guard kind == .delta else { return parent == nil && depth == 1 ? nil : "only a delta has a parent" }
    guard let parent, parent < id, depth > 1, depth <= 1000 else { return "its place in a chain cannot be" }
    return nil
  }

  private func contradiction(in file: File) -> String? {
    guard file.carriesManifest != true || file.members != nil else { return "its copy is in a file without blocks" }
    let ending = isLocked ? Encryption.fileEnding : ""
    guard file.name == "\(id)\(file.role.suffix(packedBy: file.packing))\(ending)" else {
      return "it names a file that is not its own"
    }
    guard file.bytes >= 0, file.sha256.isDigest else { return "size or digest of a file cannot be" }
    guard isLocked || file.role != .manifest else { return "it names itself" }
    guard !file.role.isOriginal else { return "it names a file that no manifest is written for" }
    guard isLocked || [.pageHashes, .recoveryKit, .database].contains(file.role) || file.content != nil else {
      return "it does not say what a file holds"
    }
    if let content = file.content { return contradiction(members: file.members, of: content, in: file) }
    return nil
  }

  private func contradiction(members: [Int]?, of content: Content, in file: File? = nil) -> String? {
    guard content.bytes >= 0, content.sha256.isDigest, content.blocks.allSatisfy(\.isDigest) else {
      return "size or digest of its content cannot be"
    }
    let length = Int64(Self.blockLength)
    let count = content.bytes / length + (content.bytes % length == 0 ? 0 : 1)
    guard Int64(content.blocks.count) == count else { return "it does not have a digest for each block" }
    guard let members else { return "it does not say where its blocks are" }
    // Empty content has one member, for other programs.
    guard Int64(members.count) == max(1, count), members.allSatisfy({ (18...Self.longestMember).contains($0) }) else {
      return "it does not say where each block is"
    }
    let file = file ?? self.file(kind == .full ? .database : .delta)
    let total = members.reduce(Int64(0)) { $0 + Int64($1) }
    guard total == file?.bytes else { return "its blocks do not fill its file" }
    return nil
  }

  /// Incompressible data grows by some bytes per 64 KiB, plus a header.
  static let longestMember = blockLength + 65536

  private func contradiction(database: Content) -> String? {
    guard let size = database.pageSize, let count = database.pageCount, size >= 512, size <= 65536,
      size.nonzeroBitCount == 1, Int64(size) * Int64(count) == database.bytes
    else { return "page size and number of pages cannot be" }
    guard database.sha256.isDigest else { return "it has no digest of the database" }
    return nil
  }

  private func contradiction(pages: [UInt32], of database: Content, content: Content) -> String? {
    guard pages.count.isMultiple(of: 2), let size = database.pageSize, let count = database.pageCount else {
      return "its list of pages cannot be"
    }
    var next: UInt64 = 1
    var total: UInt64 = 0
    for index in stride(from: 0, to: pages.count, by: 2) {
      let (first, run) = (UInt64(pages[index]), UInt64(pages[index + 1]))
      guard first >= next, run > 0, first + run - 1 <= UInt64(count) else { return "its list of pages cannot be" }
      next = first + run
      total += run
    }
    return Int64(total) * Int64(size) == content.bytes ? nil : "its list of pages is not what its file holds"
  }
}

extension BackupError {
  fileprivate static func changed(_ id: BackupIdentifier) -> BackupError {
    BackupError(
      .manifestChanged, operation: "read the manifest of backup \(id)", detail: "it was changed after it was written")
  }

  fileprivate static func unreadable(_ id: BackupIdentifier, _ detail: String) -> BackupError {
    BackupError(.manifestUnreadable, operation: "read the manifest of backup \(id)", detail: detail)
  }
}

extension String {
  fileprivate var isDigest: Bool {
    utf8.count == 64 && utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }
}
