import Foundation
package import Platform

/// What is written beside a backup: what it holds, of which store, and how to prove each block of it.
///
/// Versioned JSON, described in `Documentation/BACKUP_FORMAT.md`; keys may be added, never changed. A backup without a
/// manifest is not whole.
package struct BackupManifest: Sendable, Hashable, Codable {
  /// How the store is kept.
  package enum Kind: String, Sendable, Hashable, Codable {
    case full

    /// The pages that changed since the parent.
    case delta

    /// The files of a damaged or quarantined store, byte for byte.
    case evidence

    /// The very files of a store that a migration has replaced; it has no manifest on the disk.
    case original
  }

  /// Why the backup was taken.
  package enum Reason: String, Sendable, Hashable, Codable, CaseIterable {
    case manual

    case scheduled

    /// The store was about to be migrated.
    case beforeMigration = "before-migration"

    /// The store was about to be replaced by a backup.
    case beforeRestore = "before-restore"

    /// The store was about to be replaced by a salvaged or a new one.
    case beforeInstall = "before-install"
  }

  /// The name of the format.
  package static let formatName = "lazaret-backup-manifest"

  /// The newest version of the format.
  package static let newestVersion = 3

  /// The lowest version of the format whose software can read the backup: 3 for a delta, whose whole content has no digests of
  /// blocks; 2 for files that are encrypted or packed with Zstandard; else 1.
  var neededVersion: Int {
    if kind == .delta { return 3 }
    return encryption != nil || files.contains { $0.packing != .gzip } ? 2 : 1
  }

  /// The bytes of a block, and so of what one member unpacks to.
  package static let blockLength = 1 << 20

  /// The name of the format: always `lazaret-backup-manifest`.
  package var format: String = BackupManifest.formatName

  /// The version of the format, from 1.
  package var version: Int = 1

  /// What the backup is called.
  package var id: BackupIdentifier

  /// When it was taken, in RFC 3339.
  package var date: String

  /// How the store is kept.
  package var kind: Kind

  /// Why it was taken.
  package var reason: Reason

  /// The words that the caller gave it, for retention.
  package var tags: [String] = []

  /// The backup whose pages a delta leaves out; nil for any other kind.
  package var parent: BackupIdentifier?

  /// How many backups restoring it reads: 1 for a full one, one more than the parent for a delta.
  package var depth: Int = 1

  /// The generation of the store; nil where none was known, and in manifests of earlier versions of this software.
  package var lineage: StoreLineage?

  /// The store it was taken of.
  package var store: Store

  /// The database file as it will be restored; nil for evidence.
  package var database: Content?

  /// The pages that a delta holds, in ascending order: the first page and the number of pages of each run, in turn.
  package var pages: [UInt32]?

  /// The files of the backup apart from the manifest itself and the proof.
  package var files: [File]

  /// The large values that the store keeps in files of their own; nil where it has none.
  package var externalData: ExternalData?

  /// The model it was written with; nil where it could not be told.
  package var model: Model?

  /// The records of each entity, or the rows of each table; nil where they could not be counted.
  package var entities: [EntityCount]?

  /// What the check of the store found while it was backed up.
  package var check: Check

  /// The entities whose records suddenly became few, or none; nil where there are none.
  package var falls: [Fall]?

  /// How the files are encrypted, of a manifest that says no more of the store than may be known without a key; nil for any
  /// other, and for the manifest that is encrypted itself.
  package var encryption: Encryption?

  /// Whether a key is needed to know what is in it.
  package var isLocked: Bool { encryption != nil }

  /// The versions of everything that had a part in it.
  package var versions: Versions

  /// Whether it was made anew of the backup's own files, after it was lost; nil for any other.
  package var rebuilt: Bool?

  /// The SHA-256 of the text as it is without this key, in hexadecimal digits; nil in manifests of earlier versions, and for
  /// one that was not read.
  package var digest: String?

  /// A manifest with its parts.
  package init(
    id: BackupIdentifier, kind: Kind, reason: Reason, store: Store, files: [File], check: Check, versions: Versions
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

  /// The size of the backup's files together, in bytes.
  package var totalBytes: Int64 { files.reduce(0) { $0 + $1.bytes } }

  /// The bytes that it restores to, without large values in files of their own.
  package var contentBytes: Int64 {
    database?.bytes ?? files.filter { $0.role.isEvidence }.reduce(0) { $0 + ($1.content?.bytes ?? 0) }
  }

  /// Whether it says nothing of the store that it is of.
  var namesNoStore: Bool {
    kind == .original || store.relativePath == nil && store.path.text.isEmpty && store.path.bytes == nil
  }

  /// The file that has a copy of the manifest behind its blocks; nil where none has.
  package var carrier: File? { files.first { $0.carriesManifest == true } }

  /// Says which file gets a copy: that of the database, of the changes, or the first one of evidence.
  mutating func chooseCarrier() {
    let roles: [File.Role] = [.database, .delta, .evidenceMain, .evidenceLog, .evidenceJournal, .evidenceSharedMemory]
    guard let role = roles.first(where: { file($0) != nil }),
      let place = files.firstIndex(where: { $0.role == role })
    else { return }
    files[place].carriesManifest = true
  }

  /// The file of a role; nil where the backup has none.
  package func file(_ role: File.Role) -> File? { files.first { $0.role == role } }
}

extension BackupManifest {
  /// The largest manifest that is read, in bytes.
  static let limit = 64 << 20

  /// What the name of a manifest has behind the identifier.
  package static let suffix = ".json"

  /// Reads a manifest, and refuses one that contradicts itself: it is input like any other.
  ///
  /// - Parameter id: the identifier that its file is named by.
  /// - Throws: `backup-manifest-unreadable`, `backup-manifest-changed`, `backup-manifest-too-new`.
  package init(json bytes: [UInt8], of id: BackupIdentifier) throws(BackupError) {
    let verdict = DigestedText.verdict(bytes)
    guard verdict != .changed else { throw .changed(id) }
    struct Head: Decodable {
      var format: String
      var version: Int
    }
    let decoder = JSONDecoder()
    let head: Head
    let manifest: BackupManifest
    do {
      head = try decoder.decode(Head.self, from: Data(bytes))
    } catch {
      throw .unreadable(id, "it is not the manifest of a backup")
    }
    guard head.format == Self.formatName else { throw .unreadable(id, "it is not the manifest of a backup") }
    guard (1...Self.newestVersion).contains(head.version) else {
      throw BackupError(
        .manifestTooNew, operation: "read the manifest of backup \(id)",
        detail: "it is of version \(head.version), and this software knows version \(Self.newestVersion)")
    }
    do {
      manifest = try decoder.decode(BackupManifest.self, from: Data(bytes))
    } catch {
      throw .unreadable(id, "parts of it are missing or of the wrong kind")
    }
    // Only manifests of earlier versions have no digest; those have no copy either.
    guard verdict == .right || manifest.digest == nil && manifest.carrier == nil else { throw .changed(id) }
    if let contradiction = manifest.contradiction(id: id) { throw .unreadable(id, contradiction) }
    self = manifest
  }

  /// The manifest as the JSON text that is written, with its own digest and a final newline.
  package func json() throws(BackupError) -> [UInt8] {
    var manifest = self
    manifest.digest = nil
    return DigestedText.adding(to: try BackupError.json(manifest, .line, to: "write the manifest of backup \(id)"))
  }

  // MARK: Checking

  /// What in it cannot be, in one sentence without a full stop; nil for a manifest that agrees with itself.
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
      guard parent == nil, pages == nil, depth == 1, database == nil, pageHashes == nil else {
        return "evidence has neither parent nor pages"
      }
      return files.contains { $0.role.isEvidence } ? nil : "it names no file of the store"
    case .original: return "no manifest is written for what a migration keeps"
    }
  }

  /// What cannot be in the manifest of an encrypted backup; nil for one that agrees with itself.
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

  private var pageHashes: File? { file(.pageHashes) }

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
    // An empty content has one member, so that other programs open the file.
    guard Int64(members.count) == max(1, count), members.allSatisfy({ (18...Self.longestMember).contains($0) }) else {
      return "it does not say where each block is"
    }
    let file = file ?? self.file(kind == .full ? .database : .delta)
    let total = members.reduce(Int64(0)) { $0 + Int64($1) }
    guard total == file?.bytes else { return "its blocks do not fill its file" }
    return nil
  }

  /// The longest member of a block: data that cannot be packed grows by some bytes for each 64 KiB, and a header.
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
  /// Whether it is a SHA-256 in lower-case hexadecimal digits.
  fileprivate var isDigest: Bool {
    utf8.count == 64 && utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }
}
