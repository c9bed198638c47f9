public import Platform
public import SystemPackage

/// The recovery kits of the stores of one place: `Recovery/App/2026-11-21-10-11-12.kit` in a home, the newest few of each
/// generation.
///
/// Stores of one name have a folder each, with a number behind the name, and a note of the store (`store.json`) as folders of
/// backups have one. A folder of an earlier version, which has none, becomes that of the store of its name that adds a kit
/// to it first; what lies in it is told apart by identifiers and generations.
public struct KitFolder: Sendable {
  /// The folder.
  public let path: FilePath

  private let fileSystem: FileSystem

  /// The note of the folder, which is written with its first kit; nil where the store's path cannot be told.
  private let note: StorePlaceNote?

  /// How many kits of a generation are kept.
  public static let kept = 3

  /// Of how many generations kits are kept: those that have the newest ones.
  public static let keptGenerations = 8

  /// The folder for a store.
  ///
  /// - Parameter home: the home; nil stands for the folder of the store.
  public init(for store: FilePath, home: FilePath?, in fileSystem: FileSystem = FileSystem()) {
    let root = (home ?? store.folder).appending("Recovery")
    let stem = FilePath.Component(store.stem ?? "Store") ?? "Store"
    self.fileSystem = fileSystem
    do throws(FileError) {
      let main = try fileSystem.resolved(store)
      let relative = try main.relative(to: fileSystem.resolved(home ?? store.folder))
      let name = try Self.name(after: stem, for: relative, in: root, fileSystem)
      note = StorePlaceNote(path: PathText(relative), lastPath: PathText(main), uuid: nil)
      path = root.appending(name)
    } catch {
      // What cannot be looked at now has the folder of its name; reading or writing there says what is wrong.
      note = nil
      path = root.appending(stem)
    }
  }

  private static let maximumNames = 1000

  /// The name of the folder for a store: the first one that is not noted to be another store's.
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

  /// Notes whose folder it is, where that is not noted.
  private func writeNote() throws(FileError) {
    let place = path.appending(StorePlaceNote.name)
    guard let note, try fileSystem.status(of: place, followingLinks: false) == nil else { return }
    try fileSystem.writeAtomically(note.json(), to: place, replacing: true, permissions: .ownerReadWrite)
  }

  /// The kits, the newest first; none where there is no folder.
  public func kits() throws(RecoveryKitError) -> [(path: FilePath, date: Timestamp)] {
    try wrapping(RecoveryKitError.init) { () throws(FileError) in
      guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
      var kits: [(path: FilePath, date: Timestamp)] = []
      for name in try fileSystem.entries(of: path) where name.extension == "kit" {
        guard let date = Timestamp(name.stem) else { continue }
        kits.append((path.appending(name), date))
      }
      return kits.ordered { $0.date > $1.date }
    }
  }

  /// When the newest kit was made; nil where there is none.
  public func newest() throws(RecoveryKitError) -> Timestamp? { try kits().first?.date }

  /// Whether the newest kit is of a generation and younger than an interval.
  ///
  /// One that cannot be read is taken for one that names no generation.
  public func hasKit(
    of generation: String?, youngerThan interval: Duration, at now: Timestamp
  ) throws(RecoveryKitError) -> Bool {
    guard let newest = try kits().first else { return false }
    let age = now.secondsSince1970 - newest.date.secondsSince1970
    // A kit of the future is of no use for telling time.
    guard age >= 0, age < interval.components.seconds else { return false }
    return self.generation(of: newest.path) == generation
  }

  private func generation(of kit: FilePath) -> String? {
    // What cannot be read names no generation; a caller that wants its content is told why.
    (try? RecoveryKit(contentsOf: kit, in: fileSystem))?.generation
  }

  /// Writes a kit and removes the oldest ones beyond those that are kept.
  ///
  /// The new one is whole and on the disk before an old one goes. Kits of a store push out none of one that was at the place
  /// before: that may lie in quarantine.
  @discardableResult
  public func add(_ kit: RecoveryKit) throws(RecoveryKitError) -> FilePath {
    let bytes = try kit.bytes()
    let superfluous = try superfluous(after: kit)
    return try wrapping(RecoveryKitError.init) { () throws(FileError) in
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
      try writeNote()
      let place = try freePlace(for: kit)
      try fileSystem.writeAtomically(bytes, to: place, replacing: true, permissions: .ownerReadWrite)
      for path in superfluous where path != place { try fileSystem.unlink(path) }
      return place
    }
  }

  /// The name of a new kit: its date, or where a kit of another generation has that, a second later.
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

  private func superfluous(after kit: RecoveryKit) throws(RecoveryKitError) -> [FilePath] {
    let old = try kits()
    guard old.count >= Self.kept else { return [] }
    var count: [String?: Int] = [kit.generation: 1]
    var paths: [FilePath] = []
    for (path, date) in old {
      let generation = generation(of: path)
      // That one is replaced by the new one.
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
  /// Reads a kit's file.
  ///
  /// - Throws: ``RecoveryKitError``: `kit-unreadable`, `kit-later-format`, or what the file system says.
  public init(contentsOf path: FilePath, in fileSystem: FileSystem = FileSystem()) throws(RecoveryKitError) {
    let bytes = try wrapping(RecoveryKitError.init) { () throws(FileError) in
      try fileSystem.contents(of: path, limit: 64 << 20)
    }
    do throws(RecoveryKitError) {
      try self.init(bytes: bytes)
    } catch {
      var named = error
      named.path = path
      throw named
    }
  }
}
