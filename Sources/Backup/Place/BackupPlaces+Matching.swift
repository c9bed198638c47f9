package import Platform
package import SystemPackage

/// The rules that match stores and backups.
extension BackupPlaces {
  // MARK: Folders with a note

  /// Returns the folder noted with the store's path, file, or location outside the home.
  func noted(_ asked: Asked, _ folders: [Folder]) throws -> FolderPlace? {
    guard let folder = try notedFolder(asked, folders), let note = folder.note else { return nil }
    return FolderPlace(folder.path, of: PlaceOwner(note, of: asked), in: fileSystem)
  }

  /// Returns the folder of a store that was at this path before, unless another store is there now.
  func formerlyNoted(_ asked: Asked, _ folders: [Folder]) throws -> FolderPlace? {
    let uuid = uuid(of: asked)
    let found = folders.filter { folder in
      guard let note = folder.note, note.earlierPaths?.contains(asked.relativeText) == true else { return false }
      return !asked.exists || uuid != nil && uuid == note.uuid
    }
    guard found.count == 1, let note = found[0].note else { return nil }
    return FolderPlace(found[0].path, of: PlaceOwner(note, home: asked.home), in: fileSystem)
  }

  /// Whether a backup was made of the file at a path, whichever store it was then.
  package func isBackup(_ backup: StoredBackup, of store: FilePath) throws -> Bool {
    let asked = try asked(store)
    return backup.manifest?.store.path.path == asked.main || backup.manifest?.store.relativePath?.path == asked.relative
  }

  func notedFolder(_ asked: Asked, _ folders: [Folder]) throws -> Folder? {
    // This machine's notes take precedence over sealed ones.
    let noted = [true, false].flatMap { isHere in folders.filter { $0.note != nil && $0.isNotedHere == isHere } }
    if let found = noted.first(where: { $0.note?.path.path == asked.relative }) { return found }
    // A file may have several spellings of its name.
    if let identity = asked.identity {
      for folder in noted {
        guard let path = folder.note?.path.path else { continue }
        if try fileSystem.status(of: PlaceOwner.whole(path, in: asked.home))?.identity == identity { return folder }
      }
    }
    // The home was moved, but not a store outside it.
    return noted.first { $0.note?.path.path?.leadsOutside == true && $0.note?.lastPath.path == asked.main }
  }

  /// Returns the folder noted with this identifier at a now vacant path.
  func moved(_ asked: Asked, _ folders: [Folder]) throws -> FolderPlace? {
    guard asked.exists, folders.contains(where: { $0.note?.uuid != nil }), let uuid = uuid(of: asked) else {
      return nil
    }
    var found: [FolderPlace] = []
    for folder in folders {
      guard let note = folder.note, note.uuid == uuid, try isVacant(note, asked.home) else { continue }
      var owner = PlaceOwner(note, home: asked.home)
      owner.movedFrom = note.path
      owner.move(to: asked)
      found.append(FolderPlace(folder.path, of: owner, in: fileSystem))
    }
    // Two candidates are ambiguous.
    return found.count == 1 ? found.first : nil
  }

  private func isVacant(_ note: StorePlaceNote, _ home: FilePath) throws -> Bool {
    guard let path = note.path.path, let last = note.lastPath.path else { return false }
    guard try fileSystem.status(of: PlaceOwner.whole(path, in: home)) == nil else { return false }
    guard path.leadsOutside else { return true }
    return try fileSystem.status(of: last) == nil
  }

  // MARK: Folders of earlier versions

  /// A store's backups in a folder without its note.
  struct Surveyed {
    var place: FolderPlace
    var folder: Folder
    var survey: PlaceSurvey
    var own: Set<BackupIdentifier>
  }

  /// Finds backups of a store without a note.
  ///
  /// - Parameter isMoved: whether to match the identifier of a store moved within the home.
  func surveyed(_ asked: Asked, _ folders: [Folder], isMoved: Bool = false) throws -> Surveyed? {
    var found: [(surveyed: Surveyed, newest: BackupIdentifier)] = []
    for folder in folders {
      let noted = folder.note.map { PlaceOwner($0, home: asked.home) }
      let survey = try PlaceSurvey(folder.path, owner: noted, in: fileSystem)
      let own = try survey.groups.filter { try isMoved ? wasMoved(asked, $0, survey) : isOf(asked, $0, survey) }
      guard let newest = own.map(\.newest).max() else { continue }
      var owner = Self.owner(of: own, isAlone: noted == nil && own.count == survey.groups.count)
      owner.move(to: asked)
      if isMoved, let first = own.first {
        owner.movedFrom = PathText(try location(of: first, in: survey, asked.home).relative)
      }
      let all = own.reduce(into: Set<BackupIdentifier>()) { $0.formUnion($1.all) }
      let place = FolderPlace(folder.path, of: owner, in: fileSystem)
      found.append((Surveyed(place: place, folder: folder, survey: survey, own: all), newest))
    }
    // Two candidates are ambiguous.
    if isMoved, found.count > 1 { return nil }
    return found.max { $0.newest < $1.newest }?.surveyed
  }

  private func wasMoved(_ asked: Asked, _ group: PlaceSurvey.Group, _ survey: PlaceSurvey) throws -> Bool {
    guard !group.isPathless, let uuid = group.uuid, uuid == self.uuid(of: asked) else { return false }
    return try fileSystem.status(of: location(of: group, in: survey, asked.home).absolute) == nil
  }

  private func isOf(_ asked: Asked, _ group: PlaceSurvey.Group, _ survey: PlaceSurvey) throws -> Bool {
    if group.isPathless {
      guard let name = survey.folder.lastComponent?.string, asked.stems.contains(name) else { return false }
      let uuid = uuid(of: asked)
      // Without an identifier the folder's name decides, unless it is shared.
      return group.uuid != nil && uuid != nil ? group.uuid == uuid : survey.groups.count == 1
    }
    if try location(of: group, in: survey, asked.home).relative == asked.relative { return true }
    guard let absolute = group.absolute else { return false }
    if absolute == asked.main { return true }
    // The home was moved, and the store is missing.
    guard !asked.exists, try isGone(absolute, asked.home), absolute.ends(withAll: asked.relative) else { return false }
    return survey.groups.filter { $0.absolute?.ends(withAll: asked.relative) == true }.count == 1
  }

  private func isGone(_ absolute: FilePath, _ home: FilePath) throws -> Bool {
    guard absolute.relative(to: home).leadsOutside else { return false }
    return try fileSystem.status(of: absolute) == nil
  }

  /// Returns a store's path, relative to the home and absolute.
  func location(
    of group: PlaceSurvey.Group, in survey: PlaceSurvey, _ home: FilePath
  ) throws -> (relative: FilePath, absolute: FilePath) {
    if let relative = group.relative { return (relative, PlaceOwner.whole(relative, in: home)) }
    let absolute = group.absolute ?? FilePath()
    let there = (absolute.relative(to: home), absolute)
    guard there.0.leadsOutside else { return there }
    // The store is outside the home, or in a moved or copied one with the same identifier.
    let isGone = try isGone(absolute, home)
    let isAlone = survey.groups.filter { $0.absolute != nil }.count == 1
    var rest = Array(absolute.components.dropFirst())
    while !rest.isEmpty {
      let relative = FilePath(root: nil, rest)
      let candidate = PlaceOwner.whole(relative, in: home)
      if try fileSystem.status(of: candidate)?.kind == .regular {
        let uuid = StoreUUID.read(candidate, fileSystem)
        let isSame = uuid != nil && group.uuid != nil ? uuid == group.uuid : isGone && isAlone
        return isSame ? (relative, candidate) : there
      }
      rest.removeFirst()
    }
    return there
  }

  // MARK: Views

  /// Returns the places of a folder's stores, except that of its note.
  func views(of survey: PlaceSurvey, _ folders: [Folder], _ home: FilePath, isNoted: Bool) throws -> [FolderPlace] {
    // A single unknown store needs no distinction.
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
        // Unlinkable objects stay here until moved.
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

  /// Returns whether the store's own folder has all linkable objects already.
  private func isBroughtOver(
    _ groups: [PlaceSurvey.Group], _ path: FilePath?, _ folders: [Folder], _ survey: PlaceSurvey
  ) throws -> Bool {
    guard let path,
      let own = folders.first(where: { $0.note?.path.path == path && $0.path != survey.folder })
    else { return false }
    let place = FolderPlace(own.path, in: fileSystem)
    let names = Set(try place.list(.kept).map(\.name) + place.list(.trash).map(\.name))
    return groups.allSatisfy { group in group.named.allSatisfy { names.contains("\($0)\(BackupManifest.suffix)") } }
  }

  // MARK: The completion of a split

  /// Deletes copied objects from the old folder, and moves unlinkable ones.
  ///
  /// Objects that others need stay. The caller holds the lock of the root folder.
  func settle(_ folder: Folder) throws {
    guard var note = folder.note, let arriving = note.arriving else { return }
    if let name = FilePath.Component(arriving.from), name.kind == .regular, root.appending(name) != folder.path {
      let source = FolderPlace(root.appending(name), in: fileSystem)
      if try fileSystem.isFolder(source.path) {
        let lock = try locked(source.path)
        let own = Set(arriving.backups.compactMap { BackupIdentifier($0) })
        try settle(own, from: source, to: FolderPlace(folder.path, in: fileSystem))
        lock.release()
      }
    }
    note.arriving = nil
    try write(note, in: folder.path, isOpaque: folder.isOpaque)
  }

  private func settle(_ own: Set<BackupIdentifier>, from source: FolderPlace, to target: FolderPlace) throws {
    let contents = try SectionContents.all(of: source)
    let rest = Set(contents.flatMap(\.objects).map(\.id)).subtracting(own)
    let needed = SectionContents.needs(of: rest, in: contents)
    for content in contents {
      let there = try target.list(content.section).sizes
      for id in own.sorted(by: >) {
        let objects = content.objects.filter { $0.id == id }
        let parts = objects.filter { !$0.isLinked }.map(\.name)
        if !parts.isEmpty || isArriving(id, target, content.section) {
          try moveOriginal(id, parts, content.section, from: source, to: target)
        }
        guard !needed.contains(id) else { continue }
        // With the manifest last, a half-deleted backup is never whole, but stays identifiable.
        let manifest = "\(id)\(BackupManifest.suffix)"
        let names = objects.filter { object in
          guard object.isLinked else { return false }
          let isProof = object.name == "\(id)\(BackupProof.suffix)" && there[manifest] != nil
          return isProof || there[object.name] == object.bytes
        }.map(\.name)
        for name in names.filter({ $0 != manifest }) + names.filter({ $0 == manifest }) {
          try source.delete(name, in: content.section)
        }
      }
    }
  }

  /// The temporary name of an original's main file.
  private func hidden(_ id: BackupIdentifier, _ place: FolderPlace, _ section: BackupSection) -> FilePath {
    place.folder(section).appending(".\(id).sqlite\(Self.arriving)")
  }

  private func isArriving(_ id: BackupIdentifier, _ place: FolderPlace, _ section: BackupSection) -> Bool {
    // Errors are left to the next call.
    (try? fileSystem.status(of: hidden(id, place, section), followingLinks: false)) ?? nil != nil
  }

  /// Moves an original, whose main file stays hidden until all parts have arrived.
  private func moveOriginal(
    _ id: BackupIdentifier, _ parts: [String], _ section: BackupSection, from source: FolderPlace,
    to target: FolderPlace
  ) throws {
    let main = "\(id)\(BackupManifest.File.Role.originalMain.suffix)"
    let (folder, hidden) = (target.folder(section), hidden(id, target, section))
    try fileSystem.makeDirectory(folder)
    if parts.contains(main) {
      try fileSystem.rename(source.folder(section).appending(main), to: hidden)
      try fileSystem.synchronizeDirectory(folder)
    }
    for name in parts where name != main { try rename(name, section, from: source, to: target) }
    try fileSystem.synchronizeDirectory(folder)
    if try fileSystem.hasEntry(at: hidden) {
      try fileSystem.rename(hidden, to: folder.appending(main))
      try fileSystem.synchronizeDirectory(folder)
    }
    try fileSystem.synchronizeDirectory(source.folder(section))
  }

  private func rename(
    _ name: String, _ section: BackupSection, from source: FolderPlace, to target: FolderPlace
  ) throws {
    let (old, new) = (try source.file(name, in: section), try target.file(name, in: section))
    try fileSystem.rename(old, to: new)
  }
}

/// The store of a folder's backups, and the facts that identify them.
package struct PlaceOwner: Sendable, Hashable {
  /// The store's path relative to the home.
  package var path: PathText?

  /// The store's absolute path, even if it is missing.
  package var present: FilePath?

  /// The path, relative to the home, before a move since the last backup.
  package var movedFrom: PathText?

  /// The identifier at the last backup.
  package var uuid: String?

  /// The paths relative to the home in its manifests.
  var relativePaths: Set<FilePath> = []

  /// The absolute paths in its manifests of earlier versions.
  var absolutePaths: Set<FilePath> = []

  /// Backups without the store's path.
  var unnamed = Unnamed.allBut([])

  /// The owner's share of these.
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

  /// - Parameter manifest: nil if missing or unreadable.
  func owns(_ id: BackupIdentifier, _ manifest: BackupManifest?) -> Bool {
    guard let manifest, !manifest.namesNoStore else { return unnamed.contains(id) }
    // Paths are compared as bytes; equal texts may differ in composed letters.
    if let path = manifest.store.relativePath { return path.path.map { relativePaths.contains($0) } ?? false }
    return manifest.store.path.path.map { absolutePaths.contains($0) } ?? false
  }

  init() {}

  init(_ note: StorePlaceNote, home: FilePath) {
    path = note.path
    uuid = note.uuid
    relativePaths = Set(([note.path] + (note.earlierPaths ?? [])).compactMap(\.path))
    absolutePaths = Set(([note.lastPath] + (note.manifestPaths ?? [])).compactMap(\.path))
    for path in relativePaths { absolutePaths.insert(Self.whole(path, in: home)) }
    present = note.path.path.map { Self.whole($0, in: home) }
    unnamed = .allBut(Set((note.others ?? []).compactMap { BackupIdentifier($0) }))
  }

  /// The owner by the note of a store that is there.
  init(_ note: StorePlaceNote, of asked: BackupPlaces.Asked) {
    self.init(note, home: asked.home)
    present = asked.main
  }

  mutating func move(to asked: BackupPlaces.Asked) {
    path = asked.relativeText
    present = asked.main
    relativePaths.insert(asked.relative)
    absolutePaths.insert(asked.main)
  }

  static func whole(_ path: FilePath, in home: FilePath) -> FilePath { home.pushing(path).lexicallyNormalized() }
}

/// The objects in one section of a folder.
struct SectionContents {
  struct Object {
    var name: String
    var bytes: Int64
    var id: BackupIdentifier

    /// Whether it can be linked; parts of an original cannot, as their links are counted.
    var isLinked: Bool
  }

  let section: BackupSection
  let objects: [Object]

  let needs: [BackupIdentifier: [BackupIdentifier]]

  init(_ section: BackupSection, of place: FolderPlace) throws {
    self.section = section
    let catalog = try BackupCatalog(of: place, section: section)
    needs = Dictionary(catalog.backups.map { ($0.id, $0.needs) }) { $1 }
    objects = try place.list(section).compactMap { object in
      let record = object.name.hasSuffix(TrashRecord.suffix) ? object.name.dropLast(TrashRecord.suffix.count) : nil
      guard let id = record.flatMap({ BackupIdentifier(String($0)) }) ?? BackupCatalog.identifier(of: object.name)
      else { return nil }
      return Object(
        name: object.name, bytes: object.bytes, id: id,
        isLinked: BackupCatalog.originalRole(of: object.name, id) == nil)
    }
  }

  static func all(of place: FolderPlace) throws -> [SectionContents] {
    try BackupSection.allCases.map { try SectionContents($0, of: place) }
  }

  /// Adds all backups that restoring these needs.
  static func needs(of backups: Set<BackupIdentifier>, in contents: [SectionContents]) -> Set<BackupIdentifier> {
    backups.addingNeeded { id in contents.flatMap { $0.needs[id] ?? [] } }
  }
}
