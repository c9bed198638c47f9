internal import Compatibility
internal import Foundation
internal import Inbox
internal import StoreFiles
internal import SystemPackage

/// The copies of bundles on this machine, which go when there is no room for more, those first that were used longest ago.
///
/// What was there before the process began is not known to it, and was removed.
final class LocalCopies: Sendable {
  /// What there is of a bundle.
  struct Copy: Sendable {
    /// Whether the file is there as it was received.
    var hasReceived = false

    /// The marks of the archives that were unpacked, in their order.
    var archives: [String] = []

    fileprivate var bytes: Int64 = 0
    fileprivate var lastUse = ContinuousClock.now
    fileprivate var isBusy = false
  }

  private let copies = Mutex<[String: Copy]>([:])
  private let folders: InboxFolders
  private let limit: Int64
  private let fileSystem: FileSystem

  init(in folders: InboxFolders, limit: Int64, fileSystem: FileSystem) {
    self.folders = folders
    self.limit = limit
    self.fileSystem = fileSystem
  }

  /// Uses the copy of a bundle, which no other thread does meanwhile; then those go that there is no room for.
  func use(_ id: String, _ body: (inout Copy) throws -> Void) throws {
    var copy = take(id)
    let result = Result { try body(&copy) }
    let size = Result { try bytes(of: id) }
    copy.bytes = (try? size.get()) ?? copy.bytes
    copy.lastUse = .now
    copy.isBusy = false
    copies.withLock { [copy] in $0[id] = copy }
    try result.get()
    _ = try size.get()
    while let old = oldest(but: id) { try drop(old) }
  }

  /// Removes the copy of a bundle; no error where there is none.
  func drop(_ id: String) throws {
    _ = take(id)
    defer { copies.withLock { $0[id] = nil } }
    try fileSystem.removeTree(folders.bundle(id))
  }

  /// The identifiers of the bundles that there are copies of.
  var ids: [String] { copies.withLock { Array($0.keys) } }

  /// How many bytes there are of all copies.
  var bytes: Int64 { copies.withLock { $0.values.reduce(0) { $0 + $1.bytes } } }

  /// The copy of a bundle, once no other thread has it.
  private func take(_ id: String) -> Copy {
    while true {
      let copy = copies.withLock { copies -> Copy? in
        var copy = copies[id] ?? Copy()
        guard !copy.isBusy else { return nil }
        copy.isBusy = true
        copies[id] = copy
        return copy
      }
      if let copy { return copy }
      Thread.sleep(forTimeInterval: 0.01)
    }
  }

  /// The copy to remove next; nil where there is room.
  private func oldest(but id: String) -> String? {
    copies.withLock { copies in
      guard copies.values.reduce(0, { $0 + $1.bytes }) > limit else { return nil }
      return copies.filter { $0.key != id && !$0.value.isBusy }.min { $0.value.lastUse < $1.value.lastUse }?.key
    }
  }

  private func bytes(of id: String) throws(FileError) -> Int64 {
    let folder = folders.bundle(id)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    return try fileSystem.descendants(of: folder).files.reduce(0) { $0 + max(4096, $1.status.size) }
  }
}
