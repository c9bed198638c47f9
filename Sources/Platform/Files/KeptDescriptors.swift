import SystemPackage

/// The descriptors of files on which connections of this process may hold locks.
///
/// SQLite's locks belong to the process, and closing any descriptor of a file releases all of them
/// (https://sqlite.org/howtocorrupt.html, section 2.2). While the process has a file open elsewhere, its descriptor is
/// therefore kept and reused. Keeping it longer would make the store look in use to other processes.
enum KeptDescriptors {
  private struct Kept {
    var descriptor: FileDescriptor
    var identity: FileIdentity
    var isReadOnly: Bool
  }

  private static let limit = 64

  private static let kept = Mutex<[Kept]>([])

  static func take(_ identity: FileIdentity) -> FileDescriptor? {
    kept.withLock { kept in
      guard let index = kept.firstIndex(where: { $0.isReadOnly && $0.identity == identity }) else { return nil }
      return kept.remove(at: index).descriptor
    }
  }

  static func end(_ descriptor: FileDescriptor, isReadOnly: Bool = true) {
    // The OFD locks belong to this descriptor alone.
    SystemCalls.unlock(descriptor)
    guard let status = try? SystemCalls.status(of: descriptor), status.linkCount > 0 else {
      // A file that is unlinked or cannot be inspected is no store.
      return close(descriptor)
    }
    kept.withLock { kept in
      kept.append(Kept(descriptor: descriptor, identity: status.identity, isReadOnly: isReadOnly))
      closeNeedless(&kept)
      while kept.count > limit { close(kept.removeFirst().descriptor) }
    }
  }

  /// Ends a descriptor, or keeps it if the file is locked.
  static func endUnlessLocked(_ descriptor: FileDescriptor) {
    // A failed query means a file system without locks.
    let everything = LockRange(start: 0, length: 0)
    let owner = try? SystemCalls.conflictingLock(on: descriptor, range: everything, exclusive: true)
    if owner == nil { close(descriptor) } else { end(descriptor) }
  }

  /// For tests.
  static var count: Int { kept.withLock { $0.count } }

  private static func closeNeedless(_ kept: inout [Kept]) {
    let own = Set(kept.map(\.descriptor.rawValue))
    // Without knowledge of the open files, keep everything.
    guard let open = SystemCalls.openFiles(excluding: own) else { return }
    kept.removeAll { entry in
      if open.contains(entry.identity) { return false }
      close(entry.descriptor)
      return true
    }
  }

  private static func close(_ descriptor: FileDescriptor) {
    // Only read.
    try? descriptor.close()
  }
}
