internal import Backup
import Foundation
package import Platform
package import SystemPackage

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
  package func claim(
    for store: FilePath, isEncrypted: Bool, in fileSystem: FileSystem = FileSystem()
  ) throws {
    let own = try own(store, fileSystem)
    if let note = try note() { return try compare(note, own) }
    if isEncrypted { return }
    let bytes = try JSON.bytes(of: own, to: "note the store of the backups")
    do throws(S3Error) {
      try client.put(address.key(StorageContents.note), bytes[...], when: .absent)
    } catch {
      // Another process wrote it first.
      guard error.kind == .precondition, let note = try note() else { throw BackupError(error) }
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
    let path = PathText(try fileSystem.resolved(store))
    return StorageNote(path: path, uuid: StoreUUID.read(store, fileSystem))
  }

  private func note() throws -> StorageNote? {
    let bytes: [UInt8]
    do throws(S3Error) {
      bytes = try client.get(address.key(StorageContents.note), at: 0, length: StorageNote.limit)
    } catch {
      guard error.kind == .notFound else { throw BackupError(error) }
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
    let isSame = note.path == own.path || note.uuid != nil && note.uuid == own.uuid
    guard !isSame else { return }
    throw BackupError(
      .otherStore, operation: "back up the store",
      detail: "\(location) has the backups of another store",
      hint: "Give each store a prefix of its own, such as \(address.bucket)/…/App.")
  }
}
