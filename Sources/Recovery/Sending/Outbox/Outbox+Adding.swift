public import StoreFiles
internal import SupportBundle
public import SystemPackage

extension Outbox {
  /// Puts a bundle into the outbox, for one receiver.
  ///
  /// One that is there already for that receiver is not put there again: the entry that was sent has the receipt, and one that
  /// waits, or failed, is tried anew. The bundle gets a name of its own in the outbox where it can, and is copied where not.
  ///
  /// - Parameters:
  ///   - preview: what was shown; a file that is not that any more is refused.
  ///   - tokenFile: the file to read the token from, also later; the token itself is never written down.
  /// - Throws: `bundle-changed`, `outbox-full`, or what the file system says; the outbox is then as it was.
  public func add(
    _ preview: BundlePreview, to receiver: ReceiverAddress, by method: OutboxEntry.Method = .tus,
    tokenFile: FilePath? = nil
  ) throws(SendingError) -> OutboxEntry {
    do {
      try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
      let lock = try FolderLock(path, in: fileSystem)
      try removeLeftovers()
      let entry = try known(preview, receiver, method, tokenFile) ?? stage(preview, receiver, method, tokenFile)
      _ = consume lock
      return entry
    } catch {
      throw SendingError.told(error, operation: "put the bundle into the outbox", path: preview.path)
    }
  }

  /// Removes what killed processes left of entries that were never whole, or were being removed.
  ///
  /// The caller holds the outbox's lock.
  func removeLeftovers() throws {
    for name in try fileSystem.entries(of: path) where name.string.hasPrefix(".") {
      try fileSystem.removeTree(path.appending(name))
    }
  }

  /// The entry of the same bundle for the same receiver, made ready to be sent where it is not sent yet.
  private func known(
    _ preview: BundlePreview, _ receiver: ReceiverAddress, _ method: OutboxEntry.Method, _ tokenFile: FilePath?
  ) throws -> OutboxEntry? {
    let same = try names().compactMap { try read($0) }.filter { entry in
      entry.sha256 == preview.sha256 && entry.bytes == preview.bytes && entry.endpoint == receiver.withoutQuery
        && entry.method == method && entry.state != .cancelled
    }
    if let sent = same.first(where: { $0.state == .sent }) { return sent }
    for entry in same where try fileSystem.status(of: bundlePath(of: entry.id)) != nil {
      do {
        var held = try HeldEntry(entry.id, of: self)
        try held.update { entry in
          entry.renew()
          if let tokenFile { entry.tokenFile = PathText(tokenFile) }
        }
        return held.entry
      } catch let error as SendingError {
        // Another process is sending it right now.
        guard error.kind == .busy else { throw error }
        return entry
      }
    }
    return nil
  }

  private func stage(
    _ preview: BundlePreview, _ receiver: ReceiverAddress, _ method: OutboxEntry.Method, _ tokenFile: FilePath?
  ) throws -> OutboxEntry {
    try checkRoom(for: preview)
    let now = surroundings.now()
    let id = try freeID(at: now, sha256: preview.sha256)
    let staging = path.appending(".new-\(id)")
    let entry = OutboxEntry(
      id: id, to: receiver, by: method, name: preview.name, bytes: preview.bytes, sha256: preview.sha256,
      level: preview.level, isEncrypted: preview.isEncrypted,
      tokenFile: try tokenFile.map { try fileSystem.realPath($0) }, at: now)
    do {
      try fileSystem.makeDirectory(staging, permissions: .ownerReadWriteExecute)
      let bundle = staging.appending("bundle")
      try place(preview.path, at: bundle)
      let placed = try fileSystem.open(bundle)
      guard placed.count == preview.bytes, try FileDigest(of: placed).hexadecimal == preview.sha256 else {
        throw Self.changed(preview.path)
      }
      try fileSystem.synchronizeFile(bundle)
      try fileSystem.writeAtomically(
        try entry.json(), to: staging.appending("entry.json"), replacing: true, permissions: .ownerReadWrite)
      try fileSystem.rename(staging, to: folder(of: id))
      try fileSystem.synchronizeDirectory(path)
    } catch {
      // The first error is the one that counts; what is left has a hidden name and goes with the next try.
      try? fileSystem.removeTree(staging)
      throw error
    }
    return entry
  }

  /// Gives the bundle a name in the outbox, where the file is its owner's alone; else makes a copy that is.
  private func place(_ source: FilePath, at destination: FilePath) throws {
    if let status = try fileSystem.status(of: source, followingLinks: false), status.kind == .regular,
      status.owner == FileSystem.effectiveUser, status.permissions == .ownerReadWrite
    {
      do throws(FileError) {
        try fileSystem.link(source, to: destination)
        return
      } catch {
        guard error.meansLinksAreUnsupported || error.kind == .crossDevice else { throw error }
      }
    }
    try fileSystem.duplicate(source, to: destination)
  }

  private func checkRoom(for preview: BundlePreview) throws {
    var used: Int64 = 0
    for id in try names() { used += try fileSystem.status(of: bundlePath(of: id))?.size ?? 0 }
    guard used <= limit, preview.bytes <= limit - used else {
      throw SendingError(
        .outboxFull, operation: "put the bundle into the outbox", path: path,
        detail: "\(used) of \(limit) bytes are taken, and the bundle has \(preview.bytes)")
    }
  }

  private func freeID(at date: Timestamp, sha256: String) throws -> String {
    let base = "\(date.fileName)-\(sha256.prefix(8))"
    for number in 1...10_000 {
      let id = number == 1 ? base : "\(base)-\(number)"
      if try fileSystem.status(of: folder(of: id), followingLinks: false) == nil { return id }
    }
    throw FileError(.alreadyExists, operation: "name the entry of the outbox", path: path)
  }

  static func changed(_ path: FilePath) -> SendingError {
    SendingError(
      .changed, operation: "send the bundle", path: path,
      detail: "the file is no longer the one that was shown",
      hint: "Look at what was shown and at the file, then send it again if it is what you want to send.")
  }
}

extension OutboxEntry {
  /// Makes an entry ready for another try, at any time.
  mutating func renew() {
    if state == .failed { upload = nil }
    if state == .failed || state == .sending { state = .waiting }
    tries = 0
    nextTry = nil
    lastError = nil
  }
}
