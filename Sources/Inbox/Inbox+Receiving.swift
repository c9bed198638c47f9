import HTTPServer
internal import Platform
internal import SystemPackage

extension Inbox {
  enum Completion {
    case received(InboxBundle)

    /// Dropped for a wrong checksum.
    case wrongSum

    /// - Throws: 422 if dropped.
    func check() throws(TusRefusal) {
      guard case .wrongSum = self else { return }
      throw TusRefusal(
        .unprocessableContent, "sum-wrong", "What came is not what the sum in Upload-Metadata says; it was dropped.")
    }
  }

  func expiry() -> Timestamp { Timestamp(secondsSince1970: surroundings.now().secondsSince1970 + limits.uploadSeconds) }

  /// Turns a complete upload into a bundle.
  ///
  /// A kill leaves it open, with its file in one of two places; a repeated call completes it.
  func complete(_ upload: InboxUpload) throws -> Completion {
    let waiting = folders.upload(upload.id)
    let places = [waiting, folders.received(upload.id, encrypted: true), folders.received(upload.id, encrypted: false)]
    guard let path = try places.first(where: { try fileSystem.status(of: $0, followingLinks: false) != nil }) else {
      try records.drop(upload.id)
      throw InboxError(
        .notFound, operation: "finish the upload", path: waiting, detail: "its file is gone",
        hint: "The sender sends it again.")
    }
    let file = try fileSystem.open(path)
    let digest = try FileDigest(of: file).hexadecimal
    guard file.count == upload.length, upload.sha256 == nil || upload.sha256 == digest else {
      try records.drop(upload.id)
      try fileSystem.unlink(path)
      return .wrongSum
    }
    let isEncrypted = AgeOpener.isAge(try file.bytes(at: 0, length: 4096))
    let place = folders.received(upload.id, encrypted: isEncrypted)
    var bundle = InboxBundle(
      id: upload.id, sender: upload.sender, date: surroundings.now(), sha256: digest, bytes: file.count,
      fileName: upload.fileName, level: upload.level, isEncrypted: isEncrypted)
    if isEncrypted, !hasIdentity { bundle.state = .encrypted }
    // Store first: until recorded, the file goes with the upload.
    try storage.keep(bundle, from: path)
    if path == waiting {
      try fileSystem.makeDirectory(folders.bundle(upload.id), permissions: .ownerReadWriteExecute)
      try fileSystem.rename(waiting, to: place)
      try fileSystem.synchronizeDirectory(folders.bundle(upload.id))
      try fileSystem.synchronizeDirectory(folders.uploads)
    }
    let kept: InboxBundle
    do throws(InboxError) {
      kept = try records.makeBundle(bundle, of: upload.id)
    } catch {
      // Ended by another process; the sender starts over.
      if error.kind == .notFound, try records.bundle(upload.id) == nil { try removeUnknown(upload.id) }
      throw error
    }
    if kept.id != bundle.id {
      // Already received, announced without checksum.
      try removeUnknown(upload.id)
    } else {
      if kept.state == .received { try queue.add(.open, for: kept.id, at: surroundings.now()) }
      try storage.release(kept)
    }
    changes.tell()
    return .received(kept)
  }

  /// Cleans up after a kill: completes uploads, removes unknown files, queues bundles.
  ///
  /// The caller holds the lock and does not receive yet. With shared storage ``goOn()`` completes uploads.
  package func finishInterrupted() throws {
    var open: Set<String> = []
    try records.eachOpenUpload { upload in
      guard upload.frontEnd == frontEnd else { return }
      // Shared storage may be slow or unavailable: `goOn()` completes the upload.
      guard !storage.isShared, upload.offset == upload.length else {
        open.insert(upload.id)
        return
      }
      do {
        _ = try complete(upload)
      } catch let error as InboxError where error.kind == .notFound {
        // The file is gone and the upload dropped; the sender learns so when it asks.
      }
    }
    try expireUploads()
    for name in try fileSystem.entries(of: folders.uploads) where !open.contains(name.string) {
      try fileSystem.unlink(folders.uploads.appending(name))
    }
    if storage.isShared {
      // Copies, or files still to be stored.
      for name in try fileSystem.entries(of: folders.bundles) where !open.contains(name.string) {
        try fileSystem.removeTree(folders.bundles.appending(name))
      }
      try fileSystem.removeTree(storage.workHome)
      return try queueWaiting()
    }
    // List first: a job that another machine starts later also creates its folder later.
    let working = try fileSystem.entries(of: folders.work)
    let now = surroundings.now().secondsSince1970
    try clearRemoved()
    // A failed removal must not prevent receiving.
    let left = Set(try records.removalsNotCleared())
    let atWork = Set(try queue.running().filter { $0.leaseEnds >= now }.map(\.bundle))
    for name in working where !atWork.contains(name.string) && !left.contains(name.string) {
      try fileSystem.removeTree(folders.work.appending(name))
    }
    let known = try records.bundleIDs()
    for name in try fileSystem.entries(of: folders.bundles) {
      guard InboxFolders.isID(name.string), known[name.string] == nil, !left.contains(name.string) else { continue }
      try fileSystem.removeTree(folders.bundles.appending(name))
    }
    // An earlier version did not record the size; a running worker records it at its end.
    for (id, isNoted) in known where !isNoted && !atWork.contains(id) {
      _ = try records.place(try placedBytes(of: id), of: id, totalBytes: nil)
    }
    // A refused bundle keeps only its received file.
    for id in try records.bundleIDs(in: .refused) where try placedBytes(of: id) > 0 { try removePlaced(of: id) }
    try queueWaiting()
  }

  /// Retries work that storage or records prevented: queueing bundles, completing uploads, removing obsolete copies.
  ///
  /// - Throws: the first error, after trying everything.
  func goOn() throws {
    var firstError: (any Error)?
    func attempt(_ body: () throws -> Void) {
      do { try body() } catch { firstError = firstError ?? error }
    }
    attempt { try queue.add(.open, forAll: .received, at: surroundings.now()) }
    attempt {
      let uploads = try records.openUploads(after: lookedAtUploads, limit: InboxUpload.readAtOnce)
      // The next call continues here, or starts over at the end.
      lookedAtUploads = uploads.count == InboxUpload.readAtOnce ? uploads.last?.id : nil
      for upload in uploads where upload.frontEnd == frontEnd && upload.offset == upload.length {
        attempt { try goOn(with: upload.id) }
      }
    }
    attempt { try storage.removeCopies(records) }
    attempt {
      do {
        _ = try storage.mark()
        storageTrouble = nil
      } catch {
        storageTrouble = (error as? any ReportableError)?.code ?? "unforeseen"
        throw error
      }
    }
    if let firstError { throw firstError }
  }

  /// Completes an upload unless another thread has it.
  private func goOn(with upload: String) throws {
    guard turns.take(upload) else { return }
    defer { turns.release(upload) }
    guard let current = try records.upload(upload), current.state == .open else { return }
    do {
      _ = try complete(current)
    } catch let error as InboxError where error.kind == .notFound {
      // The file is gone and the upload dropped; the sender learns so when it asks.
    }
  }

  /// Removes files of uploads that ended, such as by another process.
  private func removeEndedUploads() throws {
    // List before querying, so that the records know every listed upload.
    let names = try fileSystem.entries(of: folders.uploads).map(\.string)
    for name in names where !turns.isTaken(name) {
      let upload = try records.upload(name)
      if upload?.state == .open, upload?.frontEnd == frontEnd { continue }
      try fileSystem.unlink(folders.uploads.appending(name))
    }
  }

  /// Queues waiting bundles, encrypted ones only with a key.
  func queueWaiting() throws {
    let now = surroundings.now()
    try queue.add(.open, forAll: .received, at: now)
    for id in hasIdentity ? try records.bundleIDs(in: .encrypted) : [] { try queue.restart(.open, of: id, at: now) }
    try queue.add(.salvage, forAll: .quarantined, at: now)
  }

  package func expireUploads() throws {
    let now = surroundings.now().secondsSince1970
    try records.eachOpenUpload { upload in
      // An upload in use has not expired.
      guard upload.expires <= now, turns.take(upload.id) else { return }
      defer { turns.release(upload.id) }
      guard try records.drop(upload.id) else { return }
      try fileSystem.unlink(folders.upload(upload.id))
    }
    try records.pruneUploads(at: surroundings.now())
    if storage.isShared { try removeEndedUploads() }
  }

  // MARK: Room

  /// The least size counted per file or folder: a file system block.
  static let leastBytes: Int64 = 4096

  /// Returns the size of a bundle's results.
  func placedBytes(of bundle: String, in folders: InboxFolders? = nil) throws(FileError) -> Int64 {
    let folders = folders ?? self.folders
    let folder = folders.bundle(bundle)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    let received = [folders.received(bundle, encrypted: true), folders.received(bundle, encrypted: false)]
    return try bytes(below: folder, leavingOut: received)
  }

  /// Returns the size of a worker's files, results included.
  func workingBytes(of bundle: String, in folders: InboxFolders) throws(FileError) -> Int64 {
    try placedBytes(of: bundle, in: folders) + bytes(below: folders.work.appending(bundle), leavingOut: [])
  }

  private func bytes(below folder: FilePath, leavingOut paths: [FilePath]) throws(FileError) -> Int64 {
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    let content = try fileSystem.descendants(of: folder)
    let files = content.files.filter { !paths.contains($0.path) }.reduce(Int64(0)) { sum, file in
      sum + max(Self.leastBytes, (file.status.size + Self.leastBytes - 1) / Self.leastBytes * Self.leastBytes)
    }
    return files + Int64(content.folders.count) * Self.leastBytes
  }

  /// Removes a bundle's results; in shared storage they only stop counting.
  func removePlaced(of bundle: String) throws {
    try storage.removeResults(of: bundle)
    _ = try records.place(0, of: bundle, totalBytes: nil)
  }
}
