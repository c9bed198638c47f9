package import ManagedObjectModel
package import Platform
package import SQLiteFormat

/// The result of a read-only look at a store.
package struct Examination: Sendable {
  package enum Depth: String, Sendable, Codable, CaseIterable {
    /// Header, log, schema, roots, metadata and model: milliseconds at any size.
    ///
    /// Damage triggers a full check before the verdict.
    case quick

    case full
  }

  package var files: StoreFileSet?

  package var verdict = Verdict.missing

  package var reason = VerdictReason.missing

  package var kind = ExaminedKind.unknown

  package var modelVersion: String?

  package var isComparedWithModel = false

  /// The app's model of the store's version, or the cached model.
  package var storeModel: ManagedObjectModel?

  /// The drift from the metadata's model, if comparable.
  package var drift: StoreDrift?

  /// Why the store, even if damaged, is newer than the app.
  package var newer: VerdictReason?

  /// The outline behind the drift, until counting adds to it.
  var outline: StoreOutline?

  /// The outline without indexes.
  var outlineOfTables: StoreOutline?

  /// The numbers seen while counting, by table; nil for non-integers.
  var countedNumbers: [String: Set<Int64?>] = [:]

  /// Rows counted for no entity, by table.
  package var rowsOfNoEntity: [String: Int] = [:]

  /// Whether SQLite refuses the schema, so that drift is unknown.
  var isSchemaRefused = false

  /// Whether a repair would refuse the drift, judged by the pages read.
  package var isBeyondRepair = false

  package var metadata: StoreMetadata?

  package var entities: [EntityCount] = []

  package var health: Health

  package var unchecked: [Unchecked] = []
}

extension Examination {
  /// The displayed verdict: "sound" without a model.
  package var verdictWord: String {
    verdict == .compatible && [VerdictReason.looksSound, .emptyDatabase].map(\.code).contains(reason.code)
      ? "sound" : verdict.rawValue
  }

  /// Whether the file is clearly of another format, without a database page.
  package var isForeignFile: Bool { verdict == .damaged && health.notes.contains { $0.code == "not-sqlite" } }

  /// Whether the file is another app's: of another format, or a sound store unrelated to any model version.
  package var isForeign: Bool {
    isForeignFile
      || verdict == .incompatible && !entities.isEmpty && VerdictReason.foreignStoreCodes.contains(reason.code)
  }

  /// Whether an app can use it as is, with all tables and columns.
  package var isUsableAsIs: Bool { verdict == .compatible || verdict == .repairable && drift?.concernsRecords == false }

  package var isEncryptedOrRandom: Bool { reason.code == VerdictReason.encryptedOrRandom.code }
}

package struct Health: Sendable {
  /// The depth of the look, if readable.
  package var depth: Examination.Depth

  package var isRead = false

  package var notes: [HealthNote] = []

  package var files: [StoreFileSet.Member] = []

  package var fileKind: FileKind?

  package var pageSize: Int?

  /// The page count for readers, log included.
  ///
  /// If the header exceeds the file, the file's; nil if only the log knows it and pages are missing.
  package var pageCount: UInt32?

  package var encoding: TextEncoding?

  /// Whether the header selects a log; nil if destroyed.
  package var usesLog: Bool?

  package var writtenBySQLite: String?

  package var log: LogFacts?

  package var journal: RollbackJournal.State?

  /// Whether log or journal have bytes past a reader's view without visible damage: the latest writes may be missing.
  package var hasUnreadLog = false

  /// The same, unless a transaction just never ended.
  package var mayLackCommits = false

  /// The result of checking every page; nil for a quick look.
  package var integrity: IntegrityReport?

  package var isDamaged: Bool { notes.contains { $0.severity == .damage } }

  package struct LogFacts: Sendable, Hashable, Encodable {
    package var frames: Int

    package var committedFrames: Int

    /// The distinct pages of committed frames.
    package var pages: Int

    /// The page count after the last commit.
    package var databasePages: UInt32?
  }
}

package struct HealthNote: Sendable, Hashable, Encodable {
  /// The stable code.
  package var code: String

  package var severity: Finding.Severity

  /// One sentence without a period.
  package var words: String

  package var count: Int

  /// The first affected pages, at most ten.
  package var pages: [UInt32]
}

extension Examination: Encodable {
  /// Writes the output of `inspect --json`; keys may be added, never changed.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "verdict": verdict, "reason": reason, "kind": kind,
      // Always present, so that programs can rely on the key.
      "modelVersion": JSON.orNull(modelVersion), "versionIdentifiers": metadata?.versionIdentifiers,
      "storeUUID": metadata?.uuid, "entities": entities.map(Self.payload),
      "rowsOfNoEntity": rowsOfNoEntity.isEmpty ? nil : rowsOfNoEntity, "drift": drift,
      "notChecked": unchecked.isEmpty ? nil : unchecked, "health": health.payload(verdict),
    ])
  }

  /// Returns a count; `rows` is null if uncounted.
  private static func payload(_ count: EntityCount) -> JSON.Object {
    ["name": count.name, "table": count.table, "rows": JSON.orNull(count.rows)]
  }
}

extension Health {
  fileprivate func payload(_ verdict: Verdict) -> JSON.Object {
    let isKnown = isRead || isDamaged || verdict == .damaged
    return [
      "check": JSON.orNull(isRead ? depth : nil),
      "damaged": JSON.orNull(isKnown ? isDamaged || verdict == .damaged : nil), "notes": notes, "files": files,
      "fileKind": fileKind?.rawValue, "pageSize": pageSize, "pageCount": pageCount, "encoding": encoding?.pragmaName,
      "writtenBySQLite": writtenBySQLite, "wal": log, "journal": journal?.rawValue,
    ]
  }
}

extension Examination {
  mutating func noteEnd(of log: WriteAheadLog?, by index: WriteAheadLogIndex?, isInUse: Bool) {
    if let missing = index?.missingFrames(of: log), missing > 0 {
      health.note(
        "wal-frames-gone", .warning,
        "by the index of the write-ahead log, committed frames of it are gone that were not copied into the file",
        count: missing)
      health.mayLackCommits = true
    }
    guard let log, log.source.count > 0, !log.isReadToItsEnd else { return }
    health.hasUnreadLog = true
    if !isInUse || !log.endsWithUnfinishedTransaction(by: index) { health.mayLackCommits = true }
  }

  /// Notes an ignored journal with pages of a possibly unfinished transaction.
  mutating func noteRemains(of journal: RollbackJournal?, _ database: Database) throws(FileError) {
    if let journal, try !journal.isReadToItsEnd { health.hasUnreadLog = true }
    guard let journal, journal.state == .finished || journal.state == .invalid, database.main.count > 0 else { return }
    guard let remains = try HeaderlessJournal(journal.source, pageSize: database.pageSize),
      try remains.mayBeUnfinished(database.main, header: database.header)
    else {
      health.hasUnreadLog = health.hasUnreadLog || journal.state == .invalid
      return
    }
    health.note(
      "journal-unfinished", .warning,
      "the rollback journal has no header, and pages of a transaction that may not have ended; SQLite does not undo it")
    health.hasUnreadLog = true
    health.mayLackCommits = true
  }

  /// Reports an incompletely read log of a sound store.
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

/// A structure derived from rows but not compared with them.
package struct Unchecked: Sendable, Hashable, Encodable {
  package enum Kind: String, Sendable, Hashable, Encodable {
    case fullText = "full-text"

    case rTree = "r-tree"

    case virtualTable = "virtual-table"

    /// An index of an expression, a complex condition or a `WITHOUT ROWID` table.
    case index
  }

  package var kind: Kind

  var name: String

  /// Returns a schema's virtual tables: module content is never compared.
  static func all(in schema: Schema) -> [Unchecked] {
    schema.tables.compactMap { table in
      guard let module = table.tableDefinition?.module?.lowercased() else { return nil }
      let kind: Kind =
        module.hasPrefix("fts") ? .fullText : module.hasPrefix("rtree") || module == "geopoly" ? .rTree : .virtualTable
      return Unchecked(kind: kind, name: table.name)
    }
  }

  package var words: String {
    let name = printableName(name)
    return switch kind {
    case .fullText: "full-text index \(name)"
    case .rTree: "R-tree \(name)"
    case .virtualTable: "virtual table \(name)"
    case .index: "index \(name)"
    }
  }

  /// Returns `Not checked: full-text index doc, index byName.`; nil for an empty list.
  static func words(_ list: [Unchecked]) -> String? {
    guard !list.isEmpty else { return nil }
    let shown = list.prefix(5).map(\.words).joined(separator: ", ")
    return "Not checked: \(shown)\(list.count > 5 ? " and \(list.count - 5) more" : "")."
  }
}

// MARK: Findings

extension Health {
  package static let indexesUncompared = "indexes-uncompared"

  mutating func note(
    _ code: String, _ severity: Finding.Severity, _ words: String, count: Int = 1, pages: [UInt32] = []
  ) {
    notes.append(HealthNote(code: code, severity: severity, words: words, count: count, pages: pages))
  }

  /// Adds findings grouped by kind, without duplicates.
  mutating func add(_ findings: Findings) {
    for (kind, count) in findings.counts.ordered(by: { $0.key.rawValue < $1.key.rawValue }) {
      let pages = findings.items.filter { $0.kind == kind }.compactMap(\.page)
      if let index = notes.firstIndex(where: { $0.code == kind.rawValue }) {
        notes[index].count = max(notes[index].count, count)
        continue
      }
      note(kind.rawValue, kind.severity, kind.words, count: count, pages: Array(Set(pages).sorted().prefix(10)))
    }
  }

  /// Adds known bugs of the last writer's SQLite (header bytes 96–99).
  mutating func addKnownBugs(of header: DatabaseHeader) {
    let version = header.sqliteVersion
    // The WAL-reset bug (https://sqlite.org/wal.html#walresetbug): 3.7.0 to 3.51.2, fixed in 3.44.6 and 3.50.7 too.
    let mended: [ClosedRange<UInt32>] = [3_044_006...3_044_999, 3_050_007...3_050_999]
    guard header.usesWriteAheadLog, (3_007_000...3_051_002).contains(version),
      !mended.contains(where: { $0.contains(version) }), let name = header.sqliteVersionName
    else { return }
    note(
      "written-with-wal-reset-bug", .note,
      "it was written by SQLite \(name), whose WAL-reset bug can, very rarely, damage a store that two connections write to"
    )
  }
}
