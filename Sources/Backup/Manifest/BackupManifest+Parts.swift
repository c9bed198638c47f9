package import Platform

extension BackupManifest {
  /// The store that a backup was taken of.
  package struct Store: Sendable, Hashable, Codable {
    /// Where it was.
    package var path: PathText

    /// The same from the home on; nil in manifests of earlier versions, and where the place is of no home.
    package var relativePath: PathText?

    /// `core-data`, `sqlite` or `unknown`.
    package var kind: String

    /// The identifier in its metadata (`NSStoreUUID`), where it has one.
    package var uuid: String?

    /// `wal` or `delete`; nil for evidence.
    package var journalMode: String?

    /// A store by its facts.
    package init(path: PathText, kind: String, uuid: String? = nil, journalMode: String? = nil) {
      self.path = path
      self.kind = kind
      self.uuid = uuid
      self.journalMode = journalMode
    }
  }

  /// Bytes before they were packed, and their digests.
  package struct Content: Sendable, Hashable, Codable {
    /// How many.
    package var bytes: Int64

    /// The SHA-256 of all of them, in hexadecimal digits.
    package var sha256: String

    /// The SHA-256 of each block of 1 MiB, in hexadecimal digits; the last block may be shorter.
    ///
    /// Of what a delta restores to there are none.
    package var blocks: [String]

    /// The page size in bytes; nil for what is no database.
    package var pageSize: Int?

    /// The number of pages; nil for what is no database.
    package var pageCount: UInt32?

    /// Content by its facts.
    package init(bytes: Int64, sha256: String, blocks: [String], pageSize: Int? = nil, pageCount: UInt32? = nil) {
      self.bytes = bytes
      self.sha256 = sha256
      self.blocks = blocks
      self.pageSize = pageSize
      self.pageCount = pageCount
    }
  }

  /// A file of the backup.
  package struct File: Sendable, Hashable, Codable {
    /// What a file holds.
    package enum Role: String, Sendable, Hashable, Codable, CaseIterable {
      /// The database file, packed: `.sqlite.gz`.
      case database

      /// The changed pages of a delta, packed: `.delta.gz`.
      case delta

      /// A hash of each page of the database, for the next delta: `.pages`.
      case pageHashes = "page-hashes"

      /// What a salvage would want to know of the store, none of its records' values: `.kit`.
      case recoveryKit = "recovery-kit"

      /// Of an encrypted backup: the manifest itself, with all that is known of the store: `.manifest.age`.
      case manifest

      /// The large values, as an archive, packed: `.tar.gz`.
      case externalData = "external-data"

      /// The main file of evidence, packed: `.sqlite.gz`.
      case evidenceMain = "evidence-main"

      /// The write-ahead log of evidence, packed: `.sqlite-wal.gz`.
      case evidenceLog = "evidence-wal"

      /// The index of the write-ahead log of evidence, packed: `.sqlite-shm.gz`.
      case evidenceSharedMemory = "evidence-shm"

      /// The rollback journal of evidence, packed: `.sqlite-journal.gz`.
      case evidenceJournal = "evidence-journal"

      /// The main file of an original that a migration has kept: `.sqlite`.
      case originalMain = "original-main"

      /// The write-ahead log of an original: `.sqlite-wal`.
      case originalLog = "original-wal"

      /// The index of the write-ahead log of an original: `.sqlite-shm`.
      case originalSharedMemory = "original-shm"

      /// The rollback journal of an original: `.sqlite-journal`.
      case originalJournal = "original-journal"

      /// The folder of an original's large values: `.support` in lists, `._SUPPORT` around the identifier on the disk.
      case originalSupport = "original-support"

      /// The note of the records that are only in an original, as the migration wrote it: `.only-here.json`.
      case originalOnlyHere = "original-only-here"

      /// What a repair of records took out of an original's successor: `.sqlite-set-aside`.
      case originalSetAside = "original-set-aside"

      /// Whether nothing is lost with it: it is made anew of what the backup restores to, or has a copy.
      package var isHelper: Bool { self == .pageHashes || self == .recoveryKit || self == .manifest }

      /// Whether it is a packed file of evidence, kept byte for byte.
      package var isEvidence: Bool { part != nil && !isOriginal }

      /// Whether it is a part of an original, which lies there as it was, or the note beside it.
      package var isOriginal: Bool {
        switch self {
        case .originalMain, .originalLog, .originalSharedMemory, .originalJournal, .originalSupport, .originalOnlyHere,
          .originalSetAside:
          true
        case .database, .delta, .pageHashes, .recoveryKit, .manifest, .externalData, .evidenceMain, .evidenceLog,
          .evidenceSharedMemory, .evidenceJournal:
          false
        }
      }

      /// The part of the store that a file of evidence, or of an original, is; nil for any other.
      package var part: StoreFileSet.Part? {
        switch self {
        case .evidenceMain, .originalMain: .main
        case .evidenceLog, .originalLog: .wal
        case .evidenceSharedMemory, .originalSharedMemory: .sharedMemory
        case .evidenceJournal, .originalJournal: .journal
        case .originalSupport: .externalData
        case .database, .delta, .pageHashes, .recoveryKit, .manifest, .externalData, .originalOnlyHere,
          .originalSetAside:
          nil
        }
      }

      /// What the name of such a file has behind the identifier, where it is packed in a way, or not at all.
      func suffix(packedBy compression: BackupCompression) -> String {
        let gzip = BackupCompression.gzip.fileEnding
        guard compression != .gzip, suffix.hasSuffix(gzip) else { return suffix }
        return suffix.dropLast(gzip.utf8.count) + compression.fileEnding
      }

      /// The roles of the parts of an original, and what their names have behind the identifier.
      static let originals = allCases.filter(\.isOriginal).map { (role: $0, suffix: $0.suffix) }

      /// What the names of files may have behind the identifier.
      static let suffixes: [String] = {
        let plain = allCases.filter { !$0.isOriginal }
          .flatMap { role in BackupCompression.allCases.map { role.suffix(packedBy: $0) } }
        return Set(plain + plain.map { $0 + BackupManifest.Encryption.fileEnding }).sorted()
      }()

      /// The packed file of this role that a backup has, and how it is packed; nil where it has none.
      func packedFile(
        of id: BackupIdentifier, among sizes: [String: Int64]
      ) -> (name: String, packing: BackupCompression)? {
        for packing in BackupCompression.allCases {
          let name = "\(id)\(suffix(packedBy: packing))"
          if sizes[name] != nil { return (name, packing) }
        }
        return nil
      }

      /// What the name of such a file has behind the identifier, packed with gzip where it is packed.
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

    /// What it holds.
    package var role: Role

    /// How it is packed; nil for gzip, and for a file that is not packed.
    package var compression: BackupCompression?

    /// Its name, in the folder of the manifest.
    package var name: String

    /// Its size in bytes, without what stands behind its blocks: a copy of the manifest, the seek table of Zstandard.
    package var bytes: Int64

    /// The SHA-256 of these bytes, in hexadecimal digits; empty where it was never known.
    package var sha256: String

    /// How it is packed, where it is.
    package var packing: BackupCompression {
      get { compression ?? .gzip }
      set { compression = newValue == .gzip ? nil : newValue }
    }

    /// The bytes behind its blocks.
    ///
    /// - Parameter manifest: the bytes of the manifest's text.
    func tailLength(manifest: Int) -> Int64 {
      guard let members else { return 0 }
      return packing.tailLength(members: members.count, manifest: carriesManifest == true ? manifest : nil)
    }

    /// Of an encrypted file: its beginning, in base64, which opens it where its own is damaged; nil for any other.
    package var beginning: String?

    /// The sizes of its members in bytes, in order; nil for a file that is not packed.
    ///
    /// Each unpacks to a block of 1 MiB, the last one to what is left.
    package var members: [Int]?

    /// What it unpacks to; nil for a file that is not packed, and for the database of a full backup, whose content is the
    /// manifest's.
    package var content: Content?

    /// Whether a copy of the manifest stands behind its blocks; nil where none does.
    package var carriesManifest: Bool?

    /// A file by its facts.
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

  /// The large values that a store keeps in files of their own.
  package struct ExternalData: Sendable, Hashable, Codable {
    /// A large value.
    package struct Item: Sendable, Hashable, Codable {
      /// The path below the store's folder of large values, such as `_EXTERNAL_DATA/<UUID>`.
      package var name: PathText

      /// Its size in bytes.
      package var bytes: Int64

      /// The SHA-256 of its content, in hexadecimal digits.
      package var sha256: String

      /// The backup whose archive holds it; nil where it is this one.
      package var backup: BackupIdentifier?

      /// Where its content begins in the unpacked archive, in bytes.
      package var offset: Int64

      /// A large value by its facts.
      package init(name: PathText, bytes: Int64, sha256: String, backup: BackupIdentifier? = nil, offset: Int64) {
        self.name = name
        self.bytes = bytes
        self.sha256 = sha256
        self.backup = backup
        self.offset = offset
      }
    }

    /// The files, in the order of their names.
    package var items: [Item]

    /// The names of files that records refer to and that were not there.
    package var missing: [String]

    /// The names of those that were symbolic links to files elsewhere, of which the content is kept; nil where none was.
    package var links: [PathText]?

    /// The size of all files together, in bytes.
    package var totalBytes: Int64 { items.reduce(0) { $0 &+ max(0, $1.bytes) } }

    /// The large values of a store.
    package init(items: [Item], missing: [String] = []) {
      self.items = items
      self.missing = missing
    }
  }

  /// The model that a store was written with.
  package struct Model: Sendable, Hashable, Codable {
    /// The name of the version in the app's models, where the caller knows it.
    package var version: String?

    /// The identifiers in the store's metadata.
    package var identifiers: [String]

    /// The checksum over the entities' hashes (`NSStoreModelVersionChecksumKey`).
    package var checksum: String?

    /// The version hash of each entity, in hexadecimal digits.
    package var entityHashes: [String: String]

    /// A model by its facts.
    package init(version: String? = nil, identifiers: [String], checksum: String?, entityHashes: [String: String]) {
      self.version = version
      self.identifiers = identifiers
      self.checksum = checksum
      self.entityHashes = entityHashes
    }
  }

  /// What the check of the store found while it was backed up.
  package struct Check: Sendable, Hashable, Codable {
    /// How far a check went; each includes those before.
    package enum Depth: String, Sendable, Hashable, Codable {
      /// Every page, and the indexes of the tables that pages which changed since the parent belong to.
      case changed

      /// Every page, and every index.
      case whole
    }

    /// Whether the store was sound, as far as it was checked.
    ///
    /// A backup of a store that was not is kept apart: it never counts in retention.
    package var isSound: Bool

    /// How far the store was checked; nil for evidence, and in manifests of earlier versions, which say nothing of it.
    package var depth: Depth?

    /// The indexes whose entries could not be compared with rows, such as those of expressions; nil where there are none.
    package var uncompared: [String]?

    /// What else was not held against the rows that it is made of, such as `full-text index doc`; nil where there is nothing.
    package var notChecked: [String]?

    /// The SHA-256 of the schema, by which the next backup knows whether tables and indexes are the same; nil for evidence, and
    /// in manifests of earlier versions.
    package var schema: String?

    /// A stable word for the reason where it was not, such as `roots-damaged`.
    package var code: String?

    /// The reason in plain words.
    package var words: String?

    /// The result of a look.
    package init(isSound: Bool, code: String? = nil, words: String? = nil) {
      self.isSound = isSound
      self.code = code
      self.words = words
    }
  }

  /// An entity, or a table, that has less than half of the records it had in the backup before, or none any more.
  package struct Fall: Sendable, Hashable, Codable {
    /// The entity, or the table where no entity is known.
    package var name: String

    /// How many records it had.
    package var before: Int64

    /// How many it has.
    package var after: Int64

    /// The last backup of before the fall, which is kept until it is released or 30 days have passed.
    package var backup: BackupIdentifier

    /// A fall by its facts.
    package init(name: String, before: Int64, after: Int64, backup: BackupIdentifier) {
      self.name = name
      self.before = before
      self.after = after
      self.backup = backup
    }
  }

  /// How the files of a backup are encrypted.
  package struct Encryption: Sendable, Hashable, Codable {
    /// Always `age`: the age format, version 1.
    package var format = "age"

    /// What the name of an encrypted file ends in.
    package static let fileEnding = ".age"
  }

  /// The versions of everything that had a part in a backup.
  package typealias Versions = SoftwareVersions
}
