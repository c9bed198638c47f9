internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The log of examining and opening the store, `data/log.txt`, without record values.
struct OpeningLog {
  private let now: @Sendable () -> Timestamp
  private let numbers = RowNumbers()
  private(set) var lines: [String] = []

  /// The largest store to open, in bytes.
  static let limit: Int64 = 256 << 20

  init(now: @escaping @Sendable () -> Timestamp) { self.now = now }

  var text: [UInt8] { Array((lines.joined(separator: "\n") + "\n").utf8) }

  mutating func add(_ level: String, _ label: String, _ message: String) {
    lines.append("\(now().rfc3339) \(level) \(label): \(printable(message))")
  }

  mutating func add(_ examination: Examination) {
    let health = examination.health
    for file in health.files {
      add("debug", "examine", "file \(file.part.rawValue), \(file.status.size) bytes, \(file.status.kind)")
    }
    if let kind = health.fileKind { add("debug", "examine", "the first bytes are those of: \(kind.rawValue)") }
    add(
      "debug", "examine",
      "page size \(health.pageSize.map(String.init) ?? "unknown"), pages \(health.pageCount.map(String.init) ?? "unknown"), "
        + "written by SQLite \(health.writtenBySQLite ?? "unknown")")
    if let log = health.log {
      add("debug", "examine", "write-ahead log: \(log.frames) frames, \(log.committedFrames) of them committed")
    }
    if let journal = health.journal { add("debug", "examine", "rollback journal: \(journal.rawValue)") }
    for note in health.notes {
      let pages = note.pages.isEmpty ? "" : ", pages \(note.pages.map(String.init).joined(separator: " "))"
      let level = note.severity == .damage ? "error" : "info"
      add(level, "examine", "\(note.code): \(note.words) (\(note.count) times\(pages))")
    }
    add(
      examination.verdict == .damaged ? "error" : "info", "examine",
      "verdict \(examination.verdict.rawValue), \(examination.reason.code): \(examination.reason.words)")
  }

  // MARK: Opening

  /// Opens a private copy with SQLite and checks it, without running code in its schema.
  mutating func open(_ copy: StoreFileSet) {
    do {
      let queue = try EvidenceConnection.open(copy.main, .copy, label: "Lazaret.StoreExport")
      add("info", "open", "SQLite opened a copy")
      try queue.writeWithoutTransaction { database in
        let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode") ?? "unknown"
        add("debug", "open", "journal mode \(Self.word(mode))")
        let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        add("debug", "open", "\(count) entries in the schema")
        let check = try IntegrityCheck.evidenceLines(of: database)
        for line in check.lines { addCheck(line) }
        if !check.unchecked.isEmpty {
          add("info", "check", "\(check.unchecked.count) tables were not checked: their expressions are not run")
        }
      }
      try queue.close()
    } catch let error as DatabaseError where [.SQLITE_TOOBIG, .SQLITE_INTERRUPT].contains(error.resultCode) {
      add("info", "check", "it was not checked to its end: an expression of the schema takes too much")
    } catch let error as DatabaseError {
      add("error", "open", "SQLite result code \(error.extendedResultCode.rawValue): \(Self.words(of: error))")
    } catch { add("error", "open", "it failed in a way that was not foreseen") }
  }

  /// Logs `integrity_check`, withholding unknown lines, which may contain user data.
  private mutating func addCheck(_ text: String) {
    for line in text.split(separator: "\n") {
      let words = Self.isKnown(line) ? numbers.removed(fromCheck: line) : "another complaint"
      add(line == "ok" ? "info" : "error", "check", words)
    }
  }

  private static let knownForms = [
    "ok", "***", "Tree ", "Page ", "Main freelist", "Freelist", "On tree page", "On page", "Rowid ", "row ",
    "wrong # of entries", "non-unique entry", "NULL value in", "TEXT value in", "NUMERIC value in", "CHECK constraint",
    "database disk image is malformed", "unable to", "List of tree roots", "Outstanding page", "Multiple uses",
    "2nd reference", "invalid page", "Failed to read", "Bad ptr map", "Corruption detected", "Child page",
    "btreeInitPage", "Fragmentation of", "Extends off", "Offset ", "freelist leaf", "failed to get page",
  ]

  private static func isKnown(_ line: some StringProtocol) -> Bool {
    line.utf8.count < 400 && knownForms.contains { line.hasPrefix($0) }
  }

  private static func word(_ text: String) -> String { String(text.filter { $0.isASCII && $0.isLetter }.prefix(20)) }

  /// Returns SQLite's message without quoted text.
  private static func words(of error: DatabaseError) -> String {
    let message = error.message ?? ""
    if message.hasPrefix("malformed database schema") { return "malformed database schema" }
    let known = [
      "file is not a database", "database disk image is malformed", "unable to open database file", "disk I/O error",
      "database is locked", "unsupported file format", "attempt to write a readonly database",
      "database or disk is full", "out of memory",
    ]
    return known.first { message.hasPrefix($0) } ?? "another error"
  }
}
