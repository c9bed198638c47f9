public import SystemPackage

/// The files of one store: `X`, `X-wal`, `X-shm`, `X-journal` and the folder `.X_SUPPORT`.
///
/// They are moved, copied and restored together; a write-ahead log beside another main file is damage.
public struct StoreFileSet: Sendable, Hashable {
  /// A part of the set.
  public enum Part: String, Sendable, CaseIterable, Codable {
    case main, wal

    /// The log's index, which SQLite can rebuild.
    case sharedMemory = "shm"

    case journal

    /// The folder of external data, `.X_SUPPORT`.
    case externalData = "external-data"
  }

  /// The main file's path, from which SQLite derives the others.
  public let main: FilePath

  /// Makes the set of a main file, without following links.
  public init(main: FilePath) { self.main = main }

  /// Returns the path of a part, existing or not.
  public func path(of part: Part) -> FilePath {
    switch part {
    case .main: main
    case .wal: exactSibling("-wal")
    case .sharedMemory: exactSibling("-shm")
    case .journal: exactSibling("-journal")
    case .externalData:
      main.folder.appending(
        main.stemComponent?.wrapped(prefix: ".", suffix: "_SUPPORT") ?? FilePath.Component("._SUPPORT"))
    }
  }

  /// The folder of the set.
  public var folder: FilePath { main.folder }

  /// Appends a suffix as SQLite does, possibly beyond the length limit.
  private func exactSibling(_ suffix: String) -> FilePath {
    main.lastComponent.map { folder.appending($0.wrapped(prefix: "", suffix: suffix)) } ?? main
  }

  /// The longest path of SQLite in bytes (`MAX_PATHNAME` of its `os_unix.c`).
  private static let longestPath = 512

  /// Throws `name-too-long` if SQLite's log or journal would have too long a name.
  ///
  /// - Parameter usesLog: whether the store uses a write-ahead log, which has the shorter name, instead of a journal.
  package func requireRoomForSQLite(to operation: String, usesLog: Bool) throws(FileError) {
    let (ending, what) = usesLog ? ("-wal".utf8.count, "log") : ("-journal".utf8.count, "journal")
    let name = main.lastComponent?.platformBytes.count ?? 0
    let longest = FilePath.Component.longest - ending
    if name > longest {
      throw FileError(
        .nameTooLong, operation: operation, path: main,
        detail:
          "its name has \(name) bytes, and SQLite puts \(ending) more behind it to name the \(what), which is more than file systems allow",
        hint:
          "Give the store, and the files that belong to it, a name of at most \(longest) bytes. It can be inspected, salvaged, backed up and quarantined as it is."
      )
    }
    let whole = main.string.utf8.count
    guard whole > Self.longestPath - ending else { return }
    throw FileError(
      .nameTooLong, operation: operation, path: main,
      detail: "its path has \(whole) bytes, and SQLite opens none of more than \(Self.longestPath - ending)",
      hint: "Move the store to a folder with a shorter path.")
  }

  /// An existing part.
  public struct Member: Sendable, Hashable, Encodable {
    /// The part.
    public var part: Part

    /// Its path.
    public var path: FilePath

    /// Its status, without following links.
    public var status: FileStatus

    /// Encodes part, path and size.
    public func encode(to encoder: any Encoder) throws {
      try encoder.encode(["part": part, "path": PathText(path), "bytes": status.size])
    }
  }

  /// Returns the existing parts in the order of `Part`.
  public func members(in fileSystem: FileSystem) throws(FileError) -> [Member] {
    var result: [Member] = []
    for part in Part.allCases {
      let path = path(of: part)
      if let status = try fileSystem.entry(at: path) { result.append(Member(part: part, path: path, status: status)) }
    }
    return result
  }

  /// Lists the external data; a link has its target's status, and a link to a folder is not entered.
  ///
  /// A link or special file in place of the whole folder is the only entry.
  package func largeValues(
    in fileSystem: FileSystem
  ) throws(FileError) -> (folders: [[FilePath.Component]], files: [FileSystem.Descendant]) {
    let folder = path(of: .externalData)
    guard let status = try fileSystem.entry(at: folder), status.kind != .regular else { return ([], []) }
    guard status.kind == .directory else {
      return ([], [FileSystem.Descendant(relative: [], path: folder, status: status, isLink: true)])
    }
    var content = try fileSystem.descendants(of: folder)
    for index in content.files.indices where content.files[index].status.kind == .symbolicLink {
      content.files[index].isLink = true
      do throws(FileError) {
        if let target = try fileSystem.status(of: content.files[index].path) { content.files[index].status = target }
      } catch  where error.kind == .danglingLink {}
    }
    content.files.sort { $0.path.string < $1.path.string }
    return content
  }

  /// Returns the names of readable files that records can refer to (format section 3.7).
  package func largeValueNames(in fileSystem: FileSystem) throws(FileError) -> Set<String> {
    let files = try largeValues(in: fileSystem).files.filter {
      $0.status.kind == .regular && $0.relative.dropLast() == ["_EXTERNAL_DATA"]
    }
    return Set(files.compactMap { $0.relative.last?.string })
  }

  /// Returns the error for an entry of the external data that is no file or folder.
  package static func unmovable(_ entry: FilePath, _ operation: String) -> FileError {
    FileError(
      .notRegularFile, operation: operation, path: entry,
      detail: "a link or special file is in the place of large values, and cannot be moved with the store",
      hint: "Put the folder or file itself in its place, or remove it, then run the same command again.")
  }

  /// Whether another database differs only in its extension and so shares the external data.
  func sharesExternalData(in fileSystem: FileSystem) throws(FileError) -> Bool {
    for name in try fileSystem.entries(of: folder) {
      let other = folder.appending(name)
      guard other != main, other.stemComponent == main.stemComponent, try fileSystem.entry(at: other)?.kind == .regular
      else { continue }
      if try fileSystem.open(other).bytes(at: 0, length: 16) == Array("SQLite format 3\0".utf8) { return true }
    }
    return false
  }

  /// Locates the set of a user's path.
  ///
  /// Symbolic links are followed, as in SQLite. A missing store gives a set without a main member.
  ///
  /// - Throws: `dangling-link`, `is-a-directory`, `not-a-regular-file`, `not-downloaded`, or a file system error.
  public static func locate(_ path: FilePath, in fileSystem: FileSystem) throws(FileError) -> StoreFileSet {
    guard path.lastComponent != nil else { throw FileError(.isDirectory, operation: "find the store", path: path) }
    guard let entry = try fileSystem.entry(at: path) else {
      let folder = path.folder
      guard let status = try fileSystem.status(of: folder) else {
        throw FileError(
          .notFound, operation: "find the store", path: path, detail: "its folder does not exist",
          hint: "Check the path, or create the folder first.")
      }
      guard status.kind == .directory else {
        throw FileError(
          .notFound, operation: "find the store", path: path, detail: "what should be its folder is a file")
      }
      if let placeholder = path.lastComponent?.wrapped(prefix: ".", suffix: ".icloud"),
        try fileSystem.hasEntry(at: folder.appending(placeholder))
      {
        throw FileError(.notDownloaded, operation: "find the store", path: path)
      }
      return StoreFileSet(main: try fileSystem.realPath(folder).appending(path.lastComponent))
    }
    let isLink = entry.kind == .symbolicLink
    guard let kind = isLink ? try fileSystem.status(of: path)?.kind : entry.kind else {
      throw FileError(.danglingLink, operation: "find the store", path: path)
    }
    switch kind {
    case .directory: throw FileError(.isDirectory, operation: "find the store", path: path)
    case .other, .symbolicLink: throw FileError(.notRegularFile, operation: "find the store", path: path)
    case .regular where isLink: return StoreFileSet(main: try fileSystem.realPath(path))
    case .regular: return StoreFileSet(main: try fileSystem.realPath(path.folder).appending(path.lastComponent))
    }
  }

  /// Locates the set of a path; the main file at the end of symbolic links may be missing.
  ///
  /// - Throws: `dangling-link` without the folder at the end of the links, else as `locate`.
  package static func locateTarget(_ path: FilePath, in fileSystem: FileSystem) throws(FileError) -> StoreFileSet {
    do throws(FileError) { return try locate(path, in: fileSystem) } catch {
      guard error.kind == .danglingLink else { throw error }
    }
    var target = path
    // As many as the Linux kernel follows.
    for _ in 0..<40 {
      target = target.folder.pushing(try fileSystem.linkTarget(target))
      guard let name = target.lastComponent, try fileSystem.status(of: target.folder) != nil else { break }
      if try fileSystem.entry(at: target)?.kind == .symbolicLink { continue }
      return StoreFileSet(main: try fileSystem.realPath(target.folder).appending(name))
    }
    throw FileError(.danglingLink, operation: "find the store", path: path)
  }

  /// Returns the existing store to which SQLite would assign a log, index or journal of that name.
  package static func store(withPart path: FilePath, in fileSystem: FileSystem) throws(FileError) -> FilePath? {
    guard let name = path.lastComponent?.platformBytes else { return nil }
    for suffix in ["-wal", "-shm", "-journal"] {
      let end = Array(name.suffix(suffix.utf8.count))
      // Ignore case where the file system does.
      guard String(decoding: end, as: UTF8.self).lowercased() == suffix, name.count > end.count else { continue }
      let main = path.folder.appending(FilePath.Component(platformBytes: Array(name.dropLast(end.count))))
      if try fileSystem.status(of: main)?.kind == .regular { return main }
    }
    return nil
  }

  /// Reads the start of the log's index and whether another process has the log open, or writes to it; nil without an
  /// index.
  ///
  /// An index without a process may be a copy of another time than the log.
  package func logIndex(
    length: Int, in fileSystem: FileSystem
  ) throws(FileError) -> (bytes: [UInt8], isInUse: Bool, isWriterActive: Bool)? {
    guard try fileSystem.status(of: path(of: .sharedMemory))?.kind == .regular else { return nil }
    let file = try LastingFile(path(of: .sharedMemory), in: fileSystem)
    let owner = try file.conflict(.connections, exclusive: true)
    // Asked before the index is read, which then has every earlier commit.
    let writer = try file.conflict(.logWriter)
    return (try file.bytes(at: 0, length: length), owner != nil, writer != nil)
  }

  /// Describes the process that has the store and its deleted log open, if known.
  ///
  /// Its later writes exist only in that file and end with the process.
  package func holderOfDeletedLog(in fileSystem: FileSystem) throws(FileError) -> String? {
    guard let status = try fileSystem.status(of: main) else { return nil }
    return OpenFiles.processWithDeletedLog(of: self, main: status.identity)?.description
  }
}

extension FilePath {
  fileprivate var stemComponent: FilePath.Component? {
    guard let name = lastComponent else { return nil }
    let bytes = name.platformBytes
    guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return name }
    return FilePath.Component(platformBytes: Array(bytes[..<dot]))
  }

  fileprivate func appending(_ component: FilePath.Component?) -> FilePath { component.map { appending($0) } ?? self }
}

/// The opened files of a store, which may have no names.
package final class OpenedFiles: Sendable, Hashable {
  private let files: [StoreFileSet.Part: ReadableFile]

  package init(_ files: [StoreFileSet.Part: ReadableFile]) { self.files = files }

  package subscript(part: StoreFileSet.Part) -> ReadableFile? { files[part] }

  package static func == (left: OpenedFiles, right: OpenedFiles) -> Bool { left === right }

  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
