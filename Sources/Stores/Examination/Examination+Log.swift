import SQLiteFormat
internal import StoreFiles

extension Examination {
  /// Takes down how far the log was read, and what its index tells of its end.
  mutating func noteEnd(of log: WriteAheadLog?, by index: WriteAheadLogIndex?, isInUse: Bool) {
    if let missing = index?.missingFrames(of: log), missing > 0 {
      health.notes.append(
        HealthNote(
          "wal-frames-gone", .warning,
          "by the index of the write-ahead log, committed frames of it are gone that were not copied into the file",
          count: missing))
      health.mayLackCommits = true
    }
    guard let log, log.source.count > 0, !log.isReadToItsEnd else { return }
    health.hasUnreadLog = true
    if !isInUse || !log.endsWithUnfinishedTransaction(by: index) { health.mayLackCommits = true }
  }

  /// Takes down whether a journal that SQLite does not undo has pages of a transaction that may not have ended.
  mutating func noteRemains(of journal: RollbackJournal?, _ database: Database) throws(FormatError) {
    guard let journal, journal.state == .finished || journal.state == .invalid, database.main.count > 0 else { return }
    guard let remains = try HeaderlessJournal(journal.source, pageSize: database.pageSize),
      try remains.mayBeUnfinished(database.main, header: database.header)
    else {
      health.hasUnreadLog = health.hasUnreadLog || journal.state == .invalid
      return
    }
    health.notes.append(
      HealthNote(
        "journal-unfinished", .warning,
        "the rollback journal has no header, and pages of a transaction that may not have ended; SQLite does not undo it"
      ))
    health.hasUnreadLog = true
    health.mayLackCommits = true
  }

  /// Says of a store whose pages are sound that its log was not read to its end.
  mutating func tellUnreadLog() {
    guard health.mayLackCommits, verdict != .damaged else { return }
    let words =
      "Its write-ahead log or rollback journal was not read to its end: an app was ended while it saved, or the file was cut "
      + "off or changed. What was written last may be missing."
    if verdict == .compatible {
      reason.words = "The store opens, as far as it was read. \(words)"
      reason.hint =
        "If a whole copy of the log or journal exists, put it beside the store before anything opens it. Opening the store "
        + "as it is keeps the present one first, among the backups."
    } else {
      reason.words += " \(words)"
    }
  }
}
