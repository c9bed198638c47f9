public import SystemPackage

/// All file system access of this project.
///
/// Injected, so that a test can observe each step, make it fail or kill the process before it.
public struct FileSystem: Sendable {
  /// A hook before each step; its error becomes the step's.
  package typealias Interceptor = @Sendable (FileOperation) throws(Errno) -> Void

  private let intercept: Interceptor?

  /// Makes the machine's file system.
  public init() { intercept = nil }

  package init(intercept: @escaping Interceptor) { self.intercept = intercept }

  /// Runs a step and maps its error number.
  func perform<Result: ~Copyable>(
    _ kind: FileOperation.Kind, _ path: FilePath, _ operation: String, _ body: () throws(Errno) -> Result
  ) throws(FileError) -> Result {
    do {
      try intercept?(FileOperation(kind: kind, path: path))
      return try body()
    } catch { throw FileError(error, operation: operation, path: path) }
  }

  /// Runs a step of one call.
  func step<Result: ~Copyable>(
    _ kind: FileOperation.Kind, _ path: FilePath, _ operation: String, _ call: @autoclosure () throws(Errno) -> Result
  ) throws(FileError) -> Result { try perform(kind, path, operation, call) }

  // MARK: Reading

  /// Returns the status of a file; nil if it does not exist.
  public func status(of path: FilePath, followingLinks: Bool = true) throws(FileError) -> FileStatus? {
    try step(.status, path, "look at the file", try SystemCalls.status(of: path, followingLinks: followingLinks))
  }

  /// Returns the status of a file, or of a link itself; nil if it does not exist.
  package func entry(at path: FilePath) throws(FileError) -> FileStatus? { try status(of: path, followingLinks: false) }

  package func hasEntry(at path: FilePath) throws(FileError) -> Bool { try entry(at: path) != nil }

  /// Whether a folder, or a link to one, has the path.
  package func isFolder(_ path: FilePath) throws(FileError) -> Bool { try status(of: path)?.kind == .directory }

  func status(of descriptor: FileDescriptor, at path: FilePath) throws(FileError) -> FileStatus {
    try step(.status, path, "look at the file", try SystemCalls.status(of: descriptor))
  }

  /// Returns the sorted names in a folder.
  public func entries(of directory: FilePath) throws(FileError) -> [FilePath.Component] {
    try step(.list, directory, "list the folder", try SystemCalls.entries(of: directory))
  }

  /// Resolves every symbolic link of a path.
  public func realPath(_ path: FilePath) throws(FileError) -> FilePath {
    try step(.status, path, "resolve the path", try SystemCalls.realPath(path))
  }

  /// Returns the target of a symbolic link.
  public func linkTarget(_ path: FilePath) throws(FileError) -> FilePath {
    try step(.status, path, "read the symbolic link", try SystemCalls.linkTarget(path))
  }

  /// Returns the bytes available to an ordinary user.
  public func freeSpace(at path: FilePath) throws(FileError) -> Int64 {
    try step(.status, path, "measure the free space", try SystemCalls.freeSpace(at: path))
  }

  /// Opens a regular file for reading.
  ///
  /// Never blocks (a named pipe is rejected) and never changes the file.
  public func open(_ path: FilePath) throws(FileError) -> ReadableFile {
    try ReadableFile(owning: descriptor(of: path, options: .nonBlocking), at: path, in: self)
  }

  func descriptor(
    of path: FilePath, _ mode: FileDescriptor.AccessMode = .readOnly, options: FileDescriptor.OpenOptions,
    as kind: FileOperation.Kind = .open, _ operation: String = "open the file", permissions: FilePermissions? = nil
  ) throws(FileError) -> FileDescriptor {
    let options = options.union(.closeOnExec)
    return try step(
      kind, path, operation,
      try errno { try FileDescriptor.open(path, mode, options: options, permissions: permissions) })
  }

  /// Returns the content of a file of at most `limit` bytes.
  public func contents(of path: FilePath, limit: Int) throws(FileError) -> [UInt8] {
    let file = try open(path)
    guard file.count <= Int64(limit) else {
      throw FileError(
        .tooLarge, operation: "read the file", path: path,
        detail: "it has \(file.count) bytes, and at most \(limit) are accepted")
    }
    return try file.bytes(at: 0, length: limit)
  }

  // MARK: Writing

  /// Creates a file; fails if the name is taken.
  ///
  /// - Parameter truncating: whether to empty an existing file instead.
  public func create(
    _ path: FilePath, permissions: FilePermissions = .ownerReadWrite, truncating: Bool = false
  ) throws(FileError) -> WritableFile {
    try create(path, .writeOnly, truncating ? .truncate : .exclusiveCreate, permissions)
  }

  private func create(
    _ path: FilePath, _ mode: FileDescriptor.AccessMode, _ option: FileDescriptor.OpenOptions,
    _ permissions: FilePermissions
  ) throws(FileError) -> WritableFile {
    let descriptor = try descriptor(
      of: path, mode, options: [.create, option], as: .create, "create the file", permissions: permissions)
    return WritableFile(path: path, descriptor: descriptor, fileSystem: self)
  }

  /// Creates an unlinked file, which disappears on close or a kill.
  ///
  /// - Parameter path: its temporary name.
  package func createUnnamed(_ path: FilePath) throws(FileError) -> WritableFile {
    let file = try create(path, .readWrite, .exclusiveCreate, .ownerReadWrite)
    try unlink(path)
    return file
  }

  package func update(_ path: FilePath) throws(FileError) -> WritableFile {
    WritableFile(path: path, descriptor: try descriptor(of: path, .writeOnly, options: .noFollow), fileSystem: self)
  }

  /// Makes a hard link; fails if the name is taken.
  public func link(_ source: FilePath, to destination: FilePath) throws(FileError) {
    try step(.link, destination, "link the file into place", try SystemCalls.link(source, destination))
  }

  /// Renames a file and replaces an existing one.
  public func rename(_ source: FilePath, to destination: FilePath) throws(FileError) {
    try step(.rename, destination, "rename the file", try SystemCalls.rename(source, destination))
  }

  /// Removes a name of a file, if it exists.
  public func unlink(_ path: FilePath) throws(FileError) {
    try perform(.unlink, path, "remove the file") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.unlink(path)
      } catch .noSuchFileOrDirectory {
      } catch .notDirectory {
      } catch .fileNameTooLong where path.lastComponent?.isTooLong == true {}
    }
  }

  /// Makes a folder and its missing parents, by default accessible to the owner alone.
  public func makeDirectory(_ path: FilePath, permissions: FilePermissions = .ownerReadWriteExecute) throws(FileError) {
    if let status = try status(of: path), status.kind == .directory { return }
    let parent = path.removingLastComponent()
    if !parent.isEmpty, parent != path { try makeDirectory(parent, permissions: permissions) }
    try perform(.makeDirectory, path, "make the folder") { () throws(Errno) in
      do throws(Errno) { try SystemCalls.makeDirectory(path, permissions: permissions) } catch .fileExists {}
    }
    try synchronizeDirectory(parent.isEmpty ? "." : parent)
  }

  /// Makes a folder for the owner alone; returns false if the name is taken.
  func makeNewDirectory(_ path: FilePath) throws(FileError) -> Bool {
    try perform(.makeDirectory, path, "make the folder") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.makeDirectory(path, permissions: .ownerReadWriteExecute)
        return true
      } catch .fileExists { return false }
    }
  }

  /// Removes an empty folder, if it exists.
  public func removeDirectory(_ path: FilePath) throws(FileError) {
    try perform(.removeDirectory, path, "remove the folder") { () throws(Errno) in
      do throws(Errno) { try SystemCalls.removeDirectory(path) } catch .noSuchFileOrDirectory {}
    }
  }

  /// Makes the names in a folder durable.
  public func synchronizeDirectory(_ path: FilePath) throws(FileError) {
    try perform(.synchronizeDirectory, path, "write the folder to the disk") { () throws(Errno) in
      try errno {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .directory])
        try descriptor.closeAfter {
          do throws(Errno) { try SystemCalls.synchronize(descriptor) } catch .invalidArgument {
            // Some file systems cannot synchronize a folder.
          }
        }
      }
    }
  }

  // MARK: Access

  /// Returns a file's access; nil if it does not exist.
  package func access(to path: FilePath) throws(FileError) -> FileAccess? {
    guard let status = try status(of: path) else { return nil }
    let attributes = try step(.status, path, "read the attributes of the file", try SystemCalls.attributes(of: path))
    return FileAccess(status: status, attributes: attributes)
  }

  /// Applies another file's access, as far as this user may.
  package func adoptAccess(of model: FileAccess, to path: FilePath) throws(FileError) {
    try adoptAccess(of: model.status, to: path)
    // After the permissions, which would change the mask of an existing list.
    try step(.write, path, "set the attributes of the file", try SystemCalls.setAttributes(model.attributes, of: path))
  }

  /// Applies the current access of a file, if it exists.
  package func adoptAccess(of model: FilePath, to path: FilePath) throws(FileError) {
    guard let access = try access(to: model) else { return }
    try adoptAccess(of: access, to: path)
  }

  /// Applies a file's permissions and, as far as this user may, owner and group.
  package func adoptAccess(of model: FileStatus, to path: FilePath) throws(FileError) {
    try perform(.write, path, "set the owner of the file") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.setOwner(model.owner, group: model.group, of: path)
      } catch .notPermitted {
        // Only the superuser may change owners; the permissions still follow.
      } catch .permissionDenied {
      } catch .invalidArgument {
        // The user does not exist here.
      }
    }
    try step(
      .write, path, "set the permissions of the file", try SystemCalls.setPermissions(model.permissions, of: path))
  }

  /// Applies a folder's permissions, owner and group where they differ, if it exists.
  package func adoptAccess(ofFolder model: FilePath, to path: FilePath) throws(FileError) {
    guard let wanted = try status(of: model), let now = try entry(at: path), now.kind == .directory else { return }
    if (wanted.permissions, wanted.owner, wanted.group) == (now.permissions, now.owner, now.group) { return }
    try adoptAccess(of: wanted, to: path)
  }

  // MARK: Copies

  /// Copies the first bytes of a store's file for this run, while the caller prevents changes.
  ///
  /// Shares blocks where possible; does not synchronize or verify.
  ///
  /// - Throws: `changed-meanwhile` if the file is shorter, or the error of reading or writing; the caller removes the
  ///   copy.
  package func copyStill(_ source: LastingFile, count: Int64, to destination: FilePath) throws(FileError) {
    let copy = try create(destination, permissions: .ownerReadWrite)
    if try shareBlocks(from: source.descriptor, to: copy) {
      guard try source.currentStatus().size >= count else { throw Self.shorter(source) }
      return
    }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var done: Int64 = 0
    let isSparse = source.status.isSparse
    while done < count {
      let rest = done..<count
      guard let data = isSparse ? SystemCalls.nextData(in: source.descriptor, from: done, to: count) : rest else {
        break
      }
      done = data.lowerBound
      while done < data.upperBound {
        let wanted = Int(min(Int64(buffer.count), data.upperBound - done))
        let got = try source.read(at: done, length: wanted, into: &buffer)
        guard got > 0 else { throw Self.shorter(source) }
        try copy.write(buffer[..<got], at: done)
        done += Int64(got)
      }
    }
    guard isSparse else { return }
    // After the last data comes a hole, unless the file was truncated.
    guard try source.currentStatus().size >= count else { throw Self.shorter(source) }
    try copy.truncate(to: count)
  }

  private static func shorter(_ file: LastingFile) -> FileError {
    FileError(.changed, operation: "read the store", path: file.path)
  }

  /// Replaces a folder by a copy of another, each file synchronized and verified, without links and pipes.
  ///
  /// Applies permissions, owner and group as far as this user may.
  ///
  /// - Parameter isWanted: a filter by name.
  /// - Throws: on error the partial copy stays for the caller to remove.
  package func copyTree(
    _ source: FilePath, to target: FilePath, where isWanted: (String) -> Bool = { _ in true }
  ) throws {
    try removeTree(target)
    let content = try descendants(of: source)
    try makeDirectory(target)
    for folder in content.folders { try makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular && isWanted(file.relative.last?.string ?? "") {
      let copy = target.appending(file.relative)
      _ = try self.copy(file.path, to: copy)
      try adoptAccess(of: file.path, to: copy)
    }
    for folder in content.folders.reversed() {
      try adoptAccess(ofFolder: source.appending(folder), to: target.appending(folder))
      try synchronizeDirectory(target.appending(folder))
    }
    try adoptAccess(ofFolder: source, to: target)
    try synchronizeDirectory(target)
  }

  package func removeTree(_ path: FilePath) throws(FileError) {
    guard let status = try entry(at: path) else { return }
    guard status.kind == .directory else {
      try unlink(path)
      return
    }
    let content = try descendants(of: path)
    for file in content.files { try unlink(file.path) }
    for folder in content.folders.sorted(by: { $0.count > $1.count }) { try removeDirectory(path.appending(folder)) }
    try removeDirectory(path)
  }
}

/// Narrows errors to error numbers.
func errno<Result>(_ body: () throws -> Result) throws(Errno) -> Result {
  do { return try body() } catch { throw error as? Errno ?? .ioError }
}

/// The transferable access to a file: permissions, owner, group, access control list and extended attributes.
package struct FileAccess: Sendable, Hashable {
  package var status: FileStatus

  /// The extended attributes, including the access control list.
  package var attributes: [String: [UInt8]]

  /// The access for a store to be opened: its owner may read and write.
  package var usable: FileAccess {
    var access = self
    access.status.permissions = status.permissions.union(.ownerReadWrite)
    return access
  }
}

/// An imminent file system step.
package struct FileOperation: Sendable, Hashable {
  package enum Kind: String, Sendable, CaseIterable {
    case status, list, open, read, lock
    case create, write, truncate, synchronize, synchronizeDirectory
    case link, rename, unlink, makeDirectory, removeDirectory

    package var isWrite: Bool { ![.status, .list, .open, .read, .lock].contains(self) }
  }

  package var kind: Kind
  package var path: FilePath
}

/// A file's status.
public struct FileStatus: Sendable, Hashable {
  /// The kinds of directory entries.
  public enum Kind: String, Sendable { case regular, directory, symbolicLink, other }

  /// The kind of file.
  public var kind: Kind

  /// The length in bytes.
  public var size: Int64

  /// The allocated bytes; fewer than ``size`` for a sparse file.
  ///
  /// Not compared: allocation may follow the write.
  public var allocatedSize: Int64

  /// The file's identity.
  public var identity: FileIdentity

  /// The number of hard links.
  public var linkCount: Int

  /// The permissions.
  public var permissions: FilePermissions

  /// The owner's user ID.
  public var owner: UInt32

  /// The group's ID.
  public var group: UInt32

  /// The modification time.
  public var modified: Timestamp

  /// The status change time.
  public var statusChanged: Timestamp

  /// The bytes of a copy, without holes.
  public var occupiedSize: Int64 { kind == .regular ? min(size, allocatedSize) : size }

  var isSparse: Bool { kind == .regular && allocatedSize < size - 65_536 }

  private struct Facts: Hashable {
    let kind: Kind
    let size: Int64
    let identity: FileIdentity
    let linkCount: Int
    let permissions: FilePermissions
    let owner: UInt32
    let group: UInt32
    let modified: Timestamp
    let statusChanged: Timestamp
  }

  private var facts: Facts {
    Facts(
      kind: kind, size: size, identity: identity, linkCount: linkCount, permissions: permissions, owner: owner,
      group: group, modified: modified, statusChanged: statusChanged)
  }

  /// Whether two statuses are equal, apart from the allocated bytes.
  public static func == (one: FileStatus, other: FileStatus) -> Bool { one.facts == other.facts }

  /// Hashes the compared members.
  public func hash(into hasher: inout Hasher) { hasher.combine(facts) }
}

/// A file's identity across names: device and inode.
public struct FileIdentity: Sendable, Hashable, Codable {
  /// The device number.
  public var device: UInt64

  /// The inode number.
  public var inode: UInt64
}
