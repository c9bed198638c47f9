import ManagedObjectModel
import PersistentStore
import SQLiteFormat
package import StoreFiles
public import SystemPackage

/// Looks at a store without touching it: reads bytes, takes at most a reader's share of SQLite's lock, writes nothing.
///
/// No SQLite is involved. What is read is what a reader would see: the file with the committed part of its write-ahead
/// log, or with a hot journal undone.
public struct Examiner: Sendable {
  /// What to look for.
  public struct Options: Sendable {
    public var depth: Examination.Depth

    /// Whether records are counted, which reads a part of every page of their tables.
    public var countsRecords: Bool

    /// Called during a full look with pages done and pages in all; false ends it with `cancelled`.
    public var progress: @Sendable (_ done: Int, _ total: Int) -> Bool

    public init(
      depth: Examination.Depth = .quick, countsRecords: Bool = true,
      progress: @escaping @Sendable (_ done: Int, _ total: Int) -> Bool = { _, _ in true }
    ) {
      self.depth = depth
      self.countsRecords = countsRecords
      self.progress = progress
    }
  }

  let fileSystem: FileSystem

  package init(fileSystem: FileSystem) { self.fileSystem = fileSystem }

  /// The examiner of this machine's file system.
  public init() { self.init(fileSystem: FileSystem()) }

  /// Examines a store.
  ///
  /// Never throws over what the store holds or where it lies: that is what the verdict says.
  ///
  /// - Parameters:
  ///   - path: the store's main file, as the user names it.
  ///   - model: what the app expects; nil to look at the store alone.
  /// - Throws: `FormatError.cancelled` where `progress` said so.
  public func examine(_ path: FilePath, model: AppModel? = nil, options: Options = Options()) throws -> Examination {
    var last: Examination?
    // A store that somebody writes to can change between two reads; a verdict counts when nothing changed meanwhile.
    for _ in 0..<3 {
      do {
        let files = try StoreFileSet.locate(path, in: fileSystem)
        let before = try files.members(in: fileSystem)
        let examination = try look(at: files, members: before, model: model, options: options)
        if try files.members(in: fileSystem) == before { return examination }
        last = examination
      } catch let error as FileError {
        return .unavailable(error, depth: options.depth)
      }
    }
    if let last, !last.health.isDamaged { return last }
    return .unavailable(
      FileError(
        .changed, operation: "examine the store", path: path, detail: "another process keeps writing to it",
        hint: "Quit the app that uses it, then look again."),
      depth: options.depth)
  }

  private func look(
    at files: StoreFileSet, members: [StoreFileSet.Member], model: AppModel?, options: Options
  ) throws -> Examination {
    var examination = Examination(
      files: files, verdict: .missing, reason: .missing, kind: .unknown, entities: [],
      health: Health(depth: options.depth, files: members))
    guard let main = members.first(where: { $0.part == .main }) else {
      if members.contains(where: { $0.part != .externalData }) { examination.reason = .orphanedParts }
      return examination
    }
    let lock = try SharedStoreLock(on: files, in: fileSystem)
    do {
      try read(main, of: files, into: &examination, model: model, options: options)
    } catch let error as FormatError {
      if error.kind == .cancelled { throw error }
      if error.isEnvironmental { return .unavailable(error, files: files, depth: options.depth) }
      examination.condemn(.unreadable(error))
    }
    _ = consume lock
    return examination
  }

  /// Reads the store from the ground up, and stops where it cannot go on.
  private func read(
    _ main: StoreFileSet.Member, of files: StoreFileSet, into examination: inout Examination, model: AppModel?,
    options: Options
  ) throws {
    let file = try fileSystem.open(main.path)
    let log = try openPart(.wal, of: files)
    let journal = try openPart(.journal, of: files)
    let head = try file.bytes(at: 0, length: FileKind.sampleLength)
    let kind = FileKind(firstBytes: head)
    examination.health.fileKind = kind
    guard kind == .database else {
      examination.condemn(.notSQLite(kind, hasLog: log.map { $0.count > 0 } ?? false))
      return
    }
    if let header = DatabaseHeader(head), header.pageSize == nil {
      examination.health.add(header.findings)
      examination.condemn(.wrongPageSize(header.storedPageSize))
      return
    }
    let database = try Database(
      main: file, writeAheadLog: log, rollbackJournal: journal,
      superJournalExists: { name in superJournalExists(name, beside: files) })
    examination.note(database)
    if let reason = examination.physicalReason(database, fileBytes: file.count) {
      examination.condemn(reason)
      // What can still be read is reported all the same.
    }
    try readContent(database, into: &examination, model: model, options: options)
    if options.depth == .full {
      let report = try database.checkIntegrity(progress: options.progress)
      examination.health.integrity = report
      examination.health.add(report.findings)
      if !report.isSound { examination.condemn(.damagedPages(report)) }
    }
  }

  private func openPart(_ part: StoreFileSet.Part, of files: StoreFileSet) throws(FileError) -> ReadableFile? {
    let path = files.path(of: part)
    guard try fileSystem.status(of: path) != nil else { return nil }
    return try fileSystem.open(path)
  }

  /// Whether the super-journal is there; one that is said to lie elsewhere is taken to be, and not looked for.
  private func superJournalExists(_ name: [UInt8], beside files: StoreFileSet) -> Bool {
    let path = FilePath(String(decoding: name, as: UTF8.self))
    guard let last = path.lastComponent, path.folder == files.folder else { return true }
    // What cannot be looked at may be there; then the journal is rolled back, as without an answer.
    return (try? fileSystem.status(of: files.folder.appending(last)) != nil) ?? true
  }
}

extension Examination {
  /// The examination of a store that cannot be had now.
  static func unavailable(
    _ error: any ReportableError, files: StoreFileSet? = nil, depth: Depth
  ) -> Examination {
    Examination(
      files: files, verdict: error.code == "file-not-found" ? .missing : .unavailable,
      reason: VerdictReason(
        error.code, words: "The store cannot be read now: \(error.detail).", hint: error.hint,
        coreData: nil, sqlite: VerdictReason.sqliteCode(of: error)),
      kind: .unknown, entities: [], health: Health(depth: depth))
  }

  /// Gives the verdict of damage, unless a reason for it is known already: the first one is nearest to the cause.
  mutating func condemn(_ reason: VerdictReason) {
    guard verdict != .damaged else { return }
    verdict = .damaged
    self.reason = reason
  }

  /// Takes down what header, log and journal say.
  mutating func note(_ database: Database) {
    health.pageSize = database.pageSize
    health.pageCount = database.pageCount
    health.encoding = database.encoding
    if let log = database.writeAheadLog {
      health.log = Health.LogFacts(frames: log.frameCount, committedFrames: log.committedFrameCount)
      health.add(log.findings)
    }
    if let journal = database.rollbackJournal {
      health.journal = journal.state
      health.add(journal.findings)
    }
    if let header = database.header {
      health.writtenBySQLite = header.sqliteVersionName
      health.add(header.findings)
      health.addKnownBugs(sqliteVersion: header.sqliteVersion, usesLog: header.usesWriteAheadLog)
    }
    health.add(database.findings)
    for member in health.files where member.part == .main && member.status.linkCount > 1 {
      health.notes.append(
        HealthNote("hard-linked", .warning, "the file has \(member.status.linkCount) names, which SQLite warns against"))
    }
  }
}
