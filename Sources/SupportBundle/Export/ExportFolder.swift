internal import Foundation
package import Platform
package import SystemPackage

/// The private folder of one export, removed with this value.
///
/// It is in `.lazaret-exporting` of the home, next to the bundle, or in the system's temporary folder.
package final class ExportFolder: Sendable {
  package static let name: FilePath.Component = ".lazaret-exporting"

  package enum Place: Sendable, Hashable {
    case home

    /// In an existing folder, or in the temporary one if not writable.
    case beside(FilePath)

    case temporary
  }

  package var path: FilePath { folder.path }

  private let folder: PrivateFolder
  private let fileSystem: FileSystem

  private static let operation = "make room for the export"

  /// Creates the folder, removing remains of killed exports.
  package init(_ place: Place = .home, home: FilePath, surroundings: Surroundings) throws(FileError) {
    fileSystem = surroundings.fileSystem
    let root = home.appending(Self.name)
    switch place {
    case .home:
      try fileSystem.makeDirectory(home)
      folder = try PrivateFolder(in: root, to: Self.operation, ownsRoot: true, surroundings)
    case .beside(let other):
      do throws(FileError) {
        folder = try PrivateFolder(in: other, or: other, to: Self.operation, surroundings)
      } catch {
        guard [.permissionDenied, .readOnlyFileSystem, .other].contains(error.kind) else { throw error }
        folder = try PrivateFolder(in: nil, to: Self.operation, surroundings)
      }
    case .temporary:
      folder = try PrivateFolder(in: nil, to: Self.operation, surroundings)
    }
    if place != .home, (try? fileSystem.status(of: root, followingLinks: false))?.kind == .directory {
      PrivateFolder.removeRemains(in: root, fileSystem)
      try? fileSystem.removeDirectory(root)
    }
  }

  /// Records the bundle's place, to remove its remains after a kill.
  func noteBundle(in folder: FilePath, prefix: String) throws {
    try self.folder.noteUnfinished(prefix, in: folder)
  }

  func requireRoom(_ bytes: Int64) throws(FileError) {
    try Self.requireRoom(bytes, at: path, fileSystem)
  }

  static func requireRoom(_ bytes: Int64, at folder: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    let free = try fileSystem.freeSpace(at: folder)
    guard free >= bytes else {
      throw FileError(
        .noSpace, operation: operation, path: folder, detail: "it needs \(bytes) bytes and \(free) are free",
        hint: "Free \(bytes - free) bytes there, or give another folder.", details: .init(neededBytes: bytes))
    }
  }
}
