internal import Backup
internal import Foundation
package import ObjectStorage
package import Platform
package import SystemPackage

/// Bundles under a bucket prefix, for any number of machines.
///
/// Keys start with the bundle's identifier. Large objects have unique names; the records, or a small object written
/// once and last, refer to them. Local copies stay as room allows.
package final class ObjectBundleStorage: BundleStorage {
  let address: S3Address

  let client: S3Client
  let folders: InboxFolders
  let surroundings: Surroundings
  package let uses = BundleUses()
  let copies: LocalCopies

  /// The part of the leftovers to check next.
  private let sweep = Mutex(0)

  /// The least age of leftovers in seconds, by the server's clock.
  let leftoverSeconds: Int64

  /// Creates a storage.
  ///
  /// - Parameters:
  ///   - home: for fetched copies and workers.
  ///   - copyBytes: the most bytes of copies not in use.
  ///   - copiesStay: how long a read copy counts as in use.
  package init(
    _ address: S3Address, _ client: S3Client, home: FilePath, copyBytes: Int64 = 10 << 30,
    copiesStay: Duration = .seconds(60), leftoverSeconds: Int64 = 86_400, surroundings: Surroundings = .machine
  ) {
    self.address = address
    self.client = client
    self.surroundings = surroundings
    self.leftoverSeconds = leftoverSeconds
    folders = InboxFolders(home: home)
    copies = LocalCopies(
      in: folders, limit: copyBytes, fileSystem: surroundings.fileSystem, leastStay: copiesStay,
      isBeingUsed: uses.isBeingUsed)
  }

  package var isShared: Bool { true }
  package var workHome: FilePath { folders.root.appending("Working") }

  var fileSystem: FileSystem { surroundings.fileSystem }

  // MARK: Bundles

  package func keep(_ bundle: InboxBundle, from path: FilePath) throws {
    let key = receivedKey(bundle)
    if bundle.bytes > Int64(Self.piece) {
      // Uploads of a killed process; only this one has the bundle.
      for upload in try client.uploads(key) { try client.abort(upload) }
    }
    try write(path, to: key)
  }

  package func release(_ bundle: InboxBundle) throws {
    try copies.use(bundle.id, isRead: false) { copy in copy.hasReceived = true }
  }

  package func received(_ bundle: InboxBundle) throws -> FilePath {
    let path = folders.received(bundle.id, encrypted: bundle.isEncrypted)
    try copies.use(bundle.id) { copy in
      if copy.hasReceived, try fileSystem.status(of: path, followingLinks: false) != nil { return }
      copy.hasReceived = false
      try fileSystem.makeDirectory(folders.bundle(bundle.id))
      _ = try read(receivedKey(bundle), bytes: bundle.bytes, sha256: bundle.sha256, to: path) { true }
      copy.hasReceived = true
    }
    return path
  }

  package func place(_ bundle: InboxBundle) throws {
    let archives = bundle.archives
    guard !archives.isEmpty else { return }
    let folder = folders.bundle(bundle.id)
    let marks = archives.map(\.mark)
    if copies.touch(bundle.id, with: marks), try fileSystem.status(of: folder, followingLinks: false) != nil { return }
    try copies.use(bundle.id) { copy in
      if copy.archives == marks, try fileSystem.status(of: folder, followingLinks: false) != nil { return }
      try fileSystem.makeDirectory(folder)
      let new = folder.appending(Self.unfinished)
      try fileSystem.removeTree(new)
      _ = try unpack(archives, of: bundle.id, into: new) { true }
      copy.archives = []
      for name in try fileSystem.entries(of: folder)
      where !InboxFolders.receivedNames.contains(name.string) && name.string != Self.unfinished {
        try fileSystem.removeTree(folder.appending(name))
      }
      for name in try fileSystem.entries(of: new) {
        try fileSystem.rename(new.appending(name), to: folder.appending(name))
      }
      try fileSystem.removeDirectory(new)
      copy.archives = marks
    }
  }

  package func remove(_ id: String) throws {
    try copies.drop(id)
    try removeObjects("\(key(of: id))/")
    // A page may have fetched it meanwhile.
    try copies.drop(id)
  }

  package func keepingWords(at date: Timestamp) throws -> String? {
    switch try client.keeping() {
    case .unknown:
      "Whether the bucket keeps versions or locks objects is not known, since these credentials may not ask: what is removed may be only hidden there."
    case let keeping: keeping.words(at: date)
    }
  }

  /// Does nothing: another worker may need the results, which go with the bundle.
  package func removeResults(of id: String) throws {}

  // MARK: Work

  package func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool {
    let folder = folders.bundle(bundle.id)
    try fileSystem.makeDirectory(folder)
    guard kind == .open else {
      return try unpack(bundle.opened.map { [$0] } ?? [], of: bundle.id, into: folder, goesOn)
    }
    let path = folders.received(bundle.id, encrypted: bundle.isEncrypted)
    return try read(receivedKey(bundle), bytes: bundle.bytes, sha256: bundle.sha256, to: path, goesOn)
  }

  // MARK: Names

  static let results = "results/"
  static let unfinished = ".unfinished"
  private static let bundles = "bundles"

  /// The key prefix of a bundle, or of several by an identifier's first digits.
  func key(of id: String) -> String { address.key("\(Self.bundles)/\(id)") }

  func receivedKey(_ bundle: InboxBundle) -> String {
    "\(key(of: bundle.id))/\(InboxFolders.receivedName(encrypted: bundle.isEncrypted))"
  }

  func resultKey(_ bundle: String, making: String) -> String { "\(key(of: bundle))/\(Self.results)\(making).json" }

  func archiveKey(_ archive: InboxBundle.Archive, of bundle: String) -> String {
    "\(key(of: bundle))/\(Self.results)\(archive.making)-\(archive.mark).tar.gz"
  }

  // MARK: The place

  private var markKey: String { address.key("inbox") }

  package func mark() throws -> String? {
    guard let bytes = try object(markKey, limit: 100) else { return nil }
    let mark = String(decoding: bytes, as: UTF8.self).prefix { $0 != "\n" }
    guard InboxFolders.isID(String(mark)) else {
      throw BackupError(
        .s3Answer, operation: "open the inbox", detail: "the object inbox under \(address) is no mark of an inbox",
        hint: "Give a prefix of its own for the bundles of the inbox.")
    }
    return String(mark)
  }

  /// Returns a small object; nil if there is none.
  private func object(_ key: String, limit: Int) throws(BackupError) -> [UInt8]? {
    do {
      return try client.get(key, at: 0, length: limit)
    } catch {
      guard error.kind == .s3NotFound else { throw error }
      return nil
    }
  }

  package func makeMark(_ mark: String) throws -> String {
    do throws(BackupError) {
      try client.put(markKey, Array("\(mark)\n".utf8)[...], when: .absent)
      return mark
    } catch {
      guard error.kind == .s3Precondition else { throw error }
    }
    guard let known = try self.mark() else {
      throw BackupError(
        .s3Server, operation: "open the inbox", detail: "the mark of the inbox that was there a moment ago is gone")
    }
    return known
  }

  package func isEmpty() throws -> Bool { try client.list(address.key("\(Self.bundles)/")).objects.isEmpty }

  // MARK: Leftovers: objects of unknown bundles, left by kills

  /// The identifier prefixes, of 256, that one call checks.
  private static let partsAtOnce = 8

  /// The bundles per query.
  private static let askedAtOnce = 1000

  package func removeLeftovers(_ records: any InboxRecords) throws {
    for _ in 0..<Self.partsAtOnce {
      let part = sweep.withLock { part in
        defer { part = (part + 1) % 256 }
        return part
      }
      try removeLeftovers(records, beginningWith: zeroPadded(String(part, radix: 16), to: 2))
    }
  }

  private func removeLeftovers(_ records: any InboxRecords, beginningWith digits: String) throws {
    let prefix = key(of: digits)
    let listing = try client.list(prefix)
    guard let date = listing.date else { return }
    let latest = date.secondsSince1970 - leftoverSeconds
    let old = listing.objects.filter { object in object.modified.map { $0.secondsSince1970 <= latest } ?? false }
    let ids = Dictionary(grouping: old) { object in String(object.key.dropFirst(key(of: "").count).prefix(36)) }
    for (id, objects) in ids where InboxFolders.isID(id) {
      // In this order, since an upload becomes a bundle in one step.
      let isComing = try records.upload(id)?.state == .open
      // Another worker may be about to make an old result count.
      let isKnown = try records.bundle(id) != nil
      guard !isComing, !isKnown else { continue }
      // Delete the result before its archive.
      for object in objects.sorted(by: { Self.says($0) && !Self.says($1) }) { try client.delete(object.key) }
    }
    for upload in try client.uploads(prefix) {
      guard let begun = upload.begun, begun.secondsSince1970 <= latest else { continue }
      try client.abort(upload)
    }
  }

  package func removeCopies(_ records: any InboxRecords) throws {
    let ids = copies.ids
    for start in stride(from: 0, to: ids.count, by: Self.askedAtOnce) {
      let some = Array(ids[start..<min(ids.count, start + Self.askedAtOnce)])
      let known = try records.known(some)
      for id in some where !known.contains(id) && !uses.isBeingUsed(id) { try copies.drop(id) }
    }
    try copies.makeRoom()
  }

  private static func says(_ object: S3ObjectFacts) -> Bool { object.key.hasSuffix(".json") }

  // MARK: Results: an archive with a unique name, then one small object that refers to it

  /// The most bytes of a result object.
  private static let limit = 16 << 20

  package func result(of making: BundleMaking) throws -> StoredResult? {
    guard let result = try stored(making), let archive = result.archive else { return nil }
    if try client.head(archiveKey(archive, of: making.bundle))?.bytes == archive.bytes { return result }
    // Its archive is missing: make it again.
    try client.delete(resultKey(making.bundle, making: making.sum))
    return nil
  }

  private func stored(_ making: BundleMaking) throws -> StoredResult? {
    guard let bytes = try object(resultKey(making.bundle, making: making.sum), limit: Self.limit) else { return nil }
    // Another version's or malformed: do not replace it.
    guard let result = try? JSONDecoder().decode(StoredResult.self, from: Data(bytes)), result.isPlausible(for: making)
    else {
      throw InboxError(
        .altered, operation: "read what was made of the bundle",
        detail: "the object storage has something else where that is kept")
    }
    return result
  }

  package func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult {
    let folder = result.folders.bundle(making.bundle)
    let path = result.folders.root.appending("result.tar.gz")
    let packed = try BundleArchive.pack(
      folder, leavingOut: InboxFolders.receivedNames, unchangedSince: result.before, to: path, in: fileSystem)
    let archive = InboxBundle.Archive(
      making: making.sum, mark: "\(surroundings.makeUUID())".lowercased(), sha256: packed.sha256, bytes: packed.bytes)
    let key = archiveKey(archive, of: making.bundle)
    try write(path, to: key)
    let stored = StoredResult(
      making: making, archive: archive, opened: result.opened, salvaged: result.salvaged,
      placedBytes: result.placedBytes)
    let bytes = try JSON.bytes(of: stored, .line, to: "keep what was made of the bundle")
    do throws(BackupError) {
      try client.put(resultKey(making.bundle, making: making.sum), bytes[...], when: .absent)
      return stored
    } catch {
      guard error.kind == .s3Precondition else { throw error }
    }
    // Another worker was first; use its result.
    guard let first = try self.result(of: making) else {
      throw BackupError(
        .s3Server, operation: "keep what was made of the bundle", detail: "what another worker had made was removed")
    }
    // This archive will never be referenced.
    guard first.archive != archive else { return first }
    do throws(BackupError) {
      try client.delete(key)
    } catch {
      // It goes with the bundle.
    }
    return first
  }

  /// Invalidates a missing or altered archive, so that it is made again.
  func disown(_ archive: InboxBundle.Archive, of bundle: String) throws {
    let key = resultKey(bundle, making: archive.making)
    // Keep a newer result; an unreadable one refers to no archive.
    guard let bytes = try object(key, limit: Self.limit),
      let stored = try? JSONDecoder().decode(StoredResult.self, from: Data(bytes)), stored.archive == archive
    else { return }
    try client.delete(key)
  }

  // MARK: Transfers

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
