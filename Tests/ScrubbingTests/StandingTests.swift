import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Values that look like what stays, and are not where it is: deleted rows, references, keys, text in other encodings.
@Suite("Scrubbing by what leads to a value")
struct StandingTests {
  /// A store of plain statements, all deleted rows of which can still be read.
  static func scene(_ statements: [String], encoding: String = "UTF-8") throws -> ScrubScene {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA encoding = '\(encoding)'; PRAGMA secure_delete = 0")
      for statement in statements { try db.execute(sql: statement) }
    }
    try queue.close()
    return ScrubScene(folder, path)
  }

  static func bytes(of scene: ScrubScene) throws -> Data { Data(try scene.files()["main"] ?? []) }

  static func column<Value: DatabaseValueConvertible>(_ scene: ScrubScene, _ sql: String) throws -> [Value] {
    let queue = try DatabaseQueue(path: scene.store.string)
    defer { try? queue.close() }
    return try queue.read { try Value.fetchAll($0, sql: sql) }
  }

  /// Five hundred rows of a table, from 1 on.
  static func rows(into table: String, _ values: String) -> String {
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
      + "INSERT INTO \(table) SELECT \(values) FROM n"
  }

  @Test(
    "Deleted rows beside bookkeeping of SQLite's that they look like are replaced",
    arguments: ["DELETE FROM contacts", "DROP TABLE contacts", "DELETE FROM contacts WHERE rowid % 3"])
  func deleted(_ end: String) throws {
    let scene = try Self.scene([
      "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO a VALUES (1)",
      "CREATE TABLE contacts (name TEXT, age INT)",
      Self.rows(into: "contacts", "'Canary' || i || '@example.org', 20 + i"),
      end,
    ])
    let original = try Self.bytes(of: scene)
    let scrubbed = try Self.bytes(of: try scene.scrubbed().scene)
    var found = (original: 0, scrubbed: 0)
    for number in 1...500 {
      let needle = Data("Canary\(number)@example.org".utf8)
      if original.range(of: needle) != nil { found.original += 1 }
      if scrubbed.range(of: needle) != nil { found.scrubbed += 1 }
    }
    #expect(found.original > 400, "they are there to begin with")
    #expect(found.scrubbed == 0)
  }

  @Test("Rows that look like the schema's stay only where they are the schema's")
  func likeSchema() throws {
    let scene = try Self.scene([
      "CREATE TABLE things (type TEXT, name TEXT, other TEXT, page INTEGER, sql TEXT)",
      Self.rows(
        into: "things", "'table', 'Canary' || i || 'x', 'Second' || i || 'x', i, 'CREATE of Canary' || i || 'x'"),
      "DELETE FROM things WHERE rowid % 2",
    ])
    let (scrubbed, _) = try scene.scrubbed()
    let bytes = try Self.bytes(of: scrubbed)
    #expect((1...500).allSatisfy { bytes.range(of: Data("Canary\($0)x".utf8)) == nil })
    #expect((1...500).allSatisfy { bytes.range(of: Data("Second\($0)x".utf8)) == nil })
    let schemas: [[String]] = try [scene, scrubbed].map { try Self.column($0, "SELECT sql FROM sqlite_schema") }
    #expect(schemas[0] == schemas[1])
    #expect(scrubbed.salvage() == scene.salvage())
  }

  @Test("Columns that refer to others have the pseudonyms of those")
  func references() throws {
    let scene = try Self.scene([
      "CREATE TABLE cards (no INTEGER UNIQUE, code INTEGER UNIQUE)",
      "CREATE TABLE visits (id INTEGER PRIMARY KEY, card INTEGER REFERENCES cards (no), code INTEGER, "
        + "FOREIGN KEY (code) REFERENCES cards (code))",
      Self.rows(into: "cards", "4111111111110000 + i * 7, 200 + i * 13"),
      Self.rows(into: "visits", "i, 4111111111110000 + i * 7, 200 + i * 13"),
    ])
    let (scrubbed, _) = try scene.scrubbed()
    let question = "SELECT count(*) FROM visits v JOIN cards c ON c.no = v.card AND c.code = v.code"
    #expect(try Self.column(scrubbed, question) == [500])
    #expect(try scrubbed.integrityCheck() == ["ok"])
    let originals: Set<Int64> = Set(try Self.column(scene, "SELECT card FROM visits"))
    #expect(originals.isDisjoint(with: try Self.column(scrubbed, "SELECT card FROM visits") as [Int64]))
    let codes: [[Int64]] = try [scene, scrubbed].map { try Self.column($0, "SELECT code FROM visits ORDER BY id") }
    #expect(zip(codes[0], codes[1]).filter { $0 == $1 }.count < 50)
  }

  @Test("Keys that an app chose are replaced in every place and keep their order; --keep leaves them")
  func keys() throws {
    let scene = try Self.scene([
      "CREATE TABLE people (phone INTEGER PRIMARY KEY, name TEXT)", "CREATE INDEX byName ON people (name)",
      "CREATE TABLE calls (id INTEGER PRIMARY KEY AUTOINCREMENT, phone INTEGER REFERENCES people)",
      Self.rows(into: "people", "491511230000 + i * 977, 'a person ' || i % 7"),
      Self.rows(into: "calls", "5000000 + i * 31, 491511230000 + i * 977"),
      "DELETE FROM people WHERE phone % 11 = 0",
    ])
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    #expect(scrubbed.salvage() == scene.salvage())
    let originals: [Int64] = try Self.column(scene, "SELECT phone FROM people ORDER BY phone")
    let names: [[String]] = try [scene, scrubbed].map {
      try Self.column($0, "SELECT CAST(count(*) AS TEXT) FROM people GROUP BY name ORDER BY 1")
    }
    #expect(names[0] == names[1])
    let others: [Int64] = try Self.column(scrubbed, "SELECT phone FROM people ORDER BY phone")
    #expect(others.count == originals.count && Set(originals).isDisjoint(with: others))
    for sql in [
      "SELECT count(*) FROM calls JOIN people USING (phone)",
      "SELECT (SELECT seq FROM sqlite_sequence) - (SELECT max(id) FROM calls)",
    ] {
      let answers: [[Int]] = try [scene, scrubbed].map { try Self.column($0, sql) }
      #expect(answers[0] == answers[1], "\(sql)")
    }
    let bytes = try Self.bytes(of: scrubbed)
    for number in originals {
      let six = (0..<6).map { UInt8(truncatingIfNeeded: number >> Int64(40 - 8 * $0)) }
      #expect(bytes.range(of: Data(six)) == nil)
    }
    let (kept, _) = try scene.scrubbed(rules: ScrubRules(keeping: ["people.phone"]))
    #expect(try Self.column(kept, "SELECT phone FROM people ORDER BY phone") == originals)
    #expect(try kept.integrityCheck() == ["ok"])
  }

  @Test("References hold in both directions: keys that refer to a column, columns that refer to keys, reals, text")
  func joined() throws {
    let scene = try Self.scene([
      "CREATE TABLE plain (no INTEGER, share REAL, code TEXT, PAID INTEGER)",
      "CREATE TABLE keyed (id INTEGER PRIMARY KEY REFERENCES plain (no), share REAL REFERENCES plain (share), "
        + "code TEXT REFERENCES plain (code))",
      "CREATE INDEX byShare ON plain (share)", "CREATE INDEX byCode ON plain (code)",
      "CREATE TABLE kept (id INTEGER PRIMARY KEY)", "CREATE TABLE same (id INTEGER PRIMARY KEY REFERENCES kept (id))",
      Self.rows(into: "plain", "5000000 + i, i + 0.25, 'code of ' || i, 100 + i"),
      Self.rows(into: "keyed", "5000000 + i, i + 0.25, 'code of ' || i"),
      Self.rows(into: "kept", "491511230000 + i * 977"), Self.rows(into: "same", "491511230000 + i * 977"),
    ])
    for keeping in [[], ["kept.id"]] as [Set<String>] {
      let (scrubbed, _) = try scene.scrubbed(rules: ScrubRules(keeping: keeping))
      #expect(try scrubbed.integrityCheck() == ["ok"])
      for sql in [
        "SELECT count(*) FROM keyed k JOIN plain p ON p.no = k.id AND p.share = k.share AND p.code = k.code",
        "SELECT count(*) FROM same JOIN kept USING (id)",
      ] {
        #expect(try Self.column(scrubbed, sql) == [500], "\(sql) \(keeping)")
      }
      // A column is no key because its name ends like one.
      let paid: [[Int]] = try [scene, scrubbed].map { try Self.column($0, "SELECT PAID FROM plain ORDER BY rowid") }
      #expect(zip(paid[0], paid[1]).filter { $0 == $1 }.count < 50)
    }
  }

  @Test("The number of a row that damage made longer than it needs to be is replaced")
  func longNumber() throws {
    let scene = try Self.scene([
      "CREATE TABLE people (phone INTEGER PRIMARY KEY, name TEXT)",
      Self.rows(into: "people", "491512345678 + i * 1000003, 'n' || i"),
    ])
    // 491,662,346,128, as SQLite writes it. A first byte of 0x80 adds nothing to the rest, which is another long number.
    let number: [UInt8] = [0x8e, 0xa7, 0xca, 0xf0, 0x8f, 0x10]
    var damaged = try Self.bytes(of: scene)
    let place = try #require(damaged.range(of: Data(number))).lowerBound
    damaged[place] = 0x80
    try FileSystem().writeAtomically(Array(damaged), to: scene.store, replacing: true)
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try Self.bytes(of: scrubbed)[(place + 1)..<(place + 6)] != Data(number.dropFirst()))
  }

  @Test("Numbers of rows that SQLite gave stay")
  func numbered() throws {
    let scene = try Self.scene([
      "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90000) "
        + "INSERT INTO t SELECT i * 12, 'x' FROM n",
    ])
    let (scrubbed, _) = try scene.scrubbed()
    let keys: [[Int64]] = try [scene, scrubbed].map { try Self.column($0, "SELECT id FROM t ORDER BY id") }
    #expect(keys[0] == keys[1])
  }

  @Test(
    "Text that is not in the database's encoding is replaced byte by byte, indexed or not", arguments: [false, true])
  func otherEncoding(_ isIndexed: Bool) throws {
    let words = ["привет", "секретно", "Иванов", "Москва", "улица"]
    var statements = ["CREATE TABLE t (a TEXT)"] + (isIndexed ? ["CREATE INDEX i ON t (a)"] : [])
    var needles: [Data] = []
    for word in words {
      // Windows-1251: the Cyrillic letters from 0xC0 on.
      let bytes = word.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value - 0x410 + 0xc0) }
      needles.append(Data(bytes))
      statements.append("INSERT INTO t VALUES (CAST(x'\(bytes.map { String(format: "%02x", $0) }.joined())' AS TEXT))")
    }
    let scene = try Self.scene(statements)
    let (scrubbed, _) = try scene.scrubbed()
    let (before, after) = (try Self.bytes(of: scene), try Self.bytes(of: scrubbed))
    for needle in needles {
      #expect(before.range(of: needle) != nil)
      #expect(after.range(of: needle) == nil)
      // Nor most of it.
      #expect(after.range(of: needle.prefix(4)) == nil)
    }
    #expect(try scrubbed.integrityCheck() == ["ok"])
  }

  @Test("Integers of up to six digits are replaced, but for flags and keys; few different ones change places")
  func small() throws {
    let scene = try Self.scene([
      "CREATE TABLE p (id INTEGER PRIMARY KEY, age INTEGER, salary REAL, height INTEGER, kind INTEGER, code INTEGER, isOld BOOLEAN, "
        + "grade INTEGER CHECK (grade < 600))",
      "CREATE INDEX bySalary ON p (salary)",
      Self.rows(into: "p", "i, 3 + i * 31 % 90, 900.0 + i * 71, 100 + i * 17 % 900, i % 2, 2 + i % 5, i % 2, 50 + i"),
    ])
    let (scrubbed, result) = try scene.scrubbed()
    let report = result.report
    #expect(try scrubbed.integrityCheck() == ["ok"])
    #expect(report.staying.map(\.name) == ["p.kind", "p.isOld", "p.grade"] && report.columnCount == 8)
    #expect(report.staying.map(\.reason) == [.flag, .flag, .condition])
    #expect(report.stayingWords == "Stay as they are: p.kind, .isOld, .grade (3 of 8 columns)")
    let codes: [[Int]] = try [scene, scrubbed].map { try Self.column($0, "SELECT code FROM p ORDER BY id") }
    #expect(Set(codes[0]) == Set(codes[1]) && zip(codes[0], codes[1]).allSatisfy { $0 != $1 })
    #expect(Set(zip(codes[0], codes[1]).map { [$0, $1] }).count == 5)
    for column in ["age", "salary", "height"] {
      let values: [[Double]] = try [scene, scrubbed].map { try Self.column($0, "SELECT \(column) FROM p ORDER BY id") }
      #expect(zip(values[0], values[1]).filter { $0 == $1 }.count < 50, "\(column)")
      // Equal values stay equal.
      let pairs = Set(zip(values[0], values[1]).map { [$0, $1] })
      #expect(pairs.count == Set(values[0]).count, "\(column)")
    }
    for column in ["id", "kind", "isOld", "grade"] {
      let values: [[Int]] = try [scene, scrubbed].map { try Self.column($0, "SELECT \(column) FROM p ORDER BY id") }
      #expect(values[0] == values[1], "\(column)")
    }
    let order: [Double] = try Self.column(scrubbed, "SELECT salary FROM p ORDER BY id")
    #expect(order == order.sorted())
  }

  @Test("Of a column that is dropped nothing stays, flags and what a condition names included")
  func dropped() throws {
    let scene = try Self.scene([
      "CREATE TABLE p (id INTEGER PRIMARY KEY, isOld BOOLEAN, grade INTEGER CHECK (grade < 600), national_id INTEGER)",
      Self.rows(into: "p", "i, i % 2, 200 + i % 300, 200000 + i"), "DELETE FROM p WHERE id % 5 = 0",
    ])
    let (scrubbed, result) = try scene.scrubbed(
      rules: ScrubRules(dropping: ["p.isOld", "p.grade", "p.national_id"]))
    // The serial types of a row with the flag 1, deleted or not.
    let flag = Data([0, 9, 2, 3])
    #expect(try Self.bytes(of: scene).range(of: flag) != nil)
    #expect(try Self.bytes(of: scrubbed).range(of: flag) == nil)
    let report = result.report
    #expect(report.staying.isEmpty && report.stayingWords == "No column of 4 stays as it is")
    for column in ["isOld", "grade", "national_id"] {
      let values: [Int] = try Self.column(scrubbed, "SELECT DISTINCT \(column) FROM p")
      #expect(values.count == 1, "\(column)")
    }
    #expect(try scrubbed.integrityCheck().allSatisfy { $0 == "ok" || $0.contains("CHECK") })
  }

  @Test("Rows that look like the schema's are values, also where the schema is lost", arguments: [3, 80])
  func schemaOfAnother(_ count: Int) throws {
    let scene = try Self.scene(
      ["CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)", Self.rows(into: "people", "i, 'person ' || i")]
        + ["CREATE TABLE other (kind TEXT, label TEXT, parent TEXT, ordinal INTEGER, body TEXT)"]
        + (0..<count).map {
          "INSERT INTO other VALUES ('table', 'canarytab\($0)', 'canarytab\($0)', \($0 + 2), 'CREATE TABLE canarytab\($0) (canarycol text)')"
        }
        + (0..<count).map {
          "INSERT INTO other VALUES ('view', 'canaryview\($0)', 'canaryview\($0)', 0, 'CREATE VIEW canaryview\($0) AS SELECT 1')"
        })
    try Self.expectNoCanary(scene, [0..<4096, 100..<101], "\(count)") { _ in 9 }
  }

  /// Scrubs the store with each range zeroed, or its only byte changed; no canary is left.
  private static func expectNoCanary(
    _ scene: ScrubScene, _ ranges: [Range<Int>], _ name: String, changing change: (UInt8) -> UInt8
  ) throws {
    let bytes = try scene.files()["main"] ?? []
    for damaged in ranges {
      var copy = bytes
      for place in damaged { copy[place] = damaged.count == 1 ? change(copy[place]) : 0 }
      let folder = try TemporaryFolder()
      let (scrubbed, _) = try ScrubScene(folder, try folder.write(copy, to: "Store.sqlite")).scrubbed()
      let written = Data(try scrubbed.files()["main"] ?? [])
      #expect(written.range(of: Data("canary".utf8)) == nil, "\(name), \(damaged)")
    }
  }

  @Test("Rows of a table that look like the schema's are values, whatever damage hides the schema")
  func schemaInRows() throws {
    let statements = [
      "'trigger', 'canaryname' || i, 'notes', 0, 'CREATE TRIGGER canaryname' || i "
        + "|| ' AFTER INSERT ON notes BEGIN SELECT ''canary' || i || '''; END'",
      "'table', 'notes', 'notes', 2, 'CREATE TABLE notes(canary' || i || ' TEXT, id INTEGER PRIMARY KEY)'",
    ]
    for statement in statements {
      let scene = try Self.scene([
        "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT)", Self.rows(into: "notes", "i, 'note ' || i"),
        "CREATE TABLE audit(kind TEXT, name TEXT, tbl TEXT, root INTEGER, sql TEXT)",
        Self.rows(into: "audit", statement),
      ])
      try Self.expectNoCanary(scene, [0..<0, 100..<101, 0..<4096], statement) { ~$0 }
    }
  }

  @Test("The text that a database begins with can be a value")
  func magic() throws {
    let scene = try Self.scene([
      "CREATE TABLE t (id INTEGER PRIMARY KEY, x)", Self.rows(into: "t", "i, 'SQLite format 3'"),
      Self.rows(into: "t", "i + 500, x'53514C69746520666F726D6174203300'"),
    ])
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    #expect(try Self.column(scrubbed, "SELECT count(*) FROM t WHERE CAST(x AS TEXT) LIKE 'SQLite%'") == [0])
  }

  @Test("Digits of many rows pass in one scrub, though two values side by side often spell another")
  func digits() throws {
    let scene = try Self.scene([
      "CREATE TABLE t (id INTEGER PRIMARY KEY, phone TEXT UNIQUE, zip TEXT, number INTEGER)",
      "CREATE INDEX byZip ON t (zip)", "CREATE INDEX byNumber ON t (number)",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) INSERT INTO t SELECT i, "
        + "printf('%010d', i * 2654435761 % 10000000000), printf('%05d', (i * i * 31 + i * 7) % 100000), "
        + "i * 3935559000370 % 10000000000 FROM n",
    ])
    let phases = Mutex<[StoreScrubber.Phase]>([])
    let target = try TemporaryFolder()
    _ = try StoreScrubber(key: try #require(ScrubScene.key)).scrub(
      StoreFileSet(main: scene.store), into: target.path
    ) { phase, _, _ in
      phases.withLock { if $0.last != phase { $0.append(phase) } }
      return true
    }
    let checks = phases.withLock { list in list.count { $0 == .check } }
    #expect(checks == 1)
    let scrubbed = ScrubScene(target, target.appending("Store.sqlite"))
    #expect(try scrubbed.integrityCheck() == ["ok"])
    let phones: [[String]] = try [scene, scrubbed].map { try Self.column($0, "SELECT phone FROM t") }
    #expect(Set(phones[0]).isDisjoint(with: phones[1]))
    let orders: [[Int]] = try [scene, scrubbed].map { try Self.column($0, "SELECT id FROM t ORDER BY phone") }
    #expect(orders[0] == orders[1])
  }

  @Test("Characters that are not seen, and bytes of the header that nobody uses, carry nothing through")
  func hidden() throws {
    func spelled(_ one: String, _ other: String) -> String {
      (0..<64).map { 0x5a3c_96f0_0ff0_a5c3 >> UInt64($0) & 1 == 1 ? one : other }.joined()
    }
    let texts = [
      spelled("\u{200b}", "\u{200c}"), spelled("\u{e0061}", "\u{e0062}"), spelled("\u{1f3fb}", "\u{1f3ff}"),
      spelled("\u{fe00}", "\u{fe01}"), spelled("\u{202d}", "\u{202e}"),
    ]
    let scene = try Self.scene(
      ["CREATE TABLE t (x TEXT)"] + texts.map { "INSERT INTO t VALUES ('note \($0)')" })
    var bytes = try scene.files()["main"] ?? []
    bytes.replaceSubrange(72..<92, with: "12 Main Street, Ulm!".utf8)
    let folder = try TemporaryFolder()
    let (scrubbed, _) = try ScrubScene(folder, try folder.write(bytes, to: "Store.sqlite")).scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    let written: [String] = try Self.column(scrubbed, "SELECT x FROM t ORDER BY rowid")
    for (text, other) in zip(texts, written) {
      let own = Array(other.unicodeScalars.dropFirst(5))
      #expect(own.count == 64 && zip(text.unicodeScalars, own).filter { $0 == $1 }.count < 48)
      #expect(own.allSatisfy { $0.properties.generalCategory != .lowercaseLetter })
    }
    let header = try #require(try scrubbed.files()["main"])[72..<92]
    #expect(zip(header, bytes[72..<92]).allSatisfy { $0 != $1 })
  }

  @Test("Reals of one magnitude below and above zero keep their order")
  func signs() throws {
    let scene = try Self.scene([
      "CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL)", "CREATE INDEX byX ON t (x)",
      Self.rows(into: "t", "i, (i / 2 + 0.25) * CASE WHEN i % 2 THEN 1 ELSE -1 END"),
    ])
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == ["ok"])
    let orders: [[Int]] = try [scene, scrubbed].map { try Self.column($0, "SELECT id FROM t NOT INDEXED ORDER BY x") }
    #expect(orders[0] == orders[1])
  }

  @Test("A page of an index is replaced as the index that leads to it, also where it looks more like a damaged one's")
  func ledTo() throws {
    let scene = try Self.scene([
      "PRAGMA page_size = 1024", "CREATE TABLE t (id INTEGER PRIMARY KEY, h REAL, m)",
      "CREATE INDEX byH ON t (h)", "CREATE INDEX byM ON t (m)",
      Self.rows(into: "t", "i, i + 0.5, CASE WHEN i % 2 THEN i * 5 ELSE i * 5 + 0.25 END"),
    ])
    let roots: [Int] = try Self.column(scene, "SELECT rootpage FROM sqlite_schema WHERE name = 'byH'")
    var bytes = try scene.files()["main"] ?? []
    let root = (try #require(roots.first) - 1) * 1024
    #expect(bytes[root] == 2, "an inner page")
    // The last leaf has the rows that SQLite compares last.
    let leaf = (bytes[(root + 8)..<(root + 12)].reduce(0) { $0 << 8 | Int($1) } - 1) * 1024
    for index in leaf..<(leaf + 1024) { bytes[index] = 0 }
    try FileSystem().writeAtomically(bytes, to: scene.store, replacing: true)
    let (scrubbed, _) = try scene.scrubbed()
    #expect(try scrubbed.integrityCheck() == scene.integrityCheck())
    #expect(scrubbed.salvage() == scene.salvage())
    let question =
      "SELECT count(*) FROM t a NOT INDEXED WHERE a.id < 300 AND EXISTS "
      + "(SELECT 1 FROM t b INDEXED BY byM WHERE b.m = a.m AND b.id = a.id)"
    #expect(try Self.column(scrubbed, question) == [299])
  }

  @Test("Values in files have other names, to which the references lead")
  func files() throws {
    let name = "6E4C5A52-0F3B-4A6C-9D7A-2B1C5D8E9F00"
    let scene = try Self.scene(["CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)"])
    let queue = try DatabaseQueue(path: scene.store.string)
    try queue.write {
      try $0.execute(sql: "INSERT INTO t VALUES (1, ?)", arguments: [Data([2] + Array(name.utf8) + [0])])
    }
    try queue.close()
    let place = StoreFileSet(main: scene.store).path(of: .externalData).appending("_EXTERNAL_DATA")
    try FileSystem().makeDirectory(place)
    try FileSystem().writeAtomically(Array("a large value".utf8), to: place.appending(name), replacing: false)
    let (scrubbed, _) = try scene.scrubbed()
    let others = try FileSystem().entries(
      of: StoreFileSet(main: scrubbed.store).path(of: .externalData).appending("_EXTERNAL_DATA")
    ).map(\.string)
    let references: [Data] = try Self.column(scrubbed, "SELECT data FROM t")
    #expect(others.count == 1 && others != [name])
    #expect(references == others.map { Data([2] + Array($0.utf8) + [0]) })
  }

  @Test("Names that a user gave to files and folders beside a store become others, each another one")
  func namesOfFiles() throws {
    let scene = try Self.scene(["CREATE TABLE t (id INTEGER PRIMARY KEY)"])
    let folder = StoreFileSet(main: scene.store).path(of: .externalData)
    let names = [
      "Quirinus/letter.pdf", "Quirinus/Ä.pdf", "Quirinus/Ö.pdf", "Quirinus/Ü/a", "Quirinus/Ü/b", "Quirinus/Ü/c",
    ]
    for name in names {
      let path = folder.pushing(FilePath(name))
      try FileSystem().makeDirectory(path.removingLastComponent())
      try FileSystem().writeAtomically(Array("a large value".utf8), to: path, replacing: false)
    }
    let (scrubbed, _) = try scene.scrubbed()
    let target = StoreFileSet(main: scrubbed.store).path(of: .externalData)
    let found = try FileSystem().descendants(of: target)
    #expect(found.files.count == names.count && found.folders.count == 2)
    #expect(Set(found.files.map { $0.relative.map(\.string).joined(separator: "/") }).count == names.count)
    for file in found.files {
      let path = file.relative.map(\.string).joined(separator: "/")
      #expect(!["Quirinus", "letter", "Ä", "Ö", "Ü"].contains { path.contains($0) }, "\(path)")
    }
  }
}
