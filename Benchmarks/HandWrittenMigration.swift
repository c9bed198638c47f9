import ArgumentParser
import Foundation
import GRDB
import SystemPackage

/// The same changes as hand-written SQL, run by SQLite's own shell: the yardstick of ``MigrationBenchmark``.
///
/// It copies through the page cache, pushes nothing to the disk unless it says so, checks nothing and swaps nothing.
struct HandWrittenMigration {
  enum Method: String, CaseIterable {
    /// A copy, a column added, one renamed.
    case addAndRename = "copy, ALTER TABLE"

    /// The same, and the copy pushed to the disk.
    case addAndRenameSynchronized = "copy, ALTER TABLE, fsync"

    /// A new file filled from the old one, without journal or synchronisation.
    case newFile = "new file"

    /// The same in one transaction with a rollback journal and synchronisation.
    case newFileSafe = "new file, durable"

    /// The same from a copy, as what never reads the only original would do it.
    case newFileCopied = "copy, new file, durable"

    /// The twelve steps of SQLite's documentation in a copy of the file.
    case inPlace = "copy, new table in the file"

    /// Both changes one after the other.
    case addThenNewFile = "copy, ALTER TABLE, new file"
  }

  let store: FilePath

  func recordCount() throws -> Int {
    let queue = try DatabaseQueue(path: "file://\(store.string)?mode=ro&immutable=1")
    return try queue.read { database in
      try ["ZARTICLE", "ZAUTHOR", "ZTAG", "Z_1TAGS"].reduce(0) { sum, table in
        try sum + (Int.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0)
      }
    }
  }

  /// How long a method takes.
  func seconds(_ method: Method) throws -> Double {
    let folder = try ScratchFolder()
    let script = folder.path.appending("script.sql").string
    let target = folder.path.appending("t.sqlite").string
    let shell = "sqlite3 '\(target)' < '\(script)' > /dev/null"
    let copy = "cp '\(store.string)' '\(target)'"
    var command = "\(copy) && \(shell)"
    let sql: String
    switch method {
    case .addAndRename: sql = Self.alter
    case .addAndRenameSynchronized:
      sql = Self.alter
      command += " && sync '\(target)'"
    case .newFile:
      sql = newFile(from: store.string, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", title: "ZTITLE")
      command = shell
    case .newFileSafe:
      sql = newFile(from: store.string, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;", title: "ZTITLE")
      command = shell
    case .newFileCopied:
      sql = newFile(from: target + ".old", "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;", title: "ZTITLE")
      command = "cp '\(store.string)' '\(target).old' && \(shell)"
    case .inPlace:
      sql =
        "PRAGMA cache_size=-65536; BEGIN; CREATE TABLE ZNEW ( \(Self.article) ); INSERT INTO ZNEW SELECT "
        + "\(Self.columns("ZTITLE")) FROM ZARTICLE; DROP TABLE ZARTICLE; ALTER TABLE ZNEW RENAME TO ZARTICLE; "
        + "\(Self.articleIndexes) \(Self.bookkeeping) COMMIT;"
    case .addThenNewFile:
      try Self.alter.write(toFile: script + ".1", atomically: false, encoding: .utf8)
      sql = newFile(
        from: target + ".old", "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", title: "ZHEADLINE")
      command =
        "cp '\(store.string)' '\(target).old' && sqlite3 '\(target).old' < '\(script).1' > /dev/null && \(shell)"
    }
    try sql.write(toFile: script, atomically: false, encoding: .utf8)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", command]
    let clock = ContinuousClock()
    let start = clock.now
    try process.run()
    process.waitUntilExit()
    let elapsed = clock.now - start
    guard process.terminationStatus == 0 else { throw ValidationError("sqlite3 failed: is it installed?") }
    try folder.remove()
    return inSeconds(elapsed)
  }

  private static let bookkeeping = "UPDATE Z_METADATA SET Z_PLIST=Z_PLIST; UPDATE Z_PRIMARYKEY SET Z_MAX=Z_MAX;"

  private static let alter =
    "PRAGMA cache_size=-65536; BEGIN; ALTER TABLE ZARTICLE ADD COLUMN ZSUBTITLE VARCHAR; "
    + "ALTER TABLE ZARTICLE RENAME COLUMN ZTITLE TO ZHEADLINE; \(bookkeeping) COMMIT;"

  private static let article =
    "Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFLAGS INTEGER, ZAUTHOR INTEGER, ZCREATED TIMESTAMP, "
    + "ZSCORE FLOAT, ZBODY VARCHAR, ZHEADLINE VARCHAR, ZSUBTITLE VARCHAR, ZUUID BLOB"

  private static func columns(_ title: String) -> String {
    "Z_PK,Z_ENT,Z_OPT,ZFLAGS,ZAUTHOR,ZCREATED,ZSCORE,ZBODY,\(title),NULL,ZUUID"
  }

  private static let articleIndexes =
    "CREATE INDEX ZARTICLE_ZAUTHOR_INDEX ON ZARTICLE (ZAUTHOR); "
    + "CREATE INDEX Z_Article_byCreatedIndex ON ZARTICLE (ZCREATED COLLATE BINARY ASC);"

  private func newFile(from old: String, _ pragmas: String, title: String) -> String {
    """
    \(pragmas) PRAGMA cache_size=-65536; ATTACH '\(old)' AS o; BEGIN;
    CREATE TABLE ZARTICLE ( \(Self.article) );
    CREATE TABLE ZAUTHOR ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBORN TIMESTAMP, ZRATING FLOAT, ZEMAIL VARCHAR, ZNAME VARCHAR );
    CREATE TABLE ZTAG ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR );
    CREATE TABLE Z_1TAGS ( Z_1ARTICLES INTEGER, Z_3TAGS INTEGER, PRIMARY KEY (Z_1ARTICLES, Z_3TAGS) );
    CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
    CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
    CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);
    INSERT INTO ZARTICLE SELECT \(Self.columns(title)) FROM o.ZARTICLE;
    INSERT INTO ZAUTHOR SELECT * FROM o.ZAUTHOR;
    INSERT INTO ZTAG SELECT * FROM o.ZTAG;
    INSERT INTO Z_1TAGS SELECT * FROM o.Z_1TAGS ORDER BY 1,2;
    INSERT INTO Z_PRIMARYKEY SELECT * FROM o.Z_PRIMARYKEY;
    INSERT INTO Z_METADATA SELECT * FROM o.Z_METADATA;
    INSERT INTO Z_MODELCACHE SELECT * FROM o.Z_MODELCACHE;
    \(Self.articleIndexes)
    CREATE INDEX Z_1TAGS_Z_3TAGS_INDEX ON Z_1TAGS (Z_3TAGS, Z_1ARTICLES);
    COMMIT;
    """
  }
}
