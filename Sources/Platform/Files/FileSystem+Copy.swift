public import SystemPackage

extension FileSystem {
  /// Copies a file's content under a new name, pushes it to the disk, and reads it back to compare.
  ///
  /// Blocks are shared with the original where the file system can. The copy is its owner's alone; see
  /// ``adoptAccess(of:to:)-(FilePath,_)``.
  ///
  /// - Parameter progress: called with the bytes copied so far; what it throws ends the copying.
  /// - Returns: the digest that original and copy have in common.
  package func copy(
    _ source: FilePath, to destination: FilePath, progress: (Int64) throws -> Void = { _ in }
  ) throws -> FileDigest {
    let original = try open(source)
    // What a killed process left may be a second name of a finished file: it is removed, never written into.
    try unlink(destination)
    let copy = try create(destination, permissions: .ownerReadWrite)
    let target = copy.descriptor
    let isShared = try perform(.write, destination, "copy the file") { () throws(Errno) in
      SystemCalls.shareBlocks(from: original.descriptor, to: target)
    }
    if !isShared {
      try Self.copyData(of: original, to: copy, progress)
    }
    try copy.commit()
    let digest = try FileDigest(of: original)
    guard try FileDigest(of: open(destination)) == digest else {
      throw FileError(.verificationFailed, operation: "copy the file", path: destination)
    }
    return digest
  }

  /// Copies a file's content under a new name, as fast as the system can: nothing is read back or pushed to the disk.
  ///
  /// Blocks are shared with the original where the file system can. For files that are checked as a whole afterwards.
  package func duplicate(_ source: FilePath, to destination: FilePath) throws(FileError) {
    let original = try open(source)
    try unlink(destination)
    let copy = try create(destination, permissions: .ownerReadWrite)
    let (from, target) = (original.descriptor, copy.descriptor)
    let isShared = try perform(.write, destination, "copy the file") { () throws(Errno) in
      SystemCalls.shareBlocks(from: from, to: target)
    }
    if isShared { return }
    do {
      try Self.copyData(of: original, to: copy) { _ in }
    } catch {
      throw error as? FileError ?? FileError(.other, operation: "copy the file", path: destination)
    }
  }

  /// Copies all bytes of a file into a new one; what is a hole in the one is a hole in the other.
  private static func copyData(
    of original: ReadableFile, to copy: borrowing WritableFile, _ progress: (Int64) throws -> Void
  ) throws {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    guard original.status.isSparse else {
      var done: Int64 = 0
      while true {
        let got = try original.read(at: done, length: buffer.count, into: &buffer)
        if got == 0 { return }
        try copy.write(buffer[..<got])
        done += Int64(got)
        try progress(done)
      }
    }
    var done: Int64 = 0
    while let data = SystemCalls.nextData(in: original.descriptor, from: done, to: original.count) {
      done = data.lowerBound
      while done < data.upperBound {
        let wanted = Int(min(Int64(buffer.count), data.upperBound - done))
        let got = try original.read(at: done, length: wanted, into: &buffer)
        // It has become shorter: a caller that compares it with what it was finds that.
        if got == 0 { return }
        try copy.write(buffer[..<got], at: done)
        done += Int64(got)
        try progress(done)
      }
    }
    try copy.truncate(to: original.count)
    try progress(original.count)
  }

  /// Pushes a finished file to the disk.
  package func synchronizeFile(_ path: FilePath) throws(FileError) {
    try perform(.synchronize, path, "write the file to the disk") { () throws(Errno) in
      let descriptor = try errno { try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]) }
      do throws(Errno) {
        try SystemCalls.synchronize(descriptor)
      } catch {
        // The first error is the one to report.
        try? descriptor.close()
        throw error
      }
      try errno { try descriptor.close() }
    }
  }

  /// The number of the user with whose rights this process acts.
  package static var effectiveUser: UInt32 { SystemCalls.effectiveUser }

  /// A file below a folder, named by the components that lead to it.
  package struct Descendant: Sendable {
    package var relative: [FilePath.Component]
    package var path: FilePath
    package var status: FileStatus

    /// Whether the status is that of what a symbolic link leads to.
    package var isLink = false
  }

  /// Everything below a folder that is not a folder itself, and the folders, each before what is in it.
  ///
  /// - Throws: `file-too-large` for more than 16 levels or a million entries, which no store has.
  package func descendants(
    of root: FilePath
  ) throws(FileError) -> (folders: [[FilePath.Component]], files: [Descendant]) {
    var folders: [[FilePath.Component]] = []
    var files: [Descendant] = []
    var waiting: [[FilePath.Component]] = [[]]
    while let folder = waiting.popLast() {
      if !folder.isEmpty { folders.append(folder) }
      guard folder.count < 16, files.count + folders.count < 1_000_000 else {
        throw FileError(
          .tooLarge, operation: "list the folder", path: root, detail: "it holds too many files or levels of folders",
          hint: "Check that it is the store's own folder.")
      }
      let path = root.appending(folder)
      for name in try entries(of: path) {
        let child = path.appending(name)
        guard let status = try status(of: child, followingLinks: false) else { continue }
        if status.kind == .directory {
          waiting.append(folder + [name])
        } else {
          files.append(Descendant(relative: folder + [name], path: child, status: status))
        }
      }
    }
    return (folders, files)
  }
}

extension FileSystem {
  /// Writes a small file so that, whatever happens, its name stands for the old content or the whole new one.
  ///
  /// Written beside its place under a hidden name, pushed to the disk, renamed, and the folder pushed to the disk. Two
  /// processes must not write the same name at once: hold the folder's lock.
  ///
  /// - Parameters:
  ///   - replacing: whether a file of that name is replaced; if not, one that is there is an error.
  ///   - permissions: who may do what with it; its owner alone if not given.
  public func writeAtomically(
    _ bytes: [UInt8], to path: FilePath, replacing: Bool, permissions: FilePermissions = .ownerReadWrite
  ) throws(FileError) {
    let unfinished = path.hiddenSibling(suffix: ".unfinished")
    // What a killed process left may be a second name of a finished file: it is removed, never written into.
    try unlink(unfinished)
    let file = try create(unfinished, permissions: permissions)
    do {
      try file.write(bytes)
      try file.commit()
      try install(unfinished, at: path, replacing: replacing)
    } catch {
      try removeAfterFailure(unfinished, error)
    }
  }

  /// Gives a finished file its final name, and makes the name durable.
  public func install(_ source: FilePath, at destination: FilePath, replacing: Bool) throws(FileError) {
    if replacing {
      try rename(source, to: destination)
    } else {
      // A link fails where the name is taken; a rename would silently replace what is there.
      let isLinked: Bool
      do throws(FileError) {
        try link(source, to: destination)
        isLinked = true
      } catch  where error.meansLinksAreUnsupported {
        isLinked = false
      }
      if isLinked {
        try unlink(source)
      } else {
        guard try status(of: destination, followingLinks: false) == nil else {
          throw FileError(.alreadyExists, operation: "install the file", path: destination)
        }
        try rename(source, to: destination)
      }
    }
    try synchronizeDirectory(destination.folder)
  }

  /// Tidies up after a failure; the first error is the one that counts, so a second one is not reported.
  private func removeAfterFailure(_ path: FilePath, _ error: FileError) throws(FileError) {
    try? unlink(path)
    throw error
  }
}

extension FileError {
  /// Whether a hard link failed because this file system, or this pair of folders, cannot have one.
  package var meansLinksAreUnsupported: Bool {
    guard let errno = self.errno else { return false }
    return [.improperLink, .notPermitted, .notSupported, .notSupportedOnSocket, .noFunction, .tooManyLinks]
      .contains(errno)
  }
}

extension FilePath {
  /// The folder that holds the file; the current one for a bare name.
  public var folder: FilePath {
    let parent = removingLastComponent()
    return parent.isEmpty ? "." : parent
  }

  /// A path in the same folder with text appended to the name, which is shortened where it would become too long.
  ///
  /// For files of our own; those that SQLite makes have exactly the store's name before their ending.
  public func sibling(suffix: String) -> FilePath { renamed(prefix: "", suffix: suffix) }

  /// A path in the same folder with a dot before the name and text after it; the name is shortened where it would become
  /// too long.
  public func hiddenSibling(suffix: String) -> FilePath { renamed(prefix: ".", suffix: suffix) }

  private func renamed(prefix: String, suffix: String) -> FilePath {
    guard let name = lastComponent else { return self }
    return folder.appending(name.fitted(prefix: prefix, suffix: suffix))
  }
}

extension FilePath.Component {
  /// The name with text before and after it; its bytes are kept even where they are not valid UTF-8.
  package func wrapped(prefix: String, suffix: String) -> FilePath.Component {
    let bytes = Array(prefix.utf8) + platformBytes + Array(suffix.utf8)
    return FilePath.Component(platformBytes: bytes) ?? self
  }

  /// The most bytes of a name that file systems allow.
  package static let longest = 255

  /// The most bytes of the names that we make from others: SQLite can put its own endings behind them.
  static let longestMade = 240

  /// Whether no file system can have a file of that name.
  var isTooLong: Bool { platformBytes.count > Self.longest }

  /// The name with text before and after it, in as many bytes as a name can have.
  ///
  /// Where all of it is too long, the end of the name gives way to 16 digits of its digest: the same name always gives the
  /// same one, and others do not meet it.
  package func fitted(prefix: String = "", suffix: String) -> FilePath.Component {
    let bytes = platformBytes
    let added = prefix.utf8.count + suffix.utf8.count
    guard bytes.count + added > Self.longestMade else { return wrapped(prefix: prefix, suffix: suffix) }
    let digest = "~" + FileDigest(of: bytes).hexadecimal.prefix(16)
    var kept = bytes.prefix(max(1, Self.longestMade - added - digest.utf8.count))
    // No character of UTF-8 is cut in two.
    while kept.count > 1, bytes[kept.count] & 0xc0 == 0x80 { kept.removeLast() }
    let name = Array(prefix.utf8) + kept + Array((digest + suffix).utf8)
    return FilePath.Component(platformBytes: name) ?? self
  }

  /// The bytes of the name.
  package var platformBytes: [UInt8] {
    unsafe withPlatformString { start in
      var bytes: [UInt8] = []
      var index = 0
      while unsafe start[index] != 0 {
        unsafe bytes.append(UInt8(bitPattern: start[index]))
        index += 1
      }
      return bytes
    }
  }

  /// The name that those bytes are; nil where they cannot be one.
  package init?(platformBytes: [UInt8]) {
    guard !platformBytes.isEmpty, !platformBytes.contains(0), !platformBytes.contains(UInt8(ascii: "/")) else {
      return nil
    }
    let characters = platformBytes.map { CChar(bitPattern: $0) } + [0]
    let component = unsafe characters.withUnsafeBufferPointer { buffer -> FilePath.Component? in
      guard let start = buffer.baseAddress else { return nil }
      return unsafe FilePath.Component(platformString: start)
    }
    guard let component else { return nil }
    self = component
  }
}
