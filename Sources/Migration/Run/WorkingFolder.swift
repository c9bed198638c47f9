internal import Foundation
internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// The folder next to a store: `.App.sqlite.migrating`.
struct WorkingFolder {
  let path: FilePath
  let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".migrating")
    self.fileSystem = fileSystem
  }

  var journalPath: FilePath { path.appending("journal.json") }

  var movePath: FilePath { path.appending("swap.moving") }

  /// The file of a finished step; 0 is the original's copy.
  func step(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite") }

  func unfinished(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite.unfinished") }

  var asidePath: FilePath { path.appending("step-aside.sqlite") }

  /// The copy that a stage changes before a step.
  func stageCopy(_ number: Int) -> FilePath { path.appending("step-\(number).prepared.unfinished") }

  // MARK: The journal

  /// The journal; nil if missing, or older and without moved files.
  ///
  /// - Throws: `migration-journal-unreadable` if damaged or of a later version, because the folder may then hold the
  ///   only complete store.
  func journal() throws(FileError) -> MigrationJournal? {
    // A link or file is foreign.
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory,
      try fileSystem.status(of: journalPath, followingLinks: false) != nil
    else { return nil }
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try fileSystem.contents(of: journalPath, limit: 1 << 26)
    } catch {
      // Another process has finished.
      guard error.kind == .notFound else { throw error }
      return nil
    }
    do {
      let head = try JSONDecoder().decode(Head.self, from: Data(bytes))
      if head.version == MigrationJournal.currentVersion {
        return try JSONDecoder().decode(MigrationJournal.self, from: Data(bytes))
      }
      let stepping = MigrationJournal.Phase.stepping.rawValue
      if head.version < MigrationJournal.currentVersion, head.phase ?? stepping == stepping { return nil }
      throw unreadable("it is of version \(head.version), and this is code for \(MigrationJournal.currentVersion)")
    } catch { throw error as? FileError ?? unreadable("the journal of the migration cannot be read") }
  }

  private struct Head: Decodable {
    var version: Int
    var phase: String?
  }

  private func unreadable(_ detail: String) -> FileError {
    FileError(.journalUnreadable, operation: "read the journal of a migration", path: journalPath, detail: detail)
  }

  /// Writes the journal atomically.
  func write(_ journal: MigrationJournal) throws {
    do {
      let bytes = try JSON.bytes(of: journal, .line, to: "write the journal of a migration", at: journalPath)
      try fileSystem.writeAtomically(bytes, to: journalPath, replacing: true)
    } catch { throw MigrationError(any: error, path: journalPath) }
  }

  // MARK: Making and removing

  /// Makes the folder, private to its owner.
  ///
  /// - Throws: `file-exists` if the name is taken, `permission-denied` if it is another user's.
  func make() throws(FileError) {
    if try fileSystem.status(of: path, followingLinks: false) == nil {
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
    }
    try check()
  }

  /// Accepts a missing folder or the user's own.
  ///
  /// The superuser also accepts its parent's owner.
  func check() throws(FileError) {
    guard let status = try fileSystem.status(of: path, followingLinks: false) else { return }
    guard status.kind == .directory else {
      throw FileError(
        .alreadyExists, operation: "make the working folder", path: path,
        detail: "something that is no folder of this library's has the name of the migration's working folder",
        hint: "Move it away, then run the same command again.")
    }
    let user = FileSystem.effectiveUser
    if status.owner == user { return }
    if user == 0, status.owner == (try fileSystem.status(of: path.folder)?.owner) { return }
    throw FileError(
      .permissionDenied, operation: "use the working folder", path: path, detail: "it belongs to another user",
      hint: "Run as its owner, or move the folder away if it is none of a migration's.")
  }

  func removeUnfinished(_ number: Int) throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try fileSystem.unlink(unfinished(number).sibling(suffix: suffix))
      try fileSystem.unlink(stageCopy(number).sibling(suffix: suffix))
    }
  }

  func removeAside() throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] { try fileSystem.unlink(asidePath.sibling(suffix: suffix)) }
  }

  /// Empties the folder, journal last, unless a swap is under way.
  ///
  /// - Throws: `place-taken` during a swap, `migration-journal-unreadable`, or `file-exists` for foreign files, before
  ///   removing any.
  func clear() throws(FileError) {
    if let phase = try journal()?.phase, phase != .stepping {
      throw FileError(
        .placeTaken, operation: "remove the working folder", path: path,
        detail: "a migration was interrupted while it was replacing the store beside it",
        hint: "Migrate or open that store first, which finishes it.")
    }
    try clearEnded()
  }

  /// Empties the folder, journal last, when the journal is done or void.
  func clearEnded() throws(FileError) {
    try check()
    let names = try fileSystem.entries(of: path)
    if let stranger = names.first(where: { !Self.isOwn($0.string) }) {
      throw FileError(
        .alreadyExists, operation: "empty the working folder", path: path.appending(stranger),
        detail: "something that no migration has made lies in the migration's working folder",
        hint: "Move it away, then run the same command again.")
    }
    for name in names where name.string != "journal.json" { try fileSystem.unlink(path.appending(name)) }
    try fileSystem.unlink(journalPath)
  }

  private static func isOwn(_ name: String) -> Bool {
    ["step-", "journal.json", "swap.moving"].contains { name.hasPrefix($0) || name.hasPrefix("." + $0) }
  }

  /// Removes the folder and its contents, journal last, unless a swap is under way.
  ///
  /// - Throws: The errors of `clear`.
  func remove() throws(FileError) { try remove(emptying: clear) }

  /// Removes the folder when the journal is done or void.
  func removeEnded() throws(FileError) { try remove(emptying: clearEnded) }

  private func remove(emptying empty: () throws(FileError) -> Void) throws(FileError) {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    try empty()
    try fileSystem.removeDirectory(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }
}

// MARK: The journal

/// A migration's progress, in `journal.json` of its working folder.
struct MigrationJournal: Codable, Sendable {
  struct Member: Codable, Sendable, Hashable {
    var part: StoreFileSet.Part
    var identity: FileIdentity
    var size: Int64
    var seconds: Int64
    var nanoseconds: Int32

    init(_ member: StoreFileSet.Member) {
      part = member.part
      identity = member.status.identity
      size = member.status.size
      seconds = member.status.modified.secondsSince1970
      nanoseconds = member.status.modified.nanoseconds
    }

    /// The fields that show writing, without the device number.
    fileprivate var stamp: [Int64] { [Int64(truncatingIfNeeded: identity.inode), size, seconds, Int64(nanoseconds)] }
  }

  /// The stamp of a finished file, without a digest, which would cost more than the step.
  ///
  /// The working folder is private (0700), only the lock's holder writes there, and the file was synced.
  struct FileStamp: Codable, Sendable, Hashable {
    var identity: FileIdentity
    var size: Int64
    var seconds: Int64
    var nanoseconds: Int32

    init(_ status: FileStatus) {
      identity = status.identity
      size = status.size
      seconds = status.modified.secondsSince1970
      nanoseconds = status.modified.nanoseconds
    }
  }

  struct Step: Codable, Sendable, Hashable {
    var source: String
    var destination: String

    var sourceChecksum: String
    var destinationChecksum: String

    /// The finished file; several steps on one file share it.
    var file: FileStamp?

    /// Nil for steps without app code.
    var attempts: Int?
    var account: StepAccount?

    var isRepair: Bool?

    var name: String {
      let before = source.isEmpty ? nil : source
      return isRepair == true ? MigrationStep.repairName(of: before) : MigrationStep.name(from: before, to: destination)
    }
  }

  enum Phase: String, Codable, Sendable {
    /// Steps run; the original is untouched.
    case stepping

    /// The result replaces the original; the next process continues.
    case swapping

    /// The result did not open; the original is put back.
    case reverting
  }

  static let currentVersion = 2

  var version = currentVersion

  /// The request's digest: only the same request resumes.
  var request: String?
  var store: PathText
  var members: [Member]

  /// The start in RFC 3339, used for all times in the new store.
  var begun: String
  var steps: [Step]
  var phase = Phase.stepping

  var backup: PathText?

  /// The same relative to the working folder, which counts if both have moved.
  var backupFromHere: PathText?

  var result: FileIdentity?

  /// The result's files as left; another process has written to one that differs.
  var placed: [Member]?

  /// Whether to keep a reverted result, because another process may have written to it.
  var keepsResult: Bool?

  /// Nil in older journals.
  var made: MadeValues?

  var finished: Int { steps.prefix { $0.file != nil }.count }

  /// Whether it is useless for the next run: no finished step, no called app code.
  var isWorthNothing: Bool { phase == .stepping && finished == 0 && steps.allSatisfy { ($0.attempts ?? 0) == 0 } }

  /// Whether a file replaces the original.
  ///
  /// Compares only the inode, because the device number may change on restart.
  func isResult(_ status: FileStatus?) -> Bool {
    guard let status, let result else { return false }
    return status.identity.inode == result.inode
  }

  /// Whether the result is unwritten since it was finished.
  ///
  /// Content in a WAL or journal is a write; older journals count as written.
  func isUntouched(_ files: [StoreFileSet.Member]) -> Bool { Self.content(files).map(\.stamp) == placed?.map(\.stamp) }

  static func content(_ files: [StoreFileSet.Member]) -> [Member] {
    members(files).filter { $0.part == .main || $0.size > 0 }
  }

  /// The relevant members; the WAL index is rebuilt on opening.
  static func members(_ members: [StoreFileSet.Member]) -> [Member] {
    members.filter { $0.part != .sharedMemory && $0.part != .externalData }.map(Member.init)
  }

  /// In seconds since 2001-01-01T00:00:00Z.
  var referenceDate: Double { Timestamp(begun)?.secondsSinceReferenceDate ?? 0 }
}

extension MigrationJournal.Step {
  init(repairOf version: String?, _ model: ManagedObjectModel) {
    let checksum = ManagedObjectModel.versionChecksum(of: model.versionHashes())
    self.init(
      source: version ?? "", destination: version ?? "", sourceChecksum: checksum, destinationChecksum: checksum,
      isRepair: true)
  }
}
