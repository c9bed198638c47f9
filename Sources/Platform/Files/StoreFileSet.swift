public import SystemPackage

/// The files that together are one store: `X`, `X-wal`, `X-shm`, `X-journal` and the folder `.X_SUPPORT`.
///
/// They are moved, copied and restored together or not at all; a write-ahead log beside another main file is damage.
public struct StoreFileSet: Sendable, Hashable {
  /// One part of the set.
  public enum Part: String, Sendable, CaseIterable, Codable {
    case main

    case wal

    /// The index of the write-ahead log, which SQLite can rebuild.
    case sharedMemory = "shm"

    case journal

    /// The folder of large values, `.X_SUPPORT`.
    case externalData = "external-data"
  }

  /// The path of the main file, symbolic links resolved; SQLite names the other files after this one.
  public let main: FilePath

  /// The set whose main file has that path, as it is; links are not followed.
  public init(main: FilePath) { self.main = main }

  /// The path of a part, whether it is there or not.
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

  /// The folder that holds the set.
  public var folder: FilePath { main.folder }

  /// The path of a file that SQLite names after the main file; too long for a file system where that one's name nearly is.
  private func exactSibling(_ suffix: String) -> FilePath {
    main.lastComponent.map { folder.appending($0.wrapped(prefix: "", suffix: suffix)) } ?? main
  }

  /// The longest path that SQLite opens, in bytes (`MAX_PATHNAME` of its `os_unix.c`).
  private static let longestPath = 512

  /// Stops where SQLite could not have its log, or its journal, beside the main file, because the name would be too long.
  ///
  /// - Parameter usesLog: whether changes of the store go to a write-ahead log, which has the shorter name; SQLite then makes
  ///   no journal.
  /// - Throws: `name-too-long`.
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
}

extension StoreFileSet {
  /// A part that is there.
  public struct Member: Sendable, Hashable, Encodable {
    /// Which part it is.
    public var part: Part

    /// Where it is.
    public var path: FilePath

    /// What the file system says of it, of a symbolic link itself.
    public var status: FileStatus

    /// Writes which part it is, where it is, and its size.
    public func encode(to encoder: any Encoder) throws {
      try encoder.encode(["part": part, "path": PathText(path), "bytes": status.size])
    }
  }

  /// The parts that are there, in the order of `Part`.
  public func members(in fileSystem: FileSystem) throws(FileError) -> [Member] {
    var result: [Member] = []
    for part in Part.allCases {
      let path = path(of: part)
      if let status = try fileSystem.status(of: path, followingLinks: false) {
        result.append(Member(part: part, path: path, status: status))
      }
    }
    return result
  }

  /// Whether another database in the folder has the same name but for its extension, and so the same folder of large values.
  func sharesExternalData(in fileSystem: FileSystem) throws(FileError) -> Bool {
    for name in try fileSystem.entries(of: folder) {
      let other = folder.appending(name)
      guard other != main, other.stemComponent == main.stemComponent,
        try fileSystem.status(of: other, followingLinks: false)?.kind == .regular
      else { continue }
      if try fileSystem.open(other).bytes(at: 0, length: 16) == Array("SQLite format 3\0".utf8) { return true }
    }
    return false
  }

  /// Finds the set that a path given by a user stands for.
  ///
  /// Symbolic links are followed, as SQLite does. A store that is not there is no error: its set has no main member.
  ///
  /// - Throws: `dangling-link`, `is-a-directory`, `not-a-regular-file`, `not-downloaded`, or what the system says.
  public static func locate(_ path: FilePath, in fileSystem: FileSystem) throws(FileError) -> StoreFileSet {
    guard path.lastComponent != nil else {
      throw FileError(.isDirectory, operation: "find the store", path: path)
    }
    guard let entry = try fileSystem.status(of: path, followingLinks: false) else {
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
        try fileSystem.status(of: folder.appending(placeholder), followingLinks: false) != nil
      {
        throw FileError(.notDownloaded, operation: "find the store", path: path)
      }
      return StoreFileSet(main: try resolvedFolder(folder, in: fileSystem).appending(path.lastComponent))
    }
    switch entry.kind {
    case .regular:
      return StoreFileSet(main: try resolvedFolder(path.folder, in: fileSystem).appending(path.lastComponent))
    case .directory: throw FileError(.isDirectory, operation: "find the store", path: path)
    case .other: throw FileError(.notRegularFile, operation: "find the store", path: path)
    case .symbolicLink:
      guard let target = try fileSystem.status(of: path) else {
        throw FileError(.danglingLink, operation: "find the store", path: path)
      }
      switch target.kind {
      case .directory: throw FileError(.isDirectory, operation: "find the store", path: path)
      case .other, .symbolicLink: throw FileError(.notRegularFile, operation: "find the store", path: path)
      case .regular: return StoreFileSet(main: try fileSystem.realPath(path))
      }
    }
  }

  /// The store to which SQLite would take a file of that name for its log, the log's index or its journal; nil where no such
  /// store is there.
  package static func store(withPart path: FilePath, in fileSystem: FileSystem) throws(FileError) -> FilePath? {
    guard let name = path.lastComponent?.platformBytes else { return nil }
    for suffix in ["-wal", "-shm", "-journal"] {
      let end = Array(name.suffix(suffix.utf8.count))
      // Where case makes no difference to the file system, it makes none here.
      guard String(decoding: end, as: UTF8.self).lowercased() == suffix, name.count > end.count else { continue }
      let main = path.folder.appending(FilePath.Component(platformBytes: Array(name.dropLast(end.count))))
      if try fileSystem.status(of: main)?.kind == .regular { return main }
    }
    return nil
  }

  private static func resolvedFolder(_ folder: FilePath, in fileSystem: FileSystem) throws(FileError) -> FilePath {
    try fileSystem.realPath(folder)
  }
}

extension FilePath {
  /// The last component without its extension, its bytes kept as they are.
  fileprivate var stemComponent: FilePath.Component? {
    guard let name = lastComponent else { return nil }
    let bytes = name.platformBytes
    guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return name }
    return FilePath.Component(platformBytes: Array(bytes[..<dot]))
  }

  fileprivate func appending(_ component: FilePath.Component?) -> FilePath {
    component.map { appending($0) } ?? self
  }
}

/// What other processes do with a store's log.
extension StoreFileSet {
  /// The first bytes of the log's index, and whether another process has the log open; nil where there is no index.
  ///
  /// An index that no process has open may have been copied at another time than the log.
  package func logIndex(
    length: Int, in fileSystem: FileSystem
  ) throws(FileError) -> (bytes: [UInt8], isInUse: Bool)? {
    guard try fileSystem.status(of: path(of: .sharedMemory))?.kind == .regular else { return nil }
    let file = try LastingFile(path(of: .sharedMemory), in: fileSystem)
    let owner = try file.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: .connections, exclusive: true)
    }
    return (try file.bytes(at: 0, length: length), owner != nil)
  }

  /// The process, in words, that has the store and its log open although the log's name was deleted; nil where none has, or
  /// where the system does not tell.
  ///
  /// What it has written since is in that file alone, and goes with the process.
  package func holderOfDeletedLog(in fileSystem: FileSystem) throws(FileError) -> String? {
    guard let status = try fileSystem.status(of: main) else { return nil }
    return OpenFiles.processWithDeletedLog(of: self, main: status.identity)?.description
  }
}
