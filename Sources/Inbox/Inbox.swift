internal import Foundation
internal import HTTPServer
internal import Lazaret
package import Platform
package import SystemPackage

/// A home's inbox: records, job queue and bundles.
///
/// One process receives in a home, holding its lock (``Inbox/lock()``). With records in a database server others may
/// run its jobs; with shared storage too, several receive, each with its own home.
package final class Inbox: Sendable {
  /// The home with the catalogue of arriving stores.
  package let home: FilePath

  package let folders: InboxFolders

  package let records: any InboxRecords

  package let queue: any JobQueue

  package let limits: InboxLimits

  package let storage: any BundleStorage

  /// This process's name if several receive.
  package let frontEnd: String?

  let turns = UploadTurns()

  /// Whether it has the key of encrypted bundles.
  let hasIdentity: Bool

  package let surroundings: Surroundings

  /// The error code of shared storage's last use, if it failed.
  package internal(set) var storageTrouble: String? {
    get { trouble.withLock { $0 } }
    set { trouble.withLock { $0 = newValue } }
  }
  private let trouble = Mutex<String?>(nil)

  /// Where the next check of whole uploads continues.
  var lookedAtUploads: String? {
    get { looked.withLock { $0 } }
    set { looked.withLock { $0 = newValue } }
  }
  private let looked = Mutex<String?>(nil)

  /// The catalogue when it last knew the bundles' stores.
  private let catalogued = Mutex<FileStatus?>(nil)

  package let changes = InboxChanges()

  /// Opens a home's inbox, creating missing folders and records.
  ///
  /// - Throws: `inbox-records`; file system errors.
  package convenience init(
    home: FilePath, limits: InboxLimits = InboxLimits(), hasIdentity: Bool = false,
    surroundings: Surroundings = .machine
  ) throws {
    let folders = InboxFolders(home: home)
    try folders.make(in: surroundings.fileSystem)
    try InboxPlace.refuse(folders, in: surroundings.fileSystem)
    let database = try InboxDatabase(folders.records)
    self.init(
      home: home, records: database.records, queue: database.queue(), limits: limits,
      hasIdentity: hasIdentity, surroundings: surroundings)
  }

  /// Creates an inbox from its parts.
  ///
  /// - Parameters:
  ///   - storage: by default the home.
  ///   - frontEnd: this process's name if several receive.
  package init(
    home: FilePath, records: any InboxRecords, queue: any JobQueue, storage: (any BundleStorage)? = nil,
    frontEnd: String? = nil, limits: InboxLimits, hasIdentity: Bool, surroundings: Surroundings
  ) {
    self.home = home
    self.storage = storage ?? Self.storage(of: home, in: surroundings.fileSystem)
    self.frontEnd = frontEnd
    folders = InboxFolders(home: home)
    self.records = records
    self.queue = queue
    self.limits = limits
    self.hasIdentity = hasIdentity
    self.surroundings = surroundings
  }

  /// The storage of bundles in a home.
  package static func storage(of home: FilePath, in fileSystem: FileSystem) -> any BundleStorage {
    FolderBundleStorage(home: home, in: fileSystem)
  }

  var fileSystem: FileSystem { surroundings.fileSystem }

  /// Takes the receiving process's lock.
  ///
  /// - Throws: `inbox-in-use`.
  package func lock() throws -> FolderLock {
    do {
      return try FolderLock(folders.root, patience: 2_000, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw InboxError(
        .inUse, operation: "open the inbox", path: folders.root, detail: "another process receives in it",
        isEnvironmental: true)
    }
  }

  // MARK: Senders

  func sender(of token: String) throws(InboxError) -> InboxSender? {
    let sum = SenderToken.sum(of: token)
    // Senders cannot choose a digest, so the index's timing reveals no token.
    guard let known = try records.sender(withTokenSum: sum), SenderToken.matches(known.sum, sum) else { return nil }
    return known.sender
  }

  // MARK: Bundles

  /// Restarts work after a failure or without key.
  ///
  /// - Throws: `not-in-inbox`; `inbox-not-now` if in use or without work.
  package func retry(_ id: String) throws {
    let operation = "try again"
    guard let bundle = try records.bundle(id) else { throw InboxError.noBundle(operation) }
    let jobs = try queue.jobs(of: id)
    guard !jobs.contains(where: { $0.state == .running || $0.state == .waiting }) else {
      throw InboxError(.notNow, operation: operation, detail: "something is being done to it, or waits its turn")
    }
    if bundle.isEncrypted, !hasIdentity, bundle.quarantineID == nil {
      throw InboxError(
        .notNow, operation: operation, detail: "it is encrypted, and this process was not given the key",
        hint: "Serve with --identity and the file with the secret key.")
    }
    try queue.restart(bundle.quarantineID == nil ? .open : .salvage, of: id, at: surroundings.now())
    changes.tell()
  }

  /// Removes a bundle with its store and results; the removal and the damage's count stay recorded.
  ///
  /// - Throws: `not-in-inbox`; `inbox-not-now` if in use.
  package func discard(_ id: String) throws {
    let operation = "discard the bundle"
    guard let bundle = try records.bundle(id) else { throw InboxError.noBundle(operation) }
    let removal = InboxRemoval(
      of: bundle, placed: try records.placed(of: id) ?? 0, by: .discarded, at: surroundings.now())
    guard let removed = try remove(removal, sparing: [.running], newer: 0, where: { _ in true }) else {
      throw InboxError(.notNow, operation: operation, detail: "something is being done to it")
    }
    changes.tell()
    // Unavailable storage removes them later.
    if let failure = removed.failure, !(storage.isShared && failure.isEnvironmental) { throw failure }
  }

  /// A sentence unless removed bundles are known to be gone.
  package func keepingWords() -> String? {
    do {
      return try storage.keepingWords(at: surroundings.now())
    } catch {
      return
        "Whether the storage of the bundles keeps what is removed cannot be asked now: what is removed may be only hidden there."
    }
  }

  /// Unlike a missing permission.
  private static let passingErrors: Set<String> = ["s3-unreachable", "s3-time-out", "s3-server"]

  /// Removes files that the records do not know.
  func removeUnknown(_ id: String) throws {
    do {
      try storage.remove(id)
    } catch let error as any ReportableError where storage.isShared && Self.passingErrors.contains(error.code) {
      // Removed later with other leftovers.
    }
  }

  package func received(_ bundle: InboxBundle) throws -> FilePath { try storage.received(bundle) }

  /// The local folder of results.
  package func placed(_ bundle: InboxBundle) throws -> FilePath {
    let folder = folders.bundle(bundle.id)
    do {
      try storage.place(bundle)
    } catch let error as InboxError where storage.isShared && (error.kind == .missing || error.kind == .altered) {
      try makeAnew(bundle)
      throw error
    }
    // The catalogue lacks other machines' work.
    if storage.isShared, bundle.quarantineID != nil { try catalogueStores() }
    return folder
  }

  /// Adds the bundles' stores to the catalogue, if it has changed.
  func catalogueStores() throws {
    let catalogue = QuarantineCatalogue(home: home, surroundings: surroundings)
    // Taken before reading, so a later write differs.
    let status = try catalogue.status()
    if let status, catalogued.withLock({ $0 == status }) { return }
    try catalogue.add(parent: folders.bundles)
    catalogued.withLock { $0 = status }
  }

  /// Reopens a bundle with a missing or altered result, unless it was replaced, is in use or lacks its key.
  func makeAnew(_ bundle: InboxBundle) throws {
    guard !bundle.isEncrypted || hasIdentity, try records.bundle(bundle.id)?.archives == bundle.archives else { return }
    guard !(try queue.jobs(of: bundle.id)).contains(where: { $0.kind == .open && $0.state != .done }) else { return }
    try queue.restart(.open, of: bundle.id, at: surroundings.now())
    changes.tell()
  }

  /// Salvages again the bundles whose last result is of an earlier version.
  ///
  /// - Returns: nil without such bundles.
  /// - Throws: `inbox-not-now` while another batch of the damage runs.
  package func salvageAgain(_ group: String) throws -> SalvageBatch? {
    let batch = try records.beginBatch(of: group, version: LibraryVersion.current, at: surroundings.now())
    changes.tell()
    return batch
  }

  // MARK: Databases

  /// Opens an inbox with a database, which belongs to the first home that uses it.
  ///
  /// - Parameter makesFolders: for a receiving process.
  /// - Throws: `inbox-address` if home and database do not belong together; `inbox-records`; file system errors.
  package convenience init(
    home: FilePath, database: PostgresDatabase, makesFolders: Bool = true, limits: InboxLimits = InboxLimits(),
    hasIdentity: Bool = false, surroundings: Surroundings = .machine
  ) throws {
    let folders = InboxFolders(home: home)
    if makesFolders { try folders.make(in: surroundings.fileSystem) }
    try database.join(folders, makesMark: makesFolders, surroundings)
    self.init(
      home: home, records: database.records, queue: database.queue(), limits: limits,
      hasIdentity: hasIdentity, surroundings: surroundings)
  }

  /// Opens an inbox with a database and shared storage, for any number of processes.
  ///
  /// - Parameters:
  ///   - home: for this process's incoming uploads and copies.
  ///   - receives: the first receiving process ties storage and database together.
  /// - Throws: `inbox-address` if home, storage and database do not belong together; `inbox-records`; storage and file
  ///   system errors.
  package convenience init(
    home: FilePath, database: PostgresDatabase, storage: any BundleStorage, receives: Bool,
    limits: InboxLimits = InboxLimits(), hasIdentity: Bool = false, surroundings: Surroundings = .machine
  ) throws {
    let mark = try database.join(storage, makesMark: receives)
    let folders = InboxFolders(home: home)
    try folders.make(in: surroundings.fileSystem)
    let name = "\(UniversalIdentifier.random())".lowercased()
    let frontEnd =
      receives
      ? try InboxPlace.frontEnd(of: folders, inboxMarked: mark, or: name, in: surroundings.fileSystem) : nil
    self.init(
      home: home, records: database.records, queue: database.queue(), storage: storage,
      frontEnd: frontEnd, limits: limits, hasIdentity: hasIdentity, surroundings: surroundings)
  }
}

extension PostgresDatabase {
  /// Ties the database to shared storage, or checks that.
  ///
  /// The database is marked first, and no other writes the same mark: at most one database gets the storage.
  fileprivate func join(_ storage: any BundleStorage, makesMark: Bool) throws -> String {
    // Order matters: another process marks the database before the storage.
    var place = try storage.mark()
    var known = try placeMark()
    if known == nil, makesMark || place != nil {
      guard makesMark, place == nil, try storage.isEmpty() else {
        throw InboxError(
          .address, operation: "open the inbox",
          detail: "the database is empty, and the bundles there are another one's",
          hint: "Restore the database from its backup, or give the address of the right one.")
      }
      known = try adopt("\(UniversalIdentifier.random())".lowercased())
    }
    if place == nil, makesMark, let mark = known {
      // A kill came before the storage was marked, so it has no bundles. An emptied storage differs.
      let isNew = try storage.isEmpty() && !hasBundles()
      // Otherwise another process may have marked it and received.
      place = isNew ? try storage.makeMark(mark) : try storage.mark()
    }
    guard let known, known == place else {
      throw InboxError(
        .address, operation: "open the inbox",
        detail: known != nil && place == nil
          ? "the bundles of this database do not lie there" : "these bundles and this database do not belong together",
        hint: "Give --bundles and --database as the process did that received first.")
    }
    return known
  }

  /// Ties the database to a bundle folder, or checks that.
  fileprivate func join(_ folders: InboxFolders, makesMark: Bool, _ surroundings: Surroundings) throws {
    let system = surroundings.fileSystem
    var known = try placeMark()
    var place = try InboxPlace.mark(of: folders, in: system)
    if place == nil, known == nil, makesMark {
      place = try InboxPlace.makeMark("\(UniversalIdentifier.random())".lowercased(), of: folders, in: system)
    }
    if known == nil, let place {
      // A kill came before the database was marked, so there are no bundles. An emptied database differs.
      guard makesMark, try system.entries(of: folders.bundles).isEmpty else {
        throw InboxError(
          .address, operation: "open the inbox", path: folders.root,
          detail: "the database is empty, and knows none of the bundles of this home",
          hint: "Restore the database from its backup, or give the address of the right one.")
      }
      known = try adopt(place)
    }
    guard let known, known == place else {
      throw InboxError(
        .address, operation: "open the inbox", path: folders.root,
        detail: "this home and this database do not belong together",
        hint: "Give the home whose bundles the database knows: the folder that all machines share.")
    }
  }

  private func placeMark() throws(InboxError) -> String? {
    try readOnce("look whose records they are") { connection in
      let result = try connection.query("SELECT id FROM lazaret.place")
      return result.count > 0 ? try result.text(0, 0) : nil
    }
  }

  private func hasBundles() throws(InboxError) -> Bool {
    try readOnce("look for bundles") { connection in
      try connection.query("SELECT 1 FROM lazaret.bundles LIMIT 1").count > 0
    }
  }

  /// Records a place's mark unless there is one; returns the recorded one.
  private func adopt(_ place: String) throws(InboxError) -> String? {
    try write("note whose records they are", isRepeatable: true, tells: false) { connection in
      _ = try connection.query("INSERT INTO lazaret.place (id) VALUES ($1) ON CONFLICT DO NOTHING", [.text(place)])
    }
    return try placeMark()
  }
}

final class UploadTurns: Sendable {
  private let busy = Mutex<Set<String>>([])

  /// Reserves an upload; false if another thread has it.
  func take(_ id: String) -> Bool { busy.withLock { $0.insert(id).inserted } }

  func release(_ id: String) { busy.withLock { _ = $0.remove(id) } }

  func isTaken(_ id: String) -> Bool { busy.withLock { $0.contains(id) } }
}

package final class InboxChanges: Sendable {
  private let listeners = Mutex<[@Sendable () -> Void]>([])

  package init() {}

  /// Listeners are called on any thread and must not block.
  package func listen(_ listener: @escaping @Sendable () -> Void) { listeners.withLock { $0.append(listener) } }

  func tell() {
    for listener in listeners.withLock({ $0 }) { listener() }
  }
}

/// A sender's secret, shown once and stored only as SHA-256.
package struct SenderToken: Sendable {
  /// `lzi_`, which secret scanners recognize, and 64 hexadecimal digits.
  package let text: String

  /// Creates a token with the system's cryptographic generator.
  static func random() -> SenderToken { SenderToken(text: "lzi_" + Token.random().text) }

  var sum: [UInt8] { Self.sum(of: text) }

  /// The SHA-256 of the first 4,096 bytes; no longer text is a token.
  static func sum(of text: String) -> [UInt8] { Array(SHA256.hash(data: Data(text.utf8.prefix(4096)))) }

  /// Compares in constant time.
  static func matches(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
  }
}
