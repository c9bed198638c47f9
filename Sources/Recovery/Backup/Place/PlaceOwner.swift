package import StoreFiles
package import SystemPackage

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
