/// The mark that a store is being replaced and that its owner has not been told yet.
///
/// It lies beside the store as `.NAME.replaced` from before the store is moved until an opening has returned with the
/// notice, so that a process killed in between does not leave a user with an empty store and no word about it.
struct PendingNotice {
  private let path: FilePath
  private let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".replaced")
    self.fileSystem = fileSystem
  }

  /// Whether a notice is waiting.
  func isThere() throws -> Bool { try fileSystem.status(of: path, followingLinks: false) != nil }

  /// The name of the store that was the newest one in quarantine before the replacement began; nil where there was none.
  func previousID() throws -> String? {
    let text = String(decoding: try fileSystem.contents(of: path, limit: 100), as: UTF8.self)
    return text.isEmpty ? nil : text
  }

  /// Writes the mark.
  ///
  /// The caller holds the folder's lock.
  func write(previousID: String?) throws {
    try fileSystem.writeAtomically(Array((previousID ?? "").utf8), to: path, replacing: true)
  }

  /// Removes the mark: the notice has been given, or there is nothing to tell.
  func remove() throws { try fileSystem.unlink(path) }
}
