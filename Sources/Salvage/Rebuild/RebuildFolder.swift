internal import Foundation
internal import Platform
internal import SystemPackage

/// The private folder beside the result in which a store is rebuilt.
struct RebuildFolder {
  let path: FilePath
  private let output: FilePath
  private let fileSystem: FileSystem

  var raw: FilePath { path.appending("raw.sqlite") }

  /// The store in its own version.
  var store: FilePath { path.appending("store.sqlite") }

  var aside: FilePath { path.appending("aside.sqlite") }

  /// The store in the current version.
  var migrated: FilePath { path.appending("migrated.sqlite") }

  var external: FilePath { path.appending("external") }

  /// The places of what is installed beside the store.
  var asidePlace: FilePath { output.sibling(suffix: "-set-aside") }
  var externalPlace: FilePath { StoreFileSet(main: output).path(of: .externalData) }

  private var journal: FilePath { path.appending("installing.json") }

  init(for output: FilePath, in fileSystem: FileSystem) {
    self.output = output
    path = output.hiddenSibling(suffix: ".salvaging")
    self.fileSystem = fileSystem
  }

  /// Makes the folder, accessible to its owner only, and locks out other salvages to the same place.
  ///
  /// - Parameter patience: milliseconds to wait for another salvage.
  func take(patience: Int = 10_000) throws(FileError) -> FolderLock {
    while true {
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
      do throws(FileError) {
        let before = try fileSystem.status(of: path, followingLinks: false)
        guard before?.kind == .directory else {
          throw FileError(.alreadyExists, operation: "make the folder", path: path)
        }
        let lock = try FolderLock(path, patience: patience, in: fileSystem)
        // The former lock owner may have removed the folder, and the lock with it.
        if before?.identity == (try identity(of: path)) { return lock }
      } catch {
        if error.kind != .notFound { throw error }
      }
    }
  }

  /// Removes the leftovers of a killed run and the folder, unless another salvage uses it.
  func clearInterrupted() throws(FileError) {
    guard try isThere() else { return }
    let lock = try take(patience: 0)
    try clear()
    try remove()
    lock.release()
  }

  /// Removes the leftovers of a killed run.
  func clear() throws(FileError) {
    try takeBack()
    let content = try fileSystem.descendants(of: path)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(path.appending(folder)) }
  }

  func remove() throws(FileError) {
    if try isThere() { try fileSystem.removeTree(path) }
  }

  private func isThere() throws(FileError) -> Bool {
    try fileSystem.status(of: path, followingLinks: false)?.kind == .directory
  }

  private func identity(of path: FilePath) throws(FileError) -> FileIdentity? {
    try fileSystem.status(of: path, followingLinks: false)?.identity
  }

  // MARK: Putting things into their places

  private struct Journal: Codable {
    var aside: FileIdentity?
    var external: FileIdentity?
  }

  /// Lists the files installed before the store, for removal after a kill.
  func noteInstallation() throws(FileError) {
    let note = Journal(aside: try identity(of: aside), external: try identity(of: external))
    let bytes = try JSON.bytes(of: note, .line, to: "note what is put into its place", at: journal)
    try fileSystem.writeAtomically(bytes, to: journal, replacing: true)
  }

  /// Removes files that a killed run installed without the store itself.
  func takeBack() throws(FileError) {
    guard try fileSystem.status(of: journal, followingLinks: false)?.kind == .regular,
      try fileSystem.status(of: output, followingLinks: false) == nil
    else { return }
    let bytes = try fileSystem.contents(of: journal, limit: 1 << 12)
    // A run installs files only after its journal is complete.
    guard let note = try? JSONDecoder().decode(Journal.self, from: Data(bytes)) else { return }
    if let aside = note.aside, try identity(of: asidePlace) == aside { try fileSystem.unlink(asidePlace) }
    if let external = note.external, try identity(of: externalPlace) == external {
      try fileSystem.rename(externalPlace, to: self.external)
    }
  }
}
