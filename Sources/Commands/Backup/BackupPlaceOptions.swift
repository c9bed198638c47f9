import ArgumentParser
import Backup
import Foundation
import Lazaret
import ObjectStorage
import Platform
import SystemPackage

struct BackupPlaceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The store, or the name of its folder in Backups/; not needed where there is only one.", valueName: "store"))
  var of: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var storage: StorageOptions
  @OptionGroup var identity: BackupIdentityOptions

  /// Resolves the selection.
  ///
  /// - Parameter json: whether backups kept elsewhere by earlier versions are reported in the JSON.
  /// - Throws: `home-missing`.
  func chosen(to operation: String, json: Bool) throws -> ChosenBackups {
    let storage = try storage.chosen()
    var home = of.map { self.home.of(store: $0.path) } ?? self.home.current()
    if storage == nil {
      home = try home.existing(to: operation)
    }
    return ChosenBackups(home: home, of: of?.path, identities: try identity.identities(), storage: storage)
  }
}

struct BackupIdentityOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("A file with secret keys, for encrypted backups; may be given again.", valueName: "file"))
  var identity: [PathArgument] = []

  func identities() throws -> [AgeIdentity] { try KeyFiles.identities(identity.map(\.path)) }
}

extension Backups {
  init(home: FilePath, identities: [AgeIdentity]) {
    self.init(home: home)
    self.identities = identities
  }
}

struct ChosenBackups {
  let home: ChosenHome

  /// The store, or the name of its folder.
  let of: FilePath?

  var identities: [AgeIdentity] = []

  /// The object storage; nil for the home.
  var storage: ObjectStoragePlace?

  var backups: Backups { Backups(home: home.path, identities: identities) }

  func places() throws -> [any BackupPlace] {
    if let storage { return [storage.unlocked(with: identities)] }
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

  func place() throws -> any BackupPlace {
    if let storage { return storage.unlocked(with: identities) }
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
        detail: "there are no backups in the home: \(home.words)",
        hint: ChosenHome.another)
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
    help: ArgumentHelp(
      "Object storage with the backups of one store, instead of Backups/ in the home: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws.",
      valueName: "address"))
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
