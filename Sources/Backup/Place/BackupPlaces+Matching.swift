package import Platform
package import SystemPackage

/// The rules by which a store and backups belong together.
extension BackupPlaces {
  // MARK: Folders with a note

  /// The folder whose note names the store by its path, by its file, or where it lies outside the home.
  func noted(_ asked: Asked, _ folders: [Folder]) throws(BackupError) -> FolderPlace? {
    guard let folder = try notedFolder(asked, folders), let note = folder.note else { return nil }
    var owner = PlaceOwner(note, home: asked.home)
    owner.present = asked.main
    return FolderPlace(folder.path, of: owner, in: fileSystem)
  }

  func notedFolder(_ asked: Asked, _ folders: [Folder]) throws(BackupError) -> Folder? {
    // What this machine knows of itself comes before what only a key tells.
    let noted = [true, false].flatMap { isHere in folders.filter { $0.note != nil && $0.isNotedHere == isHere } }
    if let found = noted.first(where: { $0.note?.path.path == asked.relative }) { return found }
    // Another spelling of the name, where the file system takes it for the same, is the same file.
    if let identity = asked.identity {
      for folder in noted {
        guard let path = folder.note?.path.path else { continue }
        let status = try wrapping(BackupError.init) { () throws(FileError) in
          try fileSystem.status(of: PlaceOwner.whole(path, in: asked.home))
        }
        if status?.identity == identity { return folder }
      }
    }
    // The home was moved, and a store outside it was not.
    return noted.first { $0.note?.path.path?.leadsOutside == true && $0.note?.lastPath.path == asked.main }
  }

  /// The folder of a store that had the same identifier at a path of the home where nothing is any more.
  func moved(_ asked: Asked, _ folders: [Folder]) throws(BackupError) -> FolderPlace? {
    guard asked.exists, folders.contains(where: { $0.note?.uuid != nil }), let uuid = uuid(of: asked) else {
      return nil
    }
    var found: [FolderPlace] = []
    for folder in folders {
      guard let note = folder.note, note.uuid == uuid, try isVacant(note, asked.home) else { continue }
      var owner = PlaceOwner(note, home: asked.home)
      owner.movedFrom = note.path
      owner.path = asked.relativeText
      owner.present = asked.main
      owner.relativePaths.insert(asked.relative)
      owner.absolutePaths.insert(asked.main)
      found.append(FolderPlace(folder.path, of: owner, in: fileSystem))
    }
    // Of two it cannot be told which one it was.
    return found.count == 1 ? found.first : nil
  }

  private func isVacant(_ note: StorePlaceNote, _ home: FilePath) throws(BackupError) -> Bool {
    guard let path = note.path.path, let last = note.lastPath.path else { return false }
    return try wrapping(BackupError.init) { () throws(FileError) in
      guard try fileSystem.status(of: PlaceOwner.whole(path, in: home)) == nil else { return false }
      guard path.leadsOutside else { return true }
      return try fileSystem.status(of: last) == nil
    }
  }

  // MARK: Folders of earlier versions

  /// The backups of a store in a folder without a note, or in that of another store.
  struct Surveyed {
    var place: FolderPlace
    var folder: Folder
    var survey: PlaceSurvey
    var own: Set<BackupIdentifier>
  }

  /// Finds backups of a store where no note names it.
  ///
  /// - Parameter isMoved: whether the store was at another path of the home, where nothing is any more, and is told by its
  ///   identifier.
  func surveyed(
    _ asked: Asked, _ folders: [Folder], isMoved: Bool = false
  ) throws(BackupError) -> Surveyed? {
    var found: [(surveyed: Surveyed, newest: BackupIdentifier)] = []
    for folder in folders {
      let noted = folder.note.map { PlaceOwner($0, home: asked.home) }
      let survey = try PlaceSurvey(folder.path, owner: noted, in: fileSystem)
      var own: [PlaceSurvey.Group] = []
      for group in survey.groups
      where try isMoved ? wasMoved(asked, group, survey) : isOf(asked, group, survey) { own.append(group) }
      guard let newest = own.map(\.newest).max() else { continue }
      var owner = Self.owner(of: own, isAlone: noted == nil && own.count == survey.groups.count)
      owner.path = asked.relativeText
      owner.present = asked.main
      owner.relativePaths.insert(asked.relative)
      owner.absolutePaths.insert(asked.main)
      if isMoved, let first = own.first {
        owner.movedFrom = PathText(try location(of: first, in: survey, asked.home).relative)
      }
      let all = own.reduce(into: Set<BackupIdentifier>()) { $0.formUnion($1.all) }
      let place = FolderPlace(folder.path, of: owner, in: fileSystem)
      found.append((Surveyed(place: place, folder: folder, survey: survey, own: all), newest))
    }
    // Of two that have moved it cannot be told which one it was.
    if isMoved, found.count > 1 { return nil }
    return found.max { $0.newest < $1.newest }?.surveyed
  }

  private func wasMoved(
    _ asked: Asked, _ group: PlaceSurvey.Group, _ survey: PlaceSurvey
  ) throws(BackupError) -> Bool {
    guard !group.isPathless, let uuid = group.uuid, uuid == self.uuid(of: asked) else { return false }
    let place = try location(of: group, in: survey, asked.home).absolute
    return try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.status(of: place) == nil }
  }

  private func isOf(
    _ asked: Asked, _ group: PlaceSurvey.Group, _ survey: PlaceSurvey
  ) throws(BackupError) -> Bool {
    if group.isPathless {
      guard let name = survey.folder.lastComponent?.string, asked.stems.contains(name) else { return false }
      let uuid = uuid(of: asked)
      // Without an identifier the name of the folder alone tells, where nothing else lies in it.
      return group.uuid != nil && uuid != nil ? group.uuid == uuid : survey.groups.count == 1
    }
    if try location(of: group, in: survey, asked.home).relative == asked.relative { return true }
    guard let absolute = group.absolute else { return false }
    if absolute == asked.main { return true }
    // The home was moved, and the store is not there any more.
    guard !asked.exists, try isGone(absolute, asked.home), absolute.ends(withAll: asked.relative) else { return false }
    return survey.groups.filter { $0.absolute?.ends(withAll: asked.relative) == true }.count == 1
  }

  private func isGone(_ absolute: FilePath, _ home: FilePath) throws(BackupError) -> Bool {
    guard absolute.relative(to: home).leadsOutside else { return false }
    return try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.status(of: absolute) == nil }
  }

  /// Where the store of some backups is: from the home on, and from the root on.
  func location(
    of group: PlaceSurvey.Group, in survey: PlaceSurvey, _ home: FilePath
  ) throws(BackupError) -> (relative: FilePath, absolute: FilePath) {
    if let relative = group.relative { return (relative, PlaceOwner.whole(relative, in: home)) }
    let absolute = group.absolute ?? FilePath()
    let there = (absolute.relative(to: home), absolute)
    guard there.0.leadsOutside else { return there }
    // Either a store outside the home, or one of a home that was moved, or copied: then its identifier is the same.
    let isGone = try isGone(absolute, home)
    let isAlone = survey.groups.filter { $0.absolute != nil }.count == 1
    var rest = Array(absolute.components.dropFirst())
    while !rest.isEmpty {
      let relative = FilePath(root: nil, rest)
      let candidate = PlaceOwner.whole(relative, in: home)
      let status = try wrapping(BackupError.init) { () throws(FileError) in try fileSystem.status(of: candidate) }
      if status?.kind == .regular {
        let uuid = StoreUUID.read(candidate, fileSystem)
        let isSame = uuid != nil && group.uuid != nil ? uuid == group.uuid : isGone && isAlone
        return isSame ? (relative, candidate) : there
      }
      rest.removeFirst()
    }
    return there
  }

  // MARK: Views

  /// The places that a folder holds besides that of its note, one for each store.
  func views(
    of survey: PlaceSurvey, _ folders: [Folder], _ home: FilePath, isNoted: Bool
  ) throws(BackupError) -> [FolderPlace] {
    // What lies there of one store that nothing names needs no telling apart.
    if !isNoted, survey.groups.count == 1, survey.groups[0].isPathless { return [] }
    var merged: [(path: FilePath?, absolute: FilePath?, groups: [PlaceSurvey.Group])] = []
    for group in survey.groups {
      let location = group.isPathless ? nil : try location(of: group, in: survey, home)
      if let place = merged.firstIndex(where: { $0.path == location?.relative && location != nil }) {
        merged[place].groups.append(group)
      } else {
        merged.append((location?.relative, location?.absolute, [group]))
      }
    }
    var views: [FolderPlace] = []
    for store in merged {
      var owner = Self.owner(of: store.groups, isAlone: !isNoted && merged.count == 1)
      owner.path = store.path.map { PathText($0) }
      owner.present = store.absolute
      if try isBroughtOver(store.groups, store.path, folders, survey) {
        // What could not be linked is here until it is moved.
        guard case .only(let ids) = owner.unnamed, !ids.isEmpty else { continue }
        owner.relativePaths = []
        owner.absolutePaths = []
      }
      views.append(FolderPlace(survey.folder, of: owner, in: fileSystem))
    }
    return views
  }

  static func owner(of groups: [PlaceSurvey.Group], isAlone: Bool) -> PlaceOwner {
    var owner = PlaceOwner()
    owner.uuid = groups.compactMap(\.uuid).first
    owner.relativePaths = Set(groups.compactMap(\.relative))
    owner.absolutePaths = Set(groups.compactMap(\.absolute))
    owner.unnamed =
      isAlone ? .allBut([]) : .only(groups.reduce(into: Set<BackupIdentifier>()) { $0.formUnion($1.unnamed) })
    return owner
  }

  /// Whether all that can be linked lies in the store's own folder already, and only has to go here, or is needed here by
  /// others.
  private func isBroughtOver(
    _ groups: [PlaceSurvey.Group], _ path: FilePath?, _ folders: [Folder], _ survey: PlaceSurvey
  ) throws(BackupError) -> Bool {
    guard let path,
      let own = folders.first(where: { $0.note?.path.path == path && $0.path != survey.folder })
    else { return false }
    let place = FolderPlace(own.path, in: fileSystem)
    let names = Set(try place.list(.kept).map(\.name) + place.list(.trash).map(\.name))
    return groups.allSatisfy { group in
      group.named.allSatisfy { names.contains("\($0)\(BackupManifest.suffix)") }
    }
  }
}

/// The store that backups in a folder are of, and how they are told from those of another one.
package struct PlaceOwner: Sendable, Hashable {
  /// The path of the store from the home on; nil where it is not known.
  package var path: PathText?

  /// Where the store is, or would be, from the root on; nil where it is not known.
  package var present: FilePath?

  /// The path from the home on at which its last backup was taken, where it has moved since within the home.
  package var movedFrom: PathText?

  /// The identifier in its metadata at its last backup; nil where none is known.
  package var uuid: String?

  /// The paths from the home on that its manifests give.
  var relativePaths: Set<FilePath> = []

  /// The paths from the root on that its manifests of earlier versions give.
  var absolutePaths: Set<FilePath> = []

  /// What has no manifest, or none that says where the store was.
  var unnamed = Unnamed.allBut([])

  /// Which of the backups that name no store are those of the owner.
  enum Unnamed: Sendable, Hashable {
    case allBut(Set<BackupIdentifier>)

    case only(Set<BackupIdentifier>)

    func contains(_ id: BackupIdentifier) -> Bool {
      switch self {
      case .allBut(let others): !others.contains(id)
      case .only(let own): own.contains(id)
      }
    }
  }

  /// Whether a backup is of the store.
  ///
  /// - Parameter manifest: what its manifest says; nil where there is none that can be read.
  func owns(_ id: BackupIdentifier, _ manifest: BackupManifest?) -> Bool {
    guard let manifest, !manifest.namesNoStore else { return unnamed.contains(id) }
    // Paths are compared byte by byte, as file systems do; texts would not tell composed letters from others.
    if let path = manifest.store.relativePath { return path.path.map { relativePaths.contains($0) } ?? false }
    return manifest.store.path.path.map { absolutePaths.contains($0) } ?? false
  }

  init() {}

  /// The owner of a folder, as its note says.
  init(_ note: StorePlaceNote, home: FilePath) {
    path = note.path
    uuid = note.uuid
    let earlier = note.earlierPaths ?? []
    relativePaths = Set(([note.path] + earlier).compactMap(\.path))
    absolutePaths = Set(([note.lastPath] + (note.manifestPaths ?? [])).compactMap(\.path))
    for path in relativePaths { absolutePaths.insert(Self.whole(path, in: home)) }
    present = note.path.path.map { Self.whole($0, in: home) }
    unnamed = .allBut(Set((note.others ?? []).compactMap { BackupIdentifier($0) }))
  }

  /// A path from the home on as one from the root on.
  static func whole(_ path: FilePath, in home: FilePath) -> FilePath { home.pushing(path).lexicallyNormalized() }
}
