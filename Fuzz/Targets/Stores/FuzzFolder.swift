internal import Platform
internal import SystemPackage

/// A folder for one input whose reader wants a file; it goes with everything in it.
final class FuzzFolder: Sendable {
  let path: FilePath

  /// In memory, where there is such a place: an input must not cost a disk's time.
  init() throws(FuzzFailure) {
    let system = FileSystem()
    do throws(FileError) {
      let parent: FilePath = try system.status(of: "/dev/shm")?.kind == .directory ? "/dev/shm" : "/tmp"
      path = parent.appending("lazaret-fuzz-\(UniversalIdentifier.random())")
      try system.makeDirectory(path, permissions: .init(rawValue: 0o700))
    } catch {
      throw FuzzFailure("\(error)")
    }
  }

  deinit {
    // What cannot be removed now is the temporary folder's own to tidy.
    try? Self.remove(path)
  }

  /// Writes a file.
  func write(_ bytes: [UInt8], to name: String) throws(FuzzFailure) -> FilePath {
    do throws(FileError) {
      let file = try FileSystem().create(path.appending(name))
      try file.write(bytes)
      return path.appending(name)
    } catch {
      throw FuzzFailure("\(error)")
    }
  }

  /// Writes the files of a store and returns the main one's path.
  func write(_ store: StoreBytes) throws(FuzzFailure) -> FilePath {
    if let log = store.log { _ = try write(log, to: "Store.sqlite-wal") }
    if let journal = store.journal { _ = try write(journal, to: "Store.sqlite-journal") }
    return try write(store.main, to: "Store.sqlite")
  }

  /// The bytes of each file that is here, by its name.
  func content() throws(FuzzFailure) -> [String: [UInt8]] {
    do throws(FileError) {
      let system = FileSystem()
      var content: [String: [UInt8]] = [:]
      for name in try system.entries(of: path) {
        let isFolder = try system.status(of: path.appending(name))?.kind == .directory
        content[name.string] = isFolder ? [] : try system.contents(of: path.appending(name), limit: 1 << 28)
      }
      return content
    } catch {
      throw FuzzFailure("\(error)")
    }
  }

  private static func remove(_ path: FilePath) throws(FileError) {
    let system = FileSystem()
    guard let status = try system.status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else { return try system.unlink(path) }
    for name in try system.entries(of: path) { try remove(path.appending(name)) }
    try system.removeDirectory(path)
  }
}
