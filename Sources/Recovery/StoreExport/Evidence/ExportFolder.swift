internal import Foundation
package import StoreFiles
package import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The private folder of one export, locked as long as this value lives, and removed with it: `.lazaret-exporting/UUID` of the
/// home, or `.lazaret-exporting-UUID` where its bundle is to be or in the system's temporary folder.
///
/// What a killed export left, in any of these and where its bundle was to be, is removed by the next one.
package final class ExportFolder: Sendable {
  /// The name of the folder that holds those of all running exports.
  package static let name: FilePath.Component = ".lazaret-exporting"

  /// Where the folder is made.
  package enum Place: Sendable, Hashable {
    case home

    /// In a folder that is there, or where nothing can be made in it in the system's temporary folder.
    case beside(FilePath)

    /// In the system's temporary folder.
    case temporary
  }

  /// The folder.
  package let path: FilePath

  private let fileSystem: FileSystem
  private let lock: FolderLock

  /// Whether its folder holds those of exports alone, and goes with the last.
  private let isInRoot: Bool

  private static let operation = "make room for the export"
  private static let note = "unfinished.json"

  /// A file that has not got its name yet: in a folder, by how its hidden name begins.
  private struct Unfinished: Codable {
    var folder: PathText
    var prefix: String
  }

  /// Makes the folder, and removes what killed exports left.
  package init(_ place: Place = .home, home: FilePath, surroundings: Surroundings) throws(FileError) {
    fileSystem = surroundings.fileSystem
    let root = home.appending(Self.name)
    let id = "\(surroundings.makeUUID())"
    guard place != .home else {
      try fileSystem.makeDirectory(home)
      try Self.removeRemains(in: root, fileSystem)
      (path, isInRoot) = (root.appending(id), true)
      lock = try Self.make(path, in: root, fileSystem)
      return
    }
    isInRoot = false
    // What lies where nothing can be removed harms nothing here.
    if (try? Self.removeRemains(in: root, fileSystem)) != nil { try? fileSystem.removeDirectory(root) }
    var places = [FilePath(NSTemporaryDirectory())]
    if case .beside(let folder) = place { places.insert(folder, at: 0) }
    for place in places { Self.removeRemains(beside: place, fileSystem) }
    for place in places.dropLast() {
      let path = place.appending("\(Self.name)-\(id)")
      do throws(FileError) {
        lock = try Self.make(alone: path, fileSystem)
        self.path = path
        return
      } catch {
        guard [.permissionDenied, .readOnlyFileSystem, .other].contains(error.kind) else { throw error }
      }
    }
    path = places[places.count - 1].appending("\(Self.name)-\(id)")
    lock = try Self.make(alone: path, fileSystem)
  }

  /// Makes the folder in one that others may write to, too, and locks it.
  private static func make(alone path: FilePath, _ fileSystem: FileSystem) throws(FileError) -> FolderLock {
    var tries = 0
    while true {
      tries += 1
      guard try fileSystem.makeNewDirectory(path) else {
        throw FileError(.alreadyExists, operation: operation, path: path)
      }
      do throws(FileError) {
        let lock = try FolderLock(path, in: fileSystem)
        if try fileSystem.status(of: path, followingLinks: false)?.kind == .directory { return lock }
      } catch {
        guard error.kind == .notFound, tries < 100 else { throw error }
      }
    }
  }

  /// Makes the folder and locks it; another export may take it for a remainder before it is locked.
  private static func make(
    _ path: FilePath, in root: FilePath, _ fileSystem: FileSystem
  ) throws(FileError) -> FolderLock {
    var tries = 0
    while true {
      tries += 1
      try fileSystem.makeDirectory(root, permissions: .ownerReadWriteExecute)
      try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
      do throws(FileError) {
        let lock = try FolderLock(path, in: fileSystem)
        if try fileSystem.status(of: path, followingLinks: false)?.kind == .directory { return lock }
      } catch {
        guard error.kind == .notFound, tries < 100 else { throw error }
      }
    }
  }

  deinit {
    // What cannot be removed now is removed by the next export.
    try? fileSystem.removeTree(path)
    // It holds the folders of other exports, or it goes.
    if isInRoot { try? fileSystem.removeDirectory(path.folder) }
  }

  /// Notes where the bundle is about to be written, so that the next export removes it should this one be killed.
  package func noteBundle(in folder: FilePath, prefix: String) throws {
    let note = Unfinished(folder: PathText(try fileSystem.realPath(folder)), prefix: prefix)
    let bytes = try JSON.bytes(of: note, .line, to: Self.operation, at: path)
    try fileSystem.writeAtomically(bytes, to: path.appending(Self.note), replacing: true)
  }

  /// Makes sure that there is room.
  package func requireRoom(_ bytes: Int64) throws(FileError) {
    try Self.requireRoom(bytes, at: path, fileSystem)
  }

  /// Makes sure that there is room in a folder.
  package static func requireRoom(_ bytes: Int64, at folder: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    let free = try fileSystem.freeSpace(at: folder)
    guard free >= bytes else {
      throw FileError(
        .noSpace, operation: operation, path: folder, detail: "it needs \(bytes) bytes and \(free) are free",
        hint: "Free \(bytes - free) bytes there, or give another folder.", details: .init(neededBytes: bytes))
    }
  }

  private static func removeRemains(in root: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    guard try fileSystem.status(of: root, followingLinks: false)?.kind == .directory else { return }
    for name in try fileSystem.entries(of: root) { try removeRemainder(root.appending(name), fileSystem) }
  }

  /// Removes the folders of this user's killed exports in a folder that is not theirs alone.
  private static func removeRemains(beside place: FilePath, _ fileSystem: FileSystem) {
    for entry in (try? fileSystem.entries(of: place)) ?? [] where entry.string.hasPrefix("\(name)-") {
      let folder = place.appending(entry)
      guard UUID(uuidString: String(entry.string.dropFirst(name.string.count + 1))) != nil,
        let status = try? fileSystem.status(of: folder, followingLinks: false), status.kind == .directory,
        status.owner == geteuid()
      else { continue }
      try? removeRemainder(folder, fileSystem)
    }
  }

  /// Removes the folder of an export, unless that is running.
  private static func removeRemainder(_ folder: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    do throws(FileError) {
      let lock = try FolderLock(folder, patience: 0, in: fileSystem)
      removeUnfinished(of: folder, fileSystem)
      try fileSystem.removeTree(folder)
      _ = consume lock
    } catch {
      // Locked: that export is running. Gone: it has just ended.
      guard error.kind == .locked || error.kind == .notFound else { throw error }
    }
  }

  /// Removes the half bundle that a killed export left; what cannot be read or removed harms nothing.
  private static func removeUnfinished(of folder: FilePath, _ fileSystem: FileSystem) {
    guard let bytes = try? fileSystem.contents(of: folder.appending(note), limit: 1 << 16),
      let unfinished = try? JSONDecoder().decode(Unfinished.self, from: Data(bytes)),
      let place = unfinished.folder.path, !unfinished.prefix.isEmpty,
      let names = try? fileSystem.entries(of: place)
    else { return }
    for name in names where name.string.hasPrefix(".\(unfinished.prefix)") && name.string.hasSuffix(".unfinished") {
      try? fileSystem.unlink(place.appending(name))
    }
  }
}
