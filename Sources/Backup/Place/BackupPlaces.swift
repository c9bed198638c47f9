package import Platform
package import SystemPackage

/// The folders of a home that hold backups, and of which store each backup is.
///
/// This is the one function that every verb asks where the backups of a store are. The rules stand in
/// `Documentation/BACKUP_FORMAT.md`, "Whose backups they are".
package struct BackupPlaces: Sendable {
  /// The home.
  package let home: FilePath

  /// The secret keys that open the notes of folders whose names tell nothing, where this machine has none of its own.
  package var identities: [AgeIdentity] = []

  let surroundings: Surroundings
  var fileSystem: FileSystem { surroundings.fileSystem }

  /// The folders of a home, whether it is there or not.
  package init(home: FilePath, surroundings: Surroundings = .machine) {
    self.home = home
    self.surroundings = surroundings
  }

  /// The folder with a folder for each store.
  var root: FilePath { home.appending("Backups") }

  /// What the name of a folder that is being filled ends in.
  static let arriving = ".arriving"

  // MARK: Finding

  /// Where the backups of a store are, or would be; nothing is written.
  ///
  /// - Throws: what the file system says where the home cannot be read.
  package func find(_ store: FilePath) throws(BackupError) -> FolderPlace {
    let asked = try asked(store)
    let folders = try folders()
    if let found = try noted(asked, folders) { return found }
    if let found = try surveyed(asked, folders) { return found.place }
    if let found = try moved(asked, folders) { return found }
    if let found = try surveyed(asked, folders, isMoved: true) { return found.place }
    return try fresh(asked)
  }

  /// Every folder that holds backups of a store, the one of ``find(_:)`` first; nothing is written.
  ///
  /// There are several where the note was lost by which this machine finds a folder of encrypted backups, so that it began
  /// another one: with a secret key both are known to be of the store.
  package func findAll(_ store: FilePath) throws(BackupError) -> [FolderPlace] {
    let (asked, first) = (try asked(store), try find(store))
    var places = [first]
    for folder in try folders() where folder.isOpaque && !folder.isNotedHere && folder.path != first.path {
      guard let note = folder.note, note.path.path == asked.relative else { continue }
      var owner = PlaceOwner(note, home: asked.home)
      owner.present = asked.main
      places.append(FolderPlace(folder.path, of: owner, in: fileSystem))
    }
    return places
  }

  /// The folder that a store gets of which there are no backups yet.
  func fresh(_ asked: Asked) throws(BackupError) -> FolderPlace {
    var owner = PlaceOwner()
    owner.path = asked.relativeText
    owner.present = asked.main
    owner.uuid = asked.exists ? uuid(of: asked) : nil
    owner.relativePaths = [asked.relative]
    owner.absolutePaths = [asked.main]
    return FolderPlace(root.appending(try freeName(asked.stem)), of: owner, in: fileSystem)
  }

  /// One for each store of which backups lie in the home, by the names of their folders.
  package func all() throws(BackupError) -> [FolderPlace] {
    let (folders, home) = (try folders(), try resolvedHome())
    var places: [FolderPlace] = []
    for folder in folders {
      let owner = folder.note.map { PlaceOwner($0, home: home) }
      if let owner { places.append(FolderPlace(folder.path, of: owner, in: fileSystem)) }
      let survey = try PlaceSurvey(folder.path, owner: owner, in: fileSystem)
      let views = try self.views(of: survey, folders, home, isNoted: owner != nil)
      // A hidden folder in which nothing is of ours is none of ours.
      let isOurs = !folder.name.hasPrefix(".") || !survey.groups.isEmpty
      if views.isEmpty, owner == nil, isOurs { places.append(FolderPlace(folder.path, in: fileSystem)) }
      places += views
    }
    return places
  }

  // MARK: What is asked about

  /// A store that is asked about.
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

  func asked(_ store: FilePath) throws(BackupError) -> Asked {
    try wrapping(BackupError.init) { () throws(FileError) in
      let home = try fileSystem.resolved(home)
      let main = try fileSystem.resolved(store)
      let status = try fileSystem.status(of: main)
      return Asked(
        given: store, main: main, relative: main.relative(to: home), home: home,
        identity: status?.kind == .regular ? status?.identity : nil)
    }
  }

  func resolvedHome() throws(BackupError) -> FilePath {
    try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.resolved(home) }
  }

  func uuid(of asked: Asked) -> String? { asked.exists ? StoreUUID.read(asked.main, fileSystem) : nil }

  // MARK: The folders

  /// A folder, and its note.
  struct Folder {
    var path: FilePath
    var note: StorePlaceNote?

    /// Whether its name tells nothing, and its note is encrypted.
    var isOpaque = false

    /// Whether the note is what lies in it, or what this machine keeps of it; only a key has told it otherwise.
    var isNotedHere = true

    var name: String { path.lastComponent?.string ?? "" }
  }

  func folders() throws(BackupError) -> [Folder] {
    try wrapping(BackupError.init) { () throws(FileError) in
      guard try fileSystem.status(of: root)?.kind == .directory else { return [] }
      var folders: [Folder] = []
      // A folder that gets another name meanwhile would be seen under neither.
      for _ in 1...Self.looks {
        let names = try fileSystem.entries(of: root)
        folders = []
        for name in names where !name.string.hasSuffix(Self.arriving) {
          let path = root.appending(name)
          guard try fileSystem.status(of: path)?.kind == .directory else { continue }
          folders.append(try folder(at: path))
        }
        if try fileSystem.entries(of: root) == names { break }
      }
      return folders
    }
  }

  /// How often the folders are looked at where other processes make or rename some.
  private static let looks = 5

  /// A name for a new folder, after the store's: one that is free, or of a folder in which nothing is.
  func freeName(_ stem: String) throws(BackupError) -> FilePath.Component {
    let base = Self.folderName(stem)
    for number in 1...100_000 {
      guard let name = number == 1 ? base : FilePath.Component("\(base.string)-\(number)") else { break }
      let path = root.appending(name)
      if try isFree(path) { return name }
    }
    throw BackupError(
      .nameTaken, operation: "name the folder of the backups", path: root, detail: "every name that was tried is taken",
      hint: "Choose another home with --home.")
  }

  /// Whether a folder can become that of a store: nothing is there, or a folder that tells of no store.
  private func isFree(_ path: FilePath) throws(BackupError) -> Bool {
    let kind = try wrapping(BackupError.init) { () throws(FileError) in
      try fileSystem.status(of: path, followingLinks: false)?.kind
    }
    guard let kind else { return true }
    let note = path.appending(StorePlaceNote.name)
    guard kind == .directory,
      try wrapping(BackupError.init, { () throws(FileError) in try fileSystem.status(of: note) }) == nil
    else {
      return false
    }
    return try PlaceSurvey(path, owner: nil, in: fileSystem).groups.isEmpty
  }

  /// The name of a folder for a store: never hidden, and short enough for a number behind it.
  package static func folderName(_ stem: String) -> FilePath.Component {
    let points = stem.prefix { $0 == "." }.count
    var name = String(repeating: "_", count: points) + stem.dropFirst(points)
    while name.utf8.count > 200 { name.removeLast() }
    return FilePath.Component(name.isEmpty ? "Store" : name) ?? "Store"
  }
}

/// Folders of encrypted backups, whose names tell nothing.
extension BackupPlaces {
  func opaque(_ folder: FilePath) -> OpaqueFolder {
    OpaqueFolder(path: folder, home: home, fileSystem: fileSystem)
  }

  /// A folder with its note, from wherever that can be read.
  func folder(at path: FilePath) throws(FileError) -> Folder {
    guard OpaqueFolder.isName(path.lastComponent?.string ?? "") else {
      return Folder(path: path, note: try StorePlaceNote.read(in: path, fileSystem))
    }
    let folder = opaque(path)
    if let note = try folder.localNote() { return Folder(path: path, note: note, isOpaque: true) }
    let isOpaque = try fileSystem.status(of: folder.sealedNotePath, followingLinks: false) != nil
    // One that was just given its name has the plain note still.
    var note = try folder.sealedNote(identities)
    if note == nil { note = try StorePlaceNote.read(in: path, fileSystem) }
    return Folder(path: path, note: note, isOpaque: isOpaque, isNotedHere: !isOpaque)
  }

  /// Whether nothing is left to be done for a folder to tell no more of its store than it has to.
  func isHidden(_ folder: Folder, from recipients: [AgeRecipient]) throws(BackupError) -> Bool {
    guard folder.isOpaque else { return recipients.isEmpty ? true : try !holdsOnlyEncrypted(folder.path) }
    let opaque = opaque(folder.path)
    return try wrapping(BackupError.init) { () throws(FileError) in
      guard folder.isNotedHere, try fileSystem.status(of: opaque.plainNotePath, followingLinks: false) == nil else {
        return false
      }
      return try fileSystem.status(of: opaque.sealedNotePath, followingLinks: false) != nil
    }
  }

  /// Whether every backup in a folder is encrypted, those in its trash too: nothing else in it names the store.
  private func holdsOnlyEncrypted(_ path: FilePath) throws(BackupError) -> Bool {
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

  /// A name for a folder of a store: one that this machine has chosen for it before and that nothing has, or a new one.
  private func opaqueName(for note: StorePlaceNote) throws(BackupError) -> FilePath.Component {
    let known = try wrapping(BackupError.init) { () throws(FileError) in
      try OpaqueFolder.localNotes(of: home, fileSystem)
    }
    let names = known.filter { $0.note.path.path == note.path.path }.map(\.name)
    for name in names + (1...100).map({ _ in OpaqueFolder.newName(surroundings) }) {
      guard let component = FilePath.Component(name) else { continue }
      let path = root.appending(component)
      let isThere = try wrapping(BackupError.init) { () throws(FileError) in
        try fileSystem.status(of: path, followingLinks: false) != nil
      }
      if !isThere { return component }
    }
    throw BackupError(
      .nameTaken, operation: "name the folder of the backups", path: root, detail: "every name that was tried is taken",
      hint: "Choose another home with --home.")
  }

  /// Makes a folder for a store of which there are no backups yet; it has its name only when its note is in it.
  func makeOpaque(_ note: StorePlaceNote) throws(BackupError) -> FilePath {
    let path = root.appending(try opaqueName(for: note))
    let folder = opaque(path)
    try wrapping(BackupError.init) { () throws(FileError) in try folder.writeLocal(note) }
    let unfinished = path.hiddenSibling(suffix: Self.arriving)
    try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.makeDirectory(unfinished) }
    try folder.writeSealed(note, in: unfinished)
    try wrapping(BackupError.init) { () throws(FileError) in
      if FileSystem.effectiveUser == 0, let store = note.lastPath.path,
        var model = try fileSystem.status(of: store.folder)
      {
        model.permissions = .ownerReadWriteExecute
        try fileSystem.adoptAccess(of: model, to: unfinished)
      }
      try fileSystem.rename(unfinished, to: path)
      try fileSystem.synchronizeDirectory(root)
    }
    return path
  }

  /// Gives a folder that holds nothing but encrypted backups a name that tells nothing, and hides its note.
  ///
  /// The folder is renamed as a whole, so that its backups are there at every moment; after a kill the next call does the
  /// rest. Where another process is at it, that is left to the next call too. The caller holds the lock of the folder with
  /// all folders.
  ///
  /// - Returns: where the folder is now.
  func hide(_ path: FilePath, from recipients: [AgeRecipient]) throws(BackupError) -> FilePath {
    let folders = try folders()
    guard !recipients.isEmpty, let folder = folders.first(where: { $0.path == path }), let note = folder.note,
      try !isHidden(folder, from: recipients),
      !folders.contains(where: { $0.note?.arriving?.from == folder.name || $0.path == path && $0.note?.arriving != nil }
      )
    else { return path }
    let lock: FolderLock
    do throws(FileError) {
      lock = try FolderLock(path, patience: 0, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw BackupError(error) }
      return path
    }
    let hidden = try hideLocked(folder, note, recipients)
    _ = consume lock
    return hidden
  }

  private func hideLocked(
    _ folder: Folder, _ note: StorePlaceNote, _ recipients: [AgeRecipient]
  ) throws(BackupError) -> FilePath {
    var note = note
    note.recipients = Self.texts(of: recipients)
    let path = folder.isOpaque ? folder.path : root.appending(try opaqueName(for: note))
    let opaque = opaque(path)
    try wrapping(BackupError.init) { () throws(FileError) in try opaque.writeLocal(note) }
    try opaque.writeSealed(note, in: folder.path)
    try wrapping(BackupError.init) { () throws(FileError) in
      if path != folder.path {
        let key = self.opaque(folder.path).deltaKeyPath
        if try fileSystem.status(of: key) != nil { try fileSystem.rename(key, to: opaque.deltaKeyPath) }
        try fileSystem.rename(folder.path, to: path)
        try fileSystem.synchronizeDirectory(root)
      }
      try fileSystem.unlink(opaque.plainNotePath)
      try fileSystem.synchronizeDirectory(path)
    }
    return path
  }

  /// Public keys as a note has them.
  static func texts(of recipients: [AgeRecipient]) -> [String]? {
    recipients.isEmpty ? nil : Set(recipients.map(\.description)).sorted()
  }
}
