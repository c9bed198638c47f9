package import Platform

extension BackupManifest {
  package struct Store: Sendable, Hashable, Codable {
    package var path: PathText

    /// The path relative to the home; nil in earlier manifests, and outside any home.
    package var relativePath: PathText?

    /// `core-data`, `sqlite` or `unknown`.
    package var kind: String

    /// The `NSStoreUUID` of its metadata.
    var uuid: String?

    /// `wal` or `delete`; nil for evidence.
    var journalMode: String?

    package init(path: PathText, kind: String, uuid: String? = nil, journalMode: String? = nil) {
      self.path = path
      self.kind = kind
      self.uuid = uuid
      self.journalMode = journalMode
    }
  }

  /// Unpacked content.
  package struct Content: Sendable, Hashable, Codable {
    package var bytes: Int64

    /// The SHA-256 of the content, in hexadecimal digits like all digests.
    package var sha256: String

    /// The SHA-256 of each 1 MiB block; the last may be shorter.
    ///
    /// Empty for the database of a delta.
    package var blocks: [String]

    package var pageSize: Int?

    package var pageCount: UInt32?

    package init(bytes: Int64, sha256: String, blocks: [String], pageSize: Int? = nil, pageCount: UInt32? = nil) {
      self.bytes = bytes
      self.sha256 = sha256
      self.blocks = blocks
      self.pageSize = pageSize
      self.pageCount = pageCount
    }
  }

  package struct File: Sendable, Hashable, Codable {
    package enum Role: String, Sendable, Hashable, Codable, CaseIterable {
      case database, delta

      /// The page hashes for the next delta.
      case pageHashes = "page-hashes"

      /// Facts for a salvage, without values of records.
      case recoveryKit = "recovery-kit"

      /// The full manifest of an encrypted backup.
      case manifest

      /// The archive of external values.
      case externalData = "external-data"

      case evidenceMain = "evidence-main"

      case evidenceLog = "evidence-wal"

      case evidenceSharedMemory = "evidence-shm"

      case evidenceJournal = "evidence-journal"

      case originalMain = "original-main"

      case originalLog = "original-wal"

      case originalSharedMemory = "original-shm"

      case originalJournal = "original-journal"

      /// `.support` in listings, `._SUPPORT` around the identifier on disk.
      case originalSupport = "original-support"

      /// The migration's note of records only in an original.
      case originalOnlyHere = "original-only-here"

      /// The data that a record repair removed from an original's successor.
      case originalSetAside = "original-set-aside"

      /// Whether it can be rebuilt or has a copy.
      var isHelper: Bool { self == .pageHashes || self == .recoveryKit || self == .manifest }

      var isEvidence: Bool { part != nil && !isOriginal }

      var isOriginal: Bool { rawValue.hasPrefix("original-") }

      var part: StoreFileSet.Part? {
        switch self {
        case .evidenceMain, .originalMain: .main
        case .evidenceLog, .originalLog: .wal
        case .evidenceSharedMemory, .originalSharedMemory: .sharedMemory
        case .evidenceJournal, .originalJournal: .journal
        case .originalSupport: .externalData
        default: nil
        }
      }

      /// Returns the name suffix with a compression.
      func suffix(packedBy compression: BackupCompression) -> String {
        let gzip = BackupCompression.gzip.fileEnding
        guard compression != .gzip, suffix.hasSuffix(gzip) else { return suffix }
        return suffix.dropLast(gzip.utf8.count) + compression.fileEnding
      }

      /// The roles and suffixes of an original's parts.
      static let originals = allCases.filter(\.isOriginal).map { (role: $0, suffix: $0.suffix) }

      static let suffixes: [String] = {
        let plain = allCases.filter { !$0.isOriginal }
          .flatMap { role in BackupCompression.allCases.map { role.suffix(packedBy: $0) } }
        return Set(plain + plain.map { $0 + BackupManifest.Encryption.fileEnding }).sorted()
      }()

      func packedFile(
        of id: BackupIdentifier, among sizes: [String: Int64]
      ) -> (name: String, packing: BackupCompression)? {
        for packing in BackupCompression.allCases {
          let name = "\(id)\(suffix(packedBy: packing))"
          if sizes[name] != nil { return (name, packing) }
        }
        return nil
      }

      package var suffix: String {
        switch self {
        case .database, .evidenceMain: ".sqlite.gz"
        case .delta: ".delta.gz"
        case .pageHashes: ".pages"
        case .recoveryKit: ".kit"
        case .manifest: ".manifest"
        case .externalData: ".tar.gz"
        case .evidenceLog: ".sqlite-wal.gz"
        case .evidenceSharedMemory: ".sqlite-shm.gz"
        case .evidenceJournal: ".sqlite-journal.gz"
        case .originalMain: ".sqlite"
        case .originalLog: ".sqlite-wal"
        case .originalSharedMemory: ".sqlite-shm"
        case .originalJournal: ".sqlite-journal"
        case .originalSupport: ".support"
        case .originalOnlyHere: OnlyHereNote.suffix
        case .originalSetAside: ".sqlite-set-aside"
        }
      }
    }

    package var role: Role

    /// The compression; nil for gzip and unpacked files.
    package var compression: BackupCompression?

    /// The name in the folder of the manifest.
    package var name: String

    /// The size without manifest copy and seek table.
    package var bytes: Int64

    /// The SHA-256 of these bytes; empty if unknown.
    package var sha256: String

    var packing: BackupCompression {
      get { compression ?? .gzip }
      set { compression = newValue == .gzip ? nil : newValue }
    }

    /// Returns the size of manifest copy and seek table.
    ///
    /// - Parameter manifest: the length of its text.
    func tailLength(manifest: Int) -> Int64 {
      guard let members else { return 0 }
      return packing.tailLength(members: members.count, manifest: carriesManifest == true ? manifest : nil)
    }

    /// A base64 copy of an encrypted file's prologue, in case of damage.
    var beginning: String?

    /// The sizes of a packed file's members.
    ///
    /// Each unpacks to a block of 1 MiB, the last one to the rest.
    package var members: [Int]?

    /// The unpacked content of a packed file; nil for a full backup's database, described in the manifest.
    var content: Content?

    /// Whether a manifest copy follows the blocks.
    package var carriesManifest: Bool?

    package init(role: Role, name: String, bytes: Int64, sha256: String, members: [Int]? = nil, content: Content? = nil)
    {
      self.role = role
      self.name = name
      self.bytes = bytes
      self.sha256 = sha256
      self.members = members
      self.content = content
    }
  }

  package struct ExternalData: Sendable, Hashable, Codable {
    package struct Item: Sendable, Hashable, Codable {
      /// The path below the support folder, such as `_EXTERNAL_DATA/<UUID>`.
      var name: PathText

      package var bytes: Int64

      /// The SHA-256 of its content.
      var sha256: String

      /// The backup with its archive, if not this one.
      package var backup: BackupIdentifier?

      /// Its offset in the unpacked archive.
      var offset: Int64

      package init(name: PathText, bytes: Int64, sha256: String, backup: BackupIdentifier? = nil, offset: Int64) {
        self.name = name
        self.bytes = bytes
        self.sha256 = sha256
        self.backup = backup
        self.offset = offset
      }
    }

    package var items: [Item]

    /// The names of missing referenced files.
    package var missing: [String]

    /// The names of symbolic links, stored with their targets' content.
    package var links: [PathText]?

    package var totalBytes: Int64 { items.reduce(0) { $0 &+ max(0, $1.bytes) } }

    package init(items: [Item], missing: [String] = []) {
      self.items = items
      self.missing = missing
    }
  }

  package struct Model: Sendable, Hashable, Codable {
    /// The app's name of the version.
    package var version: String?

    package var identifiers: [String]

    /// The checksum over the entities' hashes (`NSStoreModelVersionChecksumKey`).
    var checksum: String?

    /// The hexadecimal version hash of each entity.
    var entityHashes: [String: String]
  }

  package struct Check: Sendable, Hashable, Codable {
    /// Each depth includes those before.
    package enum Depth: String, Sendable, Hashable, Codable {
      /// Every page, and the indexes of changed tables.
      case changed

      case whole
    }

    /// Whether the store was sound, as far as checked; only then does the backup count in retention.
    package var isSound: Bool

    /// The depth reached; nil for evidence and in earlier manifests.
    package var depth: Depth?

    /// Indexes that could not be compared with rows, such as those of expressions.
    package var uncompared: [String]?

    /// Other unchecked structures, such as `full-text index doc`.
    package var notChecked: [String]?

    /// The SHA-256 of the schema, to detect new tables and indexes; nil for evidence and in earlier manifests.
    var schema: String?

    /// A stable code if unsound, such as `roots-damaged`.
    package var code: String?

    package var words: String?

    package init(isSound: Bool, code: String? = nil, words: String? = nil) {
      self.isSound = isSound
      self.code = code
      self.words = words
    }
  }

  /// The loss of more than half of an entity's or table's records since the backup before.
  package struct Fall: Sendable, Hashable, Codable {
    /// The entity, or an unknown entity's table.
    package var name: String

    package var before: Int64

    package var after: Int64

    /// The last backup before, kept until released or 30 days old.
    package var backup: BackupIdentifier

    package init(name: String, before: Int64, after: Int64, backup: BackupIdentifier) {
      self.name = name
      self.before = before
      self.after = after
      self.backup = backup
    }
  }

  package struct Encryption: Sendable, Hashable, Codable {
    /// Always `age`: the age format, version 1.
    var format = "age"

    /// The suffix of encrypted files.
    package static let fileEnding = ".age"
  }

  /// The software versions involved in a backup.
  package typealias Versions = SoftwareVersions
}
