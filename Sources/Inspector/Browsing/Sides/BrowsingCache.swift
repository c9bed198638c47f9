package import Platform
package import SystemPackage

/// A private folder of files that were made to be browsed: they can be made again at any time, and go when they are old or
/// take too much room.
///
/// Each entry is a folder; it gets its name when it is whole. Several processes may use one cache: what one of them has open it
/// goes on reading, whatever the other removes.
package final class BrowsingCache: Sendable {
  /// The limits of the cache.
  package struct Limits: Sendable {
    /// The most bytes of all entries.
    package var bytes: Int64 = 8 << 30

    /// After how many seconds without use an entry goes.
    package var age: Int64 = 7 * 86_400

    /// The usual limits.
    package init() {}
  }

  /// The name of the folder in a home.
  package static let name: FilePath.Component = ".lazaret-browsing"

  /// How the names of entries begin that are not whole yet.
  private static let unfinished = "making-"

  /// The file whose age is that of the last use of an entry.
  private static let mark: FilePath.Component = "used"

  /// The folder.
  package let path: FilePath
  private let limits: Limits
  private let surroundings: Surroundings
  private let inUse = Mutex<Set<String>>([])
  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The cache of a home; nothing is made yet.
  package init(home: FilePath, limits: Limits = Limits(), surroundings: Surroundings = .machine) {
    path = home.appending(Self.name)
    self.limits = limits
    self.surroundings = surroundings
  }

  /// The folder of an entry, which is made first where it is not there.
  ///
  /// - Parameters:
  ///   - name: the name of the entry: letters, digits and dashes.
  ///   - make: fills a folder that is the caller's alone; what it throws leaves nothing behind.
  package func entry(_ name: String, make: (FilePath) throws -> Void) throws -> FilePath {
    guard let component = FilePath.Component(name), component.kind == .regular else {
      throw FileError(.notFound, operation: "find what was made to be browsed", path: path)
    }
    let folder = path.appending(component)
    if try fileSystem.status(of: folder, followingLinks: false)?.kind != .directory {
      try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
      let making = path.appending("\(Self.unfinished)\(surroundings.makeUUID())")
      try fileSystem.makeDirectory(making, permissions: .ownerReadWriteExecute)
      let lock = try FolderLock(making, in: fileSystem)
      do {
        try make(making)
        try put(making, at: folder)
      } catch {
        // The first error is the one to report; what is left goes at the next start.
        try? fileSystem.removeTree(making)
        throw error
      }
      _ = consume lock
    }
    _ = inUse.withLock { $0.insert(name) }
    try fileSystem.writeAtomically([], to: folder.appending(Self.mark), replacing: true)
    try trim()
    return folder
  }

  /// Gives a finished entry its name; where another process was faster its entry is taken.
  private func put(_ making: FilePath, at folder: FilePath) throws {
    do throws(FileError) {
      try fileSystem.rename(making, to: folder)
    } catch {
      guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { throw error }
      try fileSystem.removeTree(making)
    }
  }

  /// Says that an entry is not open here any more.
  package func release(_ name: String) { _ = inUse.withLock { $0.remove(name) } }

  /// Removes what killed processes left, and entries beyond the limits.
  package func clean() throws {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    for name in try fileSystem.entries(of: path) where name.string.hasPrefix(Self.unfinished) {
      let folder = path.appending(name)
      do throws(FileError) {
        let lock = try FolderLock(folder, patience: 0, in: fileSystem)
        try fileSystem.removeTree(folder)
        _ = consume lock
      } catch {
        // Another process is making it, or has just finished.
        guard error.kind == .locked || error.kind == .notFound else { throw error }
      }
    }
    try trim()
  }

  private struct Entry {
    var name: FilePath.Component
    var used: Timestamp
    var bytes: Int64
  }

  /// Removes entries that are too old, then those that were not used for longest until the rest has room.
  private func trim() throws {
    let open = inUse.withLock { $0 }
    let now = surroundings.now()
    var entries: [Entry] = []
    for name in try fileSystem.entries(of: path) where !name.string.hasPrefix(Self.unfinished) {
      let folder = path.appending(name)
      guard let status = try fileSystem.status(of: folder, followingLinks: false), status.kind == .directory else {
        continue
      }
      let mark = try fileSystem.status(of: folder.appending(Self.mark), followingLinks: false)
      let bytes = try fileSystem.descendants(of: folder).files.reduce(Int64(0)) { $0 + $1.status.size }
      entries.append(Entry(name: name, used: (mark ?? status).modified, bytes: bytes))
    }
    var total = entries.reduce(0) { $0 + $1.bytes }
    for entry in entries.sorted(by: { $0.used < $1.used }) where !open.contains(entry.name.string) {
      let isOld = now.secondsSince1970 - entry.used.secondsSince1970 > limits.age
      guard isOld || total > limits.bytes else { continue }
      try fileSystem.removeTree(path.appending(entry.name))
      total -= entry.bytes
    }
  }
}
