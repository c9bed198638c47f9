internal import Foundation
internal import HTTPServer
internal import Lazaret
package import Platform
package import SystemPackage

/// Where bundles arrive: records, queue and files of a home's inbox.
///
/// One process at a time receives in the inbox of a home; it holds the lock of its folder (``Inbox/lock()``). Where the records are
/// in a database server, any number of other processes may work at its jobs; where the bundles are in shared storage too, several
/// receive, each with a home of its own.
package final class Inbox: Sendable {
  /// The home, whose catalogue knows the stores that arrive.
  package let home: FilePath

  /// Where what is kept.
  package let folders: InboxFolders

  /// What is known.
  package let records: any InboxRecords

  /// What is to be done.
  package let queue: any JobQueue

  /// How much is taken.
  package let limits: InboxLimits

  /// Where the bundles lie.
  package let storage: any BundleStorage

  /// What this process is known by among others that receive in the same inbox; nil where it is the only one.
  package let frontEnd: String?

  /// The uploads that something is being done to.
  let turns = UploadTurns()

  /// Whether encrypted bundles can be opened here.
  package let hasIdentity: Bool

  /// The file system, the clock and the source of identifiers.
  package let surroundings: Surroundings

  /// The stable word of what kept shared storage from being used at the latest look; nil where it could be.
  package internal(set) var storageTrouble: String? {
    get { trouble.withLock { $0 } }
    set { trouble.withLock { $0 = newValue } }
  }
  private let trouble = Mutex<String?>(nil)

  /// The upload behind which the next look for whole ones begins; nil for the first.
  var lookedAtUploads: String? {
    get { looked.withLock { $0 } }
    set { looked.withLock { $0 = newValue } }
  }
  private let looked = Mutex<String?>(nil)

  /// The file of the home's catalogue that knew the stores of bundles at the latest look; nil where there was none.
  private let catalogued = Mutex<FileStatus?>(nil)

  /// Told when something has changed that a page shows.
  package let changes = InboxChanges()

  /// The inbox of a home; its folders and its database are made where they are missing.
  ///
  /// - Parameter hasIdentity: whether the key of encrypted bundles is at hand.
  /// - Throws: `inbox-records`; what the file system says.
  package convenience init(
    home: FilePath, limits: InboxLimits = InboxLimits(), hasIdentity: Bool = false,
    surroundings: Surroundings = .machine
  ) throws {
    let folders = InboxFolders(home: home)
    try folders.make(in: surroundings.fileSystem)
    try InboxPlace.refuse(folders, in: surroundings.fileSystem)
    let database = try InboxDatabase(folders.records)
    self.init(
      home: home, records: SQLiteInboxRecords(database), queue: SQLiteJobQueue(database), limits: limits,
      hasIdentity: hasIdentity, surroundings: surroundings)
  }

  /// An inbox with records, a queue and bundles of any kind.
  ///
  /// - Parameters:
  ///   - storage: where the bundles lie; in the home if nil.
  ///   - frontEnd: what this process is known by among others that receive in the same inbox.
  package init(
    home: FilePath, records: any InboxRecords, queue: any JobQueue, storage: (any BundleStorage)? = nil,
    frontEnd: String? = nil, limits: InboxLimits, hasIdentity: Bool, surroundings: Surroundings
  ) {
    self.home = home
    self.storage = storage ?? FolderBundleStorage(home: home, in: surroundings.fileSystem)
    self.frontEnd = frontEnd
    folders = InboxFolders(home: home)
    self.records = records
    self.queue = queue
    self.limits = limits
    self.hasIdentity = hasIdentity
    self.surroundings = surroundings
  }

  var fileSystem: FileSystem { surroundings.fileSystem }

  /// The lock of the process that receives here.
  ///
  /// - Throws: `inbox-in-use` where another process has it.
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

  /// Adds a sender.
  ///
  /// - Returns: the token, which is not kept and cannot be shown again.
  package func addSender(_ name: String, quota: Int64) throws -> SenderToken {
    try records.addSender(name, quota: quota, at: surroundings.now())
  }

  /// The sender of a token; nil for none.
  func sender(of token: String) throws(InboxError) -> InboxSender? {
    let sum = SenderToken.sum(of: token)
    // An index finds it by its sum, which no sender can choose: what the time may tell of a sum says nothing of a token.
    guard let known = try records.sender(withTokenSum: sum), SenderToken.matches(known.sum, sum) else { return nil }
    return known.sender
  }

  // MARK: Bundles

  /// Begins again what failed with a bundle, or could not be done for lack of the key.
  ///
  /// - Throws: `not-in-inbox`; `inbox-not-now` where something is being done to it, or nothing is left to do.
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
    if bundle.quarantineID != nil {
      try queue.restart(.salvage, of: id, at: surroundings.now())
    } else {
      try queue.restart(.open, of: id, at: surroundings.now())
    }
    changes.tell()
  }

  /// Removes a bundle, with its store and what was salvaged of it; that its damage was seen, and that it was
  /// removed, stays known.
  ///
  /// - Throws: `not-in-inbox`; `inbox-not-now` where something is being done to it.
  package func discard(_ id: String) throws {
    let operation = "discard the bundle"
    guard let bundle = try records.bundle(id) else { throw InboxError.noBundle(operation) }
    let removal = InboxRemoval(
      of: bundle, placed: try records.placed(of: id) ?? 0, by: .discarded, at: surroundings.now())
    guard let removed = try remove(removal, sparing: [.running], newer: 0, where: { _ in true }) else {
      throw InboxError(.notNow, operation: operation, detail: "something is being done to it")
    }
    changes.tell()
    // Of storage that does not answer now, the objects go later.
    if let failure = removed.failure, !(storage.isShared && failure.isEnvironmental) { throw failure }
  }

  /// That what is removed of bundles is not gone where they lie, or that this is not known, as a sentence; nil where it is gone.
  package func keepingWords() -> String? {
    do {
      return try storage.keepingWords(at: surroundings.now())
    } catch {
      return
        "Whether the storage of the bundles keeps what is removed cannot be asked now: what is removed may be only hidden there."
    }
  }

  /// The codes of errors of a storage that pass by themselves, unlike a right that is wanting.
  private static let passingErrors: Set<String> = ["s3-unreachable", "s3-time-out", "s3-server"]

  /// Removes what lies of a bundle that no record knows.
  func removeUnknown(_ id: String) throws {
    do {
      try storage.remove(id)
    } catch let error as any ReportableError where storage.isShared && Self.passingErrors.contains(error.code) {
      // It counts for nothing any more, and is removed with other leftovers.
    }
  }

  /// The file of a bundle as it was received, on this machine.
  package func received(_ bundle: InboxBundle) throws -> FilePath { try storage.received(bundle) }

  /// The folder of a bundle with what was unpacked and salvaged of it, on this machine.
  package func placed(_ bundle: InboxBundle) throws -> FilePath {
    let folder = folders.bundle(bundle.id)
    do {
      try storage.place(bundle)
    } catch let error as InboxError where storage.isShared && (error.kind == .missing || error.kind == .altered) {
      try makeAnew(bundle)
      throw error
    }
    // The other machines' work is in no catalogue of this home.
    if storage.isShared, bundle.quarantineID != nil { try catalogueStores() }
    return folder
  }

  /// Sees to it that the home's catalogue knows the stores that bundles bring; it is read again only once it was changed.
  func catalogueStores() throws {
    let catalogue = QuarantineCatalogue(home: home, surroundings: surroundings)
    // As it is before it is read: what is written meanwhile is another file the next time.
    let status = try catalogue.status()
    if let status, catalogued.withLock({ $0 == status }) { return }
    try catalogue.add(parent: folders.bundles)
    catalogued.withLock { $0 = status }
  }

  /// Has a bundle opened again of which something that was made is not there any more, or is another; nothing is done where it
  /// was replaced meanwhile, where something is being done to the bundle, and where the key is wanting.
  func makeAnew(_ bundle: InboxBundle) throws {
    guard !bundle.isEncrypted || hasIdentity, try records.bundle(bundle.id)?.archives == bundle.archives else { return }
    guard !(try queue.jobs(of: bundle.id)).contains(where: { $0.kind == .open && $0.state != .done }) else { return }
    try queue.restart(.open, of: bundle.id, at: surroundings.now())
    changes.tell()
  }
}

extension Inbox {
  /// Begins to salvage the bundles of a damage again whose last result is of an earlier version of this software.
  ///
  /// - Returns: the batch; nil where there is no such bundle.
  /// - Throws: `inbox-not-now` where an earlier batch of the damage is not over.
  package func salvageAgain(_ group: String) throws -> SalvageBatch? {
    let batch = try records.beginBatch(of: group, version: LibraryVersion.current, at: surroundings.now())
    changes.tell()
    return batch
  }
}

extension InboxError {
  /// Another batch of the damage is not over.
  package static let batchIsRunning = InboxError(
    .notNow, operation: "salvage the bundles again", detail: "an earlier batch of this damage is not over")
}

extension Inbox {
  /// The inbox of a home whose records are in a database; the first home of a database is the only one.
  ///
  /// - Parameters:
  ///   - makesFolders: whether the folders are made where they are missing, as one that receives does.
  ///   - hasIdentity: whether the key of encrypted bundles is at hand.
  /// - Throws: `inbox-address` where home and database do not belong together; `inbox-records`; what the file system says.
  package convenience init(
    home: FilePath, database: PostgresDatabase, makesFolders: Bool = true, limits: InboxLimits = InboxLimits(),
    hasIdentity: Bool = false, surroundings: Surroundings = .machine
  ) throws {
    let folders = InboxFolders(home: home)
    if makesFolders { try folders.make(in: surroundings.fileSystem) }
    try database.join(folders, makesMark: makesFolders, surroundings)
    self.init(
      home: home, records: PostgresInboxRecords(database), queue: PostgresJobQueue(database), limits: limits,
      hasIdentity: hasIdentity, surroundings: surroundings)
  }
}

extension Inbox {
  /// The inbox whose records are in a database and whose bundles are in shared storage; any number of processes have it open.
  ///
  /// - Parameters:
  ///   - home: what this process has of its own: uploads on their way in, and copies.
  ///   - receives: whether this process receives; the first that does ties storage and database together.
  ///   - hasIdentity: whether the key of encrypted bundles is at hand.
  /// - Throws: `inbox-address` where home, storage and database do not belong together; `inbox-records`; what storage and
  ///   file system say.
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
      home: home, records: PostgresInboxRecords(database), queue: PostgresJobQueue(database), storage: storage,
      frontEnd: frontEnd, limits: limits, hasIdentity: hasIdentity, surroundings: surroundings)
  }
}

extension PostgresDatabase {
  /// Ties the database to shared storage, or sees that they belong together.
  ///
  /// The database has its mark first, and no other one puts the same into a storage: so of two databases one at most gets it.
  ///
  /// - Returns: the mark that both have.
  fileprivate func join(_ storage: any BundleStorage, makesMark: Bool) throws -> String {
    // In this order: the mark that another process of this database has just put there is in the database by then.
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
      // Killed before the storage had it: then nothing has been received. A storage that was emptied is another matter.
      let isNew = try storage.isEmpty() && !hasBundles()
      // Else another process of this database may have put it there, and received, since it was looked for.
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

  /// Ties the database to a folder of bundles, or sees that they belong together.
  fileprivate func join(_ folders: InboxFolders, makesMark: Bool, _ surroundings: Surroundings) throws {
    let system = surroundings.fileSystem
    var known = try placeMark()
    var place = try InboxPlace.mark(of: folders, in: system)
    if place == nil, known == nil, makesMark {
      place = try InboxPlace.makeMark("\(UniversalIdentifier.random())".lowercased(), of: folders, in: system)
    }
    if known == nil, let place {
      // Killed before the database had it: then nothing has been received. A database that was emptied is another matter.
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

  /// Notes the mark of a place where there is none; gives the one that is there then.
  private func adopt(_ place: String) throws(InboxError) -> String? {
    try write("note whose records they are", isRepeatable: true, tells: false) { connection in
      _ = try connection.query("INSERT INTO lazaret.place (id) VALUES ($1) ON CONFLICT DO NOTHING", [.text(place)])
    }
    return try placeMark()
  }
}

/// The uploads that something is being done to, each by one thread at a time.
final class UploadTurns: Sendable {
  private let busy = Mutex<Set<String>>([])

  /// Takes an upload; false where another thread has it.
  func take(_ id: String) -> Bool { busy.withLock { $0.insert(id).inserted } }

  func release(_ id: String) { busy.withLock { _ = $0.remove(id) } }

  /// Whether a thread has an upload.
  func isTaken(_ id: String) -> Bool { busy.withLock { $0.contains(id) } }
}

/// Tells those who listen that something in the inbox has changed.
package final class InboxChanges: Sendable {
  private let listeners = Mutex<[@Sendable () -> Void]>([])

  /// Changes that no one listens to yet.
  package init() {}

  /// Calls a function at each change, from any thread; it must not wait.
  package func listen(_ listener: @escaping @Sendable () -> Void) { listeners.withLock { $0.append(listener) } }

  /// Something has changed.
  package func tell() {
    for listener in listeners.withLock({ $0 }) { listener() }
  }
}

/// The secret by which a sender is known: shown once, kept only as its SHA-256.
package struct SenderToken: Sendable {
  /// 64 hexadecimal digits behind `lzi_`, by which scanners of repositories can know it.
  package let text: String

  /// A token from the system's generator.
  package static func random() -> SenderToken { SenderToken(text: "lzi_" + Token.random().text) }

  /// The SHA-256 of it.
  package var sum: [UInt8] { Self.sum(of: text) }

  /// The SHA-256 of a text; of one that is far too long, that of its beginning, which is no token's.
  static func sum(of text: String) -> [UInt8] { Array(SHA256.hash(data: Data(text.utf8.prefix(4096)))) }

  /// Whether two sums are the same; how long that takes does not tell where they differ.
  static func matches(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
  }
}
