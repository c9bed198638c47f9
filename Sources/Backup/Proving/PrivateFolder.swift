import Foundation
package import StoreFiles
package import SystemPackage

/// A folder for its owner alone, which goes, with what is in it, when this value ends.
package final class PrivateFolder: Sendable {
  /// The folder.
  package let path: FilePath
  private let fileSystem: FileSystem

  /// Makes the folder among the system's temporary files, and makes sure that there is room for what is to come.
  package convenience init(needing bytes: Int64, _ surroundings: Surroundings) throws(BackupError) {
    try self.init(in: FilePath(NSTemporaryDirectory()), needing: bytes, surroundings)
  }

  /// Makes the folder, and makes sure that there is room for what is to come.
  init(in root: FilePath, needing bytes: Int64, _ surroundings: Surroundings) throws(BackupError) {
    fileSystem = surroundings.fileSystem
    path = root.appending("lazaret-\(surroundings.makeUUID())")
    do throws(FileError) {
      let free = try fileSystem.freeSpace(at: root)
      guard free >= bytes else {
        throw FileError(
          .noSpace, operation: "restore the backup to prove it", path: root,
          detail: "it needs \(bytes) bytes and \(free) are free",
          hint: "Free \(bytes - free) bytes there, or set TMPDIR to a folder on another disk.")
      }
      try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
    } catch {
      throw BackupError(error)
    }
  }

  deinit {
    // What cannot be removed lies among the temporary files and harms nothing.
    guard let content = try? fileSystem.descendants(of: path) else { return }
    for file in content.files { try? fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try? fileSystem.removeDirectory(path.appending(folder)) }
    try? fileSystem.removeDirectory(path)
  }
}
