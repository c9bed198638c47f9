import Foundation
package import Platform
package import SystemPackage

/// The list of a home's quarantine folders.
///
/// `Quarantines.json` in the home: versioned JSON with the paths of folders, and of parents with any number of them,
/// such as an inbox with a folder per bundle.
package struct QuarantineCatalogue: Sendable {
  private struct Content: Codable {
    var format = "lazaret-quarantine-catalogue"
    var version = 1
    var folders: [PathText] = []

    /// The folders with quarantine folders in their subfolders.
    var parents: [PathText]?

    mutating func add(_ path: FilePath) {
      guard !folders.contains(where: { $0.path == path }) else { return }
      folders.append(PathText(path))
    }

    mutating func add(parent path: FilePath) {
      folders.removeAll { $0.path?.folder.folder == path }
      let parents = parents ?? []
      self.parents = parents.contains { $0.path == path } ? parents : parents + [PathText(path)]
    }
  }

  let home: FilePath
  let surroundings: Surroundings

  package init(home: FilePath, surroundings: Surroundings) {
    self.home = home
    self.surroundings = surroundings
  }

  private var file: FilePath { home.appending("Quarantines.json") }
  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Returns the file's status, which every write changes.
  package func status() throws(FileError) -> FileStatus? { try fileSystem.status(of: file) }

  /// Returns the known folders that exist, oldest entry first.
  ///
  /// The home's own one needs no entry: it may predate the catalogue.
  package func folders() throws -> [QuarantineFolder] {
    let content = try content()
    var folders = try listed(content)
    for parent in (content.parents ?? []).compactMap(\.path) {
      guard try isFolder(parent) else { continue }
      let paths = try fileSystem.entries(of: parent).ordered { $0.string < $1.string }
        .map { parent.appending($0).appending(QuarantineFolder.name) }
      folders += try paths.filter(isFolder).map { QuarantineFolder($0, surroundings: surroundings) }
    }
    return folders
  }

  /// Returns the folders with their own entries.
  package func listedFolders() throws -> [QuarantineFolder] { try listed(content()) }

  private func listed(_ content: Content) throws -> [QuarantineFolder] {
    var paths = try content.folders.compactMap(\.path).filter(isFolder)
    let own = home.appending(QuarantineFolder.name)
    if try isFolder(own) {
      let real = try fileSystem.realPath(own)
      if !paths.contains(real) { paths.append(real) }
    }
    return paths.map { QuarantineFolder($0, surroundings: surroundings) }
  }

  private func isFolder(_ path: FilePath) throws -> Bool { try fileSystem.status(of: path)?.kind == .directory }

  /// Adds a folder, which may not exist yet, unless known.
  ///
  /// - Parameter locked: the caller's locked folders; locking the home again would deadlock.
  package func add(_ folder: QuarantineFolder, holding locked: [FilePath] = []) throws {
    let isThere = try fileSystem.status(of: folder.path) != nil
    let path =
      isThere
      ? try fileSystem.realPath(folder.path)
      : try fileSystem.realPath(folder.path.folder).appending(folder.path.lastComponent ?? QuarantineFolder.name)
    if try content().folders.contains(where: { $0.path == path }) { return }
    try fileSystem.makeDirectory(home)
    let realHome = try fileSystem.realPath(home)
    for held in locked where try fileSystem.status(of: held) != nil && fileSystem.realPath(held) == realHome {
      try write { $0.add(path) }
      return
    }
    let lock = try FolderLock(home, in: fileSystem)
    try write { $0.add(path) }
    lock.release()
  }

  /// Adds a parent folder, unless known, and drops its subfolders' entries.
  package func add(parent: FilePath) throws {
    let path = try fileSystem.realPath(parent)
    if try content().parents?.contains(where: { $0.path == path }) == true { return }
    let lock = try FolderLock(home, in: fileSystem)
    try write { $0.add(parent: path) }
    lock.release()
  }

  /// Writes the catalogue under the home's lock.
  private func write(_ add: (inout Content) -> Void) throws {
    var content = try content()
    add(&content)
    let bytes = try JSON.bytes(of: content, to: "write the catalogue", at: file)
    try fileSystem.writeAtomically(bytes, to: file, replacing: true)
  }

  /// Returns every quarantined store of the home, newest first.
  ///
  /// - Parameter includingMissing: includes stores without any remaining file.
  package func stores(includingMissing: Bool = false) throws -> [QuarantinedStore] {
    try folders().flatMap { try $0.stores(includingMissing: includingMissing) }.ordered {
      QuarantineFolder.isNewer($0.id, $1.id)
    }
  }

  private func content() throws -> Content {
    guard try fileSystem.status(of: file) != nil else { return Content() }
    do {
      return try JSONDecoder().decode(Content.self, from: Data(try fileSystem.contents(of: file, limit: 1 << 24)))
    } catch is DecodingError {
      throw LazaretError(
        .catalogueUnreadable, operation: "read the catalogue", path: file,
        detail: "it is not a catalogue of quarantines")
    }
  }
}
