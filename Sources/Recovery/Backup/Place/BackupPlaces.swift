package import AgeEncryption
package import StoreFiles
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
