import Platform
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A folder of its own for one test, removed with everything in it when the test is over.
package final class TemporaryFolder: Sendable {
  /// The folder, symbolic links resolved.
  package let path: FilePath

  /// A place in memory where there is one: tests push files to the disk thousands of times.
  package static let usualParent: FilePath =
    (try? FileSystem().status(of: "/dev/shm"))??.kind == .directory ? "/dev/shm" : "/tmp"

  /// - Parameter parent: where the folder is made; the usual place if nil.
  package init(in parent: FilePath? = nil) throws {
    let system = FileSystem()
    let parent = try system.realPath(parent ?? Self.usualParent)
    path = parent.appending("lazaret-test-\(UniversalIdentifier.random())")
    try system.makeDirectory(path)
  }

  deinit { Self.remove(path) }

  /// Removes a file or a folder with everything in it.
  package static func remove(_ path: FilePath) {
    let system = FileSystem()
    guard let status = try? system.status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else {
      try? system.unlink(path)
      return
    }
    for name in (try? system.entries(of: path)) ?? [] { remove(path.appending(name)) }
    try? system.removeDirectory(path)
  }

  /// A path in the folder.
  package func appending(_ name: String) -> FilePath { path.appending(name) }

  /// Writes a file into the folder.
  @discardableResult
  package func write(_ bytes: some Collection<UInt8>, to name: String) throws -> FilePath {
    let path = appending(name)
    try FileSystem().makeDirectory(path.removingLastComponent())
    let file = try FileSystem().create(path, truncating: true)
    try file.write(Array(bytes))
    return path
  }

  @discardableResult
  package func write(_ text: String, to name: String) throws -> FilePath { try write(Array(text.utf8), to: name) }
}
