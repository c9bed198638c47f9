internal import GRDB
internal import PersistentStore
internal import Platform
package import SystemPackage

/// An inbox's `records.sqlite`: records and job queue for one machine.
///
/// Several processes may open it: the server, and the commands for tokens.
package final class InboxDatabase: Sendable {
  let queue: DatabaseQueue

  private static let operation = "open the records of the inbox"

  /// The most bundles searched at a time: words have no index.
  package static let maximumLooked = 10_000

  package var records: any InboxRecords { SQLiteInboxRecords(database: self) }

  package func queue(_ rules: JobRules = JobRules()) -> any JobQueue { SQLiteJobQueue(database: self, rules: rules) }

  package init(_ path: FilePath) throws(InboxError) {
    var configuration = Configuration()
    configuration.label = "Lazaret.Inbox"
    configuration.busyMode = .timeout(10)
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA synchronous = FULL")
      try database.execute(sql: "PRAGMA trusted_schema = OFF")
    }
    do {
      let fileSystem = FileSystem()
      // The migrator reads the applied migrations before its transaction: one process at a time.
      let folder = FilePath(path.string + ".lock")
      try fileSystem.makeDirectory(folder)
      let lock = try FolderLock(folder, patience: 300_000, in: fileSystem)
      // SQLite would make file and log readable by others.
      if try fileSystem.status(of: path) == nil { try fileSystem.create(path).commit() }
      let queue = try DatabaseQueue(path: path.string, configuration: configuration)
      let migrator = Self.migrator
      guard try !queue.read({ try migrator.hasBeenSuperseded($0) }) else { throw Self.isOfLaterVersion }
      try queue.writeWithoutTransaction { database in
        _ = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
      }
      try migrator.migrate(queue)
      lock.release()
      self.queue = queue
    } catch {
      throw Self.told(error, Self.operation)
    }
  }

  /// A later software version has changed the tables.
  private static let isOfLaterVersion = InboxError(
    .records, operation: operation, detail: "its records were written by a later version of Lazaret",
    hint: "Use the version of Lazaret that wrote them, or a later one.")

  private static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { database in
      try database.execute(
        sql: """
          CREATE TABLE senders (
            name TEXT PRIMARY KEY NOT NULL, quota INTEGER NOT NULL, token BLOB NOT NULL UNIQUE, created INTEGER NOT NULL,
            revoked INTEGER
          ) STRICT;
          CREATE TABLE uploads (
            id TEXT PRIMARY KEY NOT NULL, sender TEXT NOT NULL REFERENCES senders (name), length INTEGER NOT NULL,
            position INTEGER NOT NULL, sha256 TEXT, state TEXT NOT NULL, bundle TEXT, expires INTEGER NOT NULL,
            content TEXT NOT NULL
          ) STRICT;
          CREATE INDEX uploads_by_state ON uploads (state, sender);
          CREATE INDEX uploads_by_bundle ON uploads (bundle);
          CREATE TABLE bundles (
            id TEXT PRIMARY KEY NOT NULL, sender TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL,
            date TEXT NOT NULL, state TEXT NOT NULL, damage TEXT, words TEXT NOT NULL, content TEXT NOT NULL,
            UNIQUE (sender, sha256, bytes)
          ) STRICT;
          CREATE INDEX bundles_by_date ON bundles (date, id);
          CREATE INDEX bundles_by_damage ON bundles (damage, date);
          CREATE TABLE sightings (
            store TEXT PRIMARY KEY NOT NULL, damage TEXT NOT NULL, exact TEXT NOT NULL, version TEXT, date TEXT NOT NULL,
            bundle TEXT NOT NULL, content TEXT NOT NULL
          ) STRICT;
          CREATE INDEX sightings_by_damage ON sightings (damage, date);
          CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, bundle TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL,
            not_before INTEGER NOT NULL, lease_ends INTEGER NOT NULL, owner TEXT, code TEXT, words TEXT, date TEXT NOT NULL,
            UNIQUE (bundle, kind)
          ) STRICT;
          CREATE INDEX jobs_by_state ON jobs (state, not_before);
          """)
    }
    // The size of a bundle's results; attempts that do not count.
    migrator.registerMigration("2") { database in
      try database.execute(
        sql: """
          ALTER TABLE bundles ADD COLUMN placed INTEGER;
          CREATE INDEX bundles_by_sender ON bundles (sender, bytes, placed);
          CREATE INDEX uploads_by_end ON uploads (state, expires);
          ALTER TABLE jobs ADD COLUMN excused INTEGER NOT NULL DEFAULT 0;
          ALTER TABLE jobs ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
          """)
    }
    // Lists by keys, similar damage by marks.
    migrator.registerMigration("3") { database in
      try database.execute(
        sql: """
          CREATE INDEX bundles_of_sender ON bundles (sender, date, id);
          CREATE INDEX bundles_by_state ON bundles (state, date, id);
          DROP INDEX bundles_by_damage;
          CREATE INDEX bundles_by_damage ON bundles (damage, date, id);
          CREATE INDEX jobs_in_state ON jobs (state, id);
          CREATE TABLE damages (damage TEXT PRIMARY KEY NOT NULL, latest TEXT NOT NULL) STRICT;
          INSERT INTO damages SELECT damage, max(date) FROM sightings GROUP BY damage;
          CREATE INDEX damages_by_date ON damages (latest DESC, damage);
          CREATE TABLE damage_bands (band INTEGER NOT NULL, damage TEXT NOT NULL, PRIMARY KEY (band, damage)) STRICT, WITHOUT ROWID;
          """)
      for damage in try String.fetchAll(database, sql: "SELECT damage FROM damages") {
        guard let fingerprint = try SQLiteInboxRecords.fingerprint(damage, database) else { continue }
        try SQLiteInboxRecords.noteBands(of: fingerprint, database)
      }
    }
    migrator.registerMigration("4") { database in
      try database.execute(
        sql: """
          CREATE TABLE removals (
            number INTEGER PRIMARY KEY AUTOINCREMENT, bundle TEXT NOT NULL, date TEXT NOT NULL, rule TEXT NOT NULL,
            sender TEXT NOT NULL, arrived TEXT NOT NULL, sha256 TEXT NOT NULL, damage TEXT, bytes INTEGER NOT NULL,
            cleared INTEGER NOT NULL DEFAULT 0
          ) STRICT;
          CREATE INDEX removals_not_cleared ON removals (number) WHERE cleared = 0;
          CREATE INDEX removals_by_bundle ON removals (bundle);
          """)
    }
    // The version that salvaged a bundle, and batches of salvages.
    migrator.registerMigration("5") { database in
      try database.execute(
        sql: """
          ALTER TABLE bundles ADD COLUMN salvaged_by TEXT;
          CREATE TABLE batches (
            number INTEGER PRIMARY KEY AUTOINCREMENT, damage TEXT NOT NULL, version TEXT NOT NULL, date TEXT NOT NULL,
            total INTEGER NOT NULL
          ) STRICT;
          CREATE INDEX batches_by_damage ON batches (damage, number);
          CREATE TABLE batch_items (
            batch INTEGER NOT NULL, bundle TEXT NOT NULL, change TEXT, before TEXT, after TEXT,
            recovered_before INTEGER, doubtful_before INTEGER, lost_before INTEGER,
            recovered_after INTEGER, doubtful_after INTEGER, lost_after INTEGER, PRIMARY KEY (batch, bundle)
          ) STRICT, WITHOUT ROWID;
          CREATE INDEX batch_items_open ON batch_items (bundle, batch) WHERE change IS NULL;
          """)
    }
    migrator.registerMigration("6") { database in
      try database.execute(sql: "ALTER TABLE bundles ADD COLUMN received TEXT")
    }
    // Counts for pages and quotas.
    migrator.registerMigration("7") { database in
      try makeCounts(database)
      try database.execute(sql: "DROP INDEX bundles_by_sender")
    }
    // Jobs waiting for their environment; paged open uploads.
    migrator.registerMigration("8") { database in
      try database.execute(
        sql: """
          ALTER TABLE jobs ADD COLUMN hindered INTEGER NOT NULL DEFAULT 0;
          CREATE INDEX jobs_hindered ON jobs (code) WHERE hindered = 1;
          CREATE INDEX uploads_open ON uploads (id) WHERE state = 'open';
          """)
    }
    return migrator
  }

  /// Reads in one snapshot.
  func read<Value>(_ operation: String, _ body: (Database) throws -> Value) throws(InboxError) -> Value {
    do { return try queue.read(body) } catch { throw Self.told(error, operation) }
  }

  /// Writes in one transaction.
  func write<Value>(_ operation: String, _ body: (Database) throws -> Value) throws(InboxError) -> Value {
    do {
      // Locks at once, so that values read inside stay valid.
      return try queue.write(body)
    } catch {
      throw Self.told(error, operation)
    }
  }

  private static func told(_ error: any Error, _ operation: String) -> InboxError {
    if let error = error as? InboxError { return error }
    if let error = error as? FileError {
      return InboxError(
        .records, operation: operation, path: error.path, detail: error.detail, hint: error.hint,
        isEnvironmental: error.isEnvironmental)
    }
    let failure = error as? DatabaseError
    let code = failure?.resultCode
    let isEnvironmental = failure.map { ResultCodeCause($0.extendedResultCode).isEnvironmental } ?? false
    return InboxError(
      .records, operation: operation,
      detail: "its records cannot be used\(code.map { " (SQLite \($0.rawValue))" } ?? "")",
      hint: isEnvironmental
        ? "Look whether the disk is full, and whether this user may write into Inbox/ of the home."
        : InboxErrorKind.records.usualHint,
      isEnvironmental: isEnvironmental)
  }

  // MARK: Counts for pages and quotas, kept by triggers in one row each

  // A known part begins with `=`; an empty one is unknown.

  /// Creates and fills counts and triggers.
  static func makeCounts(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE tallies (
          kind TEXT NOT NULL, name TEXT NOT NULL, part TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, name, part)
        ) STRICT, WITHOUT ROWID;
        """)
    for (table, columns, notes) in counted {
      try database.execute(
        sql: """
          CREATE TRIGGER count_\(table)_come AFTER INSERT ON \(table) BEGIN \(adding(notes("NEW"), 1)); END;
          CREATE TRIGGER count_\(table)_gone AFTER DELETE ON \(table) BEGIN \(adding(notes("OLD"), -1)); END;
          CREATE TRIGGER count_\(table)_changed AFTER UPDATE OF \(columns.joined(separator: ", ")) ON \(table)
            WHEN \(columns.map { "OLD.\($0) IS NOT NEW.\($0)" }.joined(separator: " OR "))
            BEGIN \(adding(notes("OLD"), -1)); \(adding(notes("NEW"), 1)); END;
          """)
      for note in notes(table) {
        try database.execute(
          sql: """
            INSERT INTO tallies SELECT \(note.kind), \(note.name), \(note.part), sum(\(note.n)) FROM \(table)
              WHERE \(note.name) IS NOT NULL GROUP BY 2, 3 ON CONFLICT (kind, name, part) DO UPDATE SET n = n + excluded.n
            """)
      }
    }
  }

  /// The count of a row as SQL; a null name counts nowhere.
  private struct Note {
    var kind: String
    var name: String
    var part = "''"
    var n = "1"
  }

  /// Counted tables, the deciding columns and a row's counts.
  private static let counted: [(table: String, columns: [String], notes: @Sendable (String) -> [Note])] = [
    ("jobs", ["state"], { row in [Note(kind: "'jobs'", name: "\(row).state")] }),
    (
      "bundles", ["sender", "bytes", "placed", "state", "damage", "salvaged_by"],
      { row in
        let used = "\(row).bytes + coalesce(\(row).placed, 0)"
        return [
          Note(kind: "'bundles'", name: "\(row).state"), Note(kind: "'kept'", name: "\(row).damage"),
          Note(
            kind: "'salvaged'", name: "CASE \(row).state WHEN 'quarantined' THEN \(row).damage END",
            part: "coalesce('=' || \(row).salvaged_by, '')"),
          Note(kind: "'used'", name: "\(row).sender", n: used), Note(kind: "'all'", name: "'used'", n: used),
        ]
      }
    ),
    (
      "uploads", ["sender", "length", "state"],
      { row in
        let isOpen = "\(row).state = 'open'"
        return [
          Note(kind: "'used'", name: "CASE WHEN \(isOpen) THEN \(row).sender END", n: "\(row).length"),
          Note(kind: "'all'", name: "CASE WHEN \(isOpen) THEN 'used' END", n: "\(row).length"),
        ]
      }
    ),
    (
      "sightings", ["damage", "version"],
      { row in
        [Note(kind: "'seen'", name: "\(row).damage", part: "coalesce('=' || \(row).version, '')")]
      }
    ),
  ]

  /// The trigger statement that adds or subtracts a row.
  private static func adding(_ notes: [Note], _ sign: Int) -> String {
    let rows = notes.map { note in
      "SELECT \(note.kind) AS kind, \(note.name) AS name, \(note.part) AS part, \(sign) * (\(note.n)) AS n"
    }
    return """
      INSERT INTO tallies SELECT kind, name, part, n FROM (\(rows.joined(separator: " UNION ALL "))) WHERE name IS NOT NULL
        ON CONFLICT (kind, name, part) DO UPDATE SET n = n + excluded.n
      """
  }

  static func counts(_ kind: String, _ database: Database) throws -> [String: Int64] {
    try Row.fetchAll(database, sql: "SELECT name, n FROM tallies WHERE kind = ? AND n <> 0", arguments: [kind])
      .reduce(into: [:]) { counts, row in counts[row["name"], default: 0] += row["n"] }
  }

  static func count(_ kind: String, _ name: String, _ database: Database) throws -> Int64 {
    try Int64.fetchOne(
      database, sql: "SELECT n FROM tallies WHERE kind = ? AND name = ? AND part = ''", arguments: [kind, name]) ?? 0
  }

  /// Nonzero counts by a name's part; nil for the unknown one.
  static func parts(_ kind: String, _ name: String, _ database: Database) throws -> [(part: String?, count: Int64)] {
    try Row.fetchAll(
      database, sql: "SELECT part, n FROM tallies WHERE kind = ? AND name = ? AND n > 0", arguments: [kind, name]
    ).map { row in
      let part: String = row["part"]
      return (part: part.isEmpty ? nil : String(part.dropFirst()), count: row["n"])
    }
  }
}
