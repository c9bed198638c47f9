import ArgumentParser
import Backup
import Foundation
import Lazaret
import ObjectStorage
import Platform
import SystemPackage

struct BackupPlaceOptions: ParsableArguments {
  @Option(help: .text("The store, or the name of its folder in Backups/; not needed where there is only one.", "store"))
  var of: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var storage: StorageOptions
  @OptionGroup var identity: BackupIdentityOptions

  func chosen(to operation: String) throws -> ChosenBackups {
    try ChosenBackups(of: of?.path, home, storage, identity, to: operation)
  }
}

struct BackupIdentityOptions: ParsableArguments {
  @Option(help: .text("A file with secret keys, for encrypted backups; may be given again.", "file"))
  var identity: [PathArgument] = []

  func identities() throws -> [AgeIdentity] { try KeyFiles.identities(identity.map(\.path)) }
}

struct ChosenBackups {
  let home: ChosenHome

  /// The store, or the name of its folder.
  let of: FilePath?

  /// The object storage; nil for the home.
  let storage: ObjectStoragePlace?

  let backups: Backups

  /// Resolves the options.
  ///
  /// - Throws: `home-missing`.
  init(
    of store: FilePath?, _ home: HomeOptions, _ storage: StorageOptions, _ identity: BackupIdentityOptions,
    to operation: String
  ) throws {
    of = store
    self.storage = try storage.chosen()
    let home = store.map { home.of(store: $0) } ?? home.current()
    self.home = try self.storage == nil ? home.existing(to: operation) : home
    var backups = Backups(home: home.path)
    backups.identities = try identity.identities()
    self.backups = backups
  }

  func places() throws -> [any BackupPlace] {
    if let storage { return [storage.unlocked(with: backups.identities)] }
    return try folders()
  }

  private func folders() throws -> [FolderPlace] {
    guard let of else { return try backups.places() }
    let folder = try named(of)
    return folder.isEmpty ? try backups.places(of: of) : folder
  }

  /// Returns the places in the named folder; empty for a store's name or an unknown one.
  private func named(_ of: FilePath) throws -> [FolderPlace] {
    guard !of.isAbsolute, of.components.count == 1, let name = of.lastComponent else { return [] }
    if try FileSystem().status(of: of) != nil { return [] }
    return try backups.places().filter { $0.path.lastComponent == name }
  }

  /// Returns the selected store's place, or the one with the backup.
  ///
  /// - Parameter allowsOtherStore: whether the backup may be of another store.
  /// - Throws: `no-such-backup`, `backup-of-other-store`, `backup-request` if the choice is ambiguous.
  func place(with id: BackupIdentifier?, allowsOtherStore: Bool = false) throws -> any BackupPlace {
    guard let id, storage == nil else { return try place() }
    if of == nil { return try home.finding(backup: id) { try backups.find(id).catalog.place } }
    let own = try place()
    for place in try [own] + (places() as [any BackupPlace]) {
      if try BackupCatalog(of: place).backups.contains(where: { $0.id == id }) { return place }
    }
    // The verb itself reports a backup in no place.
    guard
      let other = try backups.catalogs().first(where: { $0.backups.contains { $0.id == id } })
    else { return own }
    let backup = try other.backup(id)
    let isOwn = try of.map { try backups.folders.isBackup(backup, of: $0) } ?? false
    guard allowsOtherStore || isOwn else { throw BackupError.ofOtherStore(backup) }
    return other.place
  }

  /// The words for a place without a backup, or without one of the store.
  func emptyWords(of store: FilePath? = nil) -> String {
    if let storage { return "No backup lies in \(printable(storage.location)).\n" }
    let whose = store.map { " of \(printable($0.string))" } ?? ""
    return "No backup\(whose) lies in the home: \(home.words). \(ChosenHome.another)\n"
  }

  func place() throws -> any BackupPlace {
    if let storage { return storage.unlocked(with: backups.identities) }
    var places = try folders()
    if places.count > 1 { places = try places.withBackups() }
    // Several folders of one store, without their note: use the newest backup's.
    if places.count > 1, let path = places[0].owner?.path, places.allSatisfy({ $0.owner?.path == path }),
      let newest = try places.newest()
    {
      places = [newest]
    }
    guard let first = places.first else {
      throw BackupError(
        .notFound, operation: "find the backups", path: home.path,
        detail: "there are no backups in the home: \(home.words)", hint: ChosenHome.another)
    }
    guard places.count == 1 else {
      throw BackupError(
        .request, operation: "find the backups", path: home.path,
        detail: "\(places.count) stores have backups here: \(places.map(\.words).joined(separator: ", "))",
        hint: "Name one of them with --of.")
    }
    return first
  }
}

extension [FolderPlace] {
  /// Keeps the places with more than the store's note.
  fileprivate func withBackups() throws -> [FolderPlace] {
    var places: [FolderPlace] = []
    for place in self {
      let (kept, trash) = (try place.list(.kept), try place.list(.trash))
      let isNote = { (name: String) in name == "store.json" || name == "store.age" }
      if !trash.isEmpty || kept.contains(where: { !isNote($0.name) }) { places.append(place) }
    }
    return places
  }

  fileprivate func newest() throws -> FolderPlace? {
    var newest: (place: FolderPlace, id: BackupIdentifier)?
    for place in self {
      guard let id = try BackupCatalog(of: place).backups.first(where: \.isWhole)?.id else { continue }
      if newest.map({ $0.id < id }) ?? true { newest = (place, id) }
    }
    return newest?.place
  }
}

struct BackupArgument: ExpressibleByArgument {
  var id: BackupIdentifier

  init?(argument: String) {
    guard let id = BackupIdentifier(argument) else { return nil }
    self.id = id
  }
}

struct StorageOptions: ParsableArguments {
  // Plain text: an invalid address may contain a secret and must not be shown.
  @Option(
    help: .text(
      "Object storage with the backups of one store, instead of Backups/ in the home: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws.",
      "address"))
  var place: String?

  /// - Throws: `s3-address`, `s3-settings`, `s3-credentials`.
  func chosen() throws -> ObjectStoragePlace? {
    guard let place else { return nil }
    let address = try CommandLineSlip.telling { try S3Address(place) }
    let environment = S3Environment { ProcessInfo.processInfo.environment[$0] }
    return ObjectStoragePlace(address, try environment.client(for: address))
  }
}

extension BackupPlace {
  /// The folder's path or the address, for JSON.
  var shownLocation: PlaceLocation { PlaceLocation(folder: (self as? FolderPlace).map { PathText($0.path) }, location) }

  var name: String { (self as? FolderPlace)?.path.lastComponent?.string ?? location }

  /// The store's path relative to the home, or the place's name.
  var words: String { printable(owner?.path?.text ?? name) }

  var movedWords: String? {
    owner?.movedFrom.map {
      "The store was at \(printable($0.text)) when its last backup was taken; its history goes on.\n"
    }
  }
}

extension ObjectStoragePlace {
  /// Describes the storage's retention of removed objects, if any.
  func keepingWords() throws -> String? { try keeping().words(at: Surroundings.machine.now()) }
}

struct PlaceLocation: Encodable, Sendable {
  private let folder: PathText?
  private let address: String

  init(folder: PathText?, _ address: String) {
    self.folder = folder
    self.address = address
  }

  func encode(to encoder: any Encoder) throws {
    if let folder { return try folder.encode(to: encoder) }
    var container = encoder.singleValueContainer()
    try container.encode(address)
  }
}
