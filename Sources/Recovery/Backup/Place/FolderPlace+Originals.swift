import StoreFiles
package import SystemPackage

/// What migrations keep in a folder of backups: the very files of a store, under the name of a backup.
extension FolderPlace {
  private static let supportSuffix = BackupManifest.File.Role.originalSupport.suffix

  /// The folder of an original's large values, `.<id>_SUPPORT`.
  package func support(of id: BackupIdentifier, in section: BackupSection) -> FilePath {
    StoreFileSet(main: folder(section).appending("\(id).sqlite")).path(of: .externalData)
  }

  /// The original whose folder of large values an object of that name stands for; nil for any other object.
  static func supportIdentifier(_ name: String) -> BackupIdentifier? {
    name.hasSuffix(supportSuffix) ? BackupIdentifier(String(name.dropLast(supportSuffix.count))) : nil
  }

  /// The object that a folder of large values is listed as; nil for any other entry.
  func supportObject(_ name: FilePath.Component, in folder: FilePath) throws(FileError) -> BackupObject? {
    let text = name.string
    guard text.hasPrefix("."), text.hasSuffix("_SUPPORT"),
      let id = BackupIdentifier(String(text.dropFirst().dropLast("_SUPPORT".count))),
      try fileSystem.status(of: folder.appending(name), followingLinks: false)?.kind == .directory
    else { return nil }
    let bytes = try fileSystem.descendants(of: folder.appending(name)).files.reduce(Int64(0)) { $0 &+ $1.status.size }
    return BackupObject(name: "\(id)\(Self.supportSuffix)", bytes: bytes)
  }

  /// Whether a file is the main file of an original that has a name elsewhere, in the store's place: a migration is about to
  /// replace it, and no other process has to do with it yet.
  func isOnItsWay(_ name: FilePath.Component, in folder: FilePath) throws(FileError) -> Bool {
    guard name.string.hasSuffix(BackupManifest.File.Role.originalMain.suffix),
      let status = try fileSystem.status(of: folder.appending(name), followingLinks: false)
    else { return false }
    guard status.kind == .regular, status.linkCount > 1 else { return false }
    // One that was being dropped, or brought back, when a run ended has two names here.
    var names = 0
    for section in BackupSection.allCases {
      let other = try fileSystem.status(of: self.folder(section).appending(name), followingLinks: false)
      if other?.identity == status.identity { names += 1 }
    }
    return names < status.linkCount
  }

  /// Whether a name is that of the note beside an original.
  static func isNote(_ name: String) -> Bool { name.hasSuffix(BackupManifest.File.Role.originalOnlyHere.suffix) }

  /// Moves a folder within the place at once.
  func moveFolder(_ source: FilePath, to destination: FilePath) throws(FileError) {
    if try fileSystem.status(of: destination, followingLinks: false) != nil {
      throw FileError(.alreadyExists, operation: "move the large values", path: destination)
    }
    try fileSystem.rename(source, to: destination)
    try fileSystem.synchronizeDirectory(destination.folder)
    try fileSystem.synchronizeDirectory(source.folder)
  }
}
