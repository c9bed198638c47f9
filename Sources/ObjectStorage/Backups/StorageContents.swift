import Backup
package import Platform

/// What lies under the prefix of a place, as one listing tells.
///
///     <name>            the files of backups, under the names that they have in a folder
///     trash/<name>      empty: that the file of this name was dropped; or the record of a dropped backup
///     begun/<id>        that a backup is being written, until its manifest is there
///     locks/<id>        that a process changes the place
///     notes/store.json  of which store the backups are
struct StorageContents {
  static let trash = "trash/"
  static let begun = "begun/"
  static let locks = "locks/"
  static let note = "notes/store.json"

  /// What the records of dropped backups end in, which lie in the trash themselves.
  static let recordSuffix = ".dropped.json"

  private var files: [String: Int64] = [:]
  private var trashed: [String: Int64] = [:]

  /// The backups that are being written, or were when a process ended.
  private(set) var begun: Set<BackupIdentifier> = []

  private(set) var locks: [S3ObjectFacts] = []

  /// The server's clock; nil where it does not say.
  let date: Timestamp?

  init(_ listing: S3Listing, of address: S3Address) {
    date = listing.date
    let beginning = address.key("")
    for var object in listing.objects where object.key.hasPrefix(beginning) {
      object.key = String(object.key.dropFirst(beginning.count))
      let key = object.key
      if FolderPlace.isName(key) {
        files[key] = object.bytes
      } else if key.hasPrefix(Self.trash) {
        let name = String(key.dropFirst(Self.trash.count))
        if FolderPlace.isName(name) { trashed[name] = object.bytes }
      } else if key.hasPrefix(Self.begun) {
        if let id = BackupIdentifier(String(key.dropFirst(Self.begun.count))) { begun.insert(id) }
      } else if key.hasPrefix(Self.locks) {
        locks.append(object)
      }
    }
  }

  /// The backup that a file is of, by its name; nil where it is of none.
  static func identifier(of name: String) -> BackupIdentifier? {
    name.split(separator: ".", maxSplits: 1).first.flatMap { BackupIdentifier(String($0)) }
  }

  /// Whether a name is that of a record, which lies in the trash itself.
  static func isRecord(_ name: String) -> Bool { name.hasSuffix(recordSuffix) }

  /// Whether a name is that of a small object that is read as a whole: a manifest, encrypted or not, a proof, a note or a
  /// record.
  static func isDocument(_ name: String) -> Bool {
    documentSuffixes.contains { name.hasSuffix($0) }
  }

  private static let documentSuffixes = [
    ".json", BackupManifest.File.Role.manifest.suffix + BackupManifest.Encryption.fileEnding,
  ]

  /// The backups that were begun and have no manifest.
  var unfinished: Set<BackupIdentifier> { begun.filter { files["\($0)\(BackupManifest.suffix)"] == nil } }

  /// The files of a section.
  func objects(in section: BackupSection) -> [BackupObject] {
    let objects: [BackupObject]
    switch section {
    case .kept:
      let hidden = unfinished
      objects = files.compactMap { name, bytes in
        guard trashed[name] == nil, Self.identifier(of: name).map({ !hidden.contains($0) }) ?? true else { return nil }
        return BackupObject(name: name, bytes: bytes)
      }
    case .trash:
      objects = trashed.compactMap { name, bytes in
        if Self.isRecord(name) { return BackupObject(name: name, bytes: bytes) }
        return files[name].map { BackupObject(name: name, bytes: $0) }
      }
    }
    return objects.sorted { $0.name < $1.name }
  }

  /// The names of the files of a backup, those that were dropped left out.
  func names(of id: BackupIdentifier) -> [String] {
    files.keys.filter { Self.identifier(of: $0) == id && trashed[$0] == nil }.sorted()
  }
}

/// What a server says of an object.
package struct S3ObjectFacts: Sendable, Hashable {
  /// The key.
  package var key: String

  /// The length in bytes.
  package var bytes: Int64

  /// When it was written, by the server's clock; nil where the server does not say.
  package var modified: Timestamp?
}

/// A page of a listing.
package struct S3Listing: Sendable {
  /// The objects, sorted by key.
  package var objects: [S3ObjectFacts] = []

  /// The server's clock when it answered; nil where it does not say.
  package var date: Timestamp?
}

/// When an object may be written.
package enum S3WriteCondition: Sendable, Hashable {
  /// In any case; what is there is replaced.
  case none

  /// Only where there is none of that key.
  case absent
}
