import Foundation
import RecoveryKit

/// What the last look at every page of a store found: `checked.json` beside the store's recovery kits.
struct CheckNote: Codable, Equatable {
  /// When it was looked at, in RFC 3339.
  var date: String

  /// The version of the app that had it looked at.
  var appVersion: String?

  /// The damage that was found, as a stable word; nil where every page was sound.
  var damage: String?

  private static let limit = 4_096

  /// The note of a store; nil where there is none that can be read.
  static func read(of store: FilePath, home: FilePath, in fileSystem: FileSystem) throws(FileError) -> CheckNote? {
    let path = path(of: store, home: home, in: fileSystem)
    guard try fileSystem.status(of: path) != nil else { return nil }
    let bytes = try fileSystem.contents(of: path, limit: limit)
    // Whatever else lies there tells nothing of the store, which is looked at anew then.
    return try? JSONDecoder().decode(CheckNote.self, from: Data(bytes))
  }

  /// Writes the note of a store.
  func write(of store: FilePath, home: FilePath, in fileSystem: FileSystem) throws(FileError) {
    let path = Self.path(of: store, home: home, in: fileSystem)
    let bytes = try JSON.bytes(of: self, .line, to: "note what was found", at: path)
    try fileSystem.makeDirectory(path.folder, permissions: .init(rawValue: 0o700))
    try fileSystem.writeAtomically(bytes, to: path, replacing: true, permissions: .ownerReadWrite)
  }

  /// Forgets what was found, because the store is not in its place any more.
  static func remove(of store: FilePath, home: FilePath, in fileSystem: FileSystem) throws(FileError) {
    try fileSystem.unlink(path(of: store, home: home, in: fileSystem))
  }

  private static func path(of store: FilePath, home: FilePath, in fileSystem: FileSystem) -> FilePath {
    KitFolder(for: store, home: home, in: fileSystem).path.appending("checked.json")
  }
}
