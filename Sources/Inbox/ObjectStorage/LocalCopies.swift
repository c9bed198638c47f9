internal import Foundation
internal import Platform

/// The local copies of bundles; the least recently used go first.
///
/// Copies in use or just used stay, since a page may be reading them. Those from before this process were removed.
final class LocalCopies: Sendable {
  struct Copy: Sendable {
    var hasReceived = false

    /// The unpacked archives in order.
    var archives: [String] = []

    fileprivate var bytes: Int64 = 0
    fileprivate var lastUse = ContinuousClock.now

    /// Until when it stays even without room.
    fileprivate var stays = ContinuousClock.now
    fileprivate var isBusy = false
  }

  private let copies = Mutex<[String: Copy]>([:])
  private let folders: InboxFolders
  private let limit: Int64
  private let fileSystem: FileSystem
  private let isBeingUsed: @Sendable (String) -> Bool

  /// The time after the last use, even without room.
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

  /// Lends a copy exclusively, then evicts others for room.
  ///
  /// - Parameter isRead: whether the caller reads it afterwards.
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

  /// Evicts copies that exceed the room.
  ///
  /// - Parameter id: the copy to keep.
  func makeRoom(but id: String? = nil) throws {
    while let old = takeOldest(but: id) { try removeTaken(old) }
  }

  /// Marks a copy with these archives as used.
  ///
  /// - Returns: false if it must be fetched.
  func touch(_ id: String, with archives: [String]) -> Bool {
    copies.withLock { copies in
      guard let copy = copies[id], !copy.isBusy, copy.archives == archives else { return false }
      copies[id]?.lastUse = .now
      copies[id]?.stays = .now + leastStay
      return true
    }
  }

  func drop(_ id: String) throws {
    _ = take(id)
    try removeTaken(id)
  }

  private func removeTaken(_ id: String) throws {
    defer { copies.withLock { $0[id] = nil } }
    try fileSystem.removeTree(folders.bundle(id))
  }

  var ids: [String] { copies.withLock { Array($0.keys) } }

  var bytes: Int64 { copies.withLock { $0.values.reduce(0) { $0 + $1.bytes } } }

  /// Waits for exclusive use of a copy.
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

  /// Reserves the copy to evict next; nil if there is room.
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
