internal import Lazaret
public import Platform
public import SystemPackage

/// The bundles that are to be sent, are being sent, or were: `Outbox/` in the home.
///
/// Each has a folder of its own with the bundle and `entry.json`; after a kill at any moment an entry is there whole or not at all,
/// and nothing that a receiver has acknowledged is forgotten.
public struct Outbox: Sendable {
  /// The name of the folder.
  public static let name: FilePath.Component = "Outbox"

  /// How many bytes all bundles together may have, unless told otherwise: 2 GiB.
  public static let usualLimit: Int64 = 2 << 30

  /// For how many days an entry is kept that nothing more happens to.
  public static let keptDays = 90

  /// The folder that holds the outbox.
  public let home: FilePath

  /// How many bytes all bundles together may have.
  public let limit: Int64
  let surroundings: Surroundings

  /// The outbox of a home, whether it is there or not.
  public init(home: FilePath, limit: Int64 = Self.usualLimit, surroundings: Surroundings = .machine) {
    self.home = home
    self.limit = limit
    self.surroundings = surroundings
  }

  /// The folder.
  public var path: FilePath { home.appending(Self.name) }

  var fileSystem: FileSystem { surroundings.fileSystem }

  func folder(of id: String) -> FilePath { path.appending(id) }
  func entryPath(of id: String) -> FilePath { folder(of: id).appending("entry.json") }

  /// Where the bundle of an entry lies, as long as it is needed.
  public func bundlePath(of id: String) -> FilePath { folder(of: id).appending("bundle") }

  /// What lies in an outbox.
  public struct Listing: Sendable, Hashable {
    /// The entries, newest first.
    public var entries: [OutboxEntry]

    /// The names of entries that cannot be read.
    public var unreadable: [String]

    /// A listing.
    public init(entries: [OutboxEntry], unreadable: [String]) {
      self.entries = entries
      self.unreadable = unreadable
    }
  }

  /// What lies in the outbox; nothing is changed.
  ///
  /// An entry whose process ended while it was sending is shown as waiting.
  public func listing() throws(SendingError) -> Listing {
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
    } catch {
      throw SendingError.told(error, operation: "list the outbox", path: path)
    }
  }

  /// The entry of a name, of the beginning of one, or of the first digits of a bundle's SHA-256.
  ///
  /// - Throws: `not-in-outbox` where there is none, or several.
  public func entry(_ name: String) throws(SendingError) -> OutboxEntry {
    let entries = try listing().entries
    if let entry = entries.first(where: { $0.id == name }) { return entry }
    let found = entries.filter { !name.isEmpty && ($0.id.hasPrefix(name) || $0.sha256.hasPrefix(name.lowercased())) }
    guard found.count <= 1 else { throw Self.notFound(path, "\(found.count) entries have names that begin like that") }
    guard let entry = found.first else { throw Self.notFound(path, "there is no entry \(printable(name))") }
    return entry
  }

  /// The entry of a bundle that a receiver has already, as far as this outbox knows; nil for none.
  public func sent(
    _ preview: BundlePreview, to receiver: ReceiverAddress, by method: OutboxEntry.Method = .tus
  ) throws(SendingError) -> OutboxEntry? {
    try listing().entries.first { entry in
      entry.state == .sent && entry.sha256 == preview.sha256 && entry.bytes == preview.bytes
        && entry.endpoint == receiver.withoutQuery && entry.method == method
    }
  }

  static func notFound(_ path: FilePath, _ detail: String) -> SendingError {
    SendingError(.notFound, operation: "find the entry of the outbox", path: path, detail: detail)
  }

  // MARK: Looking

  /// The names of all entries.
  func names() throws -> [String] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    return try fileSystem.entries(of: path).map(\.string).filter(Self.isID)
  }

  /// An entry; nil where it cannot be read.
  func read(_ id: String) throws -> OutboxEntry? {
    do {
      return try OutboxEntry(at: entryPath(of: id), id: id, in: fileSystem)
    } catch let error as SendingError {
      guard error.kind == .entryUnreadable else { throw error }
      return nil
    } catch let error as FileError {
      guard error.kind == .notFound || error.kind == .tooLarge || error.kind == .notRegularFile else { throw error }
      return nil
    }
  }

  private func isHeld(_ id: String) throws -> Bool {
    do {
      let lock = try FolderLock(folder(of: id), patience: 0, in: fileSystem)
      _ = consume lock
      return false
    } catch {
      guard error.kind == .locked else { throw error }
      return true
    }
  }

  /// Whether text is a name that an outbox gives.
  static func isID(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard text.utf8.count <= 64, parts.count >= 7, Timestamp(String(text.prefix(19))) != nil else { return false }
    return parts[6...].allSatisfy { part in
      !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
  }
}

extension Outbox {
  /// Ends what killed processes began: entries that were being sent wait again, receipts are noted, and bundles that are not needed
  /// any more go, as do entries that nothing has happened to for 90 days.
  ///
  /// Entries that another process works on are left alone.
  ///
  /// - Returns: how many entries were removed.
  @discardableResult
  public func settle() throws(SendingError) -> Int {
    do {
      guard try fileSystem.status(of: path)?.kind == .directory else { return 0 }
      let lock = try FolderLock(path, in: fileSystem)
      try removeLeftovers()
      for id in try names() {
        guard try read(id) != nil else { continue }
        do {
          var held = try HeldEntry(id, of: self)
          if held.entry.state == .sending { try held.update { $0.state = .waiting } }
          _ = try finish(&held)
        } catch let error as SendingError {
          guard error.kind == .busy else { throw error }
        } catch is QuarantineError {
          // A catalogue or receipt that cannot be read keeps no other bundle from being sent; the bundle stays until it can.
        }
      }
      let removed = try removeOld()
      _ = consume lock
      return removed
    } catch {
      throw SendingError.told(error, operation: "settle the outbox", path: path)
    }
  }

  /// Ends an entry that nothing more happens to: notes the receipt, and lets the bundle go.
  ///
  /// Where a receipt cannot be noted because another process works on the quarantined store, the bundle stays, and so it is done another time.
  ///
  /// - Returns: the quarantined stores whose receipts have it.
  func finish(_ held: inout HeldEntry) throws -> [String] {
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

  /// Adds a receipt to those of the quarantined stores of the home that the bundle was made of.
  ///
  /// - Returns: the stores' names.
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
      _ = consume lock
    }
    return noted
  }

  /// Removes the entries that nothing has happened to for as long as they are kept.
  private func removeOld() throws -> Int {
    let now = surroundings.now().secondsSince1970
    var removed = 0
    for id in try names() {
      guard let entry = try read(id), entry.isOver, let updated = Timestamp(entry.updated),
        now - updated.secondsSince1970 > Int64(Self.keptDays) * 86_400,
        try fileSystem.status(of: bundlePath(of: id), followingLinks: false) == nil
      else { continue }
      // Under a hidden name first: what a kill leaves of it is no entry any more.
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
