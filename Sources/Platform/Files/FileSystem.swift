public import SystemPackage

/// The file system, as this project uses it: every read and every write goes through this value.
///
/// It is passed in, so that a test can watch each step, make it fail with an error number of its choice, or kill the
/// process before it.
public struct FileSystem: Sendable {
  /// Called before each step; what it throws is what the step fails with.
  package typealias Interceptor = @Sendable (FileOperation) throws(Errno) -> Void

  private let intercept: Interceptor?

  /// The machine's own file system.
  public init() { intercept = nil }

  /// The machine's own file system, watched.
  package init(intercept: @escaping Interceptor) { self.intercept = intercept }

  /// Takes one step, with the error of the interceptor or of the system told in the project's own words.
  func perform<Result: ~Copyable>(
    _ kind: FileOperation.Kind, _ path: FilePath, _ operation: String, _ body: () throws(Errno) -> Result
  ) throws(FileError) -> Result {
    do {
      try intercept?(FileOperation(kind: kind, path: path))
      return try body()
    } catch {
      throw FileError(error, operation: operation, path: path)
    }
  }
}

// MARK: - Looking

extension FileSystem {
  /// The status of a file, or nil where nothing has that name.
  public func status(of path: FilePath, followingLinks: Bool = true) throws(FileError) -> FileStatus? {
    try perform(.status, path, "look at the file") { () throws(Errno) in
      try SystemCalls.status(of: path, followingLinks: followingLinks)
    }
  }

  /// The names in a folder, sorted.
  public func entries(of directory: FilePath) throws(FileError) -> [FilePath.Component] {
    try perform(.list, directory, "list the folder") { () throws(Errno) in try SystemCalls.entries(of: directory) }
  }

  /// The path with every symbolic link in it resolved.
  public func realPath(_ path: FilePath) throws(FileError) -> FilePath {
    try perform(.status, path, "resolve the path") { () throws(Errno) in try SystemCalls.realPath(path) }
  }

  /// What a symbolic link says.
  public func linkTarget(_ path: FilePath) throws(FileError) -> FilePath {
    try perform(.status, path, "read the symbolic link") { () throws(Errno) in try SystemCalls.linkTarget(path) }
  }

  /// The bytes an ordinary user can still write to the file system that holds a folder.
  public func freeSpace(at path: FilePath) throws(FileError) -> Int64 {
    try perform(.status, path, "measure the free space") { () throws(Errno) in try SystemCalls.freeSpace(at: path) }
  }

  /// Opens a regular file for reading.
  ///
  /// Never waits (a named pipe is refused, not opened) and never changes the file.
  public func open(_ path: FilePath) throws(FileError) -> ReadableFile {
    let descriptor = try perform(.open, path, "open the file") { () throws(Errno) in
      try errno { try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]) }
    }
    return try ReadableFile(owning: descriptor, at: path, in: self)
  }

  /// The whole content of a file that is no larger than `limit` bytes.
  public func contents(of path: FilePath, limit: Int) throws(FileError) -> [UInt8] {
    let file = try open(path)
    guard file.count <= Int64(limit) else {
      throw FileError(
        .tooLarge, operation: "read the file", path: path,
        detail: "it has \(file.count) bytes, and at most \(limit) are accepted")
    }
    return try file.bytes(at: 0, length: limit)
  }
}

// MARK: - Writing

extension FileSystem {
  /// Makes a new file; fails where the name is taken.
  ///
  /// - Parameter truncating: whether a file of that name is emptied instead.
  public func create(
    _ path: FilePath, permissions: FilePermissions = .ownerReadWrite, truncating: Bool = false
  ) throws(FileError) -> WritableFile {
    let descriptor = try perform(.create, path, "create the file") { () throws(Errno) in
      try errno {
        try FileDescriptor.open(
          path, .writeOnly, options: [.closeOnExec, .create, truncating ? .truncate : .exclusiveCreate],
          permissions: permissions)
      }
    }
    return WritableFile(owning: descriptor, at: path, in: self)
  }

  /// Creates a file that has no name any more: it goes when it is closed, also where the process is killed.
  ///
  /// - Parameter path: the name that it has for a moment.
  package func createUnnamed(_ path: FilePath) throws(FileError) -> WritableFile {
    let descriptor = try perform(.create, path, "create the file") { () throws(Errno) in
      try errno {
        try FileDescriptor.open(
          path, .readWrite, options: [.closeOnExec, .create, .exclusiveCreate], permissions: .ownerReadWrite)
      }
    }
    let file = WritableFile(owning: descriptor, at: path, in: self)
    try unlink(path)
    return file
  }

  /// Opens a file that is there, to write over parts of it.
  package func update(_ path: FilePath) throws(FileError) -> WritableFile {
    let descriptor = try perform(.open, path, "open the file") { () throws(Errno) in
      try errno { try FileDescriptor.open(path, .writeOnly, options: [.closeOnExec, .noFollow]) }
    }
    return WritableFile(owning: descriptor, at: path, in: self)
  }

  /// Gives a file a second name; fails where that name is taken.
  public func link(_ source: FilePath, to destination: FilePath) throws(FileError) {
    try perform(.link, destination, "link the file into place") { () throws(Errno) in
      try SystemCalls.link(source, destination)
    }
  }

  /// Renames a file, in place of whatever has the new name.
  public func rename(_ source: FilePath, to destination: FilePath) throws(FileError) {
    try perform(.rename, destination, "rename the file") { () throws(Errno) in
      try SystemCalls.rename(source, destination)
    }
  }

  /// Removes one name of a file; no error where there is none.
  public func unlink(_ path: FilePath) throws(FileError) {
    try perform(.unlink, path, "remove the file") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.unlink(path)
      } catch .noSuchFileOrDirectory {
      } catch .notDirectory {
      } catch .fileNameTooLong where path.lastComponent?.isTooLong == true {}
    }
  }

  /// Makes a folder, and those above it that are missing; no error where it is there.
  ///
  /// They are their owner's alone unless told otherwise.
  public func makeDirectory(_ path: FilePath, permissions: FilePermissions = .ownerReadWriteExecute) throws(FileError) {
    if let status = try status(of: path), status.kind == .directory { return }
    let parent = path.removingLastComponent()
    if !parent.isEmpty, parent != path { try makeDirectory(parent, permissions: permissions) }
    try perform(.makeDirectory, path, "make the folder") { () throws(Errno) in
      do throws(Errno) { try SystemCalls.makeDirectory(path, permissions: permissions) } catch .fileExists {}
    }
    try synchronizeDirectory(parent.isEmpty ? "." : parent)
  }

  /// Makes a folder for its owner alone in one that is there; returns whether nothing was there before.
  package func makeNewDirectory(_ path: FilePath) throws(FileError) -> Bool {
    try perform(.makeDirectory, path, "make the folder") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.makeDirectory(path, permissions: .ownerReadWriteExecute)
        return true
      } catch .fileExists { return false }
    }
  }

  /// Removes an empty folder; no error where there is none.
  public func removeDirectory(_ path: FilePath) throws(FileError) {
    try perform(.removeDirectory, path, "remove the folder") { () throws(Errno) in
      do throws(Errno) { try SystemCalls.removeDirectory(path) } catch .noSuchFileOrDirectory {}
    }
  }

  /// Makes the names in a folder as durable as the files' contents.
  public func synchronizeDirectory(_ path: FilePath) throws(FileError) {
    try perform(.synchronizeDirectory, path, "write the folder to the disk") { () throws(Errno) in
      try errno {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .directory])
        try descriptor.closeAfter {
          do throws(Errno) {
            try SystemCalls.synchronize(descriptor)
          } catch .invalidArgument {
            // Some file systems cannot synchronise a folder; their names are as durable as they get.
          }
        }
      }
    }
  }
}

/// Runs what throws only error numbers, though its type does not say so.
func errno<Result>(_ body: () throws -> Result) throws(Errno) -> Result {
  do {
    return try body()
  } catch let error as Errno {
    throw error
  } catch {
    throw .ioError
  }
}

/// Who may do what with a file, as far as it can be given to another: permissions, owner, group, access control list and
/// extended attributes.
package struct FileAccess: Sendable, Hashable {
  /// The status, of which the permissions, the owner and the group count.
  package var status: FileStatus

  /// The extended attributes by name, the access control list among them; of some systems none.
  package var attributes: [String: [UInt8]]
}

extension FileAccess {
  /// The same for a store that an app is to open: its owner may read and write it.
  package var usable: FileAccess {
    var access = self
    access.status.permissions = status.permissions.union(.ownerReadWrite)
    return access
  }
}

extension FileSystem {
  /// Who may do what with a file, to be given to another later; nil where nothing has that name.
  package func access(to path: FilePath) throws(FileError) -> FileAccess? {
    guard let status = try status(of: path) else { return nil }
    let attributes = try perform(.status, path, "read the attributes of the file") { () throws(Errno) in
      try SystemCalls.attributes(of: path)
    }
    return FileAccess(status: status, attributes: attributes)
  }

  /// Gives a file everything that tells who may do what with another, as far as this user may.
  package func adoptAccess(of model: FileAccess, to path: FilePath) throws(FileError) {
    try adoptAccess(of: model.status, to: path)
    // Behind the permissions, which would be taken for the mask of a list that is there already.
    try perform(.write, path, "set the attributes of the file") { () throws(Errno) in
      try SystemCalls.setAttributes(model.attributes, of: path)
    }
  }

  /// The same with the access that a file has now; nothing is done where that is missing.
  package func adoptAccess(of model: FilePath, to path: FilePath) throws(FileError) {
    guard let access = try access(to: model) else { return }
    try adoptAccess(of: access, to: path)
  }

  /// Gives a file the permissions of another, and its owner and group where this user may.
  package func adoptAccess(of model: FileStatus, to path: FilePath) throws(FileError) {
    try perform(.write, path, "set the owner of the file") { () throws(Errno) in
      do throws(Errno) {
        try SystemCalls.setOwner(model.owner, group: model.group, of: path)
      } catch .notPermitted {
        // Only the superuser may give files away; the permissions still follow.
      } catch .permissionDenied {
      } catch .invalidArgument {
        // Nor is there that user where this process is.
      }
    }
    try perform(.write, path, "set the permissions of the file") { () throws(Errno) in
      try SystemCalls.setPermissions(model.permissions, of: path)
    }
  }

  /// Gives a folder the permissions, the owner and the group of another, where they differ; not where that is missing.
  package func adoptAccess(ofFolder model: FilePath, to path: FilePath) throws(FileError) {
    guard let wanted = try status(of: model), let now = try status(of: path, followingLinks: false),
      now.kind == .directory
    else { return }
    if (wanted.permissions, wanted.owner, wanted.group) == (now.permissions, now.owner, now.group) { return }
    try adoptAccess(of: wanted, to: path)
  }
}

extension FileSystem {
  /// Copies the first bytes of a store's file into a new one, as fast as the system can, while the caller keeps them still.
  ///
  /// Blocks are shared where the file system can. Nothing is read back or pushed to the disk: the copy is for this run alone.
  ///
  /// - Throws: `changed-meanwhile` where the file is shorter, or what reading and writing throw; the caller removes the copy.
  package func copyStill(_ source: LastingFile, count: Int64, to destination: FilePath) throws(FileError) {
    let copy = try create(destination, permissions: .ownerReadWrite)
    let target = copy.descriptor
    let isShared = try perform(.write, destination, "copy the file") { () throws(Errno) in
      SystemCalls.shareBlocks(from: source.descriptor, to: target)
    }
    if isShared {
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
    // What is behind the last data is a hole, unless the file has been cut off meanwhile.
    guard try source.currentStatus().size >= count else { throw Self.shorter(source) }
    try copy.truncate(to: count)
  }

  private static func shorter(_ file: LastingFile) -> FileError {
    FileError(.changed, operation: "read the store", path: file.path)
  }
}

extension FileSystem {
  /// Copies a folder with everything in it, each file pushed to the disk and compared; links and pipes are left out.
  ///
  /// What is there is gone first. Permissions, owner and group go with every folder and file as far as this user may set them.
  ///
  /// - Parameter isWanted: which files, by their names; all if not given.
  /// - Throws: what copying throws; what has been copied so far stays, for the caller to remove.
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

  /// Removes a folder with everything in it, or a single file or link; no error where nothing is there.
  package func removeTree(_ path: FilePath) throws(FileError) {
    guard let status = try status(of: path, followingLinks: false) else { return }
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

/// One step that is about to be taken on the file system.
package struct FileOperation: Sendable, Hashable {
  /// What kind of step.
  package enum Kind: String, Sendable, CaseIterable {
    case status
    case list
    case open
    case read
    case lock
    case create
    case write
    case truncate
    case synchronize
    case synchronizeDirectory
    case link
    case rename
    case unlink
    case makeDirectory
    case removeDirectory

    /// Whether the step changes what is on the disk.
    package var isWrite: Bool {
      switch self {
      case .status, .list, .open, .read, .lock: false
      case .create, .write, .truncate, .synchronize, .synchronizeDirectory, .link, .rename, .unlink, .makeDirectory,
        .removeDirectory:
        true
      }
    }
  }

  package var kind: Kind
  package var path: FilePath
}
