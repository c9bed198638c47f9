public import Platform
public import SystemPackage

/// A store's folder of recovery kits: `Recovery/App/2026-11-21-10-11-12.kit` in a home, the newest few of each
/// generation.
///
/// Stores with equal names have numbered folders, each with a note of its store (`store.json`), like backup folders. An
/// older version's folder without a note goes to the first store that adds a kit; identifiers and generations
/// distinguish the kits within.
public struct KitFolder: Sendable {
  /// The folder's path.
  public let path: FilePath

  private let fileSystem: FileSystem

  /// The note, written with the first kit; nil if the store's path can't be resolved.
  private let note: StorePlaceNote?

  /// The number of kits kept per generation.
  public static let kept = 3

  /// The number of newest generations kept.
  public static let keptGenerations = 8

  /// Locates the folder for a store.
  ///
  /// - Parameter home: the home; nil for the store's own folder.
  public init(for store: FilePath, home: FilePath?, in fileSystem: FileSystem = FileSystem()) {
    let root = fileSystem.homeFolder("Recovery", of: home ?? store.folder)
    let stem = FilePath.Component(store.stem ?? "Store") ?? "Store"
    self.fileSystem = fileSystem
    do throws(FileError) {
      let main = try fileSystem.resolved(store)
      let relative = try main.relative(to: fileSystem.resolved(home ?? store.folder))
      let name = try Self.name(after: stem, for: relative, in: root, fileSystem)
      note = StorePlaceNote(path: PathText(relative), lastPath: PathText(main), uuid: nil)
      path = root.appending(name)
    } catch {
      // On errors the plain name is used; reading or writing there reports the cause.
      note = nil
      path = root.appending(stem)
    }
  }

  private static let maximumNames = 1000

  private static func name(
    after stem: FilePath.Component, for relative: FilePath, in root: FilePath, _ fileSystem: FileSystem
  ) throws(FileError) -> FilePath.Component {
    for number in 1..<maximumNames {
      let name = number == 1 ? stem : stem.fitted(suffix: "-\(number)")
      guard let note = try StorePlaceNote.read(in: root.appending(name), fileSystem), note.path.path != relative else {
        return name
      }
    }
    return stem
  }

  private func writeNote() throws(FileError) {
    let place = path.appending(StorePlaceNote.name)
    guard let note, try fileSystem.status(of: place, followingLinks: false) == nil else { return }
    try fileSystem.writeAtomically(note.json(), to: place, replacing: true, permissions: .ownerReadWrite)
  }

  /// The kits, newest first; empty without a folder.
  public func kits() throws -> [(path: FilePath, date: Timestamp)] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    var kits: [(path: FilePath, date: Timestamp)] = []
    for name in try fileSystem.entries(of: path) where name.extension == "kit" {
      guard let date = Timestamp(name.stem) else { continue }
      kits.append((path.appending(name), date))
    }
    return kits.ordered { $0.date > $1.date }
  }

  /// The date of the newest kit, if any.
  public func newest() throws -> Timestamp? { try kits().first?.date }

  /// Whether the newest kit belongs to a generation and is younger than an interval.
  ///
  /// An unreadable kit counts as one without generation.
  public func hasKit(
    of generation: String?, youngerThan interval: Duration, at now: Timestamp
  ) throws -> Bool {
    guard let newest = try kits().first else { return false }
    let age = now.secondsSince1970 - newest.date.secondsSince1970
    // A date in the future says nothing about age.
    guard age >= 0, age < interval.components.seconds else { return false }
    return self.generation(of: newest.path) == generation
  }

  private func generation(of kit: FilePath) -> String? {
    // Callers that need the kit's content get the error.
    (try? RecoveryKit(contentsOf: kit, in: fileSystem))?.generation
  }

  /// Writes a kit, and then removes the oldest beyond the limits.
  ///
  /// Kits of other stores formerly at this path stay, as such a store may be in quarantine.
  @discardableResult
  public func add(_ kit: RecoveryKit) throws -> FilePath {
    let bytes = try kit.bytes()
    let superfluous = try superfluous(after: kit)
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
    try writeNote()
    let place = try freePlace(for: kit)
    try fileSystem.writeAtomically(bytes, to: place, replacing: true, permissions: .ownerReadWrite)
    for path in superfluous where path != place { try fileSystem.unlink(path) }
    return place
  }

  /// The path by date, or a second later if another generation's kit has it.
  private func freePlace(for kit: RecoveryKit) throws(FileError) -> FilePath {
    var place = path
    for second in 0..<60 {
      let date = Timestamp(secondsSince1970: kit.date.secondsSince1970 + Int64(second))
      guard let name = FilePath.Component(date.fileName + ".kit") else { continue }
      place = path.appending(name)
      if try fileSystem.status(of: place) == nil || generation(of: place) == kit.generation { break }
    }
    return place
  }

  private func superfluous(after kit: RecoveryKit) throws -> [FilePath] {
    let old = try kits()
    guard old.count >= Self.kept else { return [] }
    var count: [String?: Int] = [kit.generation: 1]
    var paths: [FilePath] = []
    for (path, date) in old {
      let generation = generation(of: path)
      if date.secondsSince1970 == kit.date.secondsSince1970, generation == kit.generation { continue }
      if count[generation] == nil, count.count >= Self.keptGenerations {
        paths.append(path)
        continue
      }
      count[generation, default: 0] += 1
      if count[generation, default: 0] > Self.kept { paths.append(path) }
    }
    return paths
  }
}

extension RecoveryKit {
  /// Reads a kit file.
  ///
  /// - Throws: ``SalvageError``: `kit-unreadable`, `kit-later-format`, or a file system error.
  public init(contentsOf path: FilePath, in fileSystem: FileSystem = FileSystem()) throws {
    let bytes = try fileSystem.contents(of: path, limit: 64 << 20)
    do {
      try self.init(bytes: bytes)
    } catch {
      var named = SalvageError(kit: error)
      named.path = path
      throw named
    }
  }
}

/// The place of a store's recovery kit.
public indirect enum KitSource: Sendable {
  /// No kit.
  case none

  case file(FilePath)

  /// A kit in memory, such as one from a backup.
  case kit(RecoveryKit)

  /// Folders; the newest of the store's kits is used.
  case folders([KitFolder])

  /// Several sources; the newest of the store's kits is used.
  case any([KitSource])

  /// Reads all kits, newest first, with remarks on unreadable ones.
  ///
  /// - Throws: environmental errors, as salvaging without an existing kit would lose records.
  func kits(in fileSystem: FileSystem) throws -> (kits: [RecoveryKit], remarks: [String]) {
    var kits: [RecoveryKit] = []
    var remarks: [String] = []
    switch self {
    case .kit(let kit): kits.append(kit)
    case .any(let sources):
      for source in sources {
        let found = try source.kits(in: fileSystem)
        kits += found.kits
        remarks += found.remarks
      }
    case .none, .file, .folders: break
    }
    for path in try paths(&remarks) {
      do {
        kits.append(try RecoveryKit(contentsOf: path, in: fileSystem))
      } catch {
        let error = SalvageError(kit: error)
        try Self.requireReadable(error)
        remarks.append("the recovery kit \(quoted(path)) was not used: \(error.detail)")
      }
    }
    return (kits.ordered { $0.date > $1.date }, remarks)
  }

  /// Throws environmental errors; other unreadable kits only get a remark.
  private static func requireReadable(_ error: SalvageError) throws {
    guard let fileError = error.fileError, fileError.isEnvironmental,
      ![.isDirectory, .notRegularFile, .danglingLink].contains(fileError.kind)
    else { return }
    throw fileError
  }

  private func paths(_ remarks: inout [String]) throws -> [FilePath] {
    switch self {
    case .none, .kit, .any: return []
    case .file(let path): return [path]
    case .folders(let folders):
      var paths: [FilePath] = []
      for folder in folders {
        do {
          for kit in try folder.kits() where !paths.contains(kit.path) { paths.append(kit.path) }
        } catch {
          let error = SalvageError(kit: error)
          try Self.requireReadable(error)
          remarks.append("the recovery kits in \(quoted(folder.path)) were not used: \(error.detail)")
        }
      }
      return paths
    }
  }
}
