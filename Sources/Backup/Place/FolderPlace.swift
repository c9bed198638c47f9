package import Platform
package import SystemPackage

/// A folder that holds the backups of one store: `Backups/<store>/` of a home.
///
/// The trash is the folder `.trash` in it.
package struct FolderPlace: BackupPlace {
  /// The folder, whether it is there or not.
  package let path: FilePath

  /// The store whose backups are meant; nil where all that lies in the folder is.
  package var owner: PlaceOwner?

  let fileSystem: FileSystem

  /// The keys with which encrypted backups are read; nil where all are seen as they lie there.
  var keys: BackupKeys?

  /// Whether it was there, with a note of its store, when it was asked for: where it is not any more, it has another name.
  private(set) var isClaimed = false

  /// The same folder, which is known to be there.
  func claimed() -> FolderPlace {
    var place = self
    place.isClaimed = true
    return place
  }

  /// The same folder, whose encrypted backups are read with secret keys.
  package func unlocked(with identities: [AgeIdentity]) -> FolderPlace {
    var place = self
    place.keys = identities.isEmpty ? nil : BackupKeys(identities)
    return place
  }

  /// The folder as the holder of the keys sees it; nil where there are none.
  private var sealed: SealedPlace? { keys.map { SealedPlace(base: unlocked(with: []), keys: $0) } }

  /// A folder, whether it is there or not.
  package init(_ path: FilePath, of owner: PlaceOwner? = nil, in fileSystem: FileSystem) {
    self.path = path
    self.owner = owner
    self.fileSystem = fileSystem
  }

  /// A folder of this machine, whether it is there or not.
  package init(_ path: FilePath) { self.init(path, in: FileSystem()) }

  /// The folder in words, as a path.
  package var location: String { path.string }

  func folder(_ section: BackupSection) -> FilePath {
    switch section {
    case .kept: path
    case .trash: path.appending(".trash")
    }
  }

  func file(_ name: String, in section: BackupSection) throws(BackupError) -> FilePath {
    guard Self.isName(name), let component = FilePath.Component(name) else {
      throw BackupError(
        .request, operation: "find the file of a backup", path: path,
        detail: "\(printable(name)) is not a name that a backup's file can have", hint: "Check the backup's manifest.")
    }
    if let id = Self.supportIdentifier(name) { return support(of: id, in: section) }
    return folder(section).appending(component)
  }

  /// Whether a note of the store lies there that is none, or is not what was written: it counts as none.
  package func hasUnreadableNote() throws(BackupError) -> Bool {
    do throws(FileError) {
      guard try fileSystem.status(of: path.appending(StorePlaceNote.name)) != nil else { return false }
      return try StorePlaceNote.read(in: path, fileSystem) == nil
    } catch {
      throw BackupError(error)
    }
  }

  /// Whether a text can be the name of an object: nothing that leads elsewhere, nothing hidden.
  package static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, first != UInt8(ascii: "."), name.utf8.count <= 200 else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}

// MARK: - The protocol

extension FolderPlace {
  /// The files of a section that can be objects.
  package func list(_ section: BackupSection) throws(BackupError) -> [BackupObject] {
    if let sealed { return try sealed.list(section) }
    do throws(FileError) {
      let folder = folder(section)
      guard try fileSystem.status(of: folder)?.kind == .directory else { return [] }
      var objects: [BackupObject] = []
      for name in try fileSystem.entries(of: folder) {
        if let support = try supportObject(name, in: folder) { objects.append(support) }
        guard Self.isName(name.string), try !isOnItsWay(name, in: folder) else { continue }
        guard let status = try fileSystem.status(of: folder.appending(name), followingLinks: false) else { continue }
        // Whatever has the name of a note keeps an original; what is no file has no bytes, so that it is never opened.
        guard status.kind == .regular || Self.isNote(name.string) else { continue }
        objects.append(BackupObject(name: name.string, bytes: status.kind == .regular ? status.size : 0))
      }
      return objects
    } catch {
      throw BackupError(error)
    }
  }

  /// Whether a file of that name is there.
  package func contains(_ name: String, in section: BackupSection) throws(BackupError) -> Bool {
    if let sealed { return try sealed.contains(name, in: section) }
    let file = try file(name, in: section)
    do throws(FileError) {
      return try fileSystem.status(of: file, followingLinks: false) != nil
    } catch {
      throw BackupError(error)
    }
  }

  /// Reads a part of a file.
  package func read(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws(BackupError) -> [UInt8] {
    if let sealed { return try sealed.read(name, in: section, at: offset, length: length) }
    let file = try file(name, in: section)
    do throws(FileError) {
      return try fileSystem.open(file).bytes(at: offset, length: length)
    } catch {
      throw BackupError(error)
    }
  }

  /// Reads a part of a file, what was altered of an encrypted one included.
  package func readUnproven(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws(BackupError) -> [UInt8] {
    if let sealed { return try sealed.readUnproven(name, in: section, at: offset, length: length) }
    return try read(name, in: section, at: offset, length: length)
  }

  /// The manifest outside of an encrypted backup, where the place has keys.
  package func label(
    of id: BackupIdentifier
  ) throws(BackupError) -> (place: any BackupPlace, manifest: BackupManifest)? { try sealed?.label(of: id) }

  /// Begins a file under a hidden name.
  package func begin(_ name: String) throws(BackupError) -> any BackupUpload {
    let file = try file(name, in: .kept)
    do throws(FileError) {
      try fileSystem.makeDirectory(path)
      return try FolderUpload(file, in: fileSystem)
    } catch {
      throw BackupError(error)
    }
  }

  /// Writes a small file so that its name stands for the old content or the new.
  package func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws(BackupError) {
    if let sealed { return try sealed.replace(name, with: bytes, in: section) }
    let file = try file(name, in: section)
    do throws(FileError) {
      try fileSystem.makeDirectory(folder(section))
      try fileSystem.writeAtomically(bytes, to: file, replacing: true, permissions: .ownerReadWrite)
    } catch {
      throw BackupError(error)
    }
  }

  /// Moves a file; at no moment is it in neither section.
  package func move(_ name: String, from: BackupSection, to: BackupSection) throws(BackupError) {
    if let sealed { return try sealed.move(name, from: from, to: to) }
    let (source, destination) = (try file(name, in: from), try file(name, in: to))
    do throws(FileError) {
      try fileSystem.makeDirectory(folder(to))
      if Self.supportIdentifier(name) != nil { return try moveFolder(source, to: destination) }
      try fileSystem.install(source, at: destination, replacing: false)
      try fileSystem.synchronizeDirectory(folder(from))
    } catch {
      throw BackupError(error)
    }
  }

  /// Removes a file, and has that on the disk.
  package func delete(_ name: String, in section: BackupSection) throws(BackupError) {
    if let sealed { return try sealed.delete(name, in: section) }
    let file = try file(name, in: section)
    do throws(FileError) {
      guard try fileSystem.status(of: file, followingLinks: false) != nil else { return }
      if Self.supportIdentifier(name) != nil { try fileSystem.removeTree(file) } else { try fileSystem.unlink(file) }
      try fileSystem.synchronizeDirectory(folder(section))
    } catch {
      throw BackupError(error)
    }
  }

  /// The names that hidden files whose names end in `.unfinished` will get.
  package func unfinished() throws(BackupError) -> [String] {
    do throws(FileError) {
      guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
      return try fileSystem.entries(of: path).map(\.string)
        .filter { $0.hasPrefix(".") && $0.hasSuffix(FolderUpload.suffix) }
        .map { String($0.dropFirst().dropLast(FolderUpload.suffix.count)) }
    } catch {
      throw BackupError(error)
    }
  }

  /// Removes hidden files whose names end in `.unfinished`, and the files of backups whose manifests are among them.
  package func removeUnfinished() throws(BackupError) {
    try removeHalfBackups()
    do throws(FileError) {
      for section in BackupSection.allCases {
        let folder = folder(section)
        guard try fileSystem.status(of: folder)?.kind == .directory else { continue }
        for name in try fileSystem.entries(of: folder)
        where name.string.hasPrefix(".") && name.string.hasSuffix(FolderUpload.suffix) {
          try fileSystem.unlink(folder.appending(name))
        }
      }
    } catch {
      throw BackupError(error)
    }
  }

  /// Removes the files of backups that a killed run was giving their names: the manifest is still hidden.
  private func removeHalfBackups() throws(BackupError) {
    let entries: [FilePath.Component]
    do throws(FileError) {
      guard try fileSystem.status(of: path)?.kind == .directory else { return }
      entries = try fileSystem.entries(of: path)
    } catch {
      throw BackupError(error)
    }
    let suffix = BackupManifest.suffix + FolderUpload.suffix
    for name in entries.map(\.string) where name.hasPrefix(".") && name.hasSuffix(suffix) {
      guard let id = BackupIdentifier(String(name.dropFirst().dropLast(suffix.count))),
        !entries.contains(where: { $0.string == "\(id)\(BackupManifest.suffix)" })
      else { continue }
      for suffix in BackupManifest.File.Role.suffixes { try delete("\(id)\(suffix)", in: .kept) }
    }
  }

  /// Takes the lock of the folder, and waits for the process that has it.
  package func lock() throws(BackupError) -> any BackupPlaceLock {
    do throws(FileError) {
      let before = try fileSystem.status(of: path)?.identity
      if isClaimed, before == nil { throw renamed() }
      try fileSystem.makeDirectory(path)
      let lock = try FolderLock(path, patience: 60_000, in: fileSystem)
      // The process that had the lock may have given the folder another name: the lock would be on nothing of this place.
      if let before, try fileSystem.status(of: path)?.identity != before { throw renamed() }
      return FolderPlaceLock(lock)
    } catch {
      throw BackupError(error)
    }
  }
}

extension FolderPlace {
  private func renamed() -> FileError {
    FileError(
      .changed, operation: "lock the folder of the backups", path: path,
      detail: "another process has given it another name", hint: "Run the same command again.")
  }
}

private final class FolderPlaceLock: BackupPlaceLock {
  private let lock: FolderLock

  init(_ lock: consuming FolderLock) { self.lock = lock }
}

/// What migrations keep in a folder of backups: the very files of a store, under the name of a backup.
extension FolderPlace {
  private static let supportSuffix = BackupManifest.File.Role.originalSupport.suffix

  /// The folder of an original's large values, `.<id>_SUPPORT`.
  package func support(of id: BackupIdentifier, in section: BackupSection) -> FilePath {
    StoreFileSet(main: folder(section).appending("\(id).sqlite")).path(of: .externalData)
  }

  /// The original whose folder of large values an object of that name stands for; nil for any other object.
  static func supportIdentifier(_ name: String) -> BackupIdentifier? {
    name.hasSuffix(supportSuffix) ? BackupIdentifier(String(name.dropLast(supportSuffix.count))) : nil
  }

  /// The object that a folder of large values is listed as; nil for any other entry.
  func supportObject(_ name: FilePath.Component, in folder: FilePath) throws(FileError) -> BackupObject? {
    let text = name.string
    guard text.hasPrefix("."), text.hasSuffix("_SUPPORT"),
      let id = BackupIdentifier(String(text.dropFirst().dropLast("_SUPPORT".count))),
      try fileSystem.status(of: folder.appending(name), followingLinks: false)?.kind == .directory
    else { return nil }
    let bytes = try fileSystem.descendants(of: folder.appending(name)).files.reduce(Int64(0)) { $0 &+ $1.status.size }
    return BackupObject(name: "\(id)\(Self.supportSuffix)", bytes: bytes)
  }

  /// Whether a file is the main file of an original that has a name elsewhere, in the store's place: a migration is about to
  /// replace it, and no other process has to do with it yet.
  func isOnItsWay(_ name: FilePath.Component, in folder: FilePath) throws(FileError) -> Bool {
    guard name.string.hasSuffix(BackupManifest.File.Role.originalMain.suffix),
      let status = try fileSystem.status(of: folder.appending(name), followingLinks: false)
    else { return false }
    guard status.kind == .regular, status.linkCount > 1 else { return false }
    // One that was being dropped, or brought back, when a run ended has two names here.
    var names = 0
    for section in BackupSection.allCases {
      let other = try fileSystem.status(of: self.folder(section).appending(name), followingLinks: false)
      if other?.identity == status.identity { names += 1 }
    }
    return names < status.linkCount
  }

  /// Whether a name is that of the note beside an original.
  static func isNote(_ name: String) -> Bool { name.hasSuffix(BackupManifest.File.Role.originalOnlyHere.suffix) }

  /// Moves a folder within the place at once.
  func moveFolder(_ source: FilePath, to destination: FilePath) throws(FileError) {
    if try fileSystem.status(of: destination, followingLinks: false) != nil {
      throw FileError(.alreadyExists, operation: "move the large values", path: destination)
    }
    try fileSystem.rename(source, to: destination)
    try fileSystem.synchronizeDirectory(destination.folder)
    try fileSystem.synchronizeDirectory(source.folder)
  }
}
