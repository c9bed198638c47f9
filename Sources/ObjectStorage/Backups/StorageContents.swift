import Backup
import Foundation
package import Platform
package import SystemPackage

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
    name.hasSuffix(".json")
      || name.hasSuffix(BackupManifest.File.Role.manifest.suffix + BackupManifest.Encryption.fileEnding)
  }

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

/// The note of a place's store, so that no other store is backed up into it.
struct StorageNote: Codable {
  static let formatName = "lazaret-storage-place"
  static let limit = 64 << 10

  var format = formatName
  var version = 1

  var path: PathText

  var uuid: String?
}

extension ObjectStoragePlace {
  /// Writes the note, except for encrypted backups, since it reveals the store.
  ///
  /// - Throws: `backup-of-other-store` if the place is another store's.
  package func claim(for store: FilePath, isEncrypted: Bool, in fileSystem: FileSystem = FileSystem()) throws {
    let own = try own(store, fileSystem)
    if let note = try note() { return try compare(note, own) }
    if isEncrypted { return }
    let bytes = try JSON.bytes(of: own, to: "note the store of the backups")
    do throws(BackupError) {
      try client.put(address.key(StorageContents.note), bytes[...], when: .absent)
    } catch {
      // Another process wrote it first.
      guard error.kind == .s3Precondition, let note = try note() else { throw error.ofPlace }
      try compare(note, own)
    }
  }

  /// Refuses a store other than the noted one, if any.
  ///
  /// - Throws: `backup-of-other-store`.
  package func requireOwn(_ store: FilePath, in fileSystem: FileSystem = FileSystem()) throws {
    guard let note = try note() else { return }
    try compare(note, try own(store, fileSystem))
  }

  private func own(_ store: FilePath, _ fileSystem: FileSystem) throws -> StorageNote {
    StorageNote(path: PathText(try fileSystem.resolved(store)), uuid: StoreUUID.read(store, fileSystem))
  }

  private func note() throws -> StorageNote? {
    let bytes: [UInt8]
    do throws(BackupError) {
      bytes = try client.get(address.key(StorageContents.note), at: 0, length: StorageNote.limit)
    } catch {
      guard error.kind == .s3NotFound else { throw error.ofPlace }
      return nil
    }
    // Treat an unreadable note as missing.
    guard let note = try? JSONDecoder().decode(StorageNote.self, from: Data(bytes)),
      note.format == StorageNote.formatName, note.version == 1
    else { return nil }
    return note
  }

  private func compare(_ note: StorageNote, _ own: StorageNote) throws {
    // A moved store keeps its identifier, a recreated one its path.
    if note.path == own.path || note.uuid != nil && note.uuid == own.uuid { return }
    throw BackupError(
      .otherStore, operation: "back up the store", detail: "\(location) has the backups of another store",
      hint: "Give each store a prefix of its own, such as \(address.bucket)/…/App.")
  }
}
