internal import GRDB
internal import LazaretTesting
internal import ManagedObjectModel
internal import Platform
internal import Salvage
internal import SystemPackage

/// Small databases of many shapes that SQLite itself writes.
enum SeedStores {
  /// The files of a database that is still open.
  private static func files(of path: FilePath) throws -> StoreBytes {
    let system = FileSystem()
    func bytes(_ suffix: String) throws -> [UInt8]? {
      let file = FilePath(path.string + suffix)
      guard try system.status(of: file) != nil else { return nil }
      let bytes = try system.contents(of: file, limit: 1 << 26)
      return bytes.isEmpty ? nil : bytes
    }
    return StoreBytes(main: try bytes("") ?? [], log: try bytes("-wal"), journal: try bytes("-journal"))
  }

  /// One statement that inserts rows of every storage class and of many lengths.
  private static func insert(_ count: Int, from first: Int = 1, longest: Int = 120) -> String {
    """
    INSERT INTO t(a, b, c, d)
    WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + count - 1))
    SELECT
      CASE i % 8 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN -i * 1000 WHEN 3 THEN i * 10000000000 WHEN 4 THEN i / 3.0
        WHEN 5 THEN 'é' || i WHEN 6 THEN zeroblob(i % 50) ELSE 9223372036854775807 - i END,
      substr(hex(zeroblob(\(longest))) || i, 1 + (i * 7919) % \(longest)), i * 1.0, i % 5
    FROM n
    """
  }

  /// Databases by name: what is done to make them.
  private static let recipes: [(name: String, statements: [String])] = [
    ("empty", ["PRAGMA page_size = 512", "CREATE TABLE t(a)"]),
    (
      "rows",
      ["PRAGMA page_size = 512", "CREATE TABLE t(k INTEGER PRIMARY KEY, a, b TEXT COLLATE NOCASE, c REAL, d)"]
        + [insert(20), "CREATE INDEX i ON t(b) WHERE d > 1", "CREATE UNIQUE INDEX u ON t(k, b DESC)"]
    ),
    (
      "deleted",
      ["PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d)", insert(80), "DELETE FROM t WHERE rowid % 3 <> 0"]
    ),
    (
      "overflow",
      ["PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d)", insert(3, longest: 2000), "CREATE INDEX i ON t(b)"]
    ),
    (
      "auto-vacuum",
      ["PRAGMA page_size = 512", "PRAGMA auto_vacuum = 2", "CREATE TABLE t(a, b, c, d)", insert(50)]
        + ["DELETE FROM t WHERE d = 1"]
    ),
    (
      "without-rowid",
      ["PRAGMA page_size = 1024", "CREATE TABLE t(a, b, c, d, PRIMARY KEY (d, b)) WITHOUT ROWID", insert(40)]
    ),
    ("utf16", ["PRAGMA page_size = 512", "PRAGMA encoding = 'UTF-16be'", "CREATE TABLE t(a, b, c, d)", insert(20)]),
    (
      "schema",
      [
        "PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d, e GENERATED ALWAYS AS (a || 'x') VIRTUAL)",
        "CREATE VIEW v AS SELECT * FROM t", "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE TABLE s(k INTEGER PRIMARY KEY AUTOINCREMENT, x)", "INSERT INTO s(x) VALUES (1)", insert(5),
        "ALTER TABLE t ADD COLUMN f DEFAULT 7",
      ]
    ),
    ("large-pages", ["PRAGMA page_size = 4096", "CREATE TABLE t(a, b, c, d)", insert(20)]),
  ]

  /// Databases without log and journal, of a few kilobytes each.
  static func plain() throws -> [FuzzSeed] {
    try recipes.map { recipe in
      let folder = try FuzzFolder()
      let path = folder.path.appending("Store.sqlite")
      let queue = try DatabaseQueue(path: path.string)
      for statement in recipe.statements { try queue.writeWithoutTransaction { try $0.execute(sql: statement) } }
      try queue.close()
      return FuzzSeed(recipe.name, try files(of: path).joined)
    }
  }

  /// A database with a log: committed, restarted and unfinished transactions.
  static func logged() throws -> StoreBytes {
    let folder = try FuzzFolder()
    let path = folder.path.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    return try queue.writeWithoutTransaction { db in
      for statement in [
        "PRAGMA page_size = 512", "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0",
        "CREATE TABLE t(a, b, c, d)", insert(12), "PRAGMA wal_checkpoint(RESTART)", insert(4, from: 30),
        "DELETE FROM t WHERE d = 1", "PRAGMA cache_size = 1", "BEGIN", insert(6, from: 60),
      ] { try db.execute(sql: statement) }
      let result = try files(of: path)
      try db.execute(sql: "ROLLBACK")
      return result
    }
  }

  /// A database in the middle of a transaction, with the journal that undoes it.
  static func journalled() throws -> StoreBytes {
    let folder = try FuzzFolder()
    let path = folder.path.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    return try queue.writeWithoutTransaction { db in
      for statement in [
        "PRAGMA page_size = 512", "CREATE TABLE t(a, b, c, d)", insert(30), "PRAGMA cache_size = 2", "BEGIN",
        "UPDATE t SET d = 9",
      ] { try db.execute(sql: statement) }
      let result = try files(of: path)
      try db.execute(sql: "ROLLBACK")
      return result
    }
  }

  /// Stores of both versions of the example model, with small pages, and one with a log.
  static func coreData() throws -> [FuzzSeed] {
    let bundle = try SeedModels.bundle()
    var seeds: [FuzzSeed] = []
    for (number, version) in bundle.versions.enumerated() {
      let folder = try FuzzFolder()
      let path = folder.path.appending("Store.sqlite")
      let options = StoreGenerator.Options(.typical, seed: UInt64(number + 1), records: 4, journal: .rollback)
      try StoreGenerator(version.model, options: options).write(to: path)
      let queue = try DatabaseQueue(path: path.string)
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA page_size = \(number == 0 ? 512 : 1024)")
        try db.execute(sql: "VACUUM")
      }
      seeds.append(FuzzSeed("core-data-\(version.name)", try files(of: path).joined))
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA journal_mode = WAL")
        try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
        try db.execute(sql: "UPDATE ZVEHICLE SET ZPLATE = 'x' WHERE Z_PK = 1")
        try db.execute(sql: "DELETE FROM ZVEHICLE WHERE Z_PK = 2")
      }
      seeds.append(FuzzSeed("core-data-\(version.name)-log", try files(of: path).joined))
      try queue.close()
    }
    return seeds
  }

  /// What the recovery kit of a store packs.
  static func recoveryKit() throws -> [UInt8] {
    guard let seed = try coreData().first else { return [] }
    let folder = try FuzzFolder()
    let bytes = try RecoveryKit(of: try folder.write(StoreBytes(seed.bytes))).bytes()
    return RawDeflate.unpack(Array(bytes.dropFirst(17)), limit: 1 << 20) ?? []
  }

  /// The pages of databases, one by one.
  static func pages() throws -> [FuzzSeed] {
    try plain().flatMap { seed in
      let size = seed.name == "large-pages" ? 4096 : seed.name == "without-rowid" ? 1024 : 512
      return stride(from: 0, to: min(seed.bytes.count, 8 * size), by: size).map { place in
        FuzzSeed("\(seed.name)-\(place / size + 1)", Array(seed.bytes[place..<min(place + size, seed.bytes.count)]))
      }
    }
  }
}
