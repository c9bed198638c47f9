import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Verdicts: the store and the app's model")
struct ModelVerdictTests {
  /// The model of an app that shares the name of an entity with the others.
  private static let ofNamesake = ModelBundle(
    name: "Kitchen", versions: [ModelVersion(name: "V1", model: Models.namesake, isCurrent: true)]
  ).map { AppModel.coreData($0) }

  static let cases: [VerdictCase] = [
    VerdictCase("the current version", .compatible, "current-version", mentions: ["V3"]) { try .sound() },
    VerdictCase("no model given", .compatible, "no-model-given", model: nil) { try .sound() },
    VerdictCase("nothing there", .missing, "no-store") { Specimen(main: nil) },
    VerdictCase("a log without its store", .missing, "no-store-but-leftovers") {
      Specimen(main: nil, log: [1, 2, 3])
    },
    VerdictCase("a journal without its store", .missing, "no-store-but-leftovers") {
      Specimen(main: nil, journal: [1, 2, 3])
    },
    VerdictCase("the first of three versions", .outdated, "older-version", coreData: 134100, mentions: ["V1", "V3"]) {
      try .store(Models.first, cached: Models.first)
    },
    VerdictCase(
      "the second of three versions, no cache", .outdated, "older-version", coreData: 134100, mentions: ["V2"]
    ) {
      try .store(Models.second, cached: nil)
    },
    VerdictCase("a forgotten version, with its model", .outdated, "older-unknown-version", coreData: 134100) {
      try .store(Models.forgotten, cached: Models.forgotten)
    },
    VerdictCase(
      "a forgotten version, without its model", .incompatible, "unknown-version", coreData: 134130, mentions: ["Car"]
    ) { try .store(Models.forgotten, cached: nil) },
    VerdictCase(
      "a version after the current one", .unavailable, "newer-version", coreData: 134100, mentions: ["V3", "V2"],
      model: Models.bundle(current: "V2")
    ) { try .sound() },
    VerdictCase(
      "a version whose name comes after the current one's", .outdated, "older-version", coreData: 134100,
      mentions: ["V3", "V2"], model: Models.bundle(current: "V2", isOrdered: false)
    ) { try .sound() },
    VerdictCase(
      "the entities of a version and another model's", .unavailable, "newer-model", coreData: 134100,
      mentions: ["V2", "1 entity more: Person", "merged in"], model: Models.only("V2", Models.second)
    ) { try .sound() },
    VerdictCase(
      "a forgotten version, without its model, and one that cannot be read", .unavailable, "unreadable-version",
      coreData: 134130, mentions: ["V0", "Xcode 3"], model: Models.bundle(unreadable: ["V0"])
    ) { try .store(Models.forgotten, cached: nil) },
    VerdictCase(
      "another app's store, without its model, and a version that cannot be read", .unavailable, "unreadable-version",
      coreData: 134130, model: Models.bundle(unreadable: ["V0"])
    ) { try .store(Models.foreign, cars: 0, cached: nil) },
    VerdictCase(
      "the current version beside one that cannot be read", .compatible, "current-version",
      model: Models.bundle(unreadable: ["V0"])
    ) { try .sound() },
    VerdictCase(
      "a version from the future", .unavailable, "newer-model", coreData: 134100, mentions: ["Garage", "Car.turbo"]
    ) { try .store(Models.future, cached: Models.future) },
    VerdictCase(
      "a version from the future, without its model", .unavailable, "newer-model", coreData: 134100,
      mentions: ["Garage"]
    ) { try .store(Models.future, cached: nil) },
    VerdictCase("another app's store", .incompatible, "other-model", coreData: 134100, mentions: ["Recipe"]) {
      try .store(Models.foreign, cars: 0, cached: Models.foreign)
    },
    VerdictCase(
      "another app's store, with an entity of the same name", .incompatible, "other-model", coreData: 134100,
      mentions: ["Garage", "1 name of an entity (Person)"], model: ofNamesake
    ) { try .store(Models.future, cached: Models.future) },
    VerdictCase("a plain database", .incompatible, "not-core-data", coreData: 134020, mentions: ["App"]) {
      try .plain("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
    },
    VerdictCase("a database without tables", .incompatible, "not-core-data", coreData: 134020) {
      try .plain("PRAGMA user_version = 3")
    },
    VerdictCase("a database without tables, no model", .compatible, "no-tables", model: nil) {
      try .plain("PRAGMA user_version = 3")
    },
    VerdictCase("a cache that is no model", .compatible, "current-version", notes: ["model-cache-unreadable"]) {
      try Specimen.sound().running(
        "UPDATE Z_MODELCACHE SET Z_CONTENT = zeroblob(900)", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase(
      "another version's cache", .repairable, "repairable", mentions: ["Z_MODELCACHE"], notes: ["model-cache-stale"]
    ) {
      try .store(Models.third, cached: Models.second)
    },
    VerdictCase(
      "another version's cache, no model", .compatible, "no-model-given", notes: ["model-cache-stale"], model: nil
    ) { try .store(Models.third, cached: Models.second) },
    VerdictCase(
      "no table of metadata", .damaged, "metadata-missing", coreData: 259, full: (.damaged, "metadata-missing")
    ) {
      try Specimen.sound().running("DROP TABLE Z_METADATA", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("no row of metadata", .damaged, "metadata-missing", coreData: 259) {
      try Specimen.sound().running("DELETE FROM Z_METADATA", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("metadata that is no property list", .damaged, "metadata-damaged", coreData: 259) {
      try Specimen.sound().running(
        "UPDATE Z_METADATA SET Z_PLIST = CAST('\(Specimen.secret)' AS BLOB)", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("metadata that is null", .damaged, "metadata-damaged", coreData: 259) {
      try Specimen.sound().running("UPDATE Z_METADATA SET Z_PLIST = NULL", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("metadata that is an array", .damaged, "metadata-damaged", coreData: 259, mentions: ["dictionary"]) {
      // An empty array as a binary property list, in hexadecimal.
      try Specimen.sound().running(
        "UPDATE Z_METADATA SET Z_PLIST = x'62706c6973743030a0080000000000000101000000000000000100000000000000000000000000000009'",
        "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("metadata without version hashes", .damaged, "metadata-damaged", coreData: 259) {
      // An empty dictionary.
      try Specimen.sound().running(
        "UPDATE Z_METADATA SET Z_PLIST = x'62706c6973743030d0080000000000000101000000000000000100000000000000000000000000000009'",
        "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase(
      "version hashes that their digest contradicts", .damaged, "metadata-damaged", coreData: 259, mentions: ["digest"]
    ) {
      // The name of an entity, in the property list only: it would pass for one of a newer version.
      var specimen = try Specimen.store(Models.third, cached: nil)
      let name = Array("VPerson".utf8)
      specimen = specimen.with { bytes in
        for start in 0..<(bytes.count - name.count) where bytes[start..<(start + name.count)].elementsEqual(name) {
          bytes[start + 1] = UInt8(ascii: "Q")
        }
      }
      return specimen
    },
    VerdictCase("a table missing", .repairable, "repairable", sqlite: 1, mentions: ["ZCAR"]) {
      try Specimen.sound().running("DROP TABLE ZCAR", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase("a column missing", .repairable, "repairable", sqlite: 1, mentions: ["ZDOORS", "ZCAR"]) {
      try Specimen.sound().running("ALTER TABLE ZCAR DROP COLUMN ZDOORS", "PRAGMA wal_checkpoint(TRUNCATE)")
    },
    VerdictCase(
      "a table missing, no model", .repairable, "repairable", sqlite: 1, mentions: ["ZPERSON"], model: nil
    ) { try Specimen.sound().running("DROP TABLE ZPERSON", "PRAGMA wal_checkpoint(TRUNCATE)") },
  ]

  @Test("Every relation of a store to a model", arguments: cases)
  func verdict(_ verdictCase: VerdictCase) throws { try verdictCase.check() }

  @Test("The version is named, the entities counted")
  func facts() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.store(Models.first, cars: 30, cached: Models.first).place(in: folder)
    let examination = try examiner().look(path, Models.bundle())
    #expect(examination.modelVersion == "V1")
    #expect(examination.kind == .coreData)
    #expect(examination.counts == ["Car in ZCAR: 30"])
    #expect(examination.metadata?.uuid == "5A0A7F9C-6D5C-4E2B-9E0A-6C1F1B0D8E77")
    #expect(examination.storeModel == Models.first)
    #expect(try examiner().look(path, Models.bundle(), counting: false).entities.first?.rows == nil)
    #expect(try examiner().look(path).modelVersion == nil)
    #expect(try examiner().look(path).storeModel?.versionHashes() == Models.first.versionHashes())
  }

  @Test("Rows of a table without rowids are counted, on inner pages too", arguments: Examination.Depth.allCases)
  func withoutRowids(depth: Examination.Depth) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.plain(
      "CREATE TABLE pairs (a TEXT, b INTEGER, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
      INSERT INTO pairs SELECT hex(i * 7919 % 4096), i, printf('%.80c', 'x') FROM n
      """
    ).place(in: folder)
    #expect(try examiner().look(path, nil, depth).counts == ["pairs in pairs: 2500"])
  }

  static let wanted = "CREATE TABLE cars(id INTEGER PRIMARY KEY, name TEXT NOT NULL); CREATE TABLE owners(id INTEGER)"

  @Test(
    "A plain store and a schema file",
    arguments: [
      (["CREATE TABLE cars(id INTEGER PRIMARY KEY, name text NOT NULL, x)", "CREATE TABLE owners(id INTEGER)"], nil),
      (["CREATE TABLE cars(id INTEGER PRIMARY KEY, name TEXT)"], "owners"),
      (["CREATE TABLE cars(id INTEGER PRIMARY KEY)", "CREATE TABLE owners(id INTEGER)"], "cars.name"),
      (
        ["CREATE TABLE cars(id INTEGER PRIMARY KEY, name BLOB)", "CREATE TABLE owners(id INTEGER)"], "cars.name as TEXT"
      ),
      (["PRAGMA user_version = 1"], "cars, owners"),
    ] as [([String], String?)])
  func plain(statements: [String], missing: String?) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.plain(statements.joined(separator: ";")).place(in: folder)
    for depth in Examination.Depth.allCases {
      let examination = try examiner().look(path, try Models.schema(Self.wanted), depth)
      VerdictCase.checkWords(examination)
      #expect(examination.kind == .sqlite)
      if let missing {
        #expect(examination.verdict == .compatible)
        #expect(examination.reason.code == "lacks-tables")
        #expect(examination.reason.words.contains(missing), "\(examination.reason.words)")
        let note = try #require(examination.health.notes.first { $0.code == "lacks-tables" })
        #expect(note.severity == .note && note.words.contains(missing), "\(note.words)")
        #expect(!examination.health.isDamaged)
      } else {
        #expect(examination.verdict == .compatible)
        #expect(examination.reason.code == "has-schema")
        #expect(examination.modelVersion == "app")
        #expect(
          examination.counts == ["cars in cars: 0", "owners in owners: 0"])
      }
    }
  }

  @Test(
    "Indexes, triggers and views that a plain store lacks are named, and others may stand for indexes",
    arguments: [
      (["CREATE INDEX other ON cars(name COLLATE NOCASE)"], ["trigger seen", "unique index onlyOnce", "view old"]),
      (["CREATE UNIQUE INDEX other ON cars(name, id)"], ["index byName", "trigger seen", "view old"]),
      (
        ["CREATE INDEX onlyOnce ON cars(name, id)"],
        ["index byName", "trigger seen", "unique index onlyOnce", "view old"]
      ),
      (
        [
          "CREATE INDEX a ON cars(name)", "CREATE UNIQUE INDEX b ON cars(name, id)", "CREATE VIEW OLD AS SELECT 1",
          "CREATE TRIGGER seen AFTER DELETE ON cars BEGIN SELECT 1; END",
        ], []
      ),
    ] as [([String], [String])])
  func plainParts(statements: [String], missing: [String]) throws {
    let wanted = """
      CREATE TABLE cars(id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX byName ON cars(name);
      CREATE UNIQUE INDEX onlyOnce ON cars(name, id); CREATE VIEW old AS SELECT id FROM cars;
      CREATE TRIGGER seen AFTER INSERT ON cars BEGIN SELECT 1; END
      """
    let folder = try TemporaryFolder()
    let path = try Specimen.plain(
      (["CREATE TABLE cars(id INTEGER PRIMARY KEY, name TEXT)"] + statements).joined(separator: ";")
    ).place(in: folder)
    let examination = try examiner().look(path, try Models.schema(wanted))
    #expect(examination.verdict == .compatible)
    #expect(examination.reason.code == (missing.isEmpty ? "has-schema" : "lacks-tables"))
    let words = examination.health.notes.first { $0.code == "lacks-tables" }?.words ?? ""
    for part in ["index byName", "unique index onlyOnce", "trigger seen", "view old"] {
      #expect(words.contains(part) == missing.contains(part), "\(part): \(words)")
    }
  }

  @Test("A plain store that has none of a schema's tables is of another schema")
  func otherSchema() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.plain("CREATE TABLE boats(id INTEGER PRIMARY KEY)").place(in: folder)
    let examination = try examiner().look(path, try Models.schema(Self.wanted))
    #expect(examination.verdict == .incompatible)
    #expect(examination.reason.code == "other-schema")
    #expect(examination.reason.words.contains("boats"))
    VerdictCase.checkWords(examination)
  }

  @Test("A schema file that cannot be used is not the store's fault")
  func brokenSchema() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.plain("CREATE TABLE cars(id)").place(in: folder)
    let examination = try examiner().look(path, try Models.schema("CREATE TABEL cars(id)"))
    #expect(examination.verdict == .unavailable)
    #expect(examination.reason.code == "schema-script-refused")
    VerdictCase.checkWords(examination)
  }
}

/// The order of keys in tables that are b-trees of their key.
@Suite("Key order of tables WITHOUT ROWID")
struct KeyOrderTests {
  @Test("A key that one byte has moved out of its order is damage")
  func changedKey() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      try db.execute(
        sql: "CREATE TABLE tag (name TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (name, note)) WITHOUT ROWID")
      for index in 0..<60 {
        try db.execute(sql: "INSERT INTO tag VALUES (?, ?)", arguments: ["tag number \(1000 + index)", index])
      }
    }
    try queue.close()
    #expect(try Examiner().examine(path, options: .init(depth: .full)).verdict == .compatible)
    var bytes = try FileSystem().contents(of: path, limit: 1 << 20)
    let key = Array("tag number 1030".utf8)
    let place = try #require(bytes.indices.dropLast(key.count).first { bytes[$0...].starts(with: key) })
    bytes[place] = UInt8(ascii: "z")
    try folder.write(bytes, to: "Store.sqlite")
    let examination = try Examiner().examine(path, options: .init(depth: .full))
    #expect(examination.verdict == .damaged && examination.reason.code == "pages-damaged")
    #expect(examination.health.integrity?.isSound == true)
  }
}
