internal import ManagedObjectModel
internal import Platform

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

    /// What tells whether the file was written to, without the number of its device.
    fileprivate var stamp: [Int64] {
      [Int64(truncatingIfNeeded: identity.inode), size, seconds, Int64(nanoseconds)]
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

    /// Whether it is a repair of the store to its own model; nil for a migration.
    var isRepair: Bool?

    var name: String {
      let before = source.isEmpty ? nil : source
      return isRepair == true
        ? MigrationStep.repairName(of: before) : MigrationStep.name(from: before, to: destination)
    }
  }

  enum Phase: String, Codable, Sendable {
    /// The steps are carried out; the original has not been touched.
    case stepping

    /// The original makes room for the result: the process that finds this goes on.
    case swapping

    /// The result did not open: it goes, and the original comes back.
    case reverting
  }

  /// The version of this file's format that this code writes.
  static let currentVersion = 2

  /// The version of this file's format.
  var version = currentVersion

  /// What was asked for, as a digest: only the same request goes on where this one was interrupted.
  var request: String?
  var store: PathText
  var members: [Member]

  /// When it began, in RFC 3339; whatever tells the time in the new store tells this.
  var begun: String
  var steps: [Step]
  var phase = Phase.stepping

  var backup: PathText?

  /// The same, from the working folder: it counts where that has been moved together with the store.
  var backupFromHere: PathText?

  /// The file that takes the original's place.
  var result: FileIdentity?

  /// The files of the result as this migration left them; one that differs has been written to by another process.
  var placed: [Member]?

  /// Whether a result that goes is kept beside the backup, because another process may have written to it.
  var keepsResult: Bool?

  /// What the finished steps have put in of their own; nil in journals of earlier versions of this library.
  var made: MadeValues?

  /// The number of steps whose files are there.
  var finished: Int { steps.prefix { $0.file != nil }.count }

  /// Whether nothing of it is of use to the next run: no step is finished, and no code of the app has been called.
  var isWorthNothing: Bool {
    phase == .stepping && finished == 0 && steps.allSatisfy { ($0.attempts ?? 0) == 0 }
  }

  /// Whether a file is the one that takes the original's place.
  ///
  /// By its inode alone: the number of the device may change from one start of the machine to the next.
  func isResult(_ status: FileStatus?) -> Bool {
    guard let status, let result else { return false }
    return status.identity.inode == result.inode
  }

  /// Whether the result has not been written to since it was finished; a log or a journal with content is writing, too.
  ///
  /// Journals of earlier versions of this library do not say, and then it counts as written to.
  func isUntouched(_ files: [StoreFileSet.Member]) -> Bool {
    Self.content(files).map(\.stamp) == placed?.map(\.stamp)
  }

  /// The parts of a set with content of their own.
  static func content(_ files: [StoreFileSet.Member]) -> [Member] {
    members(files).filter { $0.part == .main || $0.size > 0 }
  }

  /// The parts of a set that count: the index of the log is rebuilt when the store is opened.
  static func members(_ members: [StoreFileSet.Member]) -> [Member] {
    members.filter { $0.part != .sharedMemory && $0.part != .externalData }.map(Member.init)
  }

  /// Seconds since 2001-01-01T00:00:00Z when the migration began.
  var referenceDate: Double {
    Timestamp(begun)?.secondsSinceReferenceDate ?? 0
  }
}

extension MigrationJournal.Step {
  /// The repair of a store to its own model.
  init(repairOf version: String?, _ model: ManagedObjectModel) {
    let checksum = ManagedObjectModel.versionChecksum(of: model.versionHashes())
    self.init(
      source: version ?? "", destination: version ?? "", sourceChecksum: checksum, destinationChecksum: checksum,
      isRepair: true)
  }
}
