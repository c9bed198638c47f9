import Foundation
package import StoreFiles
package import SystemPackage

/// The list of a home's quarantine folders, so that every quarantined store can be found again.
///
/// Kept as `Quarantines.json` in the home: versioned JSON with the folders' paths.
package struct QuarantineCatalogue: Sendable {
  /// The file's content.
  private struct Content: Codable {
    var format = "lazaret-quarantine-catalogue"
    var version = 1
    var folders: [PathText] = []
  }

  /// The folder that holds the catalogue.
  package let home: FilePath
  let surroundings: Surroundings

  package init(home: FilePath, surroundings: Surroundings) {
    self.home = home
    self.surroundings = surroundings
  }

  private var file: FilePath { home.appending("Quarantines.json") }
  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The folders that are known, in the order in which they came; one that has gone is left out.
  ///
  /// The one in the home itself is known without being listed: it may be from before the home had a catalogue.
  package func folders() throws -> [QuarantineFolder] {
    var paths = try content().folders.compactMap(\.path).filter { try fileSystem.status(of: $0)?.kind == .directory }
    let own = home.appending(QuarantineFolder.name)
    if try fileSystem.status(of: own)?.kind == .directory {
      let real = try fileSystem.realPath(own)
      if !paths.contains(real) { paths.append(real) }
    }
    return paths.map { QuarantineFolder($0, surroundings: surroundings) }
  }

  /// Adds a folder, which need not be there yet; nothing is written where it is known.
  ///
  /// - Parameter locked: the folders whose locks the caller holds; the home may be one of them, and waiting for oneself
  ///   would never end.
  package func add(_ folder: QuarantineFolder, holding locked: [FilePath] = []) throws {
    let isThere = try fileSystem.status(of: folder.path) != nil
    let path =
      isThere
      ? try fileSystem.realPath(folder.path)
      : try fileSystem.realPath(folder.path.folder).appending(QuarantineFolder.name)
    if try content().folders.contains(where: { $0.path == path }) { return }
    try fileSystem.makeDirectory(home)
    let realHome = try fileSystem.realPath(home)
    for held in locked where try fileSystem.status(of: held) != nil && fileSystem.realPath(held) == realHome {
      try write(adding: path)
      return
    }
    let lock = try FolderLock(home, in: fileSystem)
    try write(adding: path)
    _ = consume lock
  }

  /// Writes the catalogue with one more folder, under the home's lock.
  private func write(adding path: FilePath) throws {
    var content = try content()
    guard !content.folders.contains(where: { $0.path == path }) else { return }
    content.folders.append(PathText(path))
    let bytes = try JSON.bytes(of: content, to: "write the catalogue", at: file)
    try fileSystem.writeAtomically(bytes, to: file, replacing: true)
  }

  /// Every quarantined store of the home, newest first.
  package func stores() throws -> [QuarantinedStore] {
    try folders().flatMap { try $0.stores() }.sorted { QuarantineFolder.isNewer($0.id, $1.id) }
  }

  private func content() throws -> Content {
    guard try fileSystem.status(of: file) != nil else { return Content() }
    do {
      return try JSONDecoder().decode(Content.self, from: Data(try fileSystem.contents(of: file, limit: 1 << 24)))
    } catch is DecodingError {
      throw QuarantineError(
        .catalogueUnreadable, operation: "read the catalogue", path: file,
        detail: "it is not a catalogue of quarantines")
    }
  }
}
