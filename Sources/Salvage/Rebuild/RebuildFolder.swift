internal import Foundation
internal import Platform
internal import SystemPackage

/// The private folder beside the result in which a store is rebuilt; removed at the end, whatever the end is.
struct RebuildFolder {
  let path: FilePath
  private let fileSystem: FileSystem

  /// The rows that need something done.
  var raw: FilePath { path.appending("raw.sqlite") }

  /// The store of its own version.
  var store: FilePath { path.appending("store.sqlite") }

  /// What is not part of it.
  var aside: FilePath { path.appending("aside.sqlite") }

  /// The store of the version it is migrated to.
  var migrated: FilePath { path.appending("migrated.sqlite") }

  /// The files of large values.
  var external: FilePath { path.appending("external") }

  private var journal: FilePath { path.appending("installing.json") }

  init(for output: FilePath, in fileSystem: FileSystem) {
    path = output.hiddenSibling(suffix: ".salvaging")
    self.fileSystem = fileSystem
  }

  /// Makes the folder, readable by its owner alone, and keeps other salvages to the same place out as long as the lock
  /// is held.
  ///
  /// - Parameter patience: how long to wait for another salvage, in milliseconds.
  func take(patience: Int = 10_000) throws(FileError) -> FolderLock {
    while true {
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
      do throws(FileError) {
        let before = try fileSystem.status(of: path, followingLinks: false)
        guard before?.kind == .directory else {
          throw FileError(.alreadyExists, operation: "make the folder", path: path)
        }
        let lock = try FolderLock(path, patience: patience, in: fileSystem)
        // The process that had the lock may have removed the folder; then the lock is on nothing.
        let after = try fileSystem.status(of: path, followingLinks: false)?.identity
        if before?.identity == after { return lock }
      } catch {
        if error.kind != .notFound { throw error }
      }
    }
  }

  /// Removes what a killed run left in it.
  func clear() throws(FileError) {
    let content = try fileSystem.descendants(of: path)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(path.appending(folder)) }
  }

  /// Removes the folder with everything in it.
  func remove() throws(FileError) {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    try fileSystem.removeTree(path)
  }

  // MARK: Putting things into their places

  /// What a run was about to put beside the store, by what tells it from every other file.
  private struct Journal: Codable {
    var aside: FileIdentity?
    var external: FileIdentity?
  }

  /// Notes what is put into its place before the store itself, so that it can be taken back after a kill.
  func noteInstallation() throws(FileError) {
    let note = Journal(
      aside: try fileSystem.status(of: aside, followingLinks: false)?.identity,
      external: try fileSystem.status(of: external, followingLinks: false)?.identity)
    let bytes = try JSON.bytes(of: note, .line, to: "note what is put into its place", at: journal)
    try fileSystem.writeAtomically(bytes, to: journal, replacing: true)
  }

  /// Takes back what a killed run has put beside the place of the store, if the store itself did not get there.
  ///
  /// - Parameters:
  ///   - main: the place of the store.
  ///   - asidePlace: that of what is not part of it.
  ///   - externalPlace: that of the large values.
  func takeBack(main: FilePath, aside asidePlace: FilePath, external externalPlace: FilePath) throws(FileError) {
    guard try fileSystem.status(of: journal, followingLinks: false)?.kind == .regular,
      try fileSystem.status(of: main, followingLinks: false) == nil
    else { return }
    let bytes = try fileSystem.contents(of: journal, limit: 1 << 12)
    // A note that was not written whole was followed by nothing.
    guard let note = try? JSONDecoder().decode(Journal.self, from: Data(bytes)) else { return }
    if let identity = note.aside, try fileSystem.status(of: asidePlace, followingLinks: false)?.identity == identity {
      try fileSystem.unlink(asidePlace)
    }
    if let identity = note.external,
      try fileSystem.status(of: externalPlace, followingLinks: false)?.identity == identity
    {
      try fileSystem.rename(externalPlace, to: external)
    }
  }
}
