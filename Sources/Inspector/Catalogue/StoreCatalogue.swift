package import Backup
package import HTTPServer
import Inbox
package import Lazaret
internal import Platform
import SQLiteFormat
import SystemPackage

/// The quarantined stores, live stores and backups of a home.
///
/// It includes stores with only a receipt left. A URL leads to a file only by comparing identifiers with existing
/// stores.
package struct StoreCatalogue: Sendable {
  let home: FilePath
  let inbox: Inbox?
  let surroundings: Surroundings

  private static let maximumLive = 200

  /// Whether a store is a copy of one stored elsewhere.
  func isCopy(_ store: ListedStore) -> Bool { store.id.bundle != nil && inbox?.storage.isShared == true }

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// - Throws: ``Refusal`` 404 if there is no such store; file system errors.
  func store(_ id: StoreID) throws -> ListedStore {
    let candidates: [ListedStore] =
      switch id.text.first {
      case "q": try quarantined(in: listedFolders().filter { id.isOf($0.path) })
      case "i": try id.bundle.map { try arrived(in: $0) } ?? []
      case "l": try live()
      case "b": try backups()
      default: []
      }
    guard let store = candidates.first(where: { $0.id == id }) else { throw Self.noSuchStore }
    return store
  }

  static let noSuchStore = Refusal(.notFound, "no store of that name is here")

  /// The most inbox stores in lists, newest first; the inbox shows all.
  private static let maximumOfInbox = 200

  /// The quarantined stores, newest first, with the newest of the inbox.
  package func quarantined() throws -> [ListedStore] {
    let arrived = try newestBundles().flatMap { try stores(ofBundle: $0) }
    return try Self.sorted(quarantined(in: listedFolders()) + arrived)
  }

  /// Returns a bundle's stores, fetched if needed.
  func arrived(in bundle: String) throws -> [ListedStore] {
    if let inbox {
      guard let bundle = try inbox.records.bundle(bundle) else { return [] }
      _ = try inbox.placed(bundle)
    }
    return try stores(ofBundle: bundle)
  }

  /// The latest bundles with quarantined stores on this machine.
  private func newestBundles() throws -> [String] {
    if let inbox, !inbox.storage.isShared {
      let newest = try inbox.records.entries(InboxFilter(state: .quarantined), after: nil, limit: Self.maximumOfInbox)
      return newest.items.map(\.bundle.id)
    }
    let folder = InboxFolders(home: home).bundles
    guard try fileSystem.status(of: folder)?.kind == .directory else { return [] }
    var dated: [(id: String, seconds: Int64)] = []
    for id in try fileSystem.entries(of: folder).map(\.string) where InboxFolders.isID(id) {
      let quarantine = folder.appending(id).appending(QuarantineFolder.name)
      guard let status = try fileSystem.status(of: quarantine), status.kind == .directory else { continue }
      dated.append((id, status.modified.secondsSince1970))
    }
    let newest = dated.sorted { ($0.seconds, $0.id) > ($1.seconds, $1.id) }
    return newest.prefix(Self.maximumOfInbox).map(\.id)
  }

  private func stores(ofBundle bundle: String) throws -> [ListedStore] {
    let folder = InboxFolders(home: home).bundle(bundle).appending(QuarantineFolder.name)
    guard try fileSystem.status(of: folder)?.kind == .directory else { return [] }
    let quarantine = QuarantineFolder(try fileSystem.realPath(folder), surroundings: surroundings)
    return try quarantine.stores(includingMissing: true).map { store in
      try listed(store, in: quarantine, as: StoreID(bundle: bundle, name: store.id))
    }
  }

  /// The folders except the inbox's, which earlier versions' catalogues list too.
  private func listedFolders() throws -> [QuarantineFolder] {
    let folders = try QuarantineCatalogue(home: home, surroundings: surroundings).listedFolders()
    let bundles = InboxFolders(home: home).bundles
    guard try fileSystem.status(of: bundles)?.kind == .directory else { return folders }
    let real = try fileSystem.realPath(bundles)
    return folders.filter { !$0.path.starts(with: real) }
  }

  private static func sorted(_ stores: [ListedStore]) -> [ListedStore] {
    stores.sorted { ($0.date ?? .init(secondsSince1970: 0)) > ($1.date ?? .init(secondsSince1970: 0)) }
  }

  private func quarantined(in folders: [QuarantineFolder]) throws -> [ListedStore] {
    try Self.sorted(
      folders.flatMap { folder in
        try folder.stores(includingMissing: true).map {
          try listed($0, in: folder, as: StoreID(kind: "q", name: $0.id, in: folder.path))
        }
      })
  }

  private func listed(_ store: QuarantinedStore, in folder: QuarantineFolder, as id: StoreID) throws -> ListedStore {
    let name =
      store.receipt?.originalPath.path?.lastComponent?.string ?? store.files.main.lastComponent?.string ?? store.id
    // Existing files count, not the receipt.
    let members = try store.files.members(in: fileSystem)
    var isOnlyReceipt = members.isEmpty
    if isOnlyReceipt, let salvaged = folder.result(of: store)?.store.main {
      isOnlyReceipt = try fileSystem.status(of: salvaged, followingLinks: false) == nil
    }
    return ListedStore(
      id: id, kind: .quarantined(store, folder),
      name: printable(name), date: Timestamp(String(store.id.prefix(19))),
      bytes: members.reduce(Int64(0)) { $0 &+ $1.status.size }, isMissing: members.isEmpty,
      isOnlyReceipt: isOnlyReceipt)
  }

  /// The live stores in the home, in its `Stores`, and next to each quarantine.
  package func live() throws -> [ListedStore] {
    var folders: [FilePath] = []
    // Inbox quarantines have no app's store next to them.
    let quarantines = try listedFolders().map(\.path.folder)
    for folder in [home, home.appending("Stores")] + quarantines {
      guard try fileSystem.status(of: folder)?.kind == .directory else { continue }
      let real = try fileSystem.realPath(folder)
      if !folders.contains(real) { folders.append(real) }
    }
    return try folders.flatMap { try live(in: $0) }
  }

  private func live(in folder: FilePath) throws -> [ListedStore] {
    let names = try fileSystem.entries(of: folder).filter { name in
      guard let suffix = name.extension?.lowercased(), !name.string.hasPrefix(".") else { return false }
      return ["sqlite", "sqlite3", "store", "storedata", "db"].contains(suffix)
    }
    var stores: [ListedStore] = []
    for name in names.sorted(by: { $0.string < $1.string }).prefix(Self.maximumLive) {
      let files = StoreFileSet(main: folder.appending(name))
      guard let status = try fileSystem.status(of: files.main, followingLinks: false), status.kind == .regular else {
        continue
      }
      let bytes = try files.members(in: fileSystem).reduce(Int64(0)) { $0 &+ $1.status.size }
      stores.append(
        ListedStore(
          id: StoreID(kind: "l", name: name.stem, in: files.main), kind: .live(files), name: printable(name.string),
          date: status.modified, bytes: bytes))
    }
    return stores
  }

  /// The backups of the store at a path, newest first.
  ///
  /// A migration's backup doesn't record the path, and others record the former one, so the present path of the
  /// folder's store counts too.
  func backups(of path: FilePath) throws -> [ListedStore] {
    try backups().filter { listed in
      guard let (backup, place) = listed.backup else { return false }
      return place.owner?.present == path || backup.manifest?.store.path.path == path
    }
  }

  /// The sound backups of a store's name that may have what it lost, newest first.
  ///
  /// - Parameter scope: the evidence that they must say something of.
  func backups(named stem: String?, sayingSomethingOf scope: EvidenceScope?) throws -> [ListedStore] {
    try backups().filter { listed in
      guard let stem, let (backup, place) = listed.backup else { return false }
      return place.path.lastComponent?.string == stem && backup.isWhole && !backup.isApart
        && scope.map { backup.exclusion(from: $0) == nil } ?? true
    }
  }

  /// All backups, newest first.
  package func backups() throws -> [ListedStore] {
    let places = try Backups(home: home, surroundings: surroundings).places()
    let backups = try places.flatMap { place in
      try BackupCatalog(of: place).backups.map { backup in
        let name = backup.manifest?.store.path.path?.lastComponent?.string ?? place.path.lastComponent?.string ?? "?"
        return ListedStore(
          id: StoreID(kind: "b", name: backup.id.description, in: place.path), kind: .backup(backup, place),
          name: printable(name), date: backup.id.date, bytes: backup.bytes)
      }
    }
    return Self.sorted(backups)
  }
}

/// A store known to the inspector: quarantined, live, or a backup.
package struct ListedStore: Sendable {
  enum Kind: Sendable {
    case quarantined(QuarantinedStore, QuarantineFolder)

    /// A live store, possibly in use.
    case live(StoreFileSet)

    case backup(StoredBackup, FolderPlace)
  }

  package let id: StoreID

  let kind: Kind

  /// The app's file name, safe to display.
  let name: String

  /// The time of quarantine, last change or backup.
  let date: Timestamp?

  /// The total size in bytes.
  let bytes: Int64

  /// Whether a quarantined store's files are missing, leaving its receipt.
  var isMissing = false

  /// Whether only the receipt exists, without a salvaged store.
  var isOnlyReceipt = false

  package var quarantined: QuarantinedStore? {
    guard case .quarantined(let store, _) = kind else { return nil }
    return store
  }

  package var backup: (backup: StoredBackup, place: FolderPlace)? {
    guard case .backup(let backup, let place) = kind else { return nil }
    return (backup, place)
  }

  /// The store's own files, which SQLite must never open; nil for backups, which need unpacking, and missing files.
  var files: StoreFileSet? {
    switch kind {
    case .quarantined(let store, _): isMissing ? nil : store.files
    case .live(let files): files
    case .backup: nil
    }
  }

  /// The digests of its files in the receipt, if any.
  var sums: [String] { quarantined?.receipt?.files.map(\.sha256) ?? [] }

  /// The salvaged store and report, if any.
  ///
  /// The names come from the quarantine, never from the receipt.
  var salvage: SalvageFiles? {
    guard !isOnlyReceipt, case .quarantined(let store, let folder) = kind else { return nil }
    return folder.result(of: store)
  }

  /// - Throws: `evidence-missing`, `not-in-quarantine` without a receipt, or file system errors.
  func requireFiles() throws {
    guard isMissing, case .quarantined(let store, let folder) = kind else { return }
    _ = try folder.store(named: store.id)
  }

  /// - Throws: ``Refusal`` 404 for a store that isn't live.
  func liveFiles() throws(Refusal) -> StoreFileSet {
    guard case .live(let files) = kind else { throw Refusal(.notFound, "this is no live store") }
    return files
  }

  /// - Parameter refusal: the answer for a backup.
  /// - Throws: the refusal, or as ``requireFiles()``.
  func files(orRefuse refusal: Refusal) throws -> StoreFileSet {
    try requireFiles()
    guard let files = files ?? quarantined?.files else { throw refusal }
    return files
  }
}

/// A store's identifier in URLs: kind, name and a digest of its folder.
///
/// `q-2026-11-21-10-11-12-1a2b3c4d` is a quarantined store, `l-App-1a2b3c4d` a live one,
/// `b-2026-11-21-10-11-12-1a2b3c4d` a backup, `i-` with a bundle and a name one from the inbox. It is looked up, never
/// used as a path.
package struct StoreID: Sendable, Hashable, CustomStringConvertible {
  package let text: String

  /// Creates the identifier, whether or not the store exists.
  package init(_ text: String) { self.text = text }

  init(kind: Character, name: String, in folder: FilePath) {
    text = "\(kind)-\(Self.plain(name))-\(FileDigest(of: Array(folder.string.utf8)).hexadecimal.prefix(8))"
  }

  init(bundle: String, name: String) { text = "i-\(bundle)-\(Self.plain(name))" }

  var bundle: String? {
    guard text.hasPrefix("i-") else { return nil }
    let id = String(text.dropFirst(2).prefix(36))
    return InboxFolders.isID(id) ? id : nil
  }

  /// Whether it could be of a store in this folder.
  func isOf(_ folder: FilePath) -> Bool {
    text.hasSuffix("-\(FileDigest(of: Array(folder.string.utf8)).hexadecimal.prefix(8))")
  }

  package var description: String { text }

  /// A name without characters that URLs encode, at most 64 long.
  static func plain(_ name: String) -> String {
    let characters = name.unicodeScalars.prefix(64).map { scalar -> Character in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": Character(scalar)
      default: "_"
      }
    }
    return characters.isEmpty ? "_" : String(characters)
  }
}

extension PathParameter where Value == StoreID {
  static var store: PathParameter {
    PathParameter { text in
      let isLegal = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
      return isLegal && (3...128).contains(text.utf8.count) ? StoreID(text) : nil
    }
  }
}

extension RequestTarget {
  /// The page of a store, or one below it.
  package static func store(_ id: StoreID, _ below: String..., query: [Query.Item] = []) -> RequestTarget {
    RequestTarget(segments: ["stores", id.text] + below, query: Query(query))
  }
}
