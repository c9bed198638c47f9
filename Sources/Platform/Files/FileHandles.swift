public import SystemPackage

/// A regular file open for reading; closes itself.
public final class ReadableFile: ByteSource {
  /// The path at opening.
  public let path: FilePath

  /// The status at opening.
  public let status: FileStatus

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  init(owning descriptor: FileDescriptor, at path: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.descriptor = descriptor
    self.path = path
    self.fileSystem = fileSystem
    status = try fileSystem.status(of: descriptor, at: path)
    switch status.kind {
    case .regular: break
    case .directory: throw FileError(.isDirectory, operation: "open the file", path: path)
    case .symbolicLink, .other: throw FileError(.notRegularFile, operation: "open the file", path: path)
    }
  }

  deinit {
    // A close would release the locks of this process's connections if it is a store's file.
    KeptDescriptors.endUnlessLocked(descriptor)
  }

  /// The number of bytes at opening.
  public var count: Int64 { status.size }

  /// Reads from the file; short only at its end.
  public func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, length > 0 else { return 0 }
    let wanted = min(length, buffer.count)
    return try fileSystem.step(
      .read, path, "read the file", try SystemCalls.read(descriptor, at: offset, length: wanted, into: &buffer))
  }

  private static let rangeLimit = 100_000

  /// The end of the data, before a trailing hole.
  package var dataEnd: Int64 { dataRanges().end }

  /// Whether the holes have 1 GiB or more.
  var hasLongHoles: Bool { count - dataRanges().bytes >= 1 << 30 }

  private func dataRanges() -> (bytes: Int64, end: Int64) {
    guard status.isSparse else { return (count, count) }
    var (bytes, end) = (Int64(0), Int64(0))
    for _ in 0..<Self.rangeLimit {
      guard let data = SystemCalls.nextData(in: descriptor, from: end, to: count) else { return (bytes, end) }
      bytes += data.upperBound - data.lowerBound
      end = data.upperBound
    }
    return (count, count)
  }

  /// Returns the current status.
  public func currentStatus() throws(FileError) -> FileStatus { try fileSystem.status(of: descriptor, at: path) }
}

/// A file open for writing; only `commit()` guarantees that every byte is on disk.
public struct WritableFile: ~Copyable, Sendable {
  /// The path at creation.
  public let path: FilePath

  let descriptor: FileDescriptor
  let fileSystem: FileSystem

  deinit {
    // Without a commit the file is unfinished anyway.
    try? descriptor.close()
  }

  /// Opens the same file for reading at its present length; only for unlinked files.
  package func reading() throws(FileError) -> ReadableFile {
    let other = try fileSystem.step(.open, path, "open the file", try errno { try descriptor.duplicate() })
    return try ReadableFile(owning: other, at: path, in: fileSystem)
  }

  private func change(_ kind: FileOperation.Kind, _ operation: String, _ body: () throws -> Void) throws(FileError) {
    try fileSystem.step(kind, path, operation, try errno(body))
  }

  /// Appends bytes.
  public func write(_ bytes: some Collection<UInt8>) throws(FileError) {
    try change(.write, "write the file") { _ = try descriptor.writeAll(bytes) }
  }

  package func write(_ bytes: some Collection<UInt8>, at offset: Int64) throws(FileError) {
    try change(.write, "write the file") { _ = try descriptor.writeAll(toAbsoluteOffset: offset, bytes) }
  }

  package func truncate(to count: Int64) throws(FileError) {
    try change(.truncate, "cut the file off") { try descriptor.resize(to: count) }
  }

  /// Starts writeback of a range, without waiting or a guarantee.
  package func beginWriting(at offset: Int64, length: Int64) {
    SystemCalls.beginWriting(descriptor, at: offset, length: length)
  }

  /// Synchronizes everything written so far.
  public func synchronize() throws(FileError) {
    try change(.synchronize, "write the file to the disk") { try SystemCalls.synchronize(descriptor) }
  }

  /// Synchronizes and closes the file.
  public consuming func commit() throws(FileError) { try synchronize() }
}

/// A store's file, open for reading, closed without releasing this process's locks; see ``KeptDescriptors``.
package final class LastingFile: ByteSource {
  let path: FilePath

  package let status: FileStatus

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  /// Opens a regular file; never blocks or changes it.
  package init(_ path: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.path = path
    self.fileSystem = fileSystem
    descriptor = try fileSystem.perform(.open, path, "open the file") { () throws(Errno) in
      let status = try SystemCalls.status(of: path, followingLinks: true)
      if let kept = status.flatMap({ KeptDescriptors.take($0.identity) }) { return kept }
      return try errno { try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]) }
    }
    let opened = descriptor
    do throws(FileError) { status = try fileSystem.status(of: opened, at: path) } catch {
      KeptDescriptors.end(opened)
      throw error
    }
    guard status.kind == .regular else {
      KeptDescriptors.end(opened)
      throw FileError(
        status.kind == .directory ? .isDirectory : .notRegularFile, operation: "open the file", path: path)
    }
  }

  deinit { KeptDescriptors.end(descriptor) }

  package var count: Int64 { status.size }

  /// Reads from the file; short only at its end.
  package func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, length > 0 else { return 0 }
    let wanted = min(length, buffer.count)
    return try fileSystem.step(
      .read, path, "read the file", try SystemCalls.read(descriptor, at: offset, length: wanted, into: &buffer))
  }

  package func currentStatus() throws(FileError) -> FileStatus { try fileSystem.status(of: descriptor, at: path) }

  /// Returns the holder of a lock that excludes another one, if any.
  func conflict(_ range: LockRange, exclusive: Bool = false) throws(FileError) -> LockOwner? {
    try lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: exclusive)
    }
  }

  func lock<Result>(_ operation: String, _ body: (FileDescriptor) throws(Errno) -> Result) throws(FileError) -> Result {
    try fileSystem.step(.lock, path, operation, try body(descriptor))
  }
}

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
    let owner = try? SystemCalls.conflictingLock(on: descriptor, range: .everything, exclusive: true)
    if owner == nil { close(descriptor) } else { end(descriptor) }
  }

  private static func closeNeedless(_ kept: inout [Kept]) {
    let own = Set(kept.map(\.descriptor.rawValue))
    // Without knowledge of the open files, keep everything.
    guard let open = SystemCalls.openFiles(excluding: own) else { return }
    for entry in kept where !open.contains(entry.identity) { close(entry.descriptor) }
    kept.removeAll { !open.contains($0.identity) }
  }

  private static func close(_ descriptor: FileDescriptor) {
    // Only read.
    try? descriptor.close()
  }
}
