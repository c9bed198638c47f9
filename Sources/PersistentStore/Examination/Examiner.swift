package import Platform
package import SQLiteFormat
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A read-only examiner that at most shares SQLite's read lock.
///
/// It sees a reader's view: the file with committed log frames, or with a hot journal rolled back. SQLite only reads
/// the schema and compares indexes that need it, from these pages, never from a file (see ``SchemaReading``).
package struct Examiner: Sendable {
  package struct Options: Sendable {
    var depth: Examination.Depth

    var countsRecords: Bool

    /// Called during a full look; false ends it with `cancelled`.
    var progress: @Sendable (_ done: Int, _ total: Int) -> Bool

    package init(
      depth: Examination.Depth = .quick, countsRecords: Bool = true,
      progress: @escaping @Sendable (_ done: Int, _ total: Int) -> Bool = { _, _ in true }
    ) {
      self.depth = depth
      self.countsRecords = countsRecords
      self.progress = progress
    }
  }

  let fileSystem: FileSystem

  /// The unchanged time before a bad verdict.
  ///
  /// Some systems round change times to 10 ms, so two changes can share a time.
  let settlingTime: Duration

  package init(fileSystem: FileSystem, settlingTime: Duration = .milliseconds(20)) {
    self.fileSystem = fileSystem
    self.settlingTime = settlingTime
  }

  package init() { self.init(fileSystem: FileSystem()) }

  private static let attempts = 6

  /// Examines a store; its problems become the verdict.
  ///
  /// - Throws: `cancelled` if `progress` returned false.
  package func examine(_ path: FilePath, model: AppModel? = nil, options: Options = Options()) throws -> Examination {
    var last: Examination?
    // Another process can write between two reads; a verdict needs unchanged files.
    for attempt in 1...Self.attempts {
      // A bad verdict waits the full settling time, others a quarter.
      if attempt > 1 { pause(last?.isBad == true ? settlingTime : settlingTime / 4) }
      let files: StoreFileSet
      do throws(FileError) {
        files = try StoreFileSet.locate(path, in: fileSystem)
      } catch {
        return .unavailable(error, depth: options.depth)
      }
      do {
        let before = try files.members(in: fileSystem)
        let isAtRest = isAtRest(before)
        var examination = try look(at: files, members: before, model: model, options: options)
        let isUnchanged = try files.members(in: fileSystem) == before
        examination.tellWhetherNewer()
        if isUnchanged, !examination.isBad || isAtRest { return examination }
        last = examination
      } catch let error as FileError where error.kind != .cancelled {
        last = .unavailable(error, files: files, depth: options.depth)
        // The file just vanished or a writer may finish soon.
        if error.kind != .notFound, error.kind != .locked { break }
      }
    }
    if let last, !last.isBad, last.reason.code != FileError.Kind.notFound.rawValue { return last }
    return .unavailable(
      FileError(
        .changed, operation: "examine the store", path: path, detail: "another process keeps writing to it",
        hint: "Quit the app that uses it, then look again."),
      depth: options.depth)
  }

  /// Returns whether the last write is too old to share a time with one from now on.
  private func isAtRest(_ members: [StoreFileSet.Member]) -> Bool {
    guard settlingTime > .zero else { return true }
    let now = Surroundings.machine.now()
    return members.allSatisfy { member in
      let age =
        Duration.seconds(now.secondsSince1970 &- member.status.modified.secondsSince1970)
        + .nanoseconds(Int64(now.nanoseconds) &- Int64(member.status.modified.nanoseconds))
      // A future time would stay in the future.
      return age >= settlingTime || age < .zero
    }
  }

  private func look(
    at files: StoreFileSet, members: [StoreFileSet.Member], model: AppModel?, options: Options
  ) throws -> Examination {
    var examination = Examination(files: files, health: Health(depth: options.depth, files: members))
    guard let main = members.first(where: { $0.part == .main }) else {
      if members.contains(where: { $0.part != .externalData }) { examination.reason = .orphanedParts }
      try lookAtLeftovers(of: files, &examination, model: model, options: options)
      return examination
    }
    let lock = try SharedStoreLock(on: files, in: fileSystem)
    do {
      let bytes = try open(main, of: files, lock, &examination)
      try read(bytes, into: &examination, model: model, options: options)
    } catch let error as FileError where error.kind == .notADatabase {
      examination.markDamaged(.unreadable(error))
    }
    lock.release()
    if examination.health.usesLog != false, let holder = try files.holderOfDeletedLog(in: fileSystem) {
      // The file alone is not the store.
      examination.verdict = .unavailable
      examination.reason = .deletedLog(holder)
    }
    return examination
  }

  /// Examines a log and journal without a main file: damaged if they have pages.
  private func lookAtLeftovers(
    of files: StoreFileSet, _ examination: inout Examination, model: AppModel?, options: Options
  ) throws {
    let bytes = StoreBytes(
      main: MemoryBytes([]), log: try openPart(.wal, of: files), journal: try openPart(.journal, of: files)
    ) { _ in true }
    do {
      guard try bytes.hasPagesElsewhere() else { return }
      examination.markDamaged(.mainFileMissing)
      guard let database = try bytes.databaseOfLogAlone() else { return }
      try read(database, bytes, into: &examination, model: model, options: options, nil)
    } catch let error as FileError where error.kind == .notADatabase {
      // The damage is known already or irrelevant.
    }
  }

  private func open(
    _ main: StoreFileSet.Member, of files: StoreFileSet, _ lock: borrowing SharedStoreLock,
    _ examination: inout Examination
  ) throws(FileError) -> StoreBytes {
    guard let file = lock.file else { throw FileError(.notFound, operation: "read the store", path: main.path) }
    // Read first, so that its frames are in the log.
    let index = try files.logIndex(length: WriteAheadLogIndex.length, in: fileSystem)
    let logIndex = index.flatMap { WriteAheadLogIndex($0.bytes) }
    var log: (any ByteSource)? = try openPart(.wal, of: files)
    var journal = try openPart(.journal, of: files)
    let isLogWriterActive = index?.isWriterActive == true
    if lock.isWriterActive || isLogWriterActive {
      // A live writer's journal is not hot: the transaction may commit and has not reached the file while readers are
      // allowed. Frames after the index's last may be half written.
      journal = nil
      if isLogWriterActive, let whole = log { log = try logIndex?.committedPart(of: whole) ?? whole }
      examination.health.note(
        "writer-active", .note, "another process has a transaction under way; it is not part of the store yet")
    }
    var bytes = StoreBytes(main: file, log: log, journal: journal) { name in superJournalExists(name, beside: files) }
    bytes.logIndex = logIndex
    bytes.isLogInUse = index?.isInUse == true
    return bytes
  }

  func read(
    _ bytes: StoreBytes, into examination: inout Examination, model: AppModel?, options: Options,
    visitor: (any PageVisitor)? = nil
  ) throws {
    var bytes = bytes
    if let embedded = try EmbeddedDatabase(in: bytes.main) {
      examination.markDamaged(.embedded(behind: embedded.offset))
      bytes.main = embedded
    }
    let untouched = examination
    guard let database = try openDatabase(bytes, &examination) else { return }
    try read(database, bytes, into: &examination, model: model, options: options, visitor)
    guard examination.verdict == .damaged, let size = try contradictingPageSize(database, bytes) else { return }
    // Another page size makes sense of the pages: the header's explains all damage.
    examination = untouched
    examination.health.fileKind = .database
    examination.markDamaged(.pageSizeContradicted(stated: database.pageSize, found: size))
    try read(try bytes.database(pageSize: size), bytes, into: &examination, model: model, options: options, nil)
  }

  private func read(
    _ database: Database, _ bytes: StoreBytes, into examination: inout Examination, model: AppModel?, options: Options,
    _ visitor: (any PageVisitor)?
  ) throws {
    let untouched = examination
    examination.note(database)
    examination.noteEnd(of: database.writeAheadLog, by: bytes.logIndex, isInUse: bytes.isLogInUse)
    try examination.noteRemains(of: database.rollbackJournal, database)
    var database = database
    if let foreign = try ForeignLog(of: database) {
      examination.markDamaged(.damage("foreign-wal", foreign.words))
      if foreign.isCertain {
        // The log is another store's; report the file alone.
        database = try Database(
          main: bytes.main, rollbackJournal: bytes.journal, pageSize: database.pageSize,
          superJournalExists: bytes.superJournalExists)
        examination.health.countPages(of: database)
      }
    }
    if let foreign = try ForeignJournal(of: database) {
      examination.markDamaged(.damage("foreign-journal", foreign.words))
      database = try Database(main: bytes.main, writeAheadLog: bytes.log, pageSize: database.pageSize)
      examination.health.countPages(of: database)
    }
    if let reason = examination.physicalReason(database, fileBytes: bytes.main.count) {
      examination.markDamaged(reason)
      // Report the readable rest.
    }
    let schema = try readContent(database, into: &examination, model: model)
    // After damage, or with parts missing that a damaged page may hold, a quick look is insufficient.
    let isIncomplete = examination.drift?.isEmpty == false
    if options.depth == .full || isIncomplete || examination.health.isDamaged || examination.verdict == .damaged {
      try checkPages(of: database, schema, into: &examination, options, visitor)
    }
    if examination.verdict == .damaged, database.isLogApplied, try ForeignLog.isOfOtherState(database) {
      examination = untouched
      examination.markDamaged(.damage("foreign-wal", try (ForeignLog(of: database) ?? .state).words))
      var bytes = bytes
      bytes.log = nil
      return try read(
        try bytes.database(pageSize: database.pageSize), bytes, into: &examination, model: model, options: options, nil)
    }
    if options.countsRecords { try count(database, schema, into: &examination, options) }
    examination.markDamagedForNotes()
    if examination.health.depth == .quick {
      examination.tellThatNotAllWasSeen(VerdictReason.nothingToDoAsFarAsSeen)
    } else if !options.countsRecords {
      examination.tellThatNotAllWasSeen(VerdictReason.nothingToDoUncounted)
    } else if !examination.unchecked.isEmpty {
      examination.tellThatNotAllWasSeen(VerdictReason.nothingToDoUncompared)
    } else if examination.kind == .coreData {
      examination.tellThatNotAllWasSeen(VerdictReason.nothingToDoUnlessRecords)
    }
    examination.tellUnreadLog()
    examination.tellUnchecked()
  }

  private func openPart(_ part: StoreFileSet.Part, of files: StoreFileSet) throws(FileError) -> ReadableFile? {
    let path = files.path(of: part)
    guard try fileSystem.status(of: path) != nil else {
      // Another process may have created it since; it is read as a regular file.
      guard let entry = try fileSystem.status(of: path, followingLinks: false) else { return nil }
      guard entry.kind == .symbolicLink else { return try fileSystem.open(path) }
      throw FileError(
        .danglingLink, operation: "read the store", path: path,
        detail: "\(quoted(path)) beside it is a symbolic link that leads nowhere")
    }
    // If it vanishes now, as at a transaction's end, the store is examined again.
    return try fileSystem.open(path)
  }

  /// Returns whether the super-journal exists, assumed for one named elsewhere.
  private func superJournalExists(_ name: [UInt8], beside files: StoreFileSet) -> Bool {
    let path = FilePath(String(decoding: name, as: UTF8.self))
    guard let last = path.lastComponent, path.folder == files.folder else { return true }
    // It may exist; the journal is then rolled back.
    return (try? fileSystem.status(of: files.folder.appending(last)) != nil) ?? true
  }
}

struct StoreBytes {
  var main: any ByteSource
  var log: (any ByteSource)?

  /// The index, read before the log.
  var logIndex: WriteAheadLogIndex?

  /// Whether another process has the log open and maintains its index.
  var isLogInUse = false
  var journal: (any ByteSource)?

  var superJournalExists: ([UInt8]) -> Bool

  func database(pageSize: Int? = nil) throws(FileError) -> Database {
    try Database(
      main: main, writeAheadLog: log, rollbackJournal: journal, pageSize: pageSize,
      superJournalExists: superJournalExists)
  }
}

private func pause(_ time: Duration) {
  let microseconds = time / .microseconds(1)
  guard microseconds >= 1 else { return }
  usleep(UInt32(min(microseconds, 1_000_000)))
}

extension Health {
  /// Records the page count, the file's if the header exceeds it; nil if only the log knows it and pages are missing.
  mutating func countPages(of database: Database) {
    let isContradicted = database.findings.contains(.fileTooShort)
    let isIncomplete = database.main.count == 0 || database.findings.contains(.logMissingPages)
    pageCount =
      isIncomplete && database.isLogApplied
      ? nil : isContradicted ? min(database.pageCount, database.highestPage) : database.pageCount
  }
}

extension Examination {
  /// Whether the verdict leads to moving or writing the store, and must be certain.
  fileprivate var isBad: Bool { verdict == .damaged || verdict == .incompatible || verdict == .repairable }

  static func unavailable(_ error: any ReportableError, files: StoreFileSet? = nil, depth: Depth) -> Examination {
    Examination(
      files: files, verdict: error.code == "file-not-found" ? .missing : .unavailable,
      reason: VerdictReason(
        error.code, "The store cannot be read now: \(error.detail).", hint: error.hint,
        sqlite: VerdictReason.sqliteCode(of: error)),
      health: Health(depth: depth))
  }

  /// Sets the damage verdict once: the first reason is closest to the cause.
  mutating func markDamaged(_ reason: VerdictReason) {
    guard verdict != .damaged else { return }
    verdict = .damaged
    self.reason = reason
  }

  mutating func markMetadataDamaged(_ words: String, isMissing: Bool = false) {
    markDamaged(.damage(isMissing ? "metadata-missing" : "metadata-damaged", words, sqlite: nil))
  }

  /// Adds that a damaged store is newer too: the app cannot use its salvage.
  fileprivate mutating func tellWhetherNewer() {
    guard verdict == .damaged, let newer else { return }
    reason.words += " \(newer.words)"
    reason.hint = newer.hint
  }

  fileprivate mutating func tellThatNotAllWasSeen(_ hint: String) {
    guard verdict == .compatible, reason.hint == VerdictReason.nothingToDo else { return }
    reason.hint = hint
  }

  fileprivate mutating func tellUnchecked() {
    guard verdict == .compatible, let words = Unchecked.words(unchecked) else { return }
    if reason.code == VerdictReason.looksSound.code, !health.mayLackCommits {
      reason.words = VerdictReason.soundAsFarAsChecked
    }
    reason.words += " \(words)"
  }

  mutating func markDamagedForNotes() {
    guard let note = health.notes.first(where: { $0.severity == .damage }) else { return }
    markDamaged(.damage(note.code, "\(note.words.capitalizedFirst)."))
  }

  mutating func note(_ database: Database) {
    health.isRead = true
    health.pageSize = database.pageSize
    health.countPages(of: database)
    let header = database.header.flatMap { $0.hasUsualFractions ? $0 : nil }
    health.encoding = header?.encoding
    if let log = database.writeAheadLog {
      health.log = Health.LogFacts(
        frames: log.frameCount, committedFrames: log.committedFrameCount, pages: log.committedPageCount,
        databasePages: log.hasCommittedFrames ? log.pageCount : nil)
      health.add(log.findings)
    }
    if let journal = database.rollbackJournal {
      health.journal = journal.state
      health.add(journal.findings)
    }
    if let stored = database.header { health.add(stored.findings) }
    // A destroyed header does not show the writer.
    if let header, header.isConsistent {
      health.usesLog = header.usesWriteAheadLog
      health.writtenBySQLite = header.sqliteVersionName
      health.addKnownBugs(of: header)
    }
    health.add(database.findings)
    for member in health.files where member.part == .main && member.status.linkCount > 1 {
      health.note("hard-linked", .warning, "the file has \(member.status.linkCount) names, which SQLite warns against")
    }
  }
}

extension Examiner {
  /// Examines a consistent snapshot of bytes without locks or files.
  ///
  /// - Parameters:
  ///   - log: the valid bytes of the log.
  ///   - journal: a possibly hot journal.
  ///   - visitor: sees each b-tree page of a sound store once in a full look.
  /// - Throws: read errors only.
  package func examine(
    main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?, of files: StoreFileSet,
    members: [StoreFileSet.Member], options: Options = Options(), visitor: (any PageVisitor)? = nil
  ) throws -> Examination {
    var examination = Examination(files: files, health: Health(depth: options.depth, files: members))
    let bytes = StoreBytes(main: main, log: log, journal: journal) { _ in true }
    do {
      try read(bytes, into: &examination, model: nil, options: options, visitor: visitor)
    } catch let error as FileError where error.kind == .notADatabase {
      examination.markDamaged(.unreadable(error))
    }
    return examination
  }

  /// Has SQLite read the schema: no app can open a store with a refused one.
  ///
  /// Damaged stores are skipped: SQLite adds no news.
  func askSQLite(about schema: Schema, of database: Database, _ examination: inout Examination) throws(FileError) {
    guard examination.verdict != .damaged else { return }
    let tables = schema.tables.filter { $0.rootPage > 0 }.map { ($0.name, $0.tableDefinition?.isWithoutRowid == true) }
    let refusal = try SchemaReading(DatabaseContent(database)).refusal(of: Dictionary(tables) { first, _ in first })
    guard let refusal else { return }
    examination.isSchemaRefused = true
    // A name without an entry may be arbitrary.
    let entry = schema.entries.first { $0.name == refusal.entry }.map { printableName($0.name) }
    let words =
      switch refusal.kind {
      case .schema:
        "SQLite refuses to open the store, since it cannot read its schema"
          + (entry.map { ": the statement of \($0) is damaged, or what it needs is missing" } ?? "")
      case .indexMissing:
        "SQLite refuses to use \(entry.map { "the table \($0)" } ?? "a table"), whose statement asks for an index that is not in the schema"
      }
    examination.health.note(refusal.kind.rawValue, .damage, words)
    examination.markDamaged(.damage(refusal.kind.rawValue, "\(words).", sqlite: refusal.code))
  }
}

extension IndexReport {
  /// Has SQLite compare remaining indexes, and check the key order of `WITHOUT ROWID` tables.
  ///
  /// Expression and partial indexes stay uncompared: expressions are never evaluated.
  ///
  /// - Throws: read errors; `cancelled` at the caller's request.
  package mutating func askSQLite(
    about schema: Schema, of content: DatabaseContent, isCancelled: @escaping () -> Bool = { false }
  ) throws(FileError) {
    let keyed = schema.tables.filter { keyedTables.contains($0.rootPage) }
    guard isSound, !uncompared.isEmpty || !keyed.isEmpty else { return }
    let names = Set(uncompared)
    let indexes = schema.indexes.filter { names.contains($0.name) }
    let found = try SchemaReading(content).checkIndexes(
      of: Set(indexes.map(\.tableName) + keyed.map(\.name)).sorted(), isCancelled: isCancelled)
    if isCancelled() { throw FileError.cancelled("compare the indexes") }
    for index in indexes {
      switch found[index.tableName] {
      case .sound:
        uncompared.removeAll { $0 == index.name }
        compared += 1
      case .damaged:
        uncompared.removeAll { $0 == index.name }
        findings.append(Finding(.indexEntriesDiffer, root: index.rootPage))
      case .unchecked, nil: break
      }
    }
    let blamed = Set(indexes.map(\.tableName))
    for table in keyed where found[table.name] == .damaged && !blamed.contains(table.name) {
      findings.append(Finding(.keyOrder, root: table.rootPage))
    }
  }
}
