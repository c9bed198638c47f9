internal import StoreFiles
internal import SystemPackage

/// The private folder beside the result in which a store is rebuilt; removed at the end, whatever the end is.
struct RebuildFolder {
  let path: FilePath
  private let fileSystem: FileSystem

  /// The rows as found.
  var raw: FilePath { path.appending("raw.sqlite") }

  /// The store of its own version.
  var store: FilePath { path.appending("store.sqlite") }

  /// What is not part of it.
  var aside: FilePath { path.appending("aside.sqlite") }

  /// The store of the version it is migrated to.
  var migrated: FilePath { path.appending("migrated.sqlite") }

  init(for output: FilePath, in fileSystem: FileSystem) {
    path = output.hiddenSibling(suffix: ".salvaging")
    self.fileSystem = fileSystem
  }

  /// Makes the folder, readable by its owner alone, and removes what a killed run left in it.
  func make() throws(FileError) {
    try remove()
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
  }

  /// Removes the folder with everything in it.
  func remove() throws(FileError) {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: path)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(path.appending(folder)) }
    try fileSystem.removeDirectory(path)
  }
}
