package import StoreFiles

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
