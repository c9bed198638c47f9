package import ManagedObjectModel
package import Platform
package import SQLiteFormat
package import SystemPackage

/// What was found out about a store by looking at it, and nothing but looking.
package struct Examination: Sendable {
  /// How closely it is looked at.
  package enum Depth: String, Sendable, Codable, CaseIterable {
    /// Header, log, schema, roots, metadata and model: some milliseconds, whatever the size.
    ///
    /// Where it meets damage, every page is looked at before a verdict is given.
    case quick

    case full
  }

  /// The store's files, symbolic links resolved; nil where not even that could be done.
  package var files: StoreFileSet?

  /// What can be done with it, in one word.
  package var verdict: Verdict

  /// Why that verdict was given.
  package var reason: VerdictReason

  /// What kind of store it is.
  package var kind: ExaminedKind

  /// The name of the version the store was written with, where it is one of the app's.
  package var modelVersion: String?

  /// Whether the version hashes in its metadata were compared with those of the app's versions.
  package var isComparedWithModel = false

  /// The model the store was written with: the app's version, or the one cached in the store.
  package var storeModel: ManagedObjectModel?

  /// What it lacks of the model that its own metadata names; nil where that model is not at hand, or could not be
  /// compared.
  package var drift: StoreDrift?

  /// Why the store is newer than the app, where it is; told of a damaged one too.
  package var newer: VerdictReason?

  /// What the drift was compared by; kept until the records are counted, which tells more of them.
  var outline: StoreOutline?

  /// The same as the tables alone tell, without the word of their indexes.
  var outlineOfTables: StoreOutline?

  /// The entity numbers that were met when records were counted, by table; nil stands for what is no integer.
  var countedNumbers: [String: Set<Int64?>] = [:]

  /// How many rows of a hierarchy's table were counted for no entity, because none has their number; by table.
  package var rowsOfNoEntity: [String: Int] = [:]

  /// Whether SQLite refuses its schema, so that nothing can be said of what it lacks.
  var isSchemaRefused = false

  /// Whether a repair refuses what the store lacks of its own model, as far as the look tells.
  package var isBeyondRepair = false

  /// The metadata of a Core Data store.
  package var metadata: StoreMetadata?

  /// The entities and their counts, by name; empty where they cannot be told.
  package var entities: [EntityCount]

  /// What is known of its physical state.
  package var health: Health

  /// What of it was not held against the rows that it is made of, though the look was to check it.
  package var unchecked: [Unchecked] = []
}

extension Examination {
  /// The verdict in a word for people: a store that was compared with no model is sound, which says nothing of the app.
  package var verdictWord: String {
    verdict == .compatible && [VerdictReason.looksSound, .emptyDatabase].map(\.code).contains(reason.code)
      ? "sound" : verdict.rawValue
  }
}

extension Examination {
  /// Whether the file is plainly of another kind than a store, such as a text or a picture, with no page of one in it.
  package var isForeignFile: Bool { verdict == .damaged && health.notes.contains { $0.code == "not-sqlite" } }

  /// Whether it is nothing of the app's: a file of another kind, or a sound store that has nothing in common with any version of
  /// the app's model.
  package var isForeign: Bool {
    isForeignFile
      || verdict == .incompatible && !entities.isEmpty && VerdictReason.foreignStoreCodes.contains(reason.code)
  }

  /// Whether an app can work with it as it is: nothing is missing that a record needs.
  package var isUsableAsIs: Bool {
    verdict == .compatible || verdict == .repairable && drift?.concernsRecords == false
  }

  /// Whether the file is encrypted or random, so that only its bytes can be kept.
  package var isEncryptedOrRandom: Bool { reason.code == VerdictReason.encryptedOrRandom.code }
}

/// What is known of a store's physical state.
package struct Health: Sendable {
  /// How closely the store was looked at, where it could be read.
  package var depth: Examination.Depth

  /// Whether a database was found whose pages could be looked at.
  package var isRead = false

  /// Everything noteworthy, from normal facts to damage; empty for a store that is as it should be.
  package var notes: [HealthNote] = []

  /// The parts of the set that are there.
  package var files: [StoreFileSet.Member] = []

  /// What the file is, by its first bytes.
  package var fileKind: FileKind?

  /// The page size in bytes.
  package var pageSize: Int?

  /// The number of pages that a reader counts, those in the log included.
  ///
  /// Where the header counts more than the file has room for, those of the file; nil where only the log says how many there
  /// were, and neither it nor the file has them all.
  package var pageCount: UInt32?

  /// The encoding of all text; nil where the header is destroyed.
  package var encoding: TextEncoding?

  /// Whether its header says that changes go to a write-ahead log, not to a rollback journal; nil where it is destroyed.
  package var usesLog: Bool?

  /// The version of SQLite that wrote the store last, as its header says.
  package var writtenBySQLite: String?

  /// What is in the write-ahead log; nil where there is none.
  package var log: LogFacts?

  /// What the rollback journal's beginning says; nil where there is none.
  package var journal: RollbackJournal.State?

  /// Whether the log or the journal has bytes that are no part of what a reader sees, though no damage shows: what was written
  /// last may be missing.
  package var hasUnreadLog = false

  /// The same where nothing tells that it is only a transaction that never ended.
  package var mayLackCommits = false

  /// What the walk over every page found; nil for a quick look.
  package var integrity: IntegrityReport?

  /// Whether any note is of damage.
  package var isDamaged: Bool { notes.contains { $0.severity == .damage } }

  /// What is in the write-ahead log.
  package struct LogFacts: Sendable, Hashable, Encodable {
    /// Frames in the file, whole ones.
    package var frames: Int

    /// Frames that belong to committed transactions, which are part of the store.
    package var committedFrames: Int

    /// Pages of the store that these have, each counted once.
    package var pages: Int

    /// The pages that the store had after the last of these transactions; nil where there is none.
    package var databasePages: UInt32?
  }
}

/// One noteworthy thing about a store.
package struct HealthNote: Sendable, Hashable, Encodable {
  /// A stable word for programs.
  package var code: String

  /// How much it matters.
  package var severity: Finding.Severity

  /// In plain words, one sentence without a full stop.
  package var words: String

  /// How many times it was found.
  package var count: Int

  /// The first pages it was found on, at most ten.
  package var pages: [UInt32]

  /// A note; `words` are one sentence without a full stop.
  package init(_ code: String, _ severity: Finding.Severity, _ words: String, count: Int = 1, pages: [UInt32] = []) {
    self.code = code
    self.severity = severity
    self.words = words
    self.count = count
    self.pages = pages
  }
}

extension Examination: Encodable {
  /// Writes what `inspect --json` prints of it; keys may be added, never changed.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "verdict": verdict, "reason": reason, "kind": kind,
      // Present even where there is none, so that a program can rely on the key.
      "modelVersion": JSON.orNull(modelVersion), "versionIdentifiers": metadata?.versionIdentifiers,
      "storeUUID": metadata?.uuid, "entities": entities.map(Self.payload),
      "rowsOfNoEntity": rowsOfNoEntity.isEmpty ? nil : rowsOfNoEntity, "drift": drift,
      "notChecked": unchecked.isEmpty ? nil : unchecked, "health": health.payload(verdict),
    ])
  }

  /// A count; `rows` is null where they were not counted.
  private static func payload(_ count: EntityCount) -> JSON.Object {
    ["name": count.name, "table": count.table, "rows": JSON.orNull(count.rows)]
  }
}

extension Health {
  /// The physical state; nothing is said of pages that were not looked at.
  fileprivate func payload(_ verdict: Verdict) -> JSON.Object {
    let isKnown = isRead || isDamaged || verdict == .damaged
    return [
      "check": JSON.orNull(isRead ? depth : nil),
      "damaged": JSON.orNull(isKnown ? isDamaged || verdict == .damaged : nil),
      "notes": notes, "files": files, "fileKind": fileKind?.rawValue,
      "pageSize": pageSize, "pageCount": pageCount, "encoding": encoding?.nameInSQLite,
      "writtenBySQLite": writtenBySQLite, "wal": log, "journal": journal?.rawValue,
    ]
  }
}

extension TextEncoding {
  fileprivate var nameInSQLite: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}

extension Examination {
  /// How well the model that a store was compared with fits it: the more, the better; 0 where it does not, or nothing tells.
  package var fit: Int {
    switch verdict {
    case .compatible where health.notes.contains { $0.code == "lacks-tables" }: 3
    case .compatible, .repairable: 5
    case .outdated: 4
    // A version of the model was found, but the store is newer, or damaged.
    case .unavailable, .damaged, .incompatible, .missing:
      modelVersion != nil ? 2 : ["newer-model", "unknown-version"].contains(reason.code) ? 1 : 0
    }
  }
}

extension Examiner {
  /// Models with how well each fits a store, those that fit it best first; in their order where none fits better.
  ///
  /// A store that cannot be looked at tells nothing of its model.
  package func ranked<Model>(
    _ models: [Model], for store: FilePath, _ appModel: (Model) -> AppModel
  ) -> [(model: Model, fit: Int)] {
    let fits = models.enumerated().map { index, model -> (model: Model, fit: Int, index: Int) in
      do {
        let fit = try examine(store, model: appModel(model), options: .init(countsRecords: false)).fit
        return (model, fit, index)
      } catch {
        return (model, 0, index)
      }
    }
    return fits.ordered { ($1.fit, $0.index) < ($0.fit, $1.index) }.map { ($0.model, $0.fit) }
  }
}

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
    if let journal, try !journal.isReadToItsEnd { health.hasUnreadLog = true }
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

/// A structure of a store whose content is made of rows, and that nothing has held against them.
package struct Unchecked: Sendable, Hashable, Encodable {
  /// What it is.
  package enum Kind: String, Sendable, Hashable, Encodable {
    /// A full-text index, of the modules fts3 to fts5.
    case fullText = "full-text"

    case rTree = "r-tree"

    /// A virtual table of another module.
    case virtualTable = "virtual-table"

    /// An index of an expression, with a condition that is not simple, or of a table without rowids.
    case index
  }

  /// What it is.
  package var kind: Kind

  /// Its name.
  package var name: String

  /// The virtual tables of a schema: what their modules have made of rows is not looked at.
  package static func all(in schema: Schema) -> [Unchecked] {
    schema.tables.compactMap { table in
      guard let module = table.tableDefinition?.module?.lowercased() else { return nil }
      let kind: Kind =
        module.hasPrefix("fts") ? .fullText : module.hasPrefix("rtree") || module == "geopoly" ? .rTree : .virtualTable
      return Unchecked(kind: kind, name: table.name)
    }
  }

  /// `full-text index doc`.
  package var words: String {
    let name = printableName(name)
    return switch kind {
    case .fullText: "full-text index \(name)"
    case .rTree: "R-tree \(name)"
    case .virtualTable: "virtual table \(name)"
    case .index: "index \(name)"
    }
  }

  /// `Not checked: full-text index doc, index byName.`; nil for none.
  package static func words(_ list: [Unchecked]) -> String? {
    guard !list.isEmpty else { return nil }
    let shown = list.prefix(5).map(\.words).joined(separator: ", ")
    return "Not checked: \(shown)\(list.count > 5 ? " and \(list.count - 5) more" : "")."
  }
}
