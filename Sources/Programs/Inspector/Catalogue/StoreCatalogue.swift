import HTTPServer
import Inbox
import StoreCoordination

/// The stores of a home: those in quarantine, the live ones beside them, and the backups.
///
/// It is the only way from an address to a file: an identifier is compared with those of the stores that are there.
package struct StoreCatalogue: Sendable {
  private let home: FilePath
  private let surroundings: Surroundings
  private let holdsCopies: Bool

  /// The most live stores that are looked for in a folder.
  private static let maximumLive = 200

  /// - Parameter holdsCopies: whether the bundles of the inbox lie elsewhere, and what is in the home of them is copies.
  init(home: FilePath, holdsCopies: Bool = false, surroundings: Surroundings) {
    self.home = home
    self.holdsCopies = holdsCopies
    self.surroundings = surroundings
  }

  /// Whether a store is a copy of one that lies elsewhere.
  func isCopy(_ store: ListedStore) throws(FileError) -> Bool {
    guard holdsCopies, let main = store.files?.main else { return false }
    // The path of a store has no links in it, that of the home may have.
    return main.starts(with: InboxFolders(home: try fileSystem.realPath(home)).bundles)
  }

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The store of an identifier.
  ///
  /// - Throws: ``Refusal`` 404 where there is none; what the file system says.
  package func store(_ id: StoreID) throws -> ListedStore {
    let candidates: [ListedStore] =
      switch id.text.first {
      case "q": try quarantined(in: folders().all.filter { id.isOf($0.path) })
      case "l": try live()
      case "b": try backups()
      default: []
      }
    guard let store = candidates.first(where: { $0.id == id }) else {
      throw Refusal(.notFound, "no store of that name is here")
    }
    return store
  }

  /// The most stores of an inbox, the newest, that lists have; the inbox itself shows them all.
  private static let maximumOfInbox = 200

  /// The quarantined stores, newest first; of those that arrived in the inbox the newest.
  package func quarantined() throws -> [ListedStore] {
    let folders = try folders()
    return try quarantined(in: folders.others + folders.ofInbox.suffix(Self.maximumOfInbox))
  }

  /// The quarantined stores of one folder.
  func quarantined(in folder: FilePath) throws -> [ListedStore] {
    guard try fileSystem.status(of: folder)?.kind == .directory else { return [] }
    return try quarantined(in: [QuarantineFolder(try fileSystem.realPath(folder), surroundings: surroundings)])
  }

  /// The folders with quarantined stores: those that bundles of the inbox arrived in, in the order in which they did, and
  /// all others.
  private func folders() throws -> (ofInbox: [QuarantineFolder], others: [QuarantineFolder], all: [QuarantineFolder]) {
    let all = try QuarantineCatalogue(home: home, surroundings: surroundings).folders()
    // A home that is not there yet has no inbox.
    let isThere = try fileSystem.status(of: home) != nil
    let inbox = isThere ? InboxFolders(home: try fileSystem.realPath(home)).bundles : nil
    let isOfInbox = { (folder: QuarantineFolder) in inbox.map { folder.path.starts(with: $0) } ?? false }
    return (all.filter(isOfInbox), all.filter { !isOfInbox($0) }, all)
  }

  private func quarantined(in folders: [QuarantineFolder]) throws -> [ListedStore] {
    try folders.flatMap { folder in
      try folder.stores().map { try listed($0, in: folder) }
    }.sorted { ($0.date ?? .init(secondsSince1970: 0)) > ($1.date ?? .init(secondsSince1970: 0)) }
  }

  private func listed(_ store: QuarantinedStore, in folder: QuarantineFolder) throws -> ListedStore {
    let name =
      store.receipt?.originalPath.path?.lastComponent?.string ?? store.files.main.lastComponent?.string ?? store.id
    // What is there counts, and not what a receipt says.
    let bytes = try store.files.members(in: fileSystem).reduce(Int64(0)) { $0 &+ $1.status.size }
    return ListedStore(
      id: StoreID(kind: "q", name: store.id, in: folder.path), kind: .quarantined(store, folder),
      name: printable(name), date: Timestamp(String(store.id.prefix(19))), bytes: bytes)
  }

  /// The live stores: in the home, in its folder `Stores`, and beside each quarantine.
  package func live() throws -> [ListedStore] {
    var folders: [FilePath] = []
    // Beside what arrived in the inbox there is no app's store.
    let quarantines = try self.folders().others.map(\.path.folder)
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

  /// The backups of all stores, newest first.
  package func backups() throws -> [ListedStore] {
    let places = try Backups(home: home, surroundings: surroundings).places()
    return try places.flatMap { place in
      try BackupCatalog(of: place).backups.map { backup in
        let name = backup.manifest?.store.path.path?.lastComponent?.string ?? place.path.lastComponent?.string ?? "?"
        return ListedStore(
          id: StoreID(kind: "b", name: backup.id.description, in: place.path), kind: .backup(backup, place),
          name: printable(name), date: backup.id.date, bytes: backup.bytes)
      }
    }.sorted { ($0.date ?? .init(secondsSince1970: 0)) > ($1.date ?? .init(secondsSince1970: 0)) }
  }
}
