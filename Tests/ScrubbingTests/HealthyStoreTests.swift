import Foundation
import GRDB
import LazaretTesting
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Stores that nothing is wrong with.
@Suite("Scrubbing sound stores")
struct HealthyStoreTests {
  static let setups = [
    "PRAGMA page_size = 4096", "PRAGMA page_size = 1024", "PRAGMA page_size = 1024; PRAGMA encoding = 'UTF-16le'",
    "PRAGMA page_size = 4096; PRAGMA encoding = 'UTF-16be'", "PRAGMA page_size = 1024; PRAGMA auto_vacuum = FULL",
  ]

  @Test("Structure stays and values go", arguments: setups)
  func plain(_ setup: String) throws {
    for seed in UInt64(1)...2 {
      let scene = try ScrubScene.plain(seed: seed, setup: setup)
      try Self.check(scene, "\(setup), seed \(seed)")
    }
  }

  @Test("With a log", arguments: [1024, 4096])
  func log(_ pageSize: Int) throws {
    let scene = try ScrubScene.plain(
      seed: 3, setup: "PRAGMA page_size = \(pageSize)", journal: "WAL",
      finish: [
        "UPDATE people SET note = note || ' changed', name = 'x' || name WHERE id % 5 = 0",
        "DELETE FROM people WHERE id % 11 = 2", "INSERT INTO words VALUES ('zebra crossing', 1000007, 'long')",
      ])
    #expect(try scene.files()["wal"] != nil)
    try Self.check(scene, "\(pageSize)")
  }

  @Test("With a hot journal", arguments: [1024, 4096])
  func journal(_ pageSize: Int) throws {
    let scene = try ScrubScene.plain(
      seed: 4, setup: "PRAGMA page_size = \(pageSize)",
      finish: [
        "PRAGMA cache_size = 3; PRAGMA cache_spill = 3; BEGIN; UPDATE people SET note = 'rolled back ' || note, name = 'a' || name"
      ])
    #expect(try scene.files()["journal"] != nil)
    try Self.check(scene, "\(pageSize)")
  }

  @Test("Stores of Core Data", arguments: ["typical", "edge", "uniform"])
  func coreData(_ profile: String) throws {
    for seed in UInt64(1)...2 {
      let scene = try ScrubScene.coreData(
        seed: seed, .init(rawValue: profile) ?? .typical, journal: seed == 1 ? .none : .log)
      try Self.check(scene, "\(profile), seed \(seed)")
    }
  }

  /// Salvage and SQLite say the same of both, and no value is left.
  static func check(_ scene: ScrubScene, _ name: String) throws {
    let before = try FolderContents(of: scene.folder.path)
    let (scrubbed, result) = try scene.scrubbed()
    #expect(try FolderContents(of: scene.folder.path) == before, "\(name): the evidence was changed")
    #expect(scrubbed.salvage() == scene.salvage(), "\(name)")
    let (theirs, ours) = (try scene.integrityCheck(), try scrubbed.integrityCheck())
    #expect(ours == theirs, "\(name)")
    let sizes = try scene.files().mapValues(\.count)
    #expect(try scrubbed.files().mapValues(\.count) == sizes, "\(name)")
    let originals = try OriginalValues(scene.store)
    for (part, bytes) in try scrubbed.files() {
      #expect(originals.found(in: bytes) == 0, "\(name): \(part), of \(originals.needles.count)")
    }
    #expect(result.report.columns.contains { $0.counts.replaced > 0 } || originals.needles.isEmpty)
  }

  @Test("Equal text stays equal, and the same key gives the same bytes")
  func keys() throws {
    let scene = try ScrubScene.plain(seed: 9)
    let first = try scene.scrubbed().scene
    let again = try scene.scrubbed().scene
    #expect(try first.files() == again.files())
    let other = try scene.scrubbed(key: try ScrubbingKey([UInt8](repeating: 9, count: 32))).scene
    #expect(try first.files() != other.files())
    // The key is nowhere.
    let written = try first.files().values.map { Data($0) }
    let encoded = try JSONEncoder().encode(try scene.scrubbed().result.report)
    for secret in [Data((0..<32).map { UInt8($0) }), Data((0..<32).map { UInt8($0) }.prefix(16))] {
      #expect(!(written + [encoded]).contains { $0.range(of: secret) != nil })
    }
    // As many groups of equal values, of the same sizes, in every column.
    func groups(_ scene: ScrubScene, _ column: String) throws -> [Int] {
      let queue = try DatabaseQueue(path: scene.store.string)
      defer { try? queue.close() }
      return try queue.read { db in
        try Int.fetchAll(
          db,
          sql: "SELECT count(*) FROM people WHERE length(\(column)) > 7 GROUP BY \(column) COLLATE BINARY ORDER BY 1")
      }
    }
    for column in ["name", "nick", "note", "picture", "uuid", "phone"] {
      let (theirs, ours) = (try groups(scene, column), try groups(first, column))
      #expect(theirs == ours, "\(column)")
    }
    // Every letter comes about as often as any other.
    let queue = try DatabaseQueue(path: first.store.string)
    let text = try queue.read { db in try String.fetchAll(db, sql: "SELECT note FROM people WHERE length(note) < 60") }
    try queue.close()
    let letters = Dictionary(text.joined().unicodeScalars.map { ($0, 1) }, uniquingKeysWith: +)
    let counts = "abcdefghijklmnopqrstuvwxyz".unicodeScalars.map { letters[$0] ?? 0 }
    #expect((counts.min() ?? 0) * 3 > (counts.max() ?? 1))
    // The same text in another table has the same pseudonym.
    func shared(_ scene: ScrubScene) throws -> Int? {
      let queue = try DatabaseQueue(path: scene.store.string)
      defer { try? queue.close() }
      return try queue.read { db in
        try Int.fetchOne(
          db, sql: "SELECT count(*) FROM people p JOIN notes n ON p.name = n.who WHERE length(p.name) > 7")
      }
    }
    #expect(try shared(scene) == shared(first))
  }

  @Test("Different text has different pseudonyms, of the same length and kind")
  func injective() throws {
    let scene = try ScrubScene.plain(seed: 10)
    let scrubbed = try scene.scrubbed().scene
    func texts(_ scene: ScrubScene) throws -> [Int64: String] {
      let queue = try DatabaseQueue(path: scene.store.string)
      defer { try? queue.close() }
      return try queue.read { db in
        var texts: [Int64: String] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT id, note FROM people") { texts[row["id"]] = row["note"] }
        return texts
      }
    }
    let (theirs, ours) = (try texts(scene), try texts(scrubbed))
    #expect(Set(ours.values).count == Set(theirs.values).count)
    #expect(Set(theirs.values).isDisjoint(with: ours.values))
    func kind(_ scalar: Unicode.Scalar) -> String {
      switch scalar {
      case "a"..."z": "a"
      case "A"..."Z": "A"
      case "0"..."9": "0"
      default: scalar.isASCII ? String(scalar) : "\(String(scalar).utf8.count)"
      }
    }
    for (id, text) in theirs {
      let other = ours[id] ?? ""
      #expect(text.unicodeScalars.map(kind) == other.unicodeScalars.map(kind), "row \(id)")
    }
  }

  @Test("Dates are shifted by a secret time and a jitter, and keep their order")
  func dates() throws {
    let scene = try ScrubScene.coreData(seed: 11)
    let (scrubbed, result) = try scene.scrubbed()
    let (theirs, ours) = (try Self.dates(scene), try Self.dates(scrubbed))
    #expect(theirs.count == ours.count && theirs.count > 20)
    #expect(result.report.datesShifted && !result.report.datesRanked)
    let pairs = zip(theirs, ours).sorted { $0.0 < $1.0 }
    for (first, second) in zip(pairs, pairs.dropFirst()) {
      #expect(first.0 == second.0 ? first.1 == second.1 : first.1 < second.1)
    }
    // Dates before and after 2001 may go either way; each way has its own shift, and no two dates far apart the same.
    let shifts = Set(pairs.map { abs(($0.1 - $0.0).rounded()) })
    #expect(shifts.count > Set(theirs).count / 2)
    #expect(shifts.allSatisfy { $0 > 0 })
  }

  private static func dates(_ scene: ScrubScene) throws -> [Double] {
    let queue = try DatabaseQueue(path: scene.store.string)
    defer { try? queue.close() }
    return try queue.read { db in
      try Double.fetchAll(db, sql: "SELECT ZPRINTED FROM ZBOOK WHERE abs(ZPRINTED) > 8388608 ORDER BY Z_PK")
    }
  }

  @Test("Integers and reals of one column of dates keep their order, and one known date does not tell the others")
  func mixedDates() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP); CREATE INDEX i ON t (at)")
      for index in 0..<2000 {
        let second = 500_000_000 + index * 40_000
        try db.execute(
          sql: "INSERT INTO t (at) VALUES (?), (?), (?)", arguments: [second, Double(second) + 0.75, second + 1])
      }
    }
    try queue.close()
    let scene = ScrubScene(folder, path)
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    func dates(_ scene: ScrubScene) throws -> [Double] {
      try DatabaseQueue(path: scene.store.string).read { try Double.fetchAll($0, sql: "SELECT at FROM t ORDER BY id") }
    }
    let (theirs, ours) = (try dates(scene), try dates(scrubbed))
    #expect(ours == ours.sorted() && Set(ours).count == Set(theirs).count)
    // By the shift of the last date the first ones are found only to weeks.
    let last = ours[ours.count - 1] - theirs[theirs.count - 1]
    let misses = zip(theirs, ours).map { abs(($1 - last) - $0) }
    #expect((misses.max() ?? 0) > 14 * 86400)
  }

  @Test("Columns that are kept and dropped")
  func rules() throws {
    let scene = try ScrubScene.coreData(seed: 5)
    let (scrubbed, result) = try scene.scrubbed(
      rules: ScrubRules(keeping: ["Reader.weight"], dropping: ["Book.text"]))
    #expect(result.report.keeping == ["Reader.weight"])
    func column(_ scene: ScrubScene, _ sql: String) throws -> [String] {
      let queue = try DatabaseQueue(path: scene.store.string)
      defer { try? queue.close() }
      return try queue.read { db in try String.fetchAll(db, sql: sql) }
    }
    let weights = "SELECT ifnull(CAST(ZWEIGHT AS TEXT), '') FROM ZREADER ORDER BY Z_PK"
    #expect(try column(scene, weights) == column(scrubbed, weights))
    let letters = try column(scrubbed, "SELECT ZTEXT FROM ZBOOK WHERE ZTEXT NOT NULL").joined()
    #expect(letters.allSatisfy { !$0.isASCII || !$0.isLetter || $0 == "x" || $0 == "X" })
    #expect(throws: SupportBundleError.self) { try scene.scrubbed(rules: ScrubRules(keeping: ["Book.nothing"])) }
  }
}

/// Pages that were part of a value, and are free now.
@Suite("Scrubbing pages that became free")
struct FreedPageTests {
  @Test("The trunk page of a large value that was deleted into the log stays")
  func deletedLargeValue() throws {
    let scene = try ScrubScene.plain(
      seed: 7, rows: 60, setup: "PRAGMA page_size = 4096", journal: "WAL",
      finish: [
        "INSERT INTO people (id, picture) VALUES (5000, randomblob(80000))", "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA secure_delete = 1", "DELETE FROM people WHERE id = 5000",
      ])
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
  }
}
