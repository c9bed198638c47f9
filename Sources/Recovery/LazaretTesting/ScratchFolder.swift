internal import StoreFiles
internal import SystemPackage

/// A folder for files that are not needed afterwards; it goes with everything in it.
final class ScratchFolder: Sendable {
  let path: FilePath
  private let fileSystem: FileSystem

  /// Makes a folder of its own in another one.
  init(in parent: FilePath, named name: String, _ fileSystem: FileSystem) throws {
    path = parent.appending(name)
    self.fileSystem = fileSystem
    guard try fileSystem.status(of: path, followingLinks: false) == nil else {
      throw FileError(.alreadyExists, operation: "make a temporary folder", path: path)
    }
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
  }

  deinit {
    // What cannot be removed now is the temporary folder's own to tidy.
    try? Self.remove(path, fileSystem)
  }

  /// Removes everything that is in it.
  func empty() throws(FileError) {
    for name in try fileSystem.entries(of: path) { try Self.remove(path.appending(name), fileSystem) }
  }

  /// Removes a file, or a folder with everything in it.
  static func remove(_ path: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    guard let status = try fileSystem.status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else {
      try fileSystem.unlink(path)
      return
    }
    let content = try fileSystem.descendants(of: path)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(path.appending(folder)) }
    try fileSystem.removeDirectory(path)
  }
}
