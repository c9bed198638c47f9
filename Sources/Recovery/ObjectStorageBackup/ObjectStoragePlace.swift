package import AgeEncryption
package import Backup
import Compatibility
package import ObjectStorage
import StoreFiles

/// A prefix in a bucket of object storage that holds the backups of one store.
///
/// A backup is there when its manifest is, a small object that is written last and only where there is none of its name.
/// Files keep their keys when they are dropped, so that nothing is copied: an empty object beside them says so.
package struct ObjectStoragePlace: BackupPlace {
  /// Where it is.
  package let address: S3Address

  /// The client of its bucket.
  package let client: S3Client

  let state = StorageState()

  /// A place, whether anything lies there or not; nothing is asked yet.
  package init(_ address: S3Address, _ client: S3Client) {
    self.address = address
    self.client = client
  }

  /// The place as a holder of secret keys sees it.
  package func unlocked(with identities: [AgeIdentity]) -> any BackupPlace {
    identities.isEmpty ? self : sealedView(of: self, with: identities)
  }

  /// The address.
  package var location: String { address.description }

  /// As many as a client keeps connections for: each request waits for the way to the server and back.
  package var readsAtOnce: Int { 8 }

  /// What the bucket does with what is removed.
  package func keeping() throws(BackupError) -> S3Keeping {
    try wrapping(BackupError.init) { () throws(S3Error) in try client.keeping() }
  }

  // MARK: Names

  func contents() throws(BackupError) -> StorageContents {
    try wrapping(BackupError.init) { () throws(S3Error) in
      StorageContents(try client.list(address.key("")), of: address)
    }
  }

  /// The key of a file's bytes.
  func key(_ name: String, in section: BackupSection) throws(BackupError) -> String {
    guard FolderPlace.isName(name) else {
      throw BackupError(
        .request, operation: "find the file of a backup",
        detail: "\(printable(name)) is not a name that a backup's file can have", hint: "Check the backup's manifest.")
    }
    return StorageContents.isRecord(name) && section == .trash ? trashKey(name) : address.key(name)
  }

  func trashKey(_ name: String) -> String { address.key(StorageContents.trash + name) }
  func begunKey(_ id: BackupIdentifier) -> String { address.key("\(StorageContents.begun)\(id)") }

  /// Whether a file is there, in the section that is meant.
  private func isThere(_ name: String, in section: BackupSection) throws(BackupError) -> Bool {
    let key = try key(name, in: section)
    return try wrapping(BackupError.init) { () throws(S3Error) in
      guard try client.head(key) != nil else { return false }
      if StorageContents.isRecord(name) { return true }
      return try (client.head(trashKey(name)) != nil) == (section == .trash)
    }
  }
}

// MARK: - The protocol

extension ObjectStoragePlace {
  /// The files of a section.
  package func list(_ section: BackupSection) throws(BackupError) -> [BackupObject] {
    try contents().objects(in: section)
  }

  /// Whether a file of that name is there.
  package func contains(_ name: String, in section: BackupSection) throws(BackupError) -> Bool {
    try isThere(name, in: section)
  }

  /// Whether a file of a backup lies there encrypted: one request, for the names that begin with its own.
  package func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws(BackupError) -> Bool {
    try wrapping(BackupError.init) { () throws(S3Error) in
      try client.list(address.key("\(id).")).objects.contains { $0.key.hasSuffix(BackupManifest.Encryption.fileEnding) }
    }
  }

  /// Reads a part of a file; more of it where it is read from one end to the other.
  package func read(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws(BackupError) -> [UInt8] {
    let key = try key(name, in: section)
    return try wrapping(BackupError.init) { () throws(S3Error) in
      // What is read with one request has nothing to be fetched ahead, and need not wait for what another thread fetches.
      if StorageContents.isDocument(name) { return try client.get(key, at: offset, length: length) }
      return try state.ahead.read(key, at: offset, length: length) { (offset, length) throws(S3Error) in
        try client.get(key, at: offset, length: length)
      }
    }
  }

  /// Refuses to change anything once the lock is lost.
  private func requireLock() throws(BackupError) {
    if state.hasLostLock { throw StorageLock.lost(self) }
  }

  /// Begins a file, after a note that its backup is being written.
  package func begin(_ name: String) throws(BackupError) -> any BackupUpload {
    let key = try key(name, in: .kept)
    try requireLock()
    state.ahead.forget()
    if let id = StorageContents.identifier(of: name), state.begins(id) {
      do {
        try wrapping(BackupError.init) { () throws(S3Error) in try client.put(begunKey(id), []) }
      } catch {
        state.ends(id)
        throw error
      }
    }
    return StorageUpload(name, key, in: self)
  }

  /// Writes a small file; readers see the one before, or this one.
  package func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws(BackupError) {
    let key = try key(name, in: section)
    try requireLock()
    state.ahead.forget()
    try wrapping(BackupError.init) { () throws(S3Error) in try client.put(key, bytes[...]) }
  }

  /// Notes that a file was dropped, or takes that note back; the file itself stays where it is.
  package func move(_ name: String, from: BackupSection, to: BackupSection) throws(BackupError) {
    guard from != to else { return }
    try requireLock()
    guard try isThere(name, in: from) else {
      throw BackupError(
        FileError(.notFound, operation: "move the file of a backup", detail: "\(printable(name)) is not there"))
    }
    try wrapping(BackupError.init) { () throws(S3Error) in
      switch to {
      case .trash: try client.put(trashKey(name), [], when: .absent)
      case .kept: try client.delete(trashKey(name))
      }
    }
  }

  /// Removes a file; in a bucket that keeps versions it is only hidden.
  package func delete(_ name: String, in section: BackupSection) throws(BackupError) {
    let key = try key(name, in: section)
    guard try isThere(name, in: section) else { return }
    try requireLock()
    state.ahead.forget()
    try wrapping(BackupError.init) { () throws(S3Error) in
      try client.delete(key)
      if section == .trash, !StorageContents.isRecord(name) { try client.delete(trashKey(name)) }
    }
  }

  /// The manifests of the backups that were begun and have none.
  package func unfinished() throws(BackupError) -> [String] {
    try contents().unfinished.map { "\($0)\(BackupManifest.suffix)" }
  }

  /// Removes the files of backups that have no manifest, and what was written of files that have no key.
  package func removeUnfinished() throws(BackupError) {
    let contents = try contents()
    try requireLock()
    try wrapping(BackupError.init) { () throws(S3Error) in
      for id in contents.unfinished {
        for name in contents.names(of: id) { try client.delete(address.key(name)) }
      }
      for id in contents.begun {
        do throws(S3Error) {
          try client.delete(begunKey(id))
        } catch {
          // Beside a manifest it says nothing, and may stay where nothing can be removed.
          guard error.kind == .access, !contents.unfinished.contains(id) else { throw error }
        }
      }
      let beginning = address.key("")
      for upload in try client.uploads(beginning) {
        // What other software writes into the same bucket is none of ours.
        let name = String(upload.key.dropFirst(beginning.count))
        if FolderPlace.isName(name), StorageContents.identifier(of: name) != nil { try client.abort(upload) }
      }
    }
  }

  /// Takes the lock of the place, and waits for the process that has it.
  package func lock() throws(BackupError) -> any BackupPlaceLock {
    let isConditional = try wrapping(BackupError.init) { () throws(S3Error) in
      try StorageLock.keepsToConditions(client, address)
    }
    state.looksFirst(!isConditional)
    return try StorageLock(of: self)
  }
}
