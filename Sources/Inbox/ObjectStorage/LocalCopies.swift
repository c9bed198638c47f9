internal import Foundation
internal import Platform
internal import SystemPackage

/// The copies of bundles on this machine, which go when there is no room for more, those first that were used longest ago.
///
/// One that was used a moment ago stays, since a page may be reading it, and so does one that something is working at.
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

    /// Until when it stays, however little room there is.
    fileprivate var stays = ContinuousClock.now
    fileprivate var isBusy = false
  }

  private let copies = Mutex<[String: Copy]>([:])
  private let folders: InboxFolders
  private let limit: Int64
  private let fileSystem: FileSystem
  private let isBeingUsed: @Sendable (String) -> Bool

  /// How long a copy stays after its last use, however little room there is.
  private let leastStay: Duration

  init(
    in folders: InboxFolders, limit: Int64, fileSystem: FileSystem, leastStay: Duration = .seconds(60),
    isBeingUsed: @escaping @Sendable (String) -> Bool
  ) {
    self.folders = folders
    self.limit = limit
    self.fileSystem = fileSystem
    self.leastStay = leastStay
    self.isBeingUsed = isBeingUsed
  }

  /// Uses the copy of a bundle, which no other thread does meanwhile; then those go that there is no room for.
  ///
  /// - Parameter isRead: whether it is read once this returns.
  func use(_ id: String, isRead: Bool = true, _ body: (inout Copy) throws -> Void) throws {
    var copy = take(id)
    let result = Result { try body(&copy) }
    let size = Result { try bytes(of: id) }
    copy.bytes = (try? size.get()) ?? copy.bytes
    copy.lastUse = .now
    copy.stays = isRead ? .now + leastStay : copy.stays
    copy.isBusy = false
    copies.withLock { [copy] in $0[id] = copy }
    try result.get()
    _ = try size.get()
    try makeRoom(but: id)
  }

  /// Removes copies until there is room, if there is none.
  ///
  /// - Parameter id: the one that is needed now.
  func makeRoom(but id: String? = nil) throws {
    while let old = takeOldest(but: id) { try removeTaken(old) }
  }

  /// Uses the copy of a bundle as it is, if it is of these archives.
  ///
  /// - Returns: whether it is; else it is to be fetched.
  func touch(_ id: String, with archives: [String]) -> Bool {
    copies.withLock { copies in
      guard let copy = copies[id], !copy.isBusy, copy.archives == archives else { return false }
      copies[id]?.lastUse = .now
      copies[id]?.stays = .now + leastStay
      return true
    }
  }

  /// Removes the copy of a bundle; no error where there is none.
  func drop(_ id: String) throws {
    _ = take(id)
    try removeTaken(id)
  }

  private func removeTaken(_ id: String) throws {
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

  /// The copy to remove next, which no other thread gets any more; nil where there is room.
  private func takeOldest(but id: String?) -> String? {
    copies.withLock { copies in
      guard copies.values.reduce(0, { $0 + $1.bytes }) > limit else { return nil }
      let now = ContinuousClock.now
      let oldest = copies.filter { $0.key != id && !$0.value.isBusy && $0.value.stays <= now && !isBeingUsed($0.key) }
        .min { $0.value.lastUse < $1.value.lastUse }?.key
      if let oldest { copies[oldest]?.isBusy = true }
      return oldest
    }
  }

  private func bytes(of id: String) throws(FileError) -> Int64 {
    let folder = folders.bundle(id)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    return try fileSystem.descendants(of: folder).files.reduce(0) { $0 + max(4096, $1.status.size) }
  }
}
