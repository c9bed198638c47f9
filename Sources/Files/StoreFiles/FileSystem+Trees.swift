package import SystemPackage

extension FileSystem {
  /// Copies a folder with everything in it, each file pushed to the disk and compared; links and pipes are left out.
  ///
  /// What is there is gone first. Permissions, owner and group go with every folder and file as far as this user may set them.
  ///
  /// - Parameter isWanted: which files, by their names; all if not given.
  /// - Throws: what copying throws; what has been copied so far stays, for the caller to remove.
  package func copyTree(
    _ source: FilePath, to target: FilePath, where isWanted: (String) -> Bool = { _ in true }
  ) throws {
    try removeTree(target)
    let content = try descendants(of: source)
    try makeDirectory(target)
    for folder in content.folders { try makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular && isWanted(file.relative.last?.string ?? "") {
      let copy = target.appending(file.relative)
      _ = try self.copy(file.path, to: copy)
      try adoptAccess(of: file.path, to: copy)
    }
    for folder in content.folders.reversed() {
      try adoptAccess(ofFolder: source.appending(folder), to: target.appending(folder))
      try synchronizeDirectory(target.appending(folder))
    }
    try adoptAccess(ofFolder: source, to: target)
    try synchronizeDirectory(target)
  }

  /// Removes a folder with everything in it, or a single file or link; no error where nothing is there.
  package func removeTree(_ path: FilePath) throws(FileError) {
    guard let status = try status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else {
      try unlink(path)
      return
    }
    let content = try descendants(of: path)
    for file in content.files { try unlink(file.path) }
    for folder in content.folders.sorted(by: { $0.count > $1.count }) { try removeDirectory(path.appending(folder)) }
    try removeDirectory(path)
  }
}
