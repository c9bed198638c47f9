package import StoreFiles
package import SystemPackage

/// The bundles of an inbox in the home, where its workers work at them: one folder for each.
package struct FolderBundleStorage: BundleStorage {
  package let workHome: FilePath
  package let uses = BundleUses()
  private let folders: InboxFolders
  private let fileSystem: FileSystem

  /// The bundles of a home.
  package init(home: FilePath, in fileSystem: FileSystem) {
    workHome = home
    folders = InboxFolders(home: home)
    self.fileSystem = fileSystem
  }

  package var isShared: Bool { false }

  // MARK: Bundles

  /// Nothing is to be done: a bundle's own folder is where it stays.
  package func keep(_ bundle: InboxBundle, from path: FilePath) throws {}

  /// Nothing is to be done: the file in the folder is the only one.
  package func release(_ bundle: InboxBundle) throws {}

  package func received(_ bundle: InboxBundle) throws -> FilePath {
    let path = folders.received(bundle.id, encrypted: bundle.isEncrypted)
    guard try fileSystem.status(of: path, followingLinks: false) != nil else {
      throw InboxError(.missing, operation: "read the bundle", path: path, detail: "its file is gone")
    }
    return path
  }

  /// Nothing is to be done: it was made there.
  package func place(_ bundle: InboxBundle) throws {}

  package func remove(_ id: String) throws {
    try fileSystem.removeTree(folders.bundle(id))
    try fileSystem.removeTree(folders.work(id))
  }

  /// Nil: files that are removed are gone.
  package func keepingWords(at date: Timestamp) throws -> String? { nil }

  package func removeResults(of id: String) throws {
    let received = [folders.received(id, encrypted: true), folders.received(id, encrypted: false)]
    for name in try fileSystem.entries(of: folders.bundle(id)) {
      let path = folders.bundle(id).appending(name)
      if !received.contains(path) { try fileSystem.removeTree(path) }
    }
  }

  // MARK: Work

  /// Nil: the folder has what was made, and an attempt makes it anew.
  package func result(of making: BundleMaking) throws -> StoredResult? { nil }

  package func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool { true }

  package func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult {
    StoredResult(
      making: making, archive: nil, opened: result.opened, salvaged: result.salvaged, placedBytes: result.placedBytes)
  }

  // MARK: Leftovers

  /// Nothing is to be done: the start of the inbox removes what no record knows.
  package func removeLeftovers(_ records: any InboxRecords) throws {}

  /// Nothing is to be done: there are no copies.
  package func removeCopies(_ records: any InboxRecords) throws {}

  // MARK: The place

  package func mark() throws -> String? { try InboxPlace.mark(of: folders, in: fileSystem) }

  package func makeMark(_ mark: String) throws -> String {
    try InboxPlace.makeMark(mark, of: folders, in: fileSystem)
  }

  package func isEmpty() throws -> Bool { try fileSystem.entries(of: folders.bundles).isEmpty }
}
