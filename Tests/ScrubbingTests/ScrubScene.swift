import Foundation
import GRDB
import LazaretTesting
import ManagedObjectModel
import Platform
import Salvage
import SupportBundle
import SystemPackage
import TestSupport

/// A store in a folder of its own, to be damaged and scrubbed.
struct ScrubScene {
  let folder: TemporaryFolder
  let store: FilePath

  /// What salvage and scrub are told of the store; nil for nothing.
  var model: SalvageModel?

  static let key = try? ScrubbingKey((0..<32).map { UInt8($0) })

  init(_ folder: TemporaryFolder, _ store: FilePath, model: SalvageModel? = nil) {
    self.folder = folder
    self.store = store
    self.model = model
  }

  // MARK: Stores

  static let words = [
    "time", "Jahr", "naïve", "people", "day", "東京", "thing", "woman", "life", "child", "world", "school", "Straße",
    "мир", "MARS", "42", "2024-05-17", "café", "the",
  ]

  static func text(_ random: inout SeededGenerator, _ count: Int) -> String {
    (0..<count).map { _ in
      let word = words.randomElement(using: &random) ?? ""
      // Long text has no numbers: whether a piece of one belongs to another is a matter of statistics, not the same twice.
      return count < 100 && Int.random(in: 0..<3, using: &random) == 0
        ? "\(word)\(Int.random(in: 0..<9999, using: &random))" : word
    }.joined(separator: " ")
  }

  /// A plain store with every kind of value and index that SQLite has, and deleted rows.
  ///
  /// - Parameters:
  ///   - setup: what is done before the first table, such as the page size and encoding.
  ///   - finish: what is done last, in a transaction of its own; then the files are copied, with the log.
  static func plain(
    seed: UInt64, rows: Int = 400, setup: String = "PRAGMA page_size = 4096", journal: String = "DELETE",
    finish: [String] = []
  ) throws -> ScrubScene {
    let folder = try TemporaryFolder()
    let path = folder.appending("Made.sqlite")
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: path.string, configuration: configuration)
    var random = SeededGenerator(seed: seed)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: setup)
      try db.execute(sql: "PRAGMA journal_mode = \(journal); PRAGMA secure_delete = 0; PRAGMA wal_autocheckpoint = 0")
      try db.execute(sql: "BEGIN")
      try db.execute(
        sql: """
          CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, nick TEXT COLLATE NOCASE, born TIMESTAMP, phone INTEGER, \
          height REAL, uuid BLOB, note TEXT, picture BLOB, mixed);
          CREATE INDEX people_name ON people (name);
          CREATE INDEX people_nick ON people (nick DESC, name COLLATE RTRIM);
          CREATE INDEX people_born ON people (born, phone);
          CREATE INDEX people_height ON people (height);
          CREATE UNIQUE INDEX people_uuid ON people (uuid);
          CREATE INDEX people_mixed ON people (mixed) WHERE mixed IS NOT NULL;
          CREATE TABLE words (word TEXT PRIMARY KEY, uses INTEGER, sense TEXT) WITHOUT ROWID;
          CREATE TABLE notes (who TEXT, said TEXT, score REAL, stamp INTEGER UNIQUE);
          """)
      for index in 1...rows { try insertPerson(index, db, &random) }
      for index in 1...(rows / 2) {
        try db.execute(
          sql: "INSERT INTO words VALUES (?, ?, ?)",
          arguments: ["\(text(&random, 1))-\(index)", index, text(&random, 8)])
        try db.execute(
          sql: "INSERT INTO notes VALUES (?, ?, ?, ?)",
          arguments: [
            text(&random, 2), text(&random, index % 40 == 0 ? 900 : 12), Double(index) / 4,
            1_600_000_000_000 + Int64(index * index),
          ])
      }
      try db.execute(sql: "COMMIT")
      try db.execute(sql: "DELETE FROM people WHERE id % 7 = 3; DELETE FROM notes WHERE rowid BETWEEN 30 AND 60")
      if journal == "WAL" { try db.checkpoint(.truncate) }
      for statement in finish { try db.execute(sql: statement) }
      for suffix in ["", "-wal", "-journal"] {
        let from = FilePath(path.string + suffix)
        if try FileSystem().status(of: from) != nil {
          try folder.write(try FileSystem().contents(of: from, limit: 1 << 28), to: "Store.sqlite" + suffix)
        }
      }
      if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
    }
    try queue.close()
    return ScrubScene(folder, folder.appending("Store.sqlite"))
  }

  private static func insertPerson(_ index: Int, _ db: GRDB.Database, _ random: inout SeededGenerator) throws {
    let mixed: [(any DatabaseValueConvertible)?] = [
      nil, index * 3, index * 1_000_003, text(&random, 2), Double(index) * 1.37, Data([1, 2, UInt8(index & 255), 9]),
    ]
    try db.execute(
      sql: "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      arguments: [
        index, text(&random, 2), index % 9 == 0 ? text(&random, 1).uppercased() : text(&random, 1),
        index % 5 == 0 ? Double(Int(5e8) + index * 86400) : 5e8 + Double(index) * 54321.25,
        Int64.random(in: 1_000_000...9_999_999_999, using: &random), Double(index % 40) + 1.5,
        Data((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }),
        index % 25 == 0 ? text(&random, 1000) : text(&random, 6),
        index % 11 == 0
          ? Data((0..<3000).map { _ in UInt8.random(in: 0...255, using: &random) }) : Data([0xff, 0xd8, 0xff]),
        mixed[index % mixed.count],
      ])
  }

  /// A store in Core Data's layout, with generated records.
  static func coreData(
    seed: UInt64, _ profile: StoreProfile = .typical, journal: StoreGenerator.Journal = .none, records: Int = 120
  ) throws -> ScrubScene {
    let folder = try TemporaryFolder()
    let model = try ManagedObjectModel(source: Array(source.utf8))
    let store = folder.appending("Store.sqlite")
    try StoreGenerator(model, options: .init(profile, seed: seed, records: records, journal: journal)).write(to: store)
    return ScrubScene(folder, store)
  }

  static let source = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="1">
      <entity name="Book" syncable="YES">
        <attribute name="pages" optional="YES" attributeType="Integer 32"/>
        <attribute name="stock" optional="YES" attributeType="Integer 64"/>
        <attribute name="printed" optional="YES" attributeType="Date"/>
        <attribute name="price" optional="YES" attributeType="Decimal"/>
        <attribute name="text" optional="YES" attributeType="String"/>
        <attribute name="title" optional="YES" attributeType="String"/>
        <attribute name="uuid" optional="YES" attributeType="UUID"/>
        <attribute name="cover" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
        <relationship name="readers" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Reader" \
    inverseName="books" inverseEntity="Reader"/>
        <fetchIndex name="byTitle">
          <fetchIndexElement property="title" type="Binary" order="ascending"/>
        </fetchIndex>
        <fetchIndex name="byPrinted">
          <fetchIndexElement property="printed" type="Binary" order="descending"/>
          <fetchIndexElement property="stock" type="Binary" order="ascending"/>
        </fetchIndex>
      </entity>
      <entity name="Reader" syncable="YES">
        <attribute name="name" optional="YES" attributeType="String"/>
        <attribute name="weight" optional="YES" attributeType="Double"/>
        <relationship name="books" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Book" \
    inverseName="readers" inverseEntity="Book"/>
        <uniquenessConstraints><uniquenessConstraint><constraint value="name"/></uniquenessConstraint></uniquenessConstraints>
      </entity>
    </model>
    """

  // MARK: Damage

  /// A damaged copy; nil where the store has nothing of the kind.
  func damaged(_ kind: String, seed: UInt64) throws -> ScrubScene? {
    let folder = try TemporaryFolder()
    let copy = folder.appending("Store.sqlite")
    do {
      _ = try DamagedCopy.make(of: store, at: copy, kinds: [try DamageKind(kind)], seed: seed)
    } catch {
      guard (error as? PersistentStoreError)?.kind == .nothingToDamage else { throw error }
      return nil
    }
    return ScrubScene(folder, copy, model: model)
  }

  // MARK: Scrubbing

  /// The scrubbed store, in a folder of its own, and what was said of it.
  func scrubbed(
    key: ScrubbingKey? = nil, rules: ScrubRules = ScrubRules()
  ) throws -> (scene: ScrubScene, result: StoreScrubber.Result) {
    let target = try TemporaryFolder()
    guard let key = key ?? Self.key else { throw NoKey() }
    let result = try StoreScrubber(key: key, model: model, rules: rules).scrub(
      StoreFileSet(main: store), into: target.path)
    return (ScrubScene(target, target.appending("Store.sqlite"), model: model), result)
  }

  struct NoKey: Error {}

  /// The bytes of every file of the folder, by name.
  func files() throws -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for part in [StoreFileSet.Part.main, .wal, .journal] {
      let path = StoreFileSet(main: store).path(of: part)
      if try FileSystem().status(of: path) != nil {
        files[part.rawValue] = try FileSystem().contents(of: path, limit: 1 << 30)
      }
    }
    return files
  }

  // MARK: What others say of it

  /// What our own salvage says, in lines.
  func salvage() -> [String] {
    do {
      let folder = try TemporaryFolder()
      let report = try Salvager().salvageRaw(
        store, to: folder.appending("Out.sqlite"), model: model, options: .init(findsDeleted: true))
      return report.entities.map {
        // What was overwritten in metadata and the cached model can no longer be read as such.
        let doubtful = ["Z_METADATA", "Z_MODELCACHE"].contains($0.name) ? 0 : $0.doubtful
        return "\($0.name): recovered \($0.recovered), doubtful \(doubtful), rebuilt \($0.rebuilt), lost \($0.lost) "
          + "\($0.lostBasis), apart \($0.keptApart)"
      } + ["unplaced \(report.unplacedRows)"]
    } catch {
      return ["\((error as? SalvageError)?.code ?? "\(error)")"]
    }
  }

  /// What SQLite's own check prints, on a private copy.
  func integrityCheck() throws -> [String] {
    let folder = try TemporaryFolder()
    let copy = try RealMaterial.copy(store, into: folder, as: "Copy.sqlite")
    let result = try ChildProcess.run("sqlite3", [copy.string, "PRAGMA integrity_check(100000);"])
    return (result.output + result.errors).split(separator: "\n").map(String.init)
  }
}
