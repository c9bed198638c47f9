internal import Foundation
package import Platform
package import SystemPackage

/// The private folder of one export, removed with this value: in `.lazaret-exporting` of the home, where its bundle is to be,
/// or in the system's temporary folder.
package final class ExportFolder: Sendable {
  /// The name of the folder that holds those of all running exports.
  package static let name: FilePath.Component = ".lazaret-exporting"

  /// Where the folder is made.
  package enum Place: Sendable, Hashable {
    case home

    /// In a folder that is there, or where nothing can be made in it in the system's temporary folder.
    case beside(FilePath)

    /// In the system's temporary folder.
    case temporary
  }

  /// The folder.
  package var path: FilePath { folder.path }

  private let folder: PrivateFolder
  private let fileSystem: FileSystem

  private static let operation = "make room for the export"

  /// Makes the folder, and removes what killed exports left.
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

  /// Notes where the bundle is about to be written, so that it is removed should this process be killed.
  package func noteBundle(in folder: FilePath, prefix: String) throws {
    try self.folder.noteUnfinished(prefix, in: folder)
  }

  /// Makes sure that there is room.
  package func requireRoom(_ bytes: Int64) throws(FileError) {
    try Self.requireRoom(bytes, at: path, fileSystem)
  }

  /// Makes sure that there is room in a folder.
  package static func requireRoom(_ bytes: Int64, at folder: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    let free = try fileSystem.freeSpace(at: folder)
    guard free >= bytes else {
      throw FileError(
        .noSpace, operation: operation, path: folder, detail: "it needs \(bytes) bytes and \(free) are free",
        hint: "Free \(bytes - free) bytes there, or give another folder.", details: .init(neededBytes: bytes))
    }
  }
}
