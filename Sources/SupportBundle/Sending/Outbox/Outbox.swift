internal import Lazaret
public import Platform
public import SystemPackage

/// The bundles of a home to be sent, in progress or sent: `Outbox/`.
///
/// Each has a folder with the bundle and `entry.json`. A kill never leaves a partial entry or loses a receipt.
public struct Outbox: Sendable {
  /// The name of the folder.
  public static let name: FilePath.Component = "Outbox"

  /// The default size limit: 2 GiB.
  public static let usualLimit: Int64 = 2 << 30

  /// The days that a finished entry is kept.
  public static let keptDays = 90

  /// The folder that contains the outbox.
  public let home: FilePath

  /// The most bytes of all bundles.
  public let limit: Int64
  let surroundings: Surroundings

  /// Creates the outbox of a home, without accessing it.
  public init(home: FilePath, limit: Int64 = Self.usualLimit, surroundings: Surroundings = .machine) {
    self.home = home
    self.limit = limit
    self.surroundings = surroundings
  }

  /// The folder.
  public var path: FilePath { fileSystem.homeFolder(Self.name, of: home) }

  var fileSystem: FileSystem { surroundings.fileSystem }

  func folder(of id: String) -> FilePath { path.appending(id) }
  func entryPath(of id: String) -> FilePath { folder(of: id).appending("entry.json") }

  /// Returns the path of an entry's bundle, which exists while needed.
  public func bundlePath(of id: String) -> FilePath { folder(of: id).appending("bundle") }

  /// The content of an outbox.
  public struct Listing: Sendable, Hashable {
    /// The entries, newest first.
    public var entries: [OutboxEntry]

    /// The names of unreadable entries.
    public var unreadable: [String]

    /// Creates a listing.
    public init(entries: [OutboxEntry], unreadable: [String]) {
      self.entries = entries
      self.unreadable = unreadable
    }
  }

  /// Lists the outbox without changes.
  ///
  /// An entry whose sending process ended appears as waiting.
  public func listing() throws(SupportBundleError) -> Listing {
    do {
      var listing = Listing(entries: [], unreadable: [])
      for id in try names() {
        guard var entry = try read(id) else {
          listing.unreadable.append(id)
          continue
        }
        if entry.state == .sending, try !isHeld(id) { entry.state = .waiting }
        listing.entries.append(entry)
      }
      listing.entries.sort { ($0.created, $0.id) > ($1.created, $1.id) }
      return listing
    } catch { throw SupportBundleError.sending(error, operation: "list the outbox", path: path) }
  }

  /// Returns the entry with a name or its prefix, or the first digits of a bundle's SHA-256.
  ///
  /// - Throws: `not-in-outbox` without a single match.
  public func entry(_ name: String) throws(SupportBundleError) -> OutboxEntry {
    let entries = try listing().entries
    if let entry = entries.first(where: { $0.id == name }) { return entry }
    let found = entries.filter { !name.isEmpty && ($0.id.hasPrefix(name) || $0.sha256.hasPrefix(name.lowercased())) }
    guard found.count <= 1 else { throw Self.notFound(path, "\(found.count) entries have names that begin like that") }
    guard let entry = found.first else { throw Self.notFound(path, "there is no entry \(printable(name))") }
    return entry
  }

  /// Returns the entry of a bundle already sent to a receiver, if any.
  public func sent(
    _ preview: BundlePreview, to receiver: ReceiverAddress, by method: OutboxEntry.Method = .tus
  ) throws(SupportBundleError) -> OutboxEntry? {
    try listing().entries.first { $0.state == .sent && $0.sends(preview, to: receiver, by: method) }
  }

  static func notFound(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.notInOutbox, operation: "find the entry of the outbox", path: path, detail: detail)
  }

  // MARK: Looking

  func names() throws -> [String] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    return try fileSystem.entries(of: path).map(\.string).filter(Self.isID)
  }

  /// Reads an entry; nil if unreadable.
  func read(_ id: String) throws -> OutboxEntry? {
    do {
      return try OutboxEntry(at: entryPath(of: id), id: id, in: fileSystem)
    } catch let error as SupportBundleError where error.kind == .entryUnreadable {
      return nil
    } catch let error as FileError where [.notFound, .tooLarge, .notRegularFile].contains(error.kind) {
      return nil
    }
  }

  private func isHeld(_ id: String) throws -> Bool {
    do {
      try FolderLock(folder(of: id), patience: 0, in: fileSystem).release()
      return false
    } catch  where error.kind == .locked { return true }
  }

  static func isID(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard text.utf8.count <= 64, parts.count >= 7, Timestamp(String(text.prefix(19))) != nil else { return false }
    return parts[6...].allSatisfy { part in
      !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
  }
}

extension Outbox {
  /// Completes the work of killed processes: resets entries, records receipts, and removes unneeded bundles and entries
  /// unchanged for 90 days.
  ///
  /// Skips entries in use by other processes.
  ///
  /// - Returns: the number of removed entries.
  @discardableResult
  public func settle() throws(SupportBundleError) -> Int {
    do {
      guard try fileSystem.status(of: path)?.kind == .directory else { return 0 }
      let lock = try FolderLock(path, in: fileSystem)
      try removeLeftovers()
      for id in try names() {
        guard try read(id) != nil else { continue }
        do {
          var held = try HeldEntry(id, of: self)
          if held.entry.state == .sending { try held.update { $0.state = .waiting } }
          _ = try settle(&held)
        } catch let error as SupportBundleError where error.kind == .entryBusy {
          // Another process works on it.
        } catch is LazaretError {
          // An unreadable receipt must not block other bundles.
        }
      }
      let removed = try removeOld()
      lock.release()
      return removed
    } catch { throw SupportBundleError.sending(error, operation: "settle the outbox", path: path) }
  }

  /// Records the receipt of a finished entry and removes the bundle.
  ///
  /// If another process uses the quarantined store, it is retried later.
  ///
  /// - Returns: the quarantined stores with the receipt.
  func settle(_ held: inout HeldEntry) throws -> [String] {
    guard held.entry.isOver else { return [] }
    let bundle = bundlePath(of: held.entry.id)
    guard try fileSystem.status(of: bundle, followingLinks: false) != nil else { return [] }
    var noted: [String] = []
    if let receipt = held.entry.receipt {
      do {
        noted = try note(receipt)
      } catch let error as FileError where error.kind == .locked {
        return []
      }
    }
    try fileSystem.unlink(bundle)
    try fileSystem.synchronizeDirectory(folder(of: held.entry.id))
    return noted
  }

  /// Adds a receipt to the quarantined stores, and returns their names.
  private func note(_ receipt: DeliveryReceipt) throws -> [String] {
    var noted: [String] = []
    for folder in try QuarantineCatalogue(home: home, surroundings: surroundings).folders() {
      let stores = try folder.stores().filter { stored in
        stored.receipt?.exports?.contains { $0.sha256 == receipt.sha256 } ?? false
      }
      guard !stores.isEmpty else { continue }
      let lock = try folder.salvageLock(patience: 300)
      for stored in stores {
        try folder.update(stored.id) { $0.add(receipt.delivery, at: surroundings.now()) }
        noted.append(stored.id)
      }
      lock.release()
    }
    return noted
  }

  private func removeOld() throws -> Int {
    let now = surroundings.now().secondsSince1970
    var removed = 0
    for id in try names() {
      guard let entry = try read(id), entry.isOver, let updated = Timestamp(entry.updated),
        now - updated.secondsSince1970 > Int64(Self.keptDays) * 86_400,
        try fileSystem.status(of: bundlePath(of: id), followingLinks: false) == nil
      else { continue }
      // Hidden first, so that a kill leaves no partial entry.
      let leaving = path.appending(".gone-\(id)")
      try fileSystem.rename(folder(of: id), to: leaving)
      try fileSystem.synchronizeDirectory(path)
      try fileSystem.removeTree(leaving)
      removed += 1
    }
    return removed
  }
}

extension Outbox {
  /// Adds a bundle for one receiver.
  ///
  /// An existing entry is returned: a sent one with its receipt, a waiting or failed one for another try. The bundle is
  /// hard-linked if possible, otherwise copied.
  ///
  /// - Parameters:
  ///   - preview: the confirmed content; a changed file is rejected.
  ///   - tokenFile: the file to read the token from, also later; the token itself is never stored.
  /// - Throws: `bundle-changed`, `outbox-full`, or a file error, leaving the outbox unchanged.
  public func add(
    _ preview: BundlePreview, to receiver: ReceiverAddress, by method: OutboxEntry.Method = .tus,
    tokenFile: FilePath? = nil
  ) throws(SupportBundleError) -> OutboxEntry {
    do {
      try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
      let lock = try FolderLock(path, in: fileSystem)
      try removeLeftovers()
      let entry = try known(preview, receiver, method, tokenFile) ?? stage(preview, receiver, method, tokenFile)
      lock.release()
      return entry
    } catch { throw SupportBundleError.sending(error, operation: "put the bundle into the outbox", path: preview.path) }
  }

  /// Removes partial entries of killed processes; the caller holds the lock.
  func removeLeftovers() throws {
    for name in try fileSystem.entries(of: path) where name.string.hasPrefix(".") {
      try fileSystem.removeTree(path.appending(name))
    }
  }

  /// Returns the same bundle's entry for the receiver, reset if unsent.
  private func known(
    _ preview: BundlePreview, _ receiver: ReceiverAddress, _ method: OutboxEntry.Method, _ tokenFile: FilePath?
  ) throws -> OutboxEntry? {
    let same = try names().compactMap { try read($0) }
      .filter { $0.state != .cancelled && $0.sends(preview, to: receiver, by: method) }
    if let sent = same.first(where: { $0.state == .sent }) { return sent }
    for entry in same where try fileSystem.status(of: bundlePath(of: entry.id)) != nil {
      do {
        var held = try HeldEntry(entry.id, of: self)
        try held.update { entry in
          entry.renew()
          if let tokenFile { entry.tokenFile = PathText(tokenFile) }
        }
        return held.entry
      } catch let error as SupportBundleError where error.kind == .entryBusy {
        // Another process is sending it.
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
    let tokenFile = try tokenFile.map { try fileSystem.realPath($0) }
    let entry = OutboxEntry(preview, id: id, to: receiver, by: method, tokenFile: tokenFile, at: now)
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
      // Keep the first error; hidden remains are removed next time.
      try? fileSystem.removeTree(staging)
      throw error
    }
    return entry
  }

  /// Hard-links a bundle that only this user can access; otherwise copies it.
  private func place(_ source: FilePath, at destination: FilePath) throws {
    if let status = try fileSystem.status(of: source, followingLinks: false), status.kind == .regular,
      status.owner == FileSystem.effectiveUser, status.permissions == .ownerReadWrite
    {
      do throws(FileError) {
        try fileSystem.link(source, to: destination)
        return
      } catch { guard error.meansLinksAreUnsupported || error.kind == .crossDevice else { throw error } }
    }
    try fileSystem.duplicate(source, to: destination)
  }

  private func checkRoom(for preview: BundlePreview) throws {
    var used: Int64 = 0
    for id in try names() { used += try fileSystem.status(of: bundlePath(of: id))?.size ?? 0 }
    guard used <= limit, preview.bytes <= limit - used else {
      throw SupportBundleError(
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

  static func changed(_ path: FilePath) -> SupportBundleError {
    SupportBundleError(
      .bundleChanged, operation: "send the bundle", path: path, detail: "the file is no longer the one that was shown",
      hint: "Look at what was shown and at the file, then send it again if it is what you want to send.")
  }
}

extension OutboxEntry {
  fileprivate func sends(_ preview: BundlePreview, to receiver: ReceiverAddress, by method: Method) -> Bool {
    sha256 == preview.sha256 && bytes == preview.bytes && endpoint == receiver.withoutQuery && self.method == method
  }

  mutating func renew() {
    if state == .failed { upload = nil }
    if state == .failed || state == .sending { state = .waiting }
    tries = 0
    nextTry = nil
    lastError = nil
  }
}

/// The bundle to send, shown to the user for consent.
public struct BundlePreview: Sendable, Hashable {
  /// The file.
  public var path: FilePath

  /// The size in bytes.
  public var bytes: Int64

  /// The hexadecimal SHA-256; only content with this checksum is sent.
  public var sha256: String

  /// How much of the store is in it; nil if encrypted and in no receipt.
  public var level: BundleLevel?

  /// Whether it is encrypted.
  public var isEncrypted: Bool

  /// The name for the receiver.
  public var name: String { path.lastComponent.map { printable($0.string) } ?? "bundle" }

  /// Whether a third party could read user records in transit.
  public var showsRecords: Bool { !isEncrypted && (level == .full || level == .damagedPages) }

  /// Reads and hashes a bundle.
  ///
  /// - Throws: `bundle-unreadable`, or a file error.
  public init(
    of path: FilePath, home: FilePath, surroundings: Surroundings = .machine,
    progress: (_ done: Int64, _ total: Int64) throws -> Void = { _, _ in }
  ) throws(SupportBundleError) {
    do {
      let look = try BundleLook(at: path, in: surroundings.fileSystem)
      self.path = path
      isEncrypted = look.isEncrypted
      let file = try surroundings.fileSystem.open(path)
      bytes = file.count
      sha256 = try FileDigest(of: file) { try progress($0, look.bytes) }.hexadecimal
      level = look.level
      if level == nil { level = try Self.level(of: sha256, home: home, surroundings) }
    } catch { throw SupportBundleError.sending(error, operation: "look at the bundle", path: path) }
  }

  /// Finds the level in receipts of quarantined stores.
  private static func level(of sha256: String, home: FilePath, _ surroundings: Surroundings) throws -> BundleLevel? {
    do {
      for stored in try QuarantineCatalogue(home: home, surroundings: surroundings).stores() {
        if let export = stored.receipt?.exports?.last(where: { $0.sha256 == sha256 }) {
          return BundleLevel(rawValue: export.level)
        }
      }
    } catch is LazaretError {
      // Other commands report unreadable receipts.
    }
    return nil
  }
}
