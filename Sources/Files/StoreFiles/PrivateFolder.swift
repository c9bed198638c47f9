internal import Foundation
package import SystemPackage

/// A folder for its owner alone among the temporary files, which goes, with what is in it, when this value ends.
///
/// What a killed process leaves lies among the system's temporary files, never beside a store.
package final class PrivateFolder: Sendable {
  /// The folder.
  package let path: FilePath

  private let fileSystem: FileSystem

  /// Makes the folder, and makes sure that there is room for what is to come.
  ///
  /// - Parameters:
  ///   - temporary: the folder to make it in; the system's own if nil.
  ///   - alternative: the folder to make it in, under a hidden name, where the system's own cannot be used.
  ///   - bytes: how much room is needed.
  ///   - operation: what it is for, as an infinitive phrase.
  /// - Throws: `no-space` with the number of bytes that are lacking, or what the file system says.
  package init(
    in temporary: FilePath?, or alternative: FilePath? = nil, needing bytes: Int64, to operation: String,
    _ surroundings: Surroundings
  ) throws(FileError) {
    fileSystem = surroundings.fileSystem
    let root = temporary ?? Self.temporary(or: alternative, surroundings)
    let mark = root == alternative ? ".lazaret" : "lazaret"
    let free = try fileSystem.freeSpace(at: root)
    guard free >= bytes else {
      throw FileError(
        .noSpace, operation: operation, path: root, detail: "it needs \(bytes) bytes and \(free) are free",
        hint: "Free \(bytes - free) bytes there, or set TMPDIR to a folder on another disk.",
        details: .init(neededBytes: bytes))
    }
    try fileSystem.makeDirectory(root)
    var path = root.appending("\(mark)-\(surroundings.makeUUID())")
    // What is there already is another's, whatever its name.
    var attempts = 1
    while try !fileSystem.makeNewDirectory(path) {
      guard attempts < Self.maximumAttempts else {
        throw FileError(.alreadyExists, operation: operation, path: path, detail: "every name that was tried is taken")
      }
      attempts += 1
      path = root.appending("\(mark)-\(surroundings.makeUUID())")
    }
    self.path = path
  }

  /// The system's folder for temporary files; another one where no folder can be made in that, as where `TMPDIR` names none.
  package static func temporary(or alternative: FilePath?, _ surroundings: Surroundings) -> FilePath {
    let root = FilePath(NSTemporaryDirectory())
    guard let alternative else { return root }
    do throws(FileError) {
      guard try surroundings.fileSystem.status(of: root)?.kind == .directory else { return alternative }
      let probe = root.appending("lazaret-\(surroundings.makeUUID())")
      if try surroundings.fileSystem.makeNewDirectory(probe) { try surroundings.fileSystem.removeDirectory(probe) }
      return root
    } catch {
      // Why it cannot be used does not matter where another one can.
      return alternative
    }
  }

  private static let maximumAttempts = 1000

  deinit {
    // What cannot be removed lies among the temporary files and harms nothing.
    try? fileSystem.removeTree(path)
  }
}
