import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport

/// A store in a folder of its own, what it holds, and what a salvage makes of it when it is damaged.
struct SalvageScene {
  /// The rows of a table: each as its values, the rowid first.
  typealias Rows = Set<[DatabaseValue]>

  let folder: TemporaryFolder
  let model: ManagedObjectModel

  /// The bytes of the store's files.
  var main: [UInt8]
  var log: [UInt8]?
  var journal: [UInt8]?

  /// What the store holds, by table.
  let truth: [String: Rows]

  static let tables = ["ZBOOK", "ZREADER", "Z_1READERS", "NOTES", "WORDS"]

  static let source = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="1">
      <entity name="Book" syncable="YES">
        <attribute name="pages" optional="YES" attributeType="Integer 32"/>
        <attribute name="printed" optional="YES" attributeType="Date"/>
        <attribute name="text" optional="YES" attributeType="String"/>
        <attribute name="title" optional="YES" attributeType="String"/>
        <attribute name="uuid" optional="YES" attributeType="UUID"/>
        <relationship name="readers" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Reader" \
    inverseName="books" inverseEntity="Reader"/>
      </entity>
      <entity name="Reader" syncable="YES">
        <attribute name="name" optional="YES" attributeType="String"/>
        <relationship name="books" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Book" \
    inverseName="readers" inverseEntity="Book"/>
      </entity>
    </model>
    """

  /// Makes a store of some hundred pages.
  ///
  /// - Parameter finish: what is done last, in a transaction of its own, before the truth is taken.
  init(seed: UInt64, books: Int = 1500, finish: [String] = [], keepsLog: Bool = false) throws {
    var random = SeededGenerator(seed: seed)
    folder = try TemporaryFolder()
    model = try ManagedObjectModel(source: Array(Self.source.utf8))
    let image = try StoreCreation(
      model: model, uuid: "6D7E5C0A-9E1B-4A55-8C11-0123456789AB", modelCache: try model.modelCache()
    ).bytes()
    let path = try folder.write(image, to: "Made.sqlite")
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: path.string, configuration: configuration)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA secure_delete = 0; PRAGMA wal_autocheckpoint = 0; BEGIN")
      try db.execute(sql: "CREATE TABLE NOTES (WHO TEXT, SAID TEXT, SCORE REAL, ANY)")
      try db.execute(sql: "CREATE TABLE WORDS (WORD TEXT PRIMARY KEY, USES INTEGER, SENSE TEXT) WITHOUT ROWID")
      for index in 1...books { try Self.insertBook(index, db, &random) }
      for index in 1...200 {
        try db.execute(sql: "INSERT INTO ZREADER VALUES (?, 2, 1, ?)", arguments: [index, Self.words(&random, 3)])
        for book in Set((0..<4).map { _ in Int.random(in: 1...books, using: &random) }) {
          try db.execute(sql: "INSERT INTO Z_1READERS VALUES (?, ?)", arguments: [book, index])
        }
        try db.execute(
          sql: "INSERT INTO NOTES VALUES (?, ?, ?, ?)",
          arguments: [Self.words(&random, 1), Self.words(&random, 12), Double(index) / 4, index % 3 == 0 ? "x" : nil])
        try db.execute(
          sql: "INSERT INTO WORDS VALUES (?, ?, ?)",
          arguments: ["\(Self.words(&random, 1))-\(index)", index, Self.words(&random, 8)])
      }
      try db.execute(sql: "COMMIT")
      try db.checkpoint(.truncate)
      for statement in finish { try db.execute(sql: statement) }
      if !keepsLog { try db.checkpoint(.truncate) }
    }
    truth = try queue.read { db in
      try Dictionary(uniqueKeysWithValues: Self.tables.map { ($0, try Self.rows(of: $0, db)) })
    }
    main = try FileSystem().contents(of: path, limit: 1 << 26)
    let logPath = StoreFileSet(main: path).path(of: .wal)
    let bytes = try FileSystem().status(of: logPath) == nil ? [] : FileSystem().contents(of: logPath, limit: 1 << 26)
    log = bytes.isEmpty ? nil : bytes
    try queue.close()
  }

  private static func insertBook(_ index: Int, _ db: GRDB.Database, _ random: inout SeededGenerator) throws {
    // One in fifty goes on overflow pages.
    let length = index % 50 == 0 ? 1200 : Int.random(in: 4...40, using: &random)
    try db.execute(
      sql: "INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZPAGES, ZPRINTED, ZTEXT, ZTITLE, ZUUID) VALUES (?,1,1,?,?,?,?,?)",
      arguments: [
        index, Int.random(in: 1...1000, using: &random), 6e8 + Double(index) * 1.25, words(&random, length),
        words(&random, 4), Data((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }),
      ])
  }

  static func words(_ random: inout SeededGenerator, _ count: Int) -> String {
    let all = ["time", "Jahr", "naïve", "people", "day", "東京", "thing", "woman", "life", "child", "world", "school"]
    return (0..<count).map { _ in all.randomElement(using: &random) ?? "" }.joined(separator: " ")
  }

  static func rows(of table: String, _ db: GRDB.Database) throws -> Rows {
    let rowid = table == "WORDS" ? "NULL" : "rowid"
    return Set(
      try Row.fetchAll(db, sql: "SELECT \(rowid), * FROM \(table)").map { row in
        row.map { $0.1 }
      })
  }
}

extension SalvageScene {
  /// What came out.
  struct Result {
    let report: SalvageReport
    let rows: [String: Rows]
    let apart: [String: Int]
    let parts: ToldParts
    let folder: TemporaryFolder

    /// All rows of all tables.
    var count: Int { rows.values.reduce(0) { $0 + $1.count } }
  }

  /// Salvages the store as it is now.
  func salvage(withModel: Bool = true, deleted: Bool = false) throws -> Result {
    let place = try TemporaryFolder()
    let path = try place.write(main, to: "Store.sqlite")
    if let log { try place.write(log, to: "Store.sqlite-wal") }
    if let journal { try place.write(journal, to: "Store.sqlite-journal") }
    let before = try FolderContents(of: place.path)
    let results = try TemporaryFolder()
    let output = results.appending("Out.sqlite")
    let bundle = ModelBundle(
      name: "Books", versions: [ModelVersion(name: "Books", model: model, isCurrent: true)])
    let report = try Salvager().salvageRaw(
      path, to: output, model: withModel ? bundle.map { .coreData($0) } : nil, options: .init(findsDeleted: deleted))
    guard try FolderContents(of: place.path) == before else { throw Changed() }
    let queue = try DatabaseQueue(path: output.string)
    let (rows, apart, parts) = try queue.read { db in
      let names = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      var apart: [String: Int] = [:]
      for name in names where name.hasPrefix("lazaret_") {
        apart[name] = try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(name)\"")
      }
      guard try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok" else { throw Changed() }
      return (
        try Dictionary(
          uniqueKeysWithValues: Self.tables.filter { names.contains($0) }.map { ($0, try Self.rows(of: $0, db)) }),
        apart, try ToldParts(db)
      )
    }
    try queue.close()
    return Result(report: report, rows: rows, apart: apart, parts: parts, folder: results)
  }

  /// The evidence was changed, or the result is not sound.
  struct Changed: Error {}

  /// Rows that are in the result and were not in the store, and are not told to be parts of such rows.
  func falseRows(_ result: Result) -> Int {
    Self.tables.reduce(0) { $0 + result.parts.falseRows($1, result.rows[$1] ?? [], truth: truth[$1] ?? []) }
  }

  /// Rows of tables that are not in the result.
  func missingRows(_ result: Result, of tables: [String] = Self.tables) -> Int {
    tables.reduce(0) { $0 + (truth[$1] ?? []).subtracting(result.rows[$1] ?? []).count }
  }

  /// How many rows there are.
  var count: Int { truth.values.reduce(0) { $0 + $1.count } }
}
