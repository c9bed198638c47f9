package import SystemPackage

/// A copy of a store in a private folder of its own, for SQLite to open where the original must not change.
package struct PrivateCopy: ~Copyable {
  /// The copied store.
  package let files: StoreFileSet

  private let folder: PrivateFolder

  /// Copies the parts that hold records: the main file, the log and the journal; large values in files stay where they are.
  ///
  /// - Parameters:
  ///   - original: the store; it is only read, and must not change meanwhile (the caller holds a reader's lock and compares).
  ///   - temporary: the folder to make the private one in; the system's own if nil.
  /// - Throws: `no-space` with the number of bytes that are lacking, or what copying throws.
  package init(
    of original: StoreFileSet, in temporary: FilePath? = nil, surroundings: Surroundings = .machine
  ) throws {
    let fileSystem = surroundings.fileSystem
    let members = try original.members(in: fileSystem)
      .filter { [.main, .wal, .journal].contains($0.part) && $0.status.kind == .regular }
    let folder = try PrivateFolder(
      in: temporary, needing: members.reduce(0) { $0 + $1.status.occupiedSize }, to: "copy the store to look at it",
      surroundings)
    let files = StoreFileSet(main: folder.path.appending("Store.sqlite"))
    for member in members { _ = try fileSystem.copy(member.path, to: files.path(of: member.part)) }
    self.folder = folder
    self.files = files
  }
}
