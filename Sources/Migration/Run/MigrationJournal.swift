internal import Foundation
internal import StoreFiles
internal import SystemPackage

/// What a migration has done so far, in `journal.json` of its working folder.
struct MigrationJournal: Codable, Sendable {
  /// One file of the store as it was when the migration began.
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
  }

  /// What tells that a file is the one that was finished.
  ///
  /// No digest: the working folder is this user's alone (0700), nothing but a migration that holds its lock writes there,
  /// and the file was on the disk before this was written. A digest would cost more than the step.
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

  /// One step, and its result once it is there.
  struct Step: Codable, Sendable, Hashable {
    var source: String
    var destination: String

    /// The checksums of the two model versions.
    var sourceChecksum: String
    var destinationChecksum: String

    /// The finished file; that of the last one where several steps were carried out on it.
    var file: FileStamp?

    /// How often a step with code of the app has been begun; nil for other steps.
    var attempts: Int?
    var account: StepAccount?
  }

  /// What is being done.
  enum Phase: String, Codable, Sendable {
    /// The steps are carried out; the original has not been touched.
    case stepping

    /// The original makes room for the result: whoever finds this goes on.
    case swapping

    /// The result did not open: it goes, and the original comes back.
    case reverting
  }

  /// The version of this file's format.
  var version = 2

  /// What was asked for, as a digest: only the same request goes on where this one was interrupted.
  var request: String
  var store: PathText
  var members: [Member]

  /// When it began, in RFC 3339; whatever tells the time in the new store tells this.
  var begun: String
  var steps: [Step]
  var phase = Phase.stepping

  /// Where the original goes.
  var backup: PathText?

  /// The file that takes the original's place.
  var result: FileIdentity?

  /// What the finished steps have put in of their own; nil in journals of earlier versions of this library.
  var made: MadeValues?

  /// The number of steps whose files are there.
  var finished: Int { steps.prefix { $0.file != nil }.count }

  /// The parts of a set that count: the index of the log is rebuilt by whoever opens the store.
  static func members(_ members: [StoreFileSet.Member]) -> [Member] {
    members.filter { $0.part != .sharedMemory && $0.part != .externalData }.map(Member.init)
  }

  /// Seconds since 2001-01-01T00:00:00Z when the migration began.
  var referenceDate: Double {
    Timestamp(begun).map { Double($0.secondsSince1970) - 978_307_200 } ?? 0
  }
}

/// The hidden folder beside a store in which it is migrated: `.App.sqlite.migrating`.
struct WorkingFolder {
  let path: FilePath
  let fileSystem: FileSystem

  init(for place: StoreFileSet, in fileSystem: FileSystem) {
    path = place.main.hiddenSibling(suffix: ".migrating")
    self.fileSystem = fileSystem
  }

  /// The journal.
  var journalPath: FilePath { path.appending("journal.json") }

  /// The journal of the move of the original.
  var movePath: FilePath { path.appending("swap.moving") }

  /// The file of a finished step; 0 is the copy of the original.
  func step(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite") }

  /// Where a step is carried out.
  func unfinished(_ number: Int) -> FilePath { path.appending("step-\(number).sqlite.unfinished") }

  /// The copy that a stage changes before a step.
  func prepared(_ number: Int) -> FilePath { path.appending("step-\(number).prepared.unfinished") }

  /// The journal; nil where there is none, or none that can be read.
  func journal() throws(FileError) -> MigrationJournal? {
    guard try fileSystem.status(of: journalPath, followingLinks: false) != nil else { return nil }
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try fileSystem.contents(of: journalPath, limit: 1 << 26)
    } catch {
      // Another process has finished meanwhile.
      guard error.kind == .notFound else { throw error }
      return nil
    }
    guard let journal = try? JSONDecoder().decode(MigrationJournal.self, from: Data(bytes)), journal.version == 2 else {
      // Only ever written whole: one that cannot be read is none of ours, or of a later version.
      return nil
    }
    return journal
  }

  /// Writes the journal, whole or not at all.
  func write(_ journal: MigrationJournal) throws(MigrationError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      try fileSystem.writeAtomically([UInt8](try encoder.encode(journal)), to: journalPath, replacing: true)
    } catch {
      throw MigrationError(database: error, path: journalPath)
    }
  }

  /// Makes the folder, readable by its owner alone until its files are in place.
  func make() throws(FileError) { try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700)) }

  /// Removes what a killed run left of a step.
  func removeUnfinished(_ number: Int) throws(FileError) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try fileSystem.unlink(path.appending("step-\(number).sqlite.unfinished" + suffix))
      try fileSystem.unlink(path.appending("step-\(number).prepared.unfinished" + suffix))
    }
  }

  /// Removes the folder with everything in it, the journal last.
  func remove() throws(FileError) {
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .directory else { return }
    for name in try fileSystem.entries(of: path) where name.string != "journal.json" {
      try fileSystem.unlink(path.appending(name))
    }
    try fileSystem.unlink(journalPath)
    try fileSystem.removeDirectory(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }
}
