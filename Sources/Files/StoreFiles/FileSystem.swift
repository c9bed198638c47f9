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
