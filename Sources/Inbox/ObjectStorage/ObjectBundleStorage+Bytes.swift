internal import Backup
internal import ObjectStorage
internal import Platform
internal import SystemPackage

extension ObjectBundleStorage {
  /// The bytes per request; more for very large files.
  static let piece = 8 << 20

  func write(_ path: FilePath, to key: String) throws {
    let file = try fileSystem.open(path)
    guard file.count > Int64(Self.piece) else {
      let bytes = try file.bytes(at: 0, length: Self.piece)
      try client.put(key, bytes[...])
      return
    }
    let length = max(Int64(Self.piece), file.count / 9000 + 1)
    let upload = try client.beginUpload(key)
    do {
      var parts: [S3Part] = []
      var position: Int64 = 0
      while position < file.count {
        let bytes = try file.bytes(at: position, length: Int(min(length, file.count - position)))
        guard !bytes.isEmpty else {
          throw FileError(.changed, operation: "write to the object storage", path: path, detail: "it became shorter")
        }
        parts.append(try client.put(bytes[...], as: parts.count + 1, of: upload))
        position += Int64(bytes.count)
      }
      try client.complete(upload, parts, bytes: file.count)
    } catch {
      // Report the first error; the upload's rest goes with other leftovers.
      try? client.abort(upload)
      throw error
    }
  }

  /// Reads an object into a file, named only after its checksum matched.
  ///
  /// - Returns: false if cancelled.
  func read(_ key: String, bytes: Int64, sha256: String, to path: FilePath, _ goesOn: () -> Bool) throws -> Bool {
    let unfinished = path.sibling(suffix: Self.unfinished)
    let file = try fileSystem.create(unfinished, permissions: .ownerReadWrite, truncating: true)
    do {
      var digest = RunningDigest()
      var position: Int64 = 0
      while position < bytes {
        guard goesOn() else {
          try fileSystem.unlink(unfinished)
          return false
        }
        let piece = try content(of: key, at: position, length: Int(min(Int64(Self.piece), bytes - position)), path)
        guard !piece.isEmpty else { break }
        digest.add(piece)
        try file.write(piece)
        position += Int64(piece.count)
      }
      guard position == bytes, digest.hexadecimal == sha256 else {
        throw InboxError(
          .altered, operation: "fetch the bundle", path: path,
          detail: "what is in the object storage is not what was kept there")
      }
      try fileSystem.rename(unfinished, to: path)
      return true
    } catch {
      // Report the first error; a remaining file is overwritten later.
      try? fileSystem.unlink(unfinished)
      throw error
    }
  }

  private func content(of key: String, at offset: Int64, length: Int, _ path: FilePath) throws -> [UInt8] {
    do throws(BackupError) {
      return try client.get(key, at: offset, length: length)
    } catch {
      guard error.kind == .s3NotFound else { throw error }
      throw InboxError(
        .missing, because: error, operation: "fetch the bundle", path: path,
        detail: "it is not in the object storage, where the records say it is")
    }
  }

  /// Unpacks archives in order.
  ///
  /// - Returns: false if cancelled.
  func unpack(
    _ archives: [InboxBundle.Archive], of bundle: String, into folder: FilePath, _ goesOn: () -> Bool
  ) throws -> Bool {
    try fileSystem.makeDirectory(folder)
    for archive in archives {
      guard archive.isPlausible else {
        throw InboxError(.altered, operation: "fetch the bundle", path: folder, detail: "its archive has no name")
      }
      let path = folder.appending(".\(archive.mark).tar.gz")
      let key = archiveKey(archive, of: bundle)
      do {
        guard try read(key, bytes: archive.bytes, sha256: archive.sha256, to: path, goesOn) else { return false }
      } catch let error as InboxError where error.kind == .missing || error.kind == .altered {
        try disown(archive, of: bundle)
        throw error
      }
      try BundleArchive.unpack(path, into: folder, in: fileSystem)
      try fileSystem.unlink(path)
    }
    return true
  }

  /// Removes objects and incomplete uploads.
  func removeObjects(_ prefix: String) throws {
    for upload in try client.uploads(prefix) { try client.abort(upload) }
    for object in try client.list(prefix).objects { try client.delete(object.key) }
  }
}
