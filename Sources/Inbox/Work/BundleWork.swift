internal import Foundation
internal import Lazaret
internal import Migration
internal import PersistentStore
package import Platform
internal import SQLiteFormat
internal import Salvage
internal import SupportBundle
package import SystemPackage

/// A worker's job: the only code that reads hostile bytes.
package struct BundleWork: Sendable {
  private let order: WorkOrder
  private let surroundings: Surroundings

  package init(_ order: WorkOrder, surroundings: Surroundings = .machine) {
    self.order = order
    self.surroundings = surroundings
  }

  private var fileSystem: FileSystem { surroundings.fileSystem }
  private static let operation = "open the bundle"

  /// Runs the job; an error is a result too.
  package func run() -> WorkResult {
    do {
      guard let home = order.home.path, InboxFolders.isID(order.bundle) else {
        throw InboxError(.worker, operation: Self.operation, detail: "the order makes no sense")
      }
      let folder = InboxFolders(home: home).bundle(order.bundle)
      // An abandoned worker may still run. Quarantining takes the folder's own lock.
      let guarded = InboxFolders(home: home).work(order.bundle)
      try fileSystem.makeDirectory(guarded, permissions: .ownerReadWriteExecute)
      let lock = try FolderLock(guarded, in: fileSystem)
      let result =
        switch order.kind {
        case .open: WorkResult(opened: try open(home))
        case .salvage: WorkResult(salvaged: try salvage(folder))
        }
      lock.release()
      return result
    } catch {
      return WorkResult(failure: WorkResult.Failure(error))
    }
  }

  // MARK: Opening

  private func open(_ home: FilePath) throws -> WorkResult.Opened {
    let folders = InboxFolders(home: home)
    let folder = folders.bundle(order.bundle)
    let (bag, unpacking) = (folders.bag(order.bundle), folder.appending(".unpacking"))
    let received = folders.received(order.bundle, encrypted: order.isEncrypted)
    // Remove an earlier attempt's files; only the received file counts.
    for name in try fileSystem.entries(of: folder) where folder.appending(name) != received {
      try fileSystem.removeTree(folder.appending(name))
    }
    let bundle = try BundleReader(
      identities: try identities(), limits: order.unpacking, surroundings: surroundings
    ).unpack(received, into: unpacking)
    try fileSystem.rename(unpacking, to: bag)
    try fileSystem.synchronizeDirectory(folder)
    let data = bag.appending("data")
    let facts = try facts(in: data)
    var opened = WorkResult.Opened(
      level: bundle.level.rawValue, app: bounded(bundle.app ?? facts?.app), store: bounded(bundle.store) ?? "store",
      files: bundle.files.prefix(InboxBundle.maximumFiles).map { .init(name: $0.name, bytes: $0.bytes) },
      fileCount: bundle.files.count, facts: facts, account: try account(in: data))
    if let main = storePath(bundle, facts, data) { opened.quarantineID = try place(main, facts, folder) }
    return opened
  }

  private func identities() throws -> [AgeIdentity] {
    guard let path = order.identity?.path else { return [] }
    let bytes = try Self.given { try fileSystem.contents(of: path, limit: 1 << 20) }
    return try AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self))
  }

  /// Reads input from the server; its absence is not the bundle's fault.
  private static func given<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as any ReportableError where !error.isEnvironmental {
      throw InboxError(
        .given, because: error, operation: "read the key and the models", details: .init(isEnvironmental: true))
    }
  }

  private func bounded(_ text: String?) -> String? { text.map { String(printable($0).prefix(200)) } }

  private func facts(in data: FilePath) throws -> BundleFacts? {
    guard let bytes = try contents("facts.json", upTo: 1 << 20, in: data) else { return nil }
    // Omit unreadable facts.
    guard var facts = try? JSONDecoder().decode(BundleFacts.self, from: Data(bytes)) else { return nil }
    facts.app = bounded(facts.app)
    facts.store = bounded(facts.store) ?? ""
    facts.quarantineID = bounded(facts.quarantineID)
    facts.verdict = bounded(facts.verdict) ?? ""
    facts.reason = bounded(facts.reason) ?? ""
    facts.cause = bounded(facts.cause)
    facts.modelVersion = bounded(facts.modelVersion)
    facts.modelChecksum = bounded(facts.modelChecksum)
    facts.date = bounded(facts.date) ?? ""
    facts.damagedTables = facts.damagedTables.prefix(200).compactMap(bounded)
    facts.pageStates = Dictionary(
      facts.pageStates.sorted { $0.key < $1.key }.prefix(50).map { (bounded($0.key) ?? "", $0.value) },
      uniquingKeysWith: { first, _ in first })
    facts.versions.app = bounded(facts.versions.app)
    facts.versions.library = bounded(facts.versions.library) ?? ""
    facts.versions.sqlite = bounded(facts.versions.sqlite)
    facts.versions.storeWrittenBySQLite = bounded(facts.versions.storeWrittenBySQLite)
    facts.versions.operatingSystem = bounded(facts.versions.operatingSystem) ?? ""
    return facts
  }

  private func account(in data: FilePath) throws -> BundleAccount? {
    guard let bytes = try contents("salvage.json", upTo: 32 << 20, in: data) else { return nil }
    // The bag's reader handles malformed reports and other versions'.
    guard let report = try? JSONDecoder().decode(SalvageReport.self, from: Data(bytes)) else { return nil }
    return BundleAccount(report)
  }

  private func contents(_ name: String, upTo limit: Int, in data: FilePath) throws -> [UInt8]? {
    let path = data.appending(name)
    guard let status = try fileSystem.status(of: path, followingLinks: false), status.kind == .regular,
      status.size <= limit
    else { return nil }
    return try fileSystem.contents(of: path, limit: limit)
  }

  private func storePath(_ bundle: ReceivedBundle, _ facts: BundleFacts?, _ data: FilePath) -> FilePath? {
    if let name = facts?.storePath, name.hasPrefix("store/"), bundle.files.contains(where: { $0.name == name }) {
      return data.pushing(FilePath(name))
    }
    let name = bundle.files.first { $0.name.hasPrefix("store/") && $0.name.hasSuffix(".sqlite") }?.name
    return name.map { data.pushing(FilePath($0)) }
  }

  /// Moves the store into the bundle's own quarantine, with a new receipt.
  private func place(_ main: FilePath, _ facts: BundleFacts?, _ folder: FilePath) throws -> String {
    let store = StoreFileSet(main: main)
    let place = StoreFileSet(main: folder.appending(plainName(main)))
    for member in try store.members(in: fileSystem) {
      try fileSystem.rename(member.path, to: place.path(of: member.part))
    }
    try fileSystem.synchronizeDirectory(folder)
    let words =
      facts.map { "The sender's app found it \($0.verdict) (\($0.reason))." } ?? "It was sent without a verdict."
    // The home's catalogue is out of reach; the server adds the store.
    let quarantines = Quarantines(home: folder, surroundings: surroundings)
    let stored = try quarantines.add(place.main, reason: printable(words), appVersion: facts?.versions.app)
    let quarantine = QuarantineFolder(folder.appending(QuarantineFolder.name), surroundings: surroundings)
    let lock = try quarantine.salvageLock()
    try quarantine.update(stored.id) { receipt in
      let date = Timestamp(order.date) ?? surroundings.now()
      receipt.add(
        Receipt.Moment(.received, at: date, words: "From \(printable(order.sender)), in the bundle \(order.bundle)."))
    }
    lock.release()
    return stored.id
  }

  /// A safe name for the store's file, with a store's extension.
  private func plainName(_ main: FilePath) -> String {
    let stem = (main.stem ?? "Store").unicodeScalars.prefix(60).map { scalar -> Character in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": Character(scalar)
      default: "_"
      }
    }
    return (stem.isEmpty ? "Store" : String(stem)) + ".sqlite"
  }

  // MARK: Salvaging

  private func salvage(_ folder: FilePath) throws -> WorkResult.Salvaged {
    guard let id = order.quarantineID else {
      throw InboxError(.worker, operation: "salvage the store", detail: "the order names no store")
    }
    let path = folder.appending(QuarantineFolder.name).appending("\(id).sqlite")
    let models = try Self.given {
      try order.models.compactMap(\.path).map { try AppModel.load($0, order: order.versionOrder) }
    }
    // Even a damaged store's metadata may name its model.
    let model = AppModel.fitting(models, path, in: fileSystem)
    // The home's kits and backups are of other stores.
    let result = try Quarantines(home: folder, surroundings: surroundings).salvage(path, model: model)
    let known = result.stored.receipt?.salvage
    // A killed attempt of this version is not an earlier result.
    let before = ([known?.result].compactMap(\.self) + (known?.others ?? []).reversed())
      .first { $0.evidence?.library != LibraryVersion.current }
    return WorkResult.Salvaged(before: before.map { SalvageCount($0) }, after: SalvageCount(result.result))
  }
}

/// A worker's job and paths.
///
/// Its file is readable by this user only, and names the secret key's file, never the key.
package struct WorkOrder: Sendable, Hashable, Codable {
  var kind: InboxJob.Kind

  var home: PathText

  var bundle: String

  /// The sender's name, for the store's receipt.
  var sender: String

  /// The bundle's arrival, in RFC 3339.
  var date: String

  var isEncrypted: Bool

  /// The file of secret keys.
  var identity: PathText?

  var models: [PathText]

  /// The model versions, oldest first; nil for natural order.
  var versionOrder: [String]?

  /// The quarantined store's name, for a salvage.
  var quarantineID: String?

  /// The most unpacked bytes.
  var unpackedBytes: Int64

  /// The most unpacked bytes per packed byte.
  var unpackedRatio: Int64

  /// The most files.
  var unpackedEntries: Int

  package var resources: WorkLimits

  package var result: PathText

  /// Readable files: models, and the key of an encrypted bundle.
  package var readable: [FilePath] { (models + [identity].compactMap(\.self)).compactMap(\.path) }

  /// Fully accessible folders: the bundle's and the work folder; nil for an invalid order.
  package var writable: [FilePath]? {
    guard let home = home.path, InboxFolders.isID(bundle) else { return nil }
    let folders = InboxFolders(home: home)
    return [folders.bundle(bundle), folders.work(bundle)]
  }

  package var temporary: FilePath? { writable?.last?.appending("tmp") }

  var unpacking: UnpackingLimits {
    UnpackingLimits(bytes: unpackedBytes, ratio: unpackedRatio, entries: unpackedEntries)
  }
}

/// A worker's answer: bounded data, since it has read hostile bytes.
package struct WorkResult: Sendable, Hashable, Codable {
  package struct Opened: Sendable, Hashable, Codable {
    /// The share of a store in it.
    var level: String

    var app: String?

    var store: String

    /// The files below `data/`, limited.
    var files: [InboxBundle.File]

    /// The number of all files.
    var fileCount: Int

    var facts: BundleFacts?

    var account: BundleAccount?

    var quarantineID: String?

    /// Whether it obeys the limits of an uncompromised worker.
    var isPlausible: Bool {
      let texts = [level, app, store, quarantineID].compactMap(\.self)
      let isName = quarantineID.map { name in
        !name.isEmpty && name.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: "-") }
      }
      return texts.allSatisfy { $0.utf8.count <= 1 << 20 } && isName != false
        && files.count <= InboxBundle.maximumFiles && files.allSatisfy { $0.name.utf8.count <= 4096 && $0.bytes >= 0 }
        && (account?.entities.count ?? 0) <= BundleAccount.maximumEntities
        && (account?.runs.count ?? 0) <= BundleAccount.maximumRuns
    }
  }

  package struct Failure: Sendable, Hashable, Codable {
    package var code: String

    /// The message as a sentence.
    var words: String

    /// Whether a retry may succeed.
    var isEnvironmental: Bool

    init(_ error: any Error) {
      switch error {
      // A worker's limits are ours: exceeding them is the bundle's fault and would recur.
      case let error as any ReportableError where error.code == FileError.Kind.outOfMemory.rawValue:
        code = InboxError.Kind.memory.rawValue
        words = "It needed more memory than it may have."
        isEnvironmental = false
      case let error as any ReportableError:
        code = error.code
        words = sentence(String(printable(error.detail).prefix(500)))
        isEnvironmental = error.isEnvironmental && error.code != FileError.Kind.tooLarge.rawValue
      default:
        code = "unforeseen-error"
        words = "An error of the kind \(printable("\(type(of: error))")) came up."
        isEnvironmental = false
      }
    }
  }

  package struct Salvaged: Sendable, Hashable, Codable {
    /// Another version's result, if any.
    var before: SalvageCount?

    var after: SalvageCount

    /// Whether it obeys the limits of an uncompromised worker.
    var isPlausible: Bool { before?.isPlausible != false && after.isPlausible }
  }

  /// The result of a `salvage` job.
  var salvaged: Salvaged?

  /// The result of an `open` job.
  var opened: Opened?

  package var failure: Failure?

  package var isolation: WorkIsolation?

  static let lengthLimit = 8 << 20
}

/// A runner of orders in isolation.
package protocol WorkRunner: Sendable {
  /// Runs an order and waits for its end.
  ///
  /// - Parameters:
  ///   - beat: called regularly meanwhile.
  ///   - isCancelled: polled to stop early.
  /// - Returns: nil if cancelled.
  func run(_ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool) throws(InboxError) -> WorkResult?
}

/// Error codes that blame the environment of a store in place, but the content of a bundle.
enum ContentFault {
  /// File kinds, migration leftovers, model versions.
  static let codes = Set(
    [FileErrorKind.isDirectory, .notRegularFile, .danglingLink, .notDownloaded, .journalUnreadable, .placeTaken].map(
      \.rawValue) + [MigrationError.Kind.newerModel, .backwards].map(\.rawValue))
}
