public import SystemPackage

extension FileSystem {
  /// Copies a file, synchronizes the copy and verifies it by reading back.
  ///
  /// Blocks are shared where possible. Only the owner may access the copy; see ``adoptAccess(of:to:)-(FilePath,_)``.
  ///
  /// - Parameter progress: called with the bytes copied; an error cancels.
  /// - Returns: the digest of both files.
  package func copy(
    _ source: FilePath, to destination: FilePath, progress: (Int64) throws -> Void = { _ in }
  ) throws -> KeptFileDigest {
    let original = try open(source)
    // A killed process may have left a second link to a finished file: remove it, never write into it.
    try unlink(destination)
    let copy = try create(destination, permissions: .ownerReadWrite)
    if try !shareBlocks(from: original.descriptor, to: copy) { try Self.copyData(of: original, to: copy, progress) }
    try copy.commit()
    let digest = try KeptFileDigest(of: original)
    guard try KeptFileDigest(of: open(destination), like: digest.text) == digest else {
      throw FileError(.verificationFailed, operation: "copy the file", path: destination)
    }
    return digest
  }

  /// Copies a file without synchronizing or verifying, for files checked later.
  ///
  /// Blocks are shared where possible.
  package func duplicate(_ source: FilePath, to destination: FilePath) throws(FileError) {
    let original = try open(source)
    try unlink(destination)
    let copy = try create(destination, permissions: .ownerReadWrite)
    if try shareBlocks(from: original.descriptor, to: copy) { return }
    do { try Self.copyData(of: original, to: copy) { _ in } } catch {
      throw error as? FileError ?? FileError(.other, operation: "copy the file", path: destination)
    }
  }

  /// Shares blocks between files; false if unsupported.
  func shareBlocks(from source: FileDescriptor, to copy: borrowing WritableFile) throws(FileError) -> Bool {
    let target = copy.descriptor
    return try step(.write, copy.path, "copy the file", SystemCalls.shareBlocks(from: source, to: target))
  }

  private static func copyData(
    of original: ReadableFile, to copy: borrowing WritableFile, _ progress: (Int64) throws -> Void
  ) throws {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var done: Int64 = 0
    let isSparse = original.status.isSparse
    while let data = isSparse
      ? SystemCalls.nextData(in: original.descriptor, from: done, to: original.count) : done..<Int64.max
    {
      done = data.lowerBound
      while done < data.upperBound {
        let wanted = Int(min(Int64(buffer.count), data.upperBound - done))
        let got = try original.read(at: done, length: wanted, into: &buffer)
        // The end; a caller that compares notices if a sparse file shrank.
        if got == 0 { return }
        try copy.write(buffer[..<got], at: done)
        done += Int64(got)
        try progress(done)
      }
    }
    try copy.truncate(to: original.count)
    try progress(original.count)
  }

  package func synchronizeFile(_ path: FilePath) throws(FileError) {
    try perform(.synchronize, path, "write the file to the disk") { () throws(Errno) in
      try errno {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        try descriptor.closeAfter { try SystemCalls.synchronize(descriptor) }
      }
    }
  }

  package static var effectiveUser: UInt32 { SystemCalls.effectiveUser }

  package struct Descendant: Sendable {
    package var relative: [FilePath.Component]
    package var path: FilePath
    package var status: FileStatus

    package var isLink = false
  }

  /// Lists the contents of a folder recursively, each folder before its contents.
  ///
  /// - Throws: `file-too-large` beyond 16 levels or a million entries, which no store has.
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
        guard let status = try entry(at: child) else { continue }
        if status.kind == .directory {
          waiting.append(folder + [name])
        } else {
          files.append(Descendant(relative: folder + [name], path: child, status: status))
        }
      }
    }
    return (folders, files)
  }

  /// Writes a small file atomically.
  ///
  /// Writes a hidden sibling, synchronizes it, renames it and synchronizes the folder. The caller holds the folder's
  /// lock.
  ///
  /// - Parameters:
  ///   - replacing: whether to replace an existing file; otherwise it is an error.
  ///   - permissions: the owner's alone by default.
  public func writeAtomically(
    _ bytes: [UInt8], to path: FilePath, replacing: Bool, permissions: FilePermissions = .ownerReadWrite
  ) throws(FileError) {
    let unfinished = path.hiddenSibling(suffix: ".unfinished")
    // A killed process may have left a second link to a finished file: remove it, never write into it.
    try unlink(unfinished)
    let file = try create(unfinished, permissions: permissions)
    do {
      try file.write(bytes)
      try file.commit()
      try install(unfinished, at: path, replacing: replacing)
    } catch {
      try? unlink(unfinished)
      throw error
    }
  }

  /// Gives a finished file its final name, durably.
  ///
  /// On failure, a file that replaces no other keeps its first name only. A file that can lose neither name is
  /// installed.
  public func install(_ source: FilePath, at destination: FilePath, replacing: Bool) throws(FileError) {
    if replacing {
      try rename(source, to: destination)
      try synchronizeDirectory(destination.folder)
      return
    }
    // A link fails if the name is taken; a rename would replace the file.
    var isLinked = true
    do throws(FileError) { try link(source, to: destination) } catch  where error.meansLinksAreUnsupported {
      isLinked = false
      guard try !hasEntry(at: destination) else {
        throw FileError(.alreadyExists, operation: "install the file", path: destination)
      }
      try rename(source, to: destination)
    }
    do throws(FileError) {
      if isLinked { try unlink(source) }
      try synchronizeDirectory(destination.folder)
    } catch {
      // The error that led here is the one to report.
      if (try? hasEntry(at: source)) == true {
        do { try unlink(destination) } catch {
          try? synchronizeDirectory(destination.folder)
          return
        }
      } else {
        try? rename(destination, to: source)
      }
      throw error
    }
  }

  /// Returns a folder of a home: `NAME`, or `NAME of stores` where a store has that name.
  ///
  /// The second stays in use after the store is gone.
  package func homeFolder(_ name: FilePath.Component, of home: FilePath) -> FilePath {
    let (usual, other) = (home.appending(name), home.appending("\(name.string) of stores"))
    let kind = (try? status(of: usual))?.kind
    if kind == .directory { return usual }
    return kind != nil || (try? status(of: other))?.kind == .directory ? other : usual
  }
}

extension FileError {
  /// Whether the error means that hard links are unsupported here.
  package var meansLinksAreUnsupported: Bool {
    guard let errno = self.errno else { return false }
    return [.improperLink, .notPermitted, .notSupported, .notSupportedOnSocket, .noFunction, .tooManyLinks]
      .contains(errno)
  }
}
