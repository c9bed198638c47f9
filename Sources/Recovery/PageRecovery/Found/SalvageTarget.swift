package import StoreFiles
package import SystemPackage

/// The place of the result: written under a hidden name beside it, and put there when it is whole and on the disk.
package struct SalvageTarget {
  /// Where the result will be.
  package let path: FilePath

  /// Where it is written.
  package let unfinished: FilePath

  private let fileSystem: FileSystem

  package init(_ path: FilePath, beside store: StoreFileSet, in fileSystem: FileSystem) throws(SalvageError) {
    self.path = path
    self.fileSystem = fileSystem
    unfinished = path.hiddenSibling(suffix: ".unfinished")
    do throws(FileError) {
      let folder = try fileSystem.realPath(path.folder)
      for part in StoreFileSet.Part.allCases {
        let member = store.path(of: part)
        guard member.folder == folder, member.lastComponent == path.lastComponent else { continue }
        throw FileError(
          .alreadyExists, operation: "write what was salvaged", path: path, detail: "it is a part of the store itself",
          hint: "Choose another name for the result.")
      }
      for part in [StoreFileSet.Part.main, .wal, .journal, .sharedMemory] {
        let taken = StoreFileSet(main: path).path(of: part)
        if try fileSystem.status(of: taken, followingLinks: false) != nil {
          throw FileError(
            .alreadyExists, operation: "write what was salvaged", path: taken,
            hint: "Move it away, or choose another name for the result.")
        }
      }
      try fileSystem.unlink(unfinished)
    } catch {
      throw SalvageError(error)
    }
  }

  /// Pushes the result to the disk and gives it its name.
  package func install() throws(SalvageError) {
    try wrapping(SalvageError.init) { () throws(FileError) in
      try fileSystem.synchronizeFile(unfinished)
      try fileSystem.install(unfinished, at: path, replacing: false)
    }
  }

  /// Removes an unfinished result; the error that led here is the one to report.
  package func discard() { try? fileSystem.unlink(unfinished) }
}
