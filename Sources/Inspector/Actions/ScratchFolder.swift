import Foundation
import Lazaret

/// A folder for its owner alone among the temporary files, which goes with this value.
final class ScratchFolder: Sendable {
  let path: FilePath
  private let fileSystem: FileSystem

  init(_ surroundings: Surroundings) throws {
    fileSystem = surroundings.fileSystem
    path = FilePath(NSTemporaryDirectory()).appending("lazaret-\(surroundings.makeUUID())")
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
  }

  /// Removes the folder with everything in it.
  func remove() {
    // What cannot be removed lies among the temporary files and harms nothing.
    try? fileSystem.removeTree(path)
  }

  deinit { remove() }
}
