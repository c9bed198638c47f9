import HTTPServer
internal import Platform
internal import SystemPackage

extension Inbox {
  /// What became of an upload whose bytes are all there.
  enum Completion {
    case received(InboxBundle)

    /// It is not what its sum says, and was dropped.
    case wrongSum

    /// - Throws: 422 where it was dropped.
    func check() throws(TusRefusal) {
      guard case .wrongSum = self else { return }
      throw TusRefusal(
        .unprocessableContent, "sum-wrong", "What came is not what the sum in Upload-Metadata says; it was dropped.")
    }
  }

  /// Until when an upload is kept that something has just come for.
  func expiry() -> Timestamp {
    Timestamp(secondsSince1970: surroundings.now().secondsSince1970 + limits.uploadSeconds)
  }

  /// Makes a bundle of an upload whose bytes are all on the disk.
  ///
  /// A kill at any moment leaves an open upload, whose file is at one of two places; doing it again ends it.
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
    // The records say that it is here only once it is where it stays; until then its file is that of an upload, and goes with it.
    try storage.keep(bundle, from: path)
    if path == waiting {
      try fileSystem.makeDirectory(folders.bundle(upload.id), permissions: .ownerReadWriteExecute)
      try fileSystem.rename(waiting, to: place)
      try fileSystem.synchronizeDirectory(folders.bundle(upload.id))
      try fileSystem.synchronizeDirectory(folders.uploads)
    }
    let kept: InboxBundle
    do throws(InboxError) {
      kept = try records.finish(upload.id, as: bundle)
    } catch {
      // Another process ended it meanwhile, and its sender begins anew.
      if error.kind == .notFound, try records.bundle(upload.id) == nil { try removeUnknown(upload.id) }
      throw error
    }
    if kept.id != bundle.id {
      // The same was here already, sent without saying its sum before.
      try removeUnknown(upload.id)
    } else {
      if kept.state == .received { try queue.add(.open, for: kept.id, at: surroundings.now()) }
      try storage.release(kept)
    }
    changes.tell()
    return .received(kept)
  }

  /// Ends what a kill left: whole uploads become bundles, what belongs to nothing goes, what is not being worked at is queued.
  ///
  /// With shared storage whole uploads become bundles once the process runs; see ``goOn()``.
  /// The caller holds the lock of the inbox, and nothing is received yet.
  package func finishInterrupted() throws {
    var open: Set<String> = []
    try eachOwnUpload { upload in
      // With shared storage whole ones wait until the process runs: that may take long, or not be possible now.
      guard !storage.isShared, upload.offset == upload.length else {
        open.insert(upload.id)
        return
      }
      do {
        _ = try complete(upload)
      } catch let error as InboxError where error.kind == .notFound {
        // Its file is gone, and it is dropped; the sender learns it when it asks.
      }
    }
    try expireUploads()
    for name in try fileSystem.entries(of: folders.uploads) where !open.contains(name.string) {
      try fileSystem.unlink(folders.uploads.appending(name))
    }
    if storage.isShared {
      // What is on this machine is copies, which are fetched anew, and what is still to be kept.
      for name in try fileSystem.entries(of: folders.bundles) where !open.contains(name.string) {
        try fileSystem.removeTree(folders.bundles.appending(name))
      }
      try fileSystem.removeTree(storage.workHome)
      return try queueWaiting()
    }
    // Another machine may be at work; what is begun after this look has its folder after it too.
    let working = try fileSystem.entries(of: folders.work)
    let now = surroundings.now().secondsSince1970
    try clearRemoved()
    // What cannot be removed now keeps nothing else from being received.
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
    // Of an earlier version, which did not count it; who works at one counts it in the end.
    for (id, isNoted) in known where !isNoted && !atWork.contains(id) {
      _ = try records.place(try placedBytes(of: id), of: id, totalBytes: nil)
    }
    // Of a bundle that was refused nothing stays but itself.
    for id in try records.bundleIDs(in: .refused) where try placedBytes(of: id) > 0 { try removePlaced(of: id) }
    try queueWaiting()
  }

  /// Does something to each upload that is not over, and comes in by this process.
  private func eachOwnUpload(_ body: (InboxUpload) throws -> Void) throws {
    try records.eachOpenUpload { upload in
      if upload.frontEnd == frontEnd { try body(upload) }
    }
  }

  /// Goes on with what could not be done before, for want of the storage or of the records: bundles get their jobs, whole uploads
  /// become bundles, and copies of bundles that are no more go.
  ///
  /// - Throws: the first error, once all that could be done was done.
  func goOn() throws {
    var firstError: (any Error)?
    func attempt(_ body: () throws -> Void) {
      do { try body() } catch { firstError = firstError ?? error }
    }
    attempt { try queue.add(.open, forAll: .received, at: surroundings.now()) }
    attempt {
      let uploads = try records.openUploads(after: lookedAtUploads, limit: InboxUpload.readAtOnce)
      // The others have their turn the next time, and after the last come the first.
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

  /// Makes a bundle of a whole upload, unless another thread is at it.
  private func goOn(with upload: String) throws {
    guard turns.take(upload) else { return }
    defer { turns.release(upload) }
    guard let current = try records.upload(upload), current.state == .open else { return }
    do {
      _ = try complete(current)
    } catch let error as InboxError where error.kind == .notFound {
      // Its file is gone, and it is dropped; the sender learns it when it asks.
    }
  }

  /// Removes the files of uploads that are over, as where another process ended them.
  private func removeEndedUploads() throws {
    // Listed before the records are asked: none is listed that they do not know yet.
    let names = try fileSystem.entries(of: folders.uploads).map(\.string)
    for name in names where !turns.isTaken(name) {
      let upload = try records.upload(name)
      if upload?.state == .open, upload?.frontEnd == frontEnd { continue }
      try fileSystem.unlink(folders.uploads.appending(name))
    }
  }

  /// Sees to it that every bundle that waits has a job; where the key is at hand now, the encrypted ones too.
  func queueWaiting() throws {
    let now = surroundings.now()
    try queue.add(.open, forAll: .received, at: now)
    for id in hasIdentity ? try records.bundleIDs(in: .encrypted) : [] { try queue.restart(.open, of: id, at: now) }
    try queue.add(.salvage, forAll: .quarantined, at: now)
  }

  /// Ends the uploads that nothing more came of in time.
  package func expireUploads() throws {
    let now = surroundings.now().secondsSince1970
    try records.eachOpenUpload { upload in
      // One that a thread is at is not over.
      guard upload.expires <= now, turns.take(upload.id) else { return }
      defer { turns.release(upload.id) }
      guard try records.drop(upload.id) else { return }
      try fileSystem.unlink(folders.upload(upload.id))
    }
    try records.pruneUploads(at: surroundings.now())
    if storage.isShared { try removeEndedUploads() }
  }

  // MARK: Room

  /// The least bytes that a file or a folder counts: what a file system takes for one.
  static let leastBytes: Int64 = 4096

  /// How many bytes are placed of a bundle besides the file that was received: what it unpacked to, and what was
  /// salvaged of it.
  func placedBytes(of bundle: String, in folders: InboxFolders? = nil) throws(FileError) -> Int64 {
    let folders = folders ?? self.folders
    let folder = folders.bundle(bundle)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    let received = [folders.received(bundle, encrypted: true), folders.received(bundle, encrypted: false)]
    return try bytes(below: folder, leavingOut: received)
  }

  /// How many bytes a worker has in use for a bundle: what is placed, and what it works with.
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

  /// Takes away everything of a bundle but the file that was received; in shared storage it only counts no more.
  func removePlaced(of bundle: String) throws {
    try storage.removeResults(of: bundle)
    _ = try records.place(0, of: bundle, totalBytes: nil)
  }
}
