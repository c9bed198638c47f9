package import SystemPackage

/// A complete, synchronized store under a hidden name, ready to install.
///
/// A full disk thus shows before anything is moved. It removes itself; a killed process's is removed by the next one.
package struct StagedStore: ~Copyable {
  package let target: StoreFileSet

  package let path: FilePath

  private let fileSystem: FileSystem
  private let mark: PrivateFolder?

  /// Writes and synchronizes the bytes beside the target.
  ///
  /// The caller holds the folder's lock.
  ///
  /// - Parameter permissions: those of the replaced store, to keep its readers.
  package init(
    _ bytes: [UInt8], for target: StoreFileSet, permissions: FilePermissions = .ownerReadWrite,
    in fileSystem: FileSystem
  ) throws(FileError) {
    self.target = target
    self.fileSystem = fileSystem
    path = Self.path(for: target)
    mark = PrivateFolder.mark(of: target.main)
    try Self.removeLeftover(for: target, in: fileSystem)
    do throws(FileError) {
      let file = try fileSystem.create(path, permissions: permissions.union(.ownerReadWrite))
      try file.write(bytes)
      try file.commit()
    } catch {
      // Report the first error.
      try? fileSystem.unlink(path)
      throw error
    }
  }

  /// Copies and synchronizes a finished store beside the target.
  ///
  /// The caller holds the folder's lock and checks the digest.
  ///
  /// - Parameters:
  ///   - source: a file without writers.
  ///   - digest: receives the copy's digest; an error removes the copy.
  package init(
    copying source: FilePath, for target: StoreFileSet, in fileSystem: FileSystem,
    checking digest: (KeptFileDigest) throws -> Void
  ) throws {
    self.target = target
    self.fileSystem = fileSystem
    path = Self.path(for: target)
    mark = PrivateFolder.mark(of: target.main)
    try Self.removeLeftover(for: target, in: fileSystem)
    do { try digest(try fileSystem.copy(source, to: path)) } catch {
      // Report the first error.
      try? fileSystem.unlink(path)
      throw error
    }
  }

  /// Removes the staged store.
  package consuming func discard() {}

  deinit {
    // The name is gone after an installation; the next run removes a remainder.
    try? Self.removeLeftover(for: target, in: fileSystem)
  }

  private static func path(for target: StoreFileSet) -> FilePath { target.main.hiddenSibling(suffix: ".unfinished") }

  package static func hasLeftover(for target: StoreFileSet, in fileSystem: FileSystem) throws(FileError) -> Bool {
    try fileSystem.hasEntry(at: path(for: target))
  }

  /// Removes a killed process's staged store.
  ///
  /// It may be a second link to the installed store: unlink it, never write through it. The caller holds the folder's
  /// lock.
  package static func removeLeftover(for target: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    if try hasLeftover(for: target, in: fileSystem) { try fileSystem.unlink(path(for: target)) }
  }

  /// Installs the store in an empty place: an old log or journal would be taken for its own.
  ///
  /// - Throws: `file-exists` if any part exists.
  package consuming func install() throws(FileError) {
    if let member = try target.members(in: fileSystem).first {
      throw FileError(.alreadyExists, operation: "create the store", path: member.path)
    }
    try put()
  }

  /// Installs the store beside existing external data.
  ///
  /// - Throws: `file-exists` if any other part exists.
  package consuming func put() throws(FileError) {
    if let member = try target.members(in: fileSystem).first(where: { $0.part != .externalData }) {
      throw FileError(.alreadyExists, operation: "create the store", path: member.path)
    }
    try fileSystem.install(path, at: target.main, replacing: false)
  }
}
