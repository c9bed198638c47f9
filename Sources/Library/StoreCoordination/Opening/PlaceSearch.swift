/// Finds the place of a store by the path that an app has for it.
struct PlaceSearch {
  let path: FilePath
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The set that the path stands for; a link whose store is in quarantine leads to the empty place it left.
  ///
  /// - Throws: `dangling-link` where nothing says that what a link leads to was ever a store.
  func place() throws -> StoreFileSet {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      let target = try endOfLink()
      guard try PlaceQuarantine(place: target, surroundings: surroundings).newest() != nil else { throw error }
      return target
    }
  }

  /// The set that the path stands for, or would if there were something at the end of its link.
  func target() throws(FileError) -> StoreFileSet {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      return try endOfLink()
    }
  }

  /// Where a chain of symbolic links ends that leads to nothing.
  private func endOfLink() throws(FileError) -> StoreFileSet {
    var target = path
    // As many links as the kernel of Linux follows.
    for _ in 0..<40 {
      target = target.folder.pushing(try fileSystem.linkTarget(target))
      guard let name = target.lastComponent, try fileSystem.status(of: target.folder) != nil else { break }
      if try fileSystem.status(of: target, followingLinks: false)?.kind == .symbolicLink { continue }
      return StoreFileSet(main: try fileSystem.realPath(target.folder).appending(name))
    }
    throw FileError(.danglingLink, operation: "find the store", path: path)
  }
}
