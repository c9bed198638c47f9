import Platform
import SystemPackage

/// The mark that a store is being replaced and that its owner has not been told yet.
///
/// It lies beside the store as `.NAME.replaced` from before the store is moved until an opening has returned with the
/// notice, so that a process killed in between does not leave a user with an empty store and no word about it. From before a
/// salvaged store is put into the place it also says which one.
struct PendingNotice {
  /// The salvaged store that is being put into the place.
  struct Installation: Equatable {
    /// What the store that it was made of is called in quarantine.
    var id: String

    /// The number of the file that gets the store's name.
    var inode: UInt64
  }

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
    let line = try lines().first
    return line?.isEmpty == false ? line : nil
  }

  /// The salvaged store that was being put into the place; nil where none was.
  func installation() throws -> Installation? {
    guard try isThere() else { return nil }
    let words = try lines().dropFirst().first?.split(separator: " ") ?? []
    guard words.count == 3, words[0] == "installing", let inode = UInt64(words[2]) else { return nil }
    return Installation(id: String(words[1]), inode: inode)
  }

  /// What it says; nothing where another process has taken it away meanwhile.
  private func lines() throws -> [String] {
    do throws(FileError) {
      return String(decoding: try fileSystem.contents(of: path, limit: 400), as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    } catch {
      guard error.kind == .notFound else { throw error }
      return []
    }
  }

  /// Writes the mark.
  ///
  /// The caller holds the folder's lock.
  func write(previousID: String?) throws {
    try fileSystem.writeAtomically(Array((previousID ?? "").utf8), to: path, replacing: true)
  }

  /// Notes which salvaged store is about to get the place; what the mark says already stays.
  ///
  /// The caller holds the folder's lock.
  func write(_ installation: Installation) throws {
    let previous = try isThere() ? try previousID() ?? "" : ""
    let text = "\(previous)\ninstalling \(installation.id) \(installation.inode)"
    try fileSystem.writeAtomically(Array(text.utf8), to: path, replacing: true)
  }

  /// Removes the mark: the notice has been given, or there is nothing to tell.
  func remove() throws { try fileSystem.unlink(path) }
}
