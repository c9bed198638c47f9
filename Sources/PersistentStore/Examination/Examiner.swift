package import Platform
package import SQLiteFormat
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Looks at a store without touching it: reads bytes, takes at most a reader's share of SQLite's lock, writes nothing.
///
/// What is read is what a reader would see: the file with the committed part of its write-ahead log, or with a hot journal
/// undone. SQLite has no part in it but to say whether it reads the schema, and to compare indexes that cannot be compared
/// without it; it is given these pages, and no file (see ``SchemaReading``).
package struct Examiner: Sendable {
  /// What to look for.
  package struct Options: Sendable {
    /// How closely to look.
    package var depth: Examination.Depth

    /// Whether records are counted, which reads a part of every page of their tables.
    package var countsRecords: Bool

    /// Called during a full look with pages done and pages in all; false ends it with `cancelled`.
    package var progress: @Sendable (_ done: Int, _ total: Int) -> Bool

    /// A quick look that counts records, unless told otherwise.
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

  /// How long a store must have rested before a bad verdict on it is believed.
  ///
  /// Some systems note the time of a change in steps of up to 10 ms, so that two changes can bear the same time.
  let settlingTime: Duration

  package init(fileSystem: FileSystem, settlingTime: Duration = .milliseconds(20)) {
    self.fileSystem = fileSystem
    self.settlingTime = settlingTime
  }

  /// The examiner of this machine's file system.
  package init() { self.init(fileSystem: FileSystem()) }

  /// How often a store is looked at that changes meanwhile, or that a writer has to itself.
  private static let attempts = 6

  /// Examines a store.
  ///
  /// Never throws over what the store holds or where it lies: that is what the verdict says.
  ///
  /// - Parameters:
  ///   - path: the store's main file, as the user names it.
  ///   - model: what the app expects; nil to look at the store alone.
  /// - Throws: `FormatError.cancelled` where `progress` said so.
  package func examine(_ path: FilePath, model: AppModel? = nil, options: Options = Options()) throws -> Examination {
    var last: Examination?
    // A store that another process writes to can change between two reads; a verdict counts when nothing changed meanwhile.
    for attempt in 1...Self.attempts {
      // A bad verdict is given time; a good one, or a lock, only a moment.
      if attempt > 1 { pause(last?.isBad == true ? settlingTime : settlingTime / 4) }
      let files: StoreFileSet
      do throws(FileError) {
        files = try StoreFileSet.locate(path, in: fileSystem)
      } catch {
        return .unavailable(error, depth: options.depth)
      }
      do {
        let before = try files.members(in: fileSystem)
        var examination = try look(at: files, members: before, model: model, options: options)
        let isUnchanged = try files.members(in: fileSystem) == before
        examination.tellWhetherNewer()
        if isUnchanged, !examination.isBad || haveRested(before) { return examination }
        last = examination
      } catch let error as FileError {
        last = .unavailable(error, files: files, depth: options.depth)
        // A file that was there a moment ago, or a writer that is about to be done: worth another look.
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

  /// Whether nothing was written to the files so lately that a later change could bear the same time.
  private func haveRested(_ members: [StoreFileSet.Member]) -> Bool {
    guard settlingTime > .zero else { return true }
    let now = Surroundings.machine.now()
    return members.allSatisfy { member in
      let age =
        Duration.seconds(now.secondsSince1970 &- member.status.modified.secondsSince1970)
        + .nanoseconds(Int64(now.nanoseconds) &- Int64(member.status.modified.nanoseconds))
      // A time in the future tells nothing, and would be in the future still at the next look.
      return age >= settlingTime || age < .zero
    }
  }

  private func look(
    at files: StoreFileSet, members: [StoreFileSet.Member], model: AppModel?, options: Options
  ) throws -> Examination {
    var examination = Examination(
      files: files, verdict: .missing, reason: .missing, kind: .unknown, entities: [],
      health: Health(depth: options.depth, files: members))
    guard let main = members.first(where: { $0.part == .main }) else {
      if members.contains(where: { $0.part != .externalData }) { examination.reason = .orphanedParts }
      try lookAtLeftovers(of: files, &examination, model: model, options: options)
      return examination
    }
    let lock = try SharedStoreLock(on: files, in: fileSystem)
    do {
      let bytes = try open(main, of: files, lock, &examination)
      try read(bytes, into: &examination, model: model, options: options)
    } catch let error as FormatError {
      if error.kind == .cancelled { throw error }
      if let fileError = error.fileError { throw fileError }
      examination.condemn(.unreadable(error))
    }
    _ = consume lock
    if examination.health.usesLog != false, let holder = try files.holderOfDeletedLog(in: fileSystem) {
      // Whatever the file by itself is like, it is not the store.
      examination.verdict = .unavailable
      examination.reason = .deletedLog(holder)
    }
    return examination
  }

  /// Looks at a log and a journal whose main file is missing: the store is damaged where they have pages of it.
  private func lookAtLeftovers(
    of files: StoreFileSet, _ examination: inout Examination, model: AppModel?, options: Options
  ) throws {
    let bytes = StoreBytes(
      main: MemoryBytes([]), log: try openPart(.wal, of: files), journal: try openPart(.journal, of: files)
    ) { _ in true }
    do {
      guard try bytes.hasPagesElsewhere() else { return }
      examination.condemn(.mainFileMissing)
      guard let database = try bytes.databaseOfLogAlone() else { return }
      try read(database, bytes, into: &examination, model: model, options: options, nil)
    } catch let error as FormatError {
      if error.kind == .cancelled { throw error }
      if let fileError = error.fileError { throw fileError }
      // What the log says of the store cannot be read; that it is damaged is known already, or not to be told.
    }
  }

  private func open(
    _ main: StoreFileSet.Member, of files: StoreFileSet, _ lock: borrowing SharedStoreLock,
    _ examination: inout Examination
  ) throws(FileError) -> StoreBytes {
    guard let file = lock.file else {
      throw FileError(.notFound, operation: "read the store", path: main.path)
    }
    // Read before the log: what it counts is in the log by then.
    let index = try files.logIndex(length: WriteAheadLogIndex.length, in: fileSystem)
    let log = try openPart(.wal, of: files)
    var journal = try openPart(.journal, of: files)
    if lock.isWriterActive {
      // The journal of a writer that is alive is not hot: the transaction may still be committed, and has not reached
      // the file as long as readers are let in.
      journal = nil
      examination.health.notes.append(
        HealthNote(
          "writer-active", .note, "another process has a transaction under way; it is not part of the store yet"))
    }
    var bytes = StoreBytes(main: file, log: log, journal: journal) { name in superJournalExists(name, beside: files) }
    bytes.logIndex = index.flatMap { WriteAheadLogIndex($0.bytes) }
    bytes.isLogInUse = index?.isInUse == true
    return bytes
  }

  /// Reads the store from the ground up, and stops where it cannot go on.
  func read(
    _ bytes: StoreBytes, into examination: inout Examination, model: AppModel?, options: Options,
    visitor: (any PageVisitor)? = nil
  ) throws {
    var bytes = bytes
    if let embedded = try EmbeddedDatabase(in: bytes.main) {
      examination.condemn(.embedded(behind: embedded.offset))
      bytes.main = embedded
    }
    let untouched = examination
    guard let database = try openDatabase(bytes, &examination) else { return }
    try read(database, bytes, into: &examination, model: model, options: options, visitor)
    guard examination.verdict == .damaged, let size = try contradictingPageSize(database, bytes) else { return }
    // With another page size than the header's the pages make sense: all that was found is owed to that one number.
    examination = untouched
    examination.health.fileKind = .database
    examination.condemn(.pageSizeContradicted(stated: database.pageSize, found: size))
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
      examination.condemn(.damage("foreign-wal", foreign.words))
      if foreign.isCertain {
        // What the log holds is another store's; what is told of this one is what the file has by itself.
        database = try Database(
          main: bytes.main, rollbackJournal: bytes.journal, pageSize: database.pageSize,
          superJournalExists: bytes.superJournalExists)
        examination.health.countPages(of: database)
      }
    }
    if let foreign = try ForeignJournal(of: database) {
      examination.condemn(.damage("foreign-journal", foreign.words))
      database = try Database(main: bytes.main, writeAheadLog: bytes.log, pageSize: database.pageSize)
      examination.health.countPages(of: database)
    }
    if let reason = examination.physicalReason(database, fileBytes: bytes.main.count) {
      examination.condemn(reason)
      // What can still be read is reported all the same.
    }
    let schema = try readContent(database, into: &examination, model: model)
    // No verdict rests on a glance once damage was seen, or something is missing that a damaged page may have held.
    let isIncomplete = examination.drift?.isEmpty == false
    if options.depth == .full || isIncomplete || examination.health.isDamaged || examination.verdict == .damaged {
      try checkPages(of: database, schema, into: &examination, options, visitor)
    }
    if examination.verdict == .damaged, database.isLogApplied, try ForeignLog.isOfOtherState(database) {
      // What was found is owed to the log.
      examination = untouched
      examination.condemn(.damage("foreign-wal", try (ForeignLog(of: database) ?? .state).words))
      var bytes = bytes
      bytes.log = nil
      return try read(
        try bytes.database(pageSize: database.pageSize), bytes, into: &examination, model: model, options: options, nil)
    }
    if options.countsRecords { try count(database, schema, into: &examination, options) }
    examination.condemnForNotes()
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
      // Another process may have created it between the two looks; then it is no link, and read as any other.
      guard let entry = try fileSystem.status(of: path, followingLinks: false) else { return nil }
      guard entry.kind == .symbolicLink else { return try fileSystem.open(path) }
      throw FileError(
        .danglingLink, operation: "read the store", path: path,
        detail: "\(quoted(path)) beside it is a symbolic link that leads nowhere")
    }
    // Where it goes away in this moment, as it does when a transaction ends, the store is looked at again.
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

private func pause(_ time: Duration) {
  let microseconds = time / .microseconds(1)
  guard microseconds >= 1 else { return }
  usleep(UInt32(min(microseconds, 1_000_000)))
}

extension Health {
  /// Takes down how many pages the store has: none but what is there is a fact.
  ///
  /// Without a main file, or where pages that the log counts are nowhere, the number is what the log says, and is told as
  /// such.
  mutating func countPages(of database: Database) {
    let isContradicted = database.findings.contains(.fileTooShort)
    let isIncomplete = database.main.count == 0 || database.findings.contains(.logMissingPages)
    pageCount =
      isIncomplete && database.isLogApplied
      ? nil : isContradicted ? min(database.pageCount, database.highestPage) : database.pageCount
  }
}

extension Examination {
  /// Whether the verdict would have the store moved away or written to, so that it needs to be beyond doubt.
  fileprivate var isBad: Bool { verdict == .damaged || verdict == .incompatible || verdict == .repairable }

  /// The examination of a store that is unavailable.
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

  /// Says of a damaged store that it is newer than the app as well, where it is: the app cannot use what is salvaged of it.
  fileprivate mutating func tellWhetherNewer() {
    guard verdict == .damaged, let newer else { return }
    reason.words += " \(newer.words)"
    reason.hint = newer.hint
  }

  /// Says of a store in which nothing wrong was found that not all of it was looked at.
  fileprivate mutating func tellThatNotAllWasSeen(_ hint: String) {
    guard verdict == .compatible, reason.hint == VerdictReason.nothingToDo else { return }
    reason.hint = hint
  }

  /// Names what was not checked of a store in which nothing wrong was found.
  fileprivate mutating func tellUnchecked() {
    guard verdict == .compatible, let words = Unchecked.words(unchecked) else { return }
    if reason.code == VerdictReason.looksSound.code, !health.mayLackCommits {
      reason.words = VerdictReason.soundAsFarAsChecked
    }
    reason.words += " \(words)"
  }

  /// Gives the verdict of damage where any was noted, whatever was looking when it was met.
  mutating func condemnForNotes() {
    guard let note = health.notes.first(where: { $0.severity == .damage }) else { return }
    condemn(.damage(note.code, "\(note.words.capitalizedFirst)."))
  }

  /// Takes down what header, log and journal say.
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
    // What was written over the header says nothing of who wrote the store.
    if let header, header.isConsistent {
      health.usesLog = header.usesWriteAheadLog
      health.writtenBySQLite = header.sqliteVersionName
      health.addKnownBugs(sqliteVersion: header.sqliteVersion, usesLog: header.usesWriteAheadLog)
    }
    health.add(database.findings)
    for member in health.files where member.part == .main && member.status.linkCount > 1 {
      health.notes.append(
        HealthNote("hard-linked", .warning, "the file has \(member.status.linkCount) names, which SQLite warns against")
      )
    }
  }
}

extension Examiner {
  /// Examines bytes that the caller keeps still: those of a store as of one moment.
  ///
  /// Takes no lock and looks at no file. Throws what reading throws, and never over what the store holds.
  ///
  /// - Parameters:
  ///   - main: the main file's bytes.
  ///   - log: the log's, as far as they count; nil without a log.
  ///   - journal: those of a journal that is hot or may be; nil without.
  ///   - files: the set they are of.
  ///   - members: the parts of it that are there.
  ///   - visitor: what looks at the pages of b-trees during a full look; it sees each page of a sound store once.
  package func examine(
    main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?, of files: StoreFileSet,
    members: [StoreFileSet.Member], options: Options = Options(), visitor: (any PageVisitor)? = nil
  ) throws -> Examination {
    var examination = Examination(
      files: files, verdict: .missing, reason: .missing, kind: .unknown, entities: [],
      health: Health(depth: options.depth, files: members))
    let bytes = StoreBytes(main: main, log: log, journal: journal) { _ in true }
    do {
      try read(bytes, into: &examination, model: nil, options: options, visitor: visitor)
    } catch let error as FormatError {
      if error.kind == .cancelled { throw error }
      if let fileError = error.fileError { throw fileError }
      examination.condemn(.unreadable(error))
    }
    return examination
  }
}

extension Examiner {
  /// Has SQLite itself read the schema: a store whose schema it refuses no app can open, however sound its pages are.
  ///
  /// A store that was found damaged before is not asked for, since SQLite would say no more than is known.
  func askSQLite(
    about schema: Schema, of database: Database, _ examination: inout Examination
  ) throws(FormatError) {
    guard examination.verdict != .damaged else { return }
    let tables = schema.tables.filter { $0.rootPage > 0 }.map {
      ($0.name, $0.tableDefinition?.isWithoutRowid == true)
    }
    let refusal: SchemaReading.Refusal?
    do throws(FileError) {
      refusal = try SchemaReading(DatabaseContent(database)).refusal(of: Dictionary(tables) { first, _ in first })
    } catch {
      throw FormatError(error)
    }
    guard let refusal else { return }
    examination.isSchemaRefused = true
    // A name that is no entry's may be anything.
    let entry = schema.entries.first { $0.name == refusal.entry }.map { printableName($0.name) }
    let words =
      switch refusal.kind {
      case .schema:
        "SQLite refuses to open the store, since it cannot read its schema"
          + (entry.map { ": the statement of \($0) is damaged, or what it needs is missing" } ?? "")
      case .indexMissing:
        "SQLite refuses to use \(entry.map { "the table \($0)" } ?? "a table"), whose statement asks for an index that is not in the schema"
      }
    examination.health.notes.append(HealthNote(refusal.kind.rawValue, .damage, words))
    examination.condemn(.damage(refusal.kind.rawValue, "\(words).", sqlite: refusal.code))
  }
}

extension IndexReport {
  /// Has SQLite compare the indexes that could not be compared here, such as those of tables without rowids.
  ///
  /// Those whose entries an expression or a condition decides stay uncompared: none is evaluated.
  ///
  /// - Throws: what reading failed with; `cancelled` where the work was to end.
  package mutating func askSQLite(
    about schema: Schema, of content: DatabaseContent, isCancelled: @escaping () -> Bool = { false }
  ) throws(FormatError) {
    guard isSound, !uncompared.isEmpty else { return }
    let names = Set(uncompared)
    let indexes = schema.indexes.filter { names.contains($0.name) }
    let found: [String: SchemaReading.Check]
    do throws(FileError) {
      found = try SchemaReading(content).checkIndexes(
        of: Set(indexes.map(\.tableName)).sorted(), isCancelled: isCancelled)
    } catch {
      throw FormatError(error)
    }
    if isCancelled() { throw FormatError.cancelled("compare the indexes") }
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
  }
}
