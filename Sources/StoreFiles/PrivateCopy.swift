internal import Foundation
package import SystemPackage

/// A copy of a store in a private folder of its own, for SQLite to open where the original must not change.
///
/// The folder is readable by its owner alone and goes with this value. What a killed process leaves lies in the system's
/// folder for temporary files, never beside the store.
package struct PrivateCopy: ~Copyable {
  /// The copied store.
  package let files: StoreFileSet

  private let folder: FilePath
  private let fileSystem: FileSystem

  /// Copies the parts that hold records: the main file, the log and the journal; large values in files stay where they are.
  ///
  /// - Parameters:
  ///   - original: the store; it is only read, and must not change meanwhile (the caller holds a reader's lock and compares).
  ///   - temporary: the folder to make the private one in; the system's own if nil.
  /// - Throws: `no-space` with the number of bytes that are lacking, or what copying throws.
  package init(
    of original: StoreFileSet, in temporary: FilePath? = nil, surroundings: Surroundings = .machine
  ) throws {
    fileSystem = surroundings.fileSystem
    let root = temporary ?? FilePath(NSTemporaryDirectory())
    folder = root.appending("lazaret-\(surroundings.makeUUID())")
    files = StoreFileSet(main: folder.appending("Store.sqlite"))
    let members = try original.members(in: fileSystem)
      .filter { [.main, .wal, .journal].contains($0.part) && $0.status.kind == .regular }
    let needed = members.reduce(Int64(0)) { $0 + $1.status.size }
    let free = try fileSystem.freeSpace(at: root)
    guard free >= needed else {
      throw FileError(
        .noSpace, operation: "copy the store to look at it", path: root,
        detail: "the copy needs \(needed) bytes and \(free) are free",
        hint: "Free \(needed - free) bytes there, or set TMPDIR to a folder on another disk.")
    }
    try fileSystem.makeDirectory(folder, permissions: .init(rawValue: 0o700))
    do {
      for member in members { _ = try fileSystem.copy(member.path, to: files.path(of: member.part)) }
    } catch {
      remove()
      throw error
    }
  }

  deinit { remove() }

  private func remove() {
    // What cannot be removed lies among the temporary files and harms nothing.
    for name in (try? fileSystem.entries(of: folder)) ?? [] { try? fileSystem.unlink(folder.appending(name)) }
    try? fileSystem.removeDirectory(folder)
  }
}
