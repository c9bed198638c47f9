import SystemPackage

/// The end of descriptors of files that connections of this process may hold locks on.
///
/// SQLite's locks belong to the process, and closing any descriptor of a file gives all of them up
/// (https://sqlite.org/howtocorrupt.html, section 2.2). So a descriptor of a file that something else in this process has
/// open is not closed but kept, for the next one here that opens the same file, until nothing else has it open any more.
/// A file that is kept open for no reason would look, to other processes, like a store in use.
enum KeptDescriptors {
  private struct Kept {
    var descriptor: FileDescriptor
    var identity: FileIdentity
    var isReadOnly: Bool
  }

  private static let limit = 64

  private static let kept = Mutex<[Kept]>([])

  /// One of a file, open for reading, which is the caller's then.
  static func take(_ identity: FileIdentity) -> FileDescriptor? {
    kept.withLock { kept in
      guard let index = kept.firstIndex(where: { $0.isReadOnly && $0.identity == identity }) else { return nil }
      return kept.remove(at: index).descriptor
    }
  }

  /// Ends a descriptor of a store's file, and the locks that were taken through it.
  static func end(_ descriptor: FileDescriptor, isReadOnly: Bool = true) {
    // Its locks are of its own.
    SystemCalls.unlock(descriptor)
    guard let status = try? SystemCalls.status(of: descriptor), status.linkCount > 0 else {
      // A file without a name, or none that can be looked at, is no store.
      return close(descriptor)
    }
    kept.withLock { kept in
      kept.append(Kept(descriptor: descriptor, identity: status.identity, isReadOnly: isReadOnly))
      closeNeedless(&kept)
      while kept.count > limit { close(kept.removeFirst().descriptor) }
    }
  }

  /// Ends a descriptor of any file; it is kept only where locks are held on the file.
  static func endUnlessLocked(_ descriptor: FileDescriptor) {
    // A lock that cannot be asked for is on a file system that has none.
    let everything = LockRange(start: 0, length: 0)
    let owner = try? SystemCalls.conflictingLock(on: descriptor, range: everything, exclusive: true)
    if owner == nil { close(descriptor) } else { end(descriptor) }
  }

  /// How many are kept, for tests.
  static var count: Int { kept.withLock { $0.count } }

  private static func closeNeedless(_ kept: inout [Kept]) {
    let own = Set(kept.map(\.descriptor.rawValue))
    // Where it cannot be told what is open, everything is kept.
    guard let open = SystemCalls.openFiles(excluding: own) else { return }
    kept.removeAll { entry in
      if open.contains(entry.identity) { return false }
      close(entry.descriptor)
      return true
    }
  }

  private static func close(_ descriptor: FileDescriptor) {
    // Nothing was written through it.
    try? descriptor.close()
  }
}
