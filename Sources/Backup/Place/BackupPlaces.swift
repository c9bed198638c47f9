import PersistentStore
package import Platform
package import SystemPackage

/// The backup folders of a home, and the owner of each backup.
///
/// All commands locate backups here. The rules are in `Documentation/BACKUP_FORMAT.md`, "Whose backups they are".
package struct BackupPlaces: Sendable {
  let home: FilePath

  /// The secret keys for sealed notes that this machine lacks.
  package var identities: [AgeIdentity] = []

  let surroundings: Surroundings
  var fileSystem: FileSystem { surroundings.fileSystem }

  /// The home need not exist.
  package init(home: FilePath, surroundings: Surroundings = .machine) {
    self.home = home
    self.surroundings = surroundings
  }

  /// The folder that contains each store's.
  var root: FilePath { fileSystem.homeFolder("Backups", of: home) }

  static let arriving = ".arriving"

  // MARK: Finding

  /// Returns the present or future folder of a store's backups.
  ///
  /// - Throws: file errors of the home.
  package func find(_ store: FilePath) throws -> FolderPlace {
    let asked = try asked(store)
    let folders = try folders()
    if let found = try noted(asked, folders) { return found }
    if let found = try surveyed(asked, folders) { return found.place }
    if let found = try moved(asked, folders) { return found }
    if let found = try surveyed(asked, folders, isMoved: true) { return found.place }
    return try formerlyNoted(asked, folders) ?? fresh(asked)
  }

  /// Returns all folders of a store, that of ``find(_:)`` first.
  ///
  /// After losing its note of an encrypted folder, the machine starts another; secret keys identify both.
  package func findAll(_ store: FilePath) throws -> [FolderPlace] {
    let (asked, first) = (try asked(store), try find(store))
    var places = [first]
    for folder in try folders() where folder.isOpaque && !folder.isNotedHere && folder.path != first.path {
      guard let note = folder.note, note.path.path == asked.relative else { continue }
      places.append(FolderPlace(folder.path, of: PlaceOwner(note, of: asked), in: fileSystem))
    }
    return places
  }

  /// Returns the folder for a store without backups.
  func fresh(_ asked: Asked) throws -> FolderPlace {
    var owner = PlaceOwner()
    owner.move(to: asked)
    owner.uuid = uuid(of: asked)
    return FolderPlace(root.appending(try freeName(asked.stem)), of: owner, in: fileSystem)
  }

  /// Returns a place for each store in the home, by folder name.
  package func all() throws -> [FolderPlace] {
    let (folders, home) = (try folders(), try fileSystem.resolved(home))
    var places: [FolderPlace] = []
    for folder in folders {
      let owner = folder.note.map { PlaceOwner($0, home: home) }
      if let owner { places.append(FolderPlace(folder.path, of: owner, in: fileSystem)) }
      let survey = try PlaceSurvey(folder.path, owner: owner, in: fileSystem)
      let views = try self.views(of: survey, folders, home, isNoted: owner != nil)
      // A hidden folder without backups is not ours.
      let isOurs = !folder.name.hasPrefix(".") || !survey.groups.isEmpty
      if views.isEmpty, owner == nil, isOurs { places.append(FolderPlace(folder.path, in: fileSystem)) }
      places += views
    }
    return places
  }

  // MARK: What is asked about

  struct Asked {
    var given: FilePath
    var main: FilePath
    var relative: FilePath
    var home: FilePath
    var identity: FileIdentity?

    var exists: Bool { identity != nil }
    var relativeText: PathText { PathText(relative) }
    var stem: String { main.stem ?? "Store" }
    var stems: [String] { [main.stem, given.stem].compactMap(\.self) }
  }

  func asked(_ store: FilePath) throws -> Asked {
    let home = try fileSystem.resolved(home)
    let main = try fileSystem.resolved(store)
    let status = try fileSystem.status(of: main)
    return Asked(
      given: store, main: main, relative: main.relative(to: home), home: home,
      identity: status?.kind == .regular ? status?.identity : nil)
  }

  func uuid(of asked: Asked) -> String? { asked.exists ? StoreUUID.read(asked.main, fileSystem) : nil }

  // MARK: The folders

  struct Folder {
    var path: FilePath
    var note: StorePlaceNote?

    /// Whether its name is random and its note encrypted.
    var isOpaque = false

    /// Whether the note was readable without a key.
    var isNotedHere = true

    var name: String { path.lastComponent?.string ?? "" }
  }

  func folders() throws -> [Folder] {
    guard try fileSystem.isFolder(root) else { return [] }
    var folders: [Folder] = []
    // A folder renamed meanwhile could be missed.
    for _ in 1...Self.looks {
      let names = try fileSystem.entries(of: root)
      folders = []
      for name in names where !name.string.hasSuffix(Self.arriving) {
        let path = root.appending(name)
        guard try fileSystem.isFolder(path) else { continue }
        folders.append(try folder(at: path))
      }
      if try fileSystem.entries(of: root) == names { break }
    }
    return folders
  }

  /// The maximum number of listings.
  private static let looks = 5

  /// Returns a free folder name after the store's.
  func freeName(_ stem: String) throws -> FilePath.Component {
    let base = Self.folderName(stem)
    for number in 1...100_000 {
      guard let name = number == 1 ? base : FilePath.Component("\(base.string)-\(number)") else { break }
      if try isFree(root.appending(name)) { return name }
    }
    throw noFreeName()
  }

  private func noFreeName() -> BackupError {
    BackupError(
      .nameTaken, operation: "name the folder of the backups", path: root, detail: "every name that was tried is taken",
      hint: BackupErrorKind.otherHome)
  }

  /// Returns whether the path is free, or a folder without backups and note.
  private func isFree(_ path: FilePath) throws -> Bool {
    guard let kind = try fileSystem.entry(at: path)?.kind else { return true }
    return try kind == .directory && fileSystem.status(of: path.appending(StorePlaceNote.name)) == nil
      && PlaceSurvey(path, owner: nil, in: fileSystem).groups.isEmpty
  }

  /// The name is never hidden, and leaves space for a number.
  package static func folderName(_ stem: String) -> FilePath.Component {
    let points = stem.prefix { $0 == "." }.count
    var name = String(repeating: "_", count: points) + stem.dropFirst(points)
    while name.utf8.count > 200 { name.removeLast() }
    return FilePath.Component(name.isEmpty ? "Store" : name) ?? "Store"
  }

  func opaque(_ folder: FilePath) -> OpaqueFolder { OpaqueFolder(path: folder, home: home, fileSystem: fileSystem) }

  /// Reads a folder's note from wherever possible.
  func folder(at path: FilePath) throws(FileError) -> Folder {
    guard OpaqueFolder.isName(path.lastComponent?.string ?? "") else {
      return Folder(path: path, note: try StorePlaceNote.read(in: path, fileSystem))
    }
    let folder = opaque(path)
    if let note = try folder.localNote() { return Folder(path: path, note: note, isOpaque: true) }
    let isOpaque = try fileSystem.hasEntry(at: folder.sealedNotePath)
    // A folder just renamed has a plain note.
    var note = try folder.sealedNote(identities)
    if note == nil { note = try StorePlaceNote.read(in: path, fileSystem) }
    return Folder(path: path, note: note, isOpaque: isOpaque, isNotedHere: !isOpaque)
  }

  /// Returns whether a folder reveals no more of its store than necessary.
  func isHidden(_ folder: Folder, from recipients: [AgeRecipient]) throws -> Bool {
    guard folder.isOpaque else { return recipients.isEmpty ? true : try !holdsOnlyEncrypted(folder.path) }
    let opaque = opaque(folder.path)
    guard folder.isNotedHere, try !fileSystem.hasEntry(at: opaque.plainNotePath) else { return false }
    return try fileSystem.hasEntry(at: opaque.sealedNotePath)
  }

  /// Returns whether all backups, with those in the trash, are encrypted.
  private func holdsOnlyEncrypted(_ path: FilePath) throws -> Bool {
    let place = FolderPlace(path, in: fileSystem)
    let ending = BackupManifest.Encryption.fileEnding
    let outside = [BackupManifest.suffix, BackupProof.suffix, BackupCatalog.releaseSuffix]
    for section in BackupSection.allCases {
      let names = try place.list(section).map(\.name)
      let sealed = Set(names.filter { $0.hasSuffix(ending) }.compactMap { BackupCatalog.identifier(of: $0) })
      for name in names where !name.hasSuffix(ending) {
        guard let id = BackupCatalog.identifier(of: name) else { continue }
        guard sealed.contains(id), outside.contains(where: { name == "\(id)\($0)" }) else { return false }
      }
    }
    return true
  }

  // MARK: Making

  /// Returns an unused name chosen earlier for the store, or a new one.
  private func opaqueName(for note: StorePlaceNote) throws -> FilePath.Component {
    let known = try OpaqueFolder.localNotes(of: home, fileSystem)
    let names = known.filter { $0.note.path.path == note.path.path }.map(\.name)
    for name in names + (1...100).map({ _ in OpaqueFolder.newName(surroundings) }) {
      guard let component = FilePath.Component(name) else { continue }
      if try !fileSystem.hasEntry(at: root.appending(component)) { return component }
    }
    throw noFreeName()
  }

  /// Makes a folder for a new store; it is named once it has its note.
  func makeOpaque(_ note: StorePlaceNote) throws -> FilePath {
    let path = root.appending(try opaqueName(for: note))
    let folder = opaque(path)
    try folder.writeLocal(note)
    try make(path) { unfinished in
      try folder.writeSealed(note, in: unfinished)
      if let store = note.lastPath.path {
        try fileSystem.give([unfinished], toOwnerOf: store.folder, .ownerReadWriteExecute)
      }
    }
    return path
  }

  /// Gives a folder of only encrypted backups a random name, and hides its note.
  ///
  /// It is renamed as a whole, so backups always exist; after a kill, or if another process holds its lock, the next
  /// call continues. The caller holds the lock of the root folder.
  func hide(_ path: FilePath, from recipients: [AgeRecipient]) throws -> FilePath {
    let folders = try folders()
    guard !recipients.isEmpty, let folder = folders.first(where: { $0.path == path }), let note = folder.note,
      try !isHidden(folder, from: recipients),
      !folders.contains(where: { $0.note?.arriving?.from == folder.name || $0.path == path && $0.note?.arriving != nil }
      )
    else { return path }
    guard let lock = try FolderLock.unlessTaken(path, in: fileSystem) else { return path }
    var hiding = note
    hiding.recipients = Self.texts(of: recipients)
    let hidden = folder.isOpaque ? path : root.appending(try opaqueName(for: note))
    let opaque = opaque(hidden)
    try opaque.writeLocal(hiding)
    try opaque.writeSealed(hiding, in: path)
    if hidden != path {
      let key = self.opaque(path).deltaKeyPath
      if try fileSystem.status(of: key) != nil { try fileSystem.rename(key, to: opaque.deltaKeyPath) }
      try fileSystem.rename(path, to: hidden)
      try fileSystem.synchronizeDirectory(root)
    }
    try fileSystem.unlink(opaque.plainNotePath)
    try fileSystem.synchronizeDirectory(hidden)
    lock.release()
    return hidden
  }

  static func texts(of recipients: [AgeRecipient]) -> [String]? {
    recipients.isEmpty ? nil : Set(recipients.map(\.description)).sorted()
  }
}

/// The stores of a folder's backups, except that of its note.
struct PlaceSurvey {
  struct Group {
    /// The path relative to the home; nil in earlier manifests.
    var relative: FilePath?

    var absolute: FilePath?

    /// The identifier in the newest backup that has one.
    var uuid: String?

    var newest: BackupIdentifier

    /// Those with their store's path.
    var named: Set<BackupIdentifier> = []

    var unnamed: Set<BackupIdentifier> = []

    var all: Set<BackupIdentifier> { named.union(unnamed) }

    var isPathless: Bool { relative == nil && absolute == nil }
  }

  let folder: FilePath

  /// The groups, newest first.
  private(set) var groups: [Group] = []

  private let fileSystem: FileSystem

  init(_ folder: FilePath, owner: PlaceOwner?, in fileSystem: FileSystem) throws {
    self.folder = folder
    self.fileSystem = fileSystem
    let place = FolderPlace(folder, of: owner, in: fileSystem)
    let kept = try BackupCatalog(of: place)
    var found = (owner == nil ? kept.backups : kept.others).map { ($0.id, $0.manifest, BackupSection.kept) }
    if owner == nil {
      found += try BackupTrash(place: place).backups().map { ($0.id, $0.manifest, .trash) }
    } else {
      found += try BackupCatalog(of: place, section: .trash).others.map { ($0.id, $0.manifest, .trash) }
    }
    found.sort { $0.0 > $1.0 }
    for (id, manifest, _) in found {
      if let manifest, !manifest.namesNoStore { add(id, manifest) }
    }
    for (id, manifest, section) in found where manifest?.kind == .original { addOriginal(id, place.folder(section)) }
    for (id, manifest, _) in found where manifest?.kind != .original && manifest?.namesNoStore != false {
      addUnknown(id)
    }
    groups.sort { $0.newest > $1.newest }
  }

  private mutating func add(_ id: BackupIdentifier, _ manifest: BackupManifest) {
    let (relative, absolute) = (manifest.store.relativePath?.path, manifest.store.path.path)
    let place = groups.firstIndex { relative == nil ? $0.absolute == absolute : $0.relative == relative }
    guard let place else {
      groups.append(
        Group(
          relative: relative, absolute: relative == nil ? absolute : nil, uuid: manifest.store.uuid, newest: id,
          named: [id]))
      return
    }
    groups[place].named.insert(id)
    if groups[place].uuid == nil { groups[place].uuid = manifest.store.uuid }
  }

  /// Assigns an original, which has no path, by its identifier.
  private mutating func addOriginal(_ id: BackupIdentifier, _ folder: FilePath) {
    let uuid = StoreUUID.read(folder.appending("\(id).sqlite"), fileSystem)
    let paths = groups.indices.filter { !groups[$0].isPathless }
    let same = groups.indices.filter { groups[$0].uuid == uuid && (uuid != nil || paths.count == 1) }
    // A single store with this identifier; without one, a single store at all.
    if same.count == 1, let place = same.first { return put(id, place) }
    if let place = groups.indices.first(where: { groups[$0].isPathless && groups[$0].uuid == uuid }) {
      return put(id, place)
    }
    groups.append(Group(uuid: uuid, newest: id, unnamed: [id]))
  }

  private mutating func addUnknown(_ id: BackupIdentifier) {
    if let place = groups.indices.max(by: { groups[$0].newest < groups[$1].newest }) { return put(id, place) }
    groups.append(Group(newest: id, unnamed: [id]))
  }

  private mutating func put(_ id: BackupIdentifier, _ place: Int) {
    groups[place].unnamed.insert(id)
    groups[place].newest = max(groups[place].newest, id)
  }
}

/// The identifier in a store's metadata.
package enum StoreUUID {
  /// Reads the identifier; returns nil for an unreadable store too.
  package static func read(_ store: FilePath, _ fileSystem: FileSystem) -> String? {
    let examination = try? Examiner(fileSystem: fileSystem).examine(store, options: .init(countsRecords: false))
    guard let uuid = examination?.metadata?.uuid, !uuid.isEmpty else { return nil }
    return uuid
  }
}
