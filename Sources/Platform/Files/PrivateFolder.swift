internal import Foundation
package import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// A folder for its owner alone among the temporary files, which goes, with what is in it, when this value ends.
///
/// The folder that it lies in is locked for as long as it is in use. What a killed process leaves is removed when the next
/// folder is made in the same place, and at the beginning of every command.
package final class PrivateFolder: Sendable {
  /// The folder.
  package let path: FilePath

  /// What is locked and removed; others may lock `path`.
  private let holder: FilePath
  private let ownsRoot: Bool
  private let fileSystem: FileSystem
  private let lock: FolderLock

  /// One in the system's folder that names this one, which lies where no other command looks.
  private let marker: PrivateFolder?
  private let noted = Mutex<[Unfinished]>([])

  /// Makes the folder, and makes sure that there is room for what is to come.
  ///
  /// - Parameters:
  ///   - temporary: the folder to make it in; the system's own if nil.
  ///   - alternative: the folder to make it in, under a hidden name, where the system's own cannot be used.
  ///   - bytes: how much room is needed.
  ///   - operation: what it is for, as an infinitive phrase.
  ///   - ownsRoot: whether the folder that it is made in holds nothing else and goes with the last.
  /// - Throws: `no-space` with the number of bytes that are lacking, or what the file system says.
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
      // Another process may take either for a remainder before it is locked.
      try fileSystem.makeDirectory(root)
      let holder = root.appending("\(mark)\(surroundings.makeUUID())")
      // What is there already is another's, whatever its name.
      guard try Self.make(holder, fileSystem), let lock = try Self.lock(holder, fileSystem),
        try fileSystem.status(of: holder, followingLinks: false)?.kind == .directory
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

  /// The system's folder for temporary files; another one where no folder can be made in that, as where `TMPDIR` names none.
  package static func temporary(or alternative: FilePath?, _ surroundings: Surroundings) -> FilePath {
    let root = systemFolder
    guard let alternative else { return root }
    do throws(FileError) {
      guard try surroundings.fileSystem.status(of: root)?.kind == .directory else { return alternative }
      let probe = root.appending("\(mark)\(surroundings.makeUUID())")
      if try surroundings.fileSystem.makeNewDirectory(probe) { try surroundings.fileSystem.removeDirectory(probe) }
      return root
    } catch {
      // Why it cannot be used does not matter where another one can.
      return alternative
    }
  }

  /// The system's folder for temporary files.
  package static var systemFolder: FilePath { FilePath(NSTemporaryDirectory()) }

  private static let mark = "lazaret-"
  private static let hiddenMark = ".lazaret-"
  private static let maximumAttempts = 1000

  deinit {
    // What cannot be removed now is removed by the next command.
    try? fileSystem.removeTree(holder)
    // It has other folders, or it goes.
    if ownsRoot { try? fileSystem.removeDirectory(holder.folder) }
  }

  // MARK: Remains

  /// Something elsewhere that goes too where the process is killed.
  private struct Unfinished: Codable {
    var folder: PathText

    /// The name of a private folder, or how the hidden names of what is made begin.
    var name: String
  }

  private static let note = "unfinished.json"

  /// Names a result among the system's temporary files for as long as the value lives, so that what a killed process leaves
  /// beside it is removed by the next command.
  ///
  /// - Returns: nil where nothing can be written there; then the next run with the same result removes it.
  package static func mark(of result: FilePath, _ surroundings: Surroundings = .machine) -> PrivateFolder? {
    guard let marker = try? PrivateFolder(in: systemFolder, to: "note a result", surroundings),
      (try? marker.noteUnfinished(result.lastComponent?.string ?? "", in: result.folder)) != nil
    else { return nil }
    return marker
  }

  /// Notes what this process makes elsewhere, so that it goes should the process be killed: hidden files that end with
  /// `.unfinished`, and folders that end with `.salvaging` or `.restoring` and are not ready to be put into their place.
  ///
  /// - Parameters:
  ///   - name: how their names begin behind the point.
  ///   - folder: where they are.
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

  /// Removes what a killed process noted; what cannot be read or removed harms nothing.
  private static func removeNoted(in holder: FilePath, _ fileSystem: FileSystem, finishing: (FilePath) -> Void) {
    guard let bytes = try? fileSystem.contents(of: holder.appending(note), limit: 1 << 16),
      let all = try? JSONDecoder().decode([Unfinished].self, from: Data(bytes))
    else { return }
    for unfinished in all where !unfinished.name.isEmpty {
      guard let place = unfinished.folder.path else { continue }
      for name in (try? fileSystem.entries(of: place)) ?? [] {
        let path = place.appending(name)
        if name.string == unfinished.name, isPrivate(name) { try? removeUnlocked(path, fileSystem) }
        guard name.string.hasPrefix(".\(unfinished.name)") else { continue }
        if name.string.hasSuffix(".unfinished") { try? fileSystem.unlink(path) }
        if let suffix = [".salvaging", ".restoring"].first(where: { name.string.hasSuffix($0) }) {
          let content = (try? fileSystem.entries(of: path)) ?? []
          if content.contains(where: { notesOfReadiness.contains($0.string) }) {
            finishing(place.appending(String(name.string.dropFirst().dropLast(suffix.count))))
          } else {
            try? removeUnlocked(path, fileSystem)
          }
        }
      }
    }
  }

  /// What lies in a folder of which the next run puts something into its place.
  private static let notesOfReadiness: Set<String> = ["ready.json", "install.moving", "installing.json"]

  private static func isPrivate(_ name: FilePath.Component) -> Bool {
    [mark, hiddenMark].contains { mark in
      name.string.hasPrefix(mark) && UUID(uuidString: String(name.string.dropFirst(mark.count))) != nil
    }
  }

  /// Removes the private folders of this user in which no process works any more.
  ///
  /// - Parameters:
  ///   - root: the folder they are in; what cannot be read or removed there stays.
  ///   - finishing: finishes, or takes back, a result that a killed process was putting into its place.
  package static func removeRemains(
    in root: FilePath = systemFolder, _ fileSystem: FileSystem, finishing: (FilePath) -> Void = { _ in }
  ) {
    for name in (try? fileSystem.entries(of: root)) ?? [] where isPrivate(name) {
      try? removeUnlocked(root.appending(name), fileSystem, finishing: finishing)
    }
  }

  /// Removes a folder of this user with what is in it, unless a process has it locked or it is gone.
  private static func removeUnlocked(
    _ folder: FilePath, _ fileSystem: FileSystem, finishing: (FilePath) -> Void = { _ in }
  ) throws(FileError) {
    guard let status = try fileSystem.status(of: folder, followingLinks: false), status.kind == .directory,
      status.owner == geteuid(), let lock = try lock(folder, fileSystem)
    else { return }
    removeNoted(in: folder, fileSystem, finishing: finishing)
    try fileSystem.removeTree(folder)
    _ = consume lock
  }

  /// Makes a folder; false where there is one, or the folder that it is to be in has gone.
  private static func make(_ holder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> Bool {
    do throws(FileError) {
      return try fileSystem.makeNewDirectory(holder)
    } catch {
      guard error.kind == .notFound else { throw error }
      return false
    }
  }

  /// The lock of a folder; nil where another process has it, or the folder is gone.
  private static func lock(_ folder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> FolderLock? {
    do throws(FileError) {
      return try FolderLock(folder, patience: 0, in: fileSystem)
    } catch {
      guard error.kind == .locked || error.kind == .notFound else { throw error }
      return nil
    }
  }
}
