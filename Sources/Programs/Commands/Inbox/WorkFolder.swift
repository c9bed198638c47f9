import Foundation
import StoreCoordination

/// The folder that `lazaret work` works in where the bundles lie elsewhere; it goes with this value.
struct WorkFolder: ~Copyable {
  private static let prefix = "lazaret-work-"

  let path: FilePath

  private let lock: FolderLock

  /// Makes a folder, and removes those of processes that are no more.
  ///
  /// - Parameter parent: the folder to make it in; the system's own for temporary files if nil.
  init(in parent: FilePath?) throws {
    let fileSystem = FileSystem()
    let parent = parent ?? FilePath(NSTemporaryDirectory())
    try fileSystem.makeDirectory(parent)
    let root = try fileSystem.realPath(parent)
    for name in try fileSystem.entries(of: root) where name.string.hasPrefix(Self.prefix) {
      Self.removeUnused(root.appending(name), in: fileSystem)
    }
    while true {
      let path = root.appending("\(Self.prefix)\(Surroundings.machine.makeUUID())".lowercased())
      guard try fileSystem.makeNewDirectory(path) else { continue }
      let lock: FolderLock
      do throws(FileError) {
        lock = try FolderLock(path, in: fileSystem)
      } catch {
        guard error.kind == .notFound else { throw error }
        continue
      }
      // Another process may have taken it for one that is not used, before it was locked.
      guard try fileSystem.status(of: path, followingLinks: false) != nil else { continue }
      self.path = path
      self.lock = lock
      return
    }
  }

  deinit {
    // What cannot be removed is removed by the next process.
    try? FileSystem().removeTree(path)
  }

  /// Removes a folder whose process is no more; another user's cannot be, and stays.
  private static func removeUnused(_ path: FilePath, in fileSystem: FileSystem) {
    do throws(FileError) {
      guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
      let lock = try FolderLock(path, patience: 0, in: fileSystem)
      try fileSystem.removeTree(path)
      _ = consume lock
    } catch {
      // It is in use, or none of ours.
    }
  }
}
