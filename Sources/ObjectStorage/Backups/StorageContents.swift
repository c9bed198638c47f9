import Backup
package import Platform

/// The contents of a place's prefix, from one listing.
///
///     <name>            backup files, named as in a folder
///     trash/<name>      empty: marks a dropped file; or the record of a dropped backup
///     begun/<id>        a backup being written, until its manifest exists
///     locks/<id>        a process that changes the place
///     notes/store.json  the store that is backed up
struct StorageContents {
  static let trash = "trash/"
  static let begun = "begun/"
  static let locks = "locks/"
  static let note = "notes/store.json"

  /// The suffix of dropped backups' records, which are in `trash/` themselves.
  static let recordSuffix = ".dropped.json"

  private var files: [String: Int64] = [:]
  private var trashed: [String: Int64] = [:]

  /// Backups in progress or interrupted.
  private(set) var begun: Set<BackupIdentifier> = []

  private(set) var locks: [S3ObjectFacts] = []

  /// The server's clock, if sent.
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

  static func identifier(of name: String) -> BackupIdentifier? {
    name.split(separator: ".", maxSplits: 1).first.flatMap { BackupIdentifier(String($0)) }
  }

  static func isRecord(_ name: String) -> Bool { name.hasSuffix(recordSuffix) }

  /// Whether the name is of a small file that is read whole.
  static func isDocument(_ name: String) -> Bool {
    documentSuffixes.contains { name.hasSuffix($0) }
  }

  private static let documentSuffixes = [
    ".json", BackupManifest.File.Role.manifest.suffix + BackupManifest.Encryption.fileEnding,
  ]

  /// The begun backups without manifest.
  var unfinished: Set<BackupIdentifier> { begun.filter { files["\($0)\(BackupManifest.suffix)"] == nil } }

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

  func names(of id: BackupIdentifier) -> [String] {
    files.keys.filter { Self.identifier(of: $0) == id && trashed[$0] == nil }.sorted()
  }
}

package struct S3ObjectFacts: Sendable, Hashable {
  package var key: String

  package var bytes: Int64

  /// The time of writing by the server's clock, if sent.
  package var modified: Timestamp?
}

package struct S3Listing: Sendable {
  /// Sorted by key.
  package var objects: [S3ObjectFacts] = []

  /// The server's clock at its answer, if sent.
  package var date: Timestamp?
}

package enum S3WriteCondition: Sendable, Hashable {
  /// Replaces an existing object.
  case none

  /// Fails if the key is taken.
  case absent
}
