package import Platform
package import SystemPackage

/// A private cache of files made for browsing, removed by age or total size.
///
/// Each entry is a folder, named once complete. Processes may share the cache: one can still read its open files after
/// another removed them.
package final class BrowsingCache: Sendable {
  package struct Limits: Sendable {
    package var bytes: Int64 = 8 << 30

    /// The seconds of disuse after which an entry is removed.
    var age: Int64 = 7 * 86_400

    package init() {}
  }

  static let name: FilePath.Component = ".lazaret-browsing"

  private static let unfinished = "making-"

  /// The file with an entry's last use as modification time.
  private static let mark: FilePath.Component = "used"

  package let path: FilePath
  private let limits: Limits
  private let surroundings: Surroundings
  private let inUse = Mutex<Set<String>>([])
  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The cache of a home; creates no folder yet.
  package init(home: FilePath, limits: Limits = Limits(), surroundings: Surroundings = .machine) {
    path = home.appending(Self.name)
    self.limits = limits
    self.surroundings = surroundings
  }

  /// Returns an entry's folder, made if missing.
  ///
  /// - Parameters:
  ///   - name: letters, digits and dashes.
  ///   - make: fills a private folder, which is removed if it throws.
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
        // Leftovers are removed at the next start.
        try? fileSystem.removeTree(making)
        throw error
      }
      lock.release()
    }
    _ = inUse.withLock { $0.insert(name) }
    try fileSystem.writeAtomically([], to: folder.appending(Self.mark), replacing: true)
    try trim()
    return folder
  }

  /// Names a finished entry, or takes another process's.
  private func put(_ making: FilePath, at folder: FilePath) throws {
    do throws(FileError) {
      try fileSystem.rename(making, to: folder)
    } catch {
      guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { throw error }
      try fileSystem.removeTree(making)
    }
  }

  /// Marks an entry as no longer open here.
  package func release(_ name: String) { _ = inUse.withLock { $0.remove(name) } }

  /// Removes leftovers of killed processes and entries beyond the limits.
  package func clean() throws {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    for name in try fileSystem.entries(of: path) where name.string.hasPrefix(Self.unfinished) {
      let folder = path.appending(name)
      do throws(FileError) {
        let lock = try FolderLock(folder, patience: 0, in: fileSystem)
        try fileSystem.removeTree(folder)
        lock.release()
      } catch {
        // Another process is making it or has just finished.
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

  /// Removes expired entries, then the least recently used until the rest fits.
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
