import Platform
import SystemPackage

/// The mark of a replaced store with an undelivered notice.
///
/// The file `.NAME.replaced` lies beside the store from before the move until the notice is returned, so that a kill
/// cannot leave a user with an unexplained empty store. It also names a salvaged store before its installation.
struct PendingNotice {
  struct Installation: Equatable {
    /// The quarantine name of the salvaged original.
    var id: String

    /// The inode number of the file that gets the store's name.
    var inode: UInt64
  }

  private let path: FilePath
  private let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".replaced")
    self.fileSystem = fileSystem
  }

  func isThere() throws -> Bool { try fileSystem.status(of: path, followingLinks: false) != nil }

  /// Returns the quarantine's newest store before the replacement.
  func previousID() throws -> String? {
    let line = try lines().first
    return line?.isEmpty == false ? line : nil
  }

  func installation() throws -> Installation? {
    guard try isThere() else { return nil }
    let words = try lines().dropFirst().first?.split(separator: " ") ?? []
    guard words.count == 3, words[0] == "installing", let inode = UInt64(words[2]) else { return nil }
    return Installation(id: String(words[1]), inode: inode)
  }

  private func lines() throws -> [String] {
    do throws(FileError) {
      return String(decoding: try fileSystem.contents(of: path, limit: 400), as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    } catch {
      guard error.kind == .notFound else { throw error }
      return []
    }
  }

  /// Writes the mark, under the caller's folder lock.
  func write(previousID: String?) throws {
    try fileSystem.writeAtomically(Array((previousID ?? "").utf8), to: path, replacing: true)
  }

  /// Adds a salvaged store before its installation, under the caller's folder lock.
  func write(_ installation: Installation) throws {
    let previous = try isThere() ? try previousID() ?? "" : ""
    let text = "\(previous)\ninstalling \(installation.id) \(installation.inode)"
    try fileSystem.writeAtomically(Array(text.utf8), to: path, replacing: true)
  }

  func remove() throws { try fileSystem.unlink(path) }
}
