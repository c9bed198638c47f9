internal import Foundation
package import SystemPackage

/// A temporary folder for its owner alone, removed when this value ends.
///
/// Its parent is locked while in use. Folders of killed processes are removed when the next one is made there, and at
/// the start of every command.
package final class PrivateFolder: Sendable {
  package let path: FilePath

  /// The locked and removed parent; others may lock `path`.
  private let holder: FilePath
  private let ownsRoot: Bool
  private let fileSystem: FileSystem
  private let lock: FolderLock

  /// A marker in the system's folder that records this one, if it lies elsewhere.
  private let marker: PrivateFolder?
  private let noted = Mutex<[Unfinished]>([])

  /// Makes the folder and checks the free space.
  ///
  /// - Parameters:
  ///   - temporary: its parent; the system's by default.
  ///   - alternative: the parent, under a hidden name, if the system's is unusable.
  ///   - bytes: the space needed.
  ///   - operation: an infinitive phrase for errors.
  ///   - ownsRoot: whether the parent is removed with its last folder.
  /// - Throws: `no-space` with the missing bytes, or a file system error.
  package init(
    in temporary: FilePath?, or alternative: FilePath? = nil, needing bytes: Int64 = 0, to operation: String,
    ownsRoot: Bool = false, _ surroundings: Surroundings
  ) throws(FileError) {
    fileSystem = surroundings.fileSystem
    self.ownsRoot = ownsRoot
    let root = temporary ?? Self.temporary(or: alternative, surroundings)
    let mark = root == alternative ? Self.hiddenMark : Self.mark
    try fileSystem.makeDirectory(root)
    let free = try fileSystem.freeSpace(at: root)
    guard free >= bytes else {
      throw FileError(
        .noSpace, operation: operation, path: root, detail: "it needs \(bytes) bytes and \(free) are free",
        hint: "Free \(bytes - free) bytes there, or set TMPDIR to a folder on another disk.",
        details: .init(neededBytes: bytes))
    }
    Self.removeRemains(in: root, fileSystem)
    for _ in 1..<Self.maximumAttempts {
      // Another process may remove either as abandoned before it is locked.
      try fileSystem.makeDirectory(root)
      let holder = root.appending("\(mark)\(surroundings.makeUUID())")
      // An existing folder is another process's.
      guard try Self.make(holder, fileSystem), let lock = try Self.lock(holder, fileSystem),
        try fileSystem.entry(at: holder)?.kind == .directory
      else { continue }
      let content = holder.appending("Content")
      guard try fileSystem.makeNewDirectory(content) else { continue }
      path = content
      self.holder = holder
      self.lock = lock
      marker = root == Self.systemFolder ? nil : Self.mark(of: holder, surroundings)
      return
    }
    throw FileError(.alreadyExists, operation: operation, path: root, detail: "every name that was tried is taken")
  }

  /// Returns the system's temporary folder, or the alternative if it is unusable, as with an invalid `TMPDIR`.
  package static func temporary(or alternative: FilePath?, _ surroundings: Surroundings) -> FilePath {
    let root = systemFolder
    guard let alternative else { return root }
    do throws(FileError) {
      guard try surroundings.fileSystem.isFolder(root) else { return alternative }
      let probe = root.appending("\(mark)\(surroundings.makeUUID())")
      if try surroundings.fileSystem.makeNewDirectory(probe) { try surroundings.fileSystem.removeDirectory(probe) }
      return root
    } catch { return alternative }
  }

  package static var systemFolder: FilePath { FilePath(NSTemporaryDirectory()) }

  private static let mark = "lazaret-"
  private static let hiddenMark = ".lazaret-"
  private static let maximumAttempts = 1000

  deinit {
    // The next command removes the rest.
    try? fileSystem.removeTree(holder)
    // Fails while it has other folders.
    if ownsRoot { try? fileSystem.removeDirectory(holder.folder) }
  }

  // MARK: Remains

  /// A path elsewhere to remove if the process is killed.
  private struct Unfinished: Codable {
    var folder: PathText

    var name: String
  }

  private static let note = "unfinished.json"

  /// Records a result while the value lives, so that the next command removes a killed process's leftovers.
  ///
  /// - Returns: nil if the system's temporary folder is unwritable; then the next run with the same result cleans up.
  package static func mark(of result: FilePath, _ surroundings: Surroundings = .machine) -> PrivateFolder? {
    guard let marker = try? PrivateFolder(in: systemFolder, to: "note a result", surroundings),
      (try? marker.noteUnfinished(result.lastComponent?.string ?? "", in: result.folder)) != nil
    else { return nil }
    return marker
  }

  /// Records what to remove elsewhere if the process is killed: hidden `.unfinished` files, and `.salvaging` or
  /// `.restoring` folders, unless their installation has begun.
  ///
  /// - Parameters:
  ///   - name: the prefix of their names after the dot.
  ///   - folder: their folder.
  package func noteUnfinished(_ name: String, in folder: FilePath) throws(FileError) {
    if let marker { return try marker.noteUnfinished(name, in: folder) }
    let unfinished = Unfinished(folder: PathText(try fileSystem.realPath(folder)), name: name)
    let all = noted.withLock { noted in
      noted.append(unfinished)
      return noted
    }
    let bytes = try JSON.bytes(of: all, .line, to: "note what is made", at: holder)
    try fileSystem.writeAtomically(bytes, to: holder.appending(Self.note), replacing: true)
  }

  /// - Throws: `locked` if a live process works in a noted folder; the note then stays.
  private static func removeNoted(
    in holder: FilePath, _ fileSystem: FileSystem, finishing: (FilePath) -> Void
  ) throws(FileError) {
    guard let bytes = try? fileSystem.contents(of: holder.appending(note), limit: 1 << 16),
      let all = try? JSONDecoder().decode([Unfinished].self, from: Data(bytes))
    else { return }
    for unfinished in all where !unfinished.name.isEmpty {
      guard let place = unfinished.folder.path, (try? fileSystem.status(of: place))?.kind == .directory
      else { continue }
      let lock = try FolderLock(place, patience: 0, in: fileSystem)
      let names = (try? fileSystem.entries(of: place)) ?? []
      var ready: [FilePath] = []
      for name in names {
        let path = place.appending(name)
        if name.string == unfinished.name, isPrivate(name) { try? removeUnlocked(path, fileSystem) }
        guard name.string.hasPrefix(".\(unfinished.name)"),
          let suffix = [".unfinished", ".salvaging", ".restoring"].first(where: { name.string.hasSuffix($0) })
        else { continue }
        let result = String(name.string.dropFirst().dropLast(suffix.count))
        let isFile = suffix == ".unfinished"
        // A file's note lies beside it, that of a folder in it.
        let notes = isFile ? names : (try? fileSystem.entries(of: path)) ?? []
        let wanted: Set<String> = isFile ? [".\(result).replaced"] : notesOfReadiness
        if notes.contains(where: { wanted.contains($0.string) }) {
          ready.append(place.appending(result))
        } else if isFile {
          try? fileSystem.unlink(path)
        } else {
          try? removeUnlocked(path, fileSystem)
        }
      }
      lock.release()
      for result in ready { finishing(result) }
    }
  }

  /// The files that mark a folder as ready for the next run to install.
  private static let notesOfReadiness: Set<String> = ["ready.json", "install.moving", "installing.json"]

  private static func isPrivate(_ name: FilePath.Component) -> Bool {
    [mark, hiddenMark].contains { mark in
      name.string.hasPrefix(mark) && UUID(uuidString: String(name.string.dropFirst(mark.count))) != nil
    }
  }

  /// Removes the abandoned private folders of this user.
  ///
  /// - Parameters:
  ///   - root: their parent; what cannot be removed stays.
  ///   - finishing: finishes or reverts an interrupted installation.
  package static func removeRemains(
    in root: FilePath = systemFolder, _ fileSystem: FileSystem, finishing: (FilePath) -> Void = { _ in }
  ) {
    for name in (try? fileSystem.entries(of: root)) ?? [] where isPrivate(name) {
      try? removeUnlocked(root.appending(name), fileSystem, finishing: finishing)
    }
  }

  private static func removeUnlocked(
    _ folder: FilePath, _ fileSystem: FileSystem, finishing: (FilePath) -> Void = { _ in }
  ) throws(FileError) {
    guard let status = try fileSystem.entry(at: folder), status.kind == .directory,
      status.owner == FileSystem.effectiveUser, let lock = try lock(folder, fileSystem)
    else { return }
    try removeNoted(in: folder, fileSystem, finishing: finishing)
    try fileSystem.removeTree(folder)
    lock.release()
  }

  /// Returns false if it exists or its parent is gone.
  private static func make(_ holder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> Bool {
    do throws(FileError) { return try fileSystem.makeNewDirectory(holder) } catch {
      guard error.kind == .notFound else { throw error }
      return false
    }
  }

  /// Returns nil if it is locked or gone.
  private static func lock(_ folder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> FolderLock? {
    do throws(FileError) { return try FolderLock(folder, patience: 0, in: fileSystem) } catch {
      guard error.kind == .locked || error.kind == .notFound else { throw error }
      return nil
    }
  }
}

/// A copy of a store in a private folder, for SQLite to open in the original's stead.
package struct PrivateCopy: ~Copyable {
  package let files: StoreFileSet

  private let folder: PrivateFolder

  /// Copies main file, log and journal, without the external data.
  ///
  /// - Parameters:
  ///   - original: the store, kept unchanged by the caller (with a read lock and a comparison).
  ///   - temporary: the parent of the private folder; the system's by default.
  /// - Throws: `no-space` with the missing bytes, or the error of copying.
  package init(of original: StoreFileSet, in temporary: FilePath? = nil, surroundings: Surroundings = .machine) throws {
    let fileSystem = surroundings.fileSystem
    let members = try original.members(in: fileSystem)
      .filter { [.main, .wal, .journal].contains($0.part) && $0.status.kind == .regular }
    let folder = try PrivateFolder(
      in: temporary, needing: members.reduce(0) { $0 + $1.status.occupiedSize }, to: "copy the store to look at it",
      surroundings)
    let files = StoreFileSet(main: folder.path.appending("Store.sqlite"))
    for member in members { _ = try fileSystem.copy(member.path, to: files.path(of: member.part)) }
    self.folder = folder
    self.files = files
  }

  /// Removes the copy.
  package consuming func remove() {}
}
