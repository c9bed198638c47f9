public import StoreFiles
public import SystemPackage

/// The recovery kits of one store: `Recovery/App/2026-11-21-10-11-12.kit` in a home, the newest few.
public struct KitFolder: Sendable {
  /// The folder.
  public let path: FilePath

  private let fileSystem: FileSystem

  /// How many kits are kept.
  public static let kept = 3

  /// The folder for a store.
  ///
  /// - Parameter home: the home; nil stands for the folder of the store.
  public init(for store: FilePath, home: FilePath?, in fileSystem: FileSystem = FileSystem()) {
    let stem = store.stem ?? "Store"
    path = (home ?? store.folder).appending("Recovery").appending(FilePath.Component(stem) ?? "Store")
    self.fileSystem = fileSystem
  }

  /// The kits, the newest first; none where there is no folder.
  public func kits() throws(RecoveryKitError) -> [(path: FilePath, date: Timestamp)] {
    try RecoveryKit.filing { () throws(FileError) in
      guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
      var kits: [(path: FilePath, date: Timestamp)] = []
      for name in try fileSystem.entries(of: path) where name.extension == "kit" {
        guard let date = Timestamp(name.stem) else { continue }
        kits.append((path.appending(name), date))
      }
      return kits.sorted { $0.date > $1.date }
    }
  }

  /// When the newest kit was made; nil where there is none.
  public func newest() throws(RecoveryKitError) -> Timestamp? { try kits().first?.date }

  /// Writes a kit and removes the oldest ones beyond those that are kept.
  ///
  /// The new one is whole and on the disk before an old one goes.
  @discardableResult
  public func add(_ kit: RecoveryKit) throws(RecoveryKitError) -> FilePath {
    let bytes = try kit.bytes()
    let old = try kits()
    return try RecoveryKit.filing { () throws(FileError) in
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
      guard let name = FilePath.Component(kit.date.fileName + ".kit") else { return path }
      let place = path.appending(name)
      try fileSystem.writeAtomically(bytes, to: place, replacing: true, permissions: .ownerReadWrite)
      for (path, _) in old.filter({ $0.path != place }).dropFirst(Self.kept - 1) { try fileSystem.unlink(path) }
      return place
    }
  }
}

extension RecoveryKit {
  /// Reads a kit's file.
  ///
  /// - Throws: ``RecoveryKitError``: `kit-unreadable`, `kit-later-format`, or what the file system says.
  public init(contentsOf path: FilePath, in fileSystem: FileSystem = FileSystem()) throws(RecoveryKitError) {
    let bytes = try Self.filing { () throws(FileError) in try fileSystem.contents(of: path, limit: 64 << 20) }
    do throws(RecoveryKitError) {
      try self.init(bytes: bytes)
    } catch {
      var named = error
      named.path = path
      throw named
    }
  }
}
