import PersistentStore
package import Platform
package import SystemPackage

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
