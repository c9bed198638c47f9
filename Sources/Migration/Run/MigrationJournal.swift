internal import ManagedObjectModel
internal import Platform

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
    fileprivate var stamp: [Int64] {
      [Int64(truncatingIfNeeded: identity.inode), size, seconds, Int64(nanoseconds)]
    }
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
      return isRepair == true
        ? MigrationStep.repairName(of: before) : MigrationStep.name(from: before, to: destination)
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
  var isWorthNothing: Bool {
    phase == .stepping && finished == 0 && steps.allSatisfy { ($0.attempts ?? 0) == 0 }
  }

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
  func isUntouched(_ files: [StoreFileSet.Member]) -> Bool {
    Self.content(files).map(\.stamp) == placed?.map(\.stamp)
  }

  static func content(_ files: [StoreFileSet.Member]) -> [Member] {
    members(files).filter { $0.part == .main || $0.size > 0 }
  }

  /// The relevant members; the WAL index is rebuilt on opening.
  static func members(_ members: [StoreFileSet.Member]) -> [Member] {
    members.filter { $0.part != .sharedMemory && $0.part != .externalData }.map(Member.init)
  }

  /// In seconds since 2001-01-01T00:00:00Z.
  var referenceDate: Double {
    Timestamp(begun)?.secondsSinceReferenceDate ?? 0
  }
}

extension MigrationJournal.Step {
  init(repairOf version: String?, _ model: ManagedObjectModel) {
    let checksum = ManagedObjectModel.versionChecksum(of: model.versionHashes())
    self.init(
      source: version ?? "", destination: version ?? "", sourceChecksum: checksum, destinationChecksum: checksum,
      isRepair: true)
  }
}
