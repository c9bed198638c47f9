package import SystemPackage

/// A new store that is complete and on the disk beside its place, under a hidden name, waiting to be put there.
///
/// So a full disk is met before anything else is moved. Left alone, it removes itself; what a killed process leaves is
/// removed by the next one.
package struct StagedStore: ~Copyable {
  /// The set whose place it will take.
  package let target: StoreFileSet

  /// Where it waits.
  package let path: FilePath

  private let fileSystem: FileSystem

  /// Writes the bytes beside the target and pushes them to the disk.
  ///
  /// The caller holds the folder's lock.
  ///
  /// - Parameter permissions: those of the store it stands in for, so that only those can read it who could read that one.
  package init(
    _ bytes: [UInt8], for target: StoreFileSet, permissions: FilePermissions = .ownerReadWrite,
    in fileSystem: FileSystem
  ) throws(FileError) {
    self.target = target
    self.fileSystem = fileSystem
    path = Self.path(for: target)
    try Self.removeLeftover(for: target, in: fileSystem)
    do throws(FileError) {
      let file = try fileSystem.create(path, permissions: permissions.union(.ownerReadWrite))
      try file.write(bytes)
      try file.commit()
    } catch {
      // The first error is the one to report.
      try? fileSystem.unlink(path)
      throw error
    }
  }

  /// Copies a finished store beside the target and pushes it to the disk.
  ///
  /// The caller holds the folder's lock, and sees to the copy's digest.
  ///
  /// - Parameters:
  ///   - source: the file, which no process writes to.
  ///   - digest: called with the digest of the copy; what it throws removes the copy.
  package init(
    copying source: FilePath, for target: StoreFileSet, in fileSystem: FileSystem,
    checking digest: (FileDigest) throws -> Void
  ) throws {
    self.target = target
    self.fileSystem = fileSystem
    path = Self.path(for: target)
    try Self.removeLeftover(for: target, in: fileSystem)
    do {
      try digest(try fileSystem.copy(source, to: path))
    } catch {
      // The first error is the one to report.
      try? fileSystem.unlink(path)
      throw error
    }
  }

  deinit {
    // Gone already once it has been installed; what cannot be removed now is removed by the next run.
    try? Self.removeLeftover(for: target, in: fileSystem)
  }

  private static func path(for target: StoreFileSet) -> FilePath { target.main.hiddenSibling(suffix: ".unfinished") }

  /// Whether a killed process left a staged store.
  package static func hasLeftover(for target: StoreFileSet, in fileSystem: FileSystem) throws(FileError) -> Bool {
    try fileSystem.status(of: path(for: target), followingLinks: false) != nil
  }

  /// Removes what a killed process left.
  ///
  /// It may be a second name of the store itself, where the process died between giving it its place and taking the hidden
  /// name away: only the name goes, and nothing is ever written through it. The caller holds the folder's lock.
  package static func removeLeftover(for target: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    if try hasLeftover(for: target, in: fileSystem) { try fileSystem.unlink(path(for: target)) }
  }

  /// Puts the store into its place, which must be empty: a log or journal left there would be taken for the new store's.
  ///
  /// - Throws: `file-exists` where any part of a set is there.
  package consuming func install() throws(FileError) {
    if let member = try target.members(in: fileSystem).first {
      throw FileError(.alreadyExists, operation: "create the store", path: member.path)
    }
    try put()
  }

  /// Puts the store into its place beside the large values that are there already; nothing else may be.
  ///
  /// - Throws: `file-exists` where any other part of a set is there.
  package consuming func put() throws(FileError) {
    if let member = try target.members(in: fileSystem).first(where: { $0.part != .externalData }) {
      throw FileError(.alreadyExists, operation: "create the store", path: member.path)
    }
    try fileSystem.install(path, at: target.main, replacing: false)
  }
}
