import Foundation
import GRDB
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

/// A store that is damaged by ``RecoveryBenchmark``, and every row that it holds.
struct RecoveryStore {
  /// Which of the two stores it is.
  enum Kind: String, CaseIterable {
    case coreData = "Core Data"
    case plain
  }

  let kind: Kind
  let path: FilePath
  let knowledge: SalvageModel

  /// The digests of the rows of each table, and how many rows have each.
  let truth: [String: [UInt64: Int]]

  /// For each row, the digest of its values and the pages that it stands on.
  let places: [(digest: UInt64, table: String, pages: [UInt32])]

  /// How many rows there are.
  var count: Int { places.count }

  init(_ kind: Kind, records: Int, in folder: FilePath) throws {
    self.kind = kind
    path = folder.appending("\(kind == .plain ? "plain" : "coredata").sqlite")
    switch kind {
    case .coreData:
      knowledge = .coreData(try Self.makeCoreData(path, records: records))
    case .plain:
      knowledge = .sqlite(try Self.makePlain(path, records: records))
    }
    let queue = try DatabaseQueue(path: path.string)
    truth = try queue.read { database in try RecoveryScore.rows(of: Self.tables(kind), database) }
    try queue.close()
    places = try Self.places(path, kind)
  }

  static func tables(_ kind: Kind) -> [String] {
    kind == .plain ? ["notes", "people", "words"] : ["ZARTICLE", "ZAUTHOR", "Z_1TAGS", "ZTAG"]
  }

  /// Every row with the pages that it stands on, by our own page reader.
  private static func places(
    _ path: FilePath, _ kind: Kind
  ) throws -> [(digest: UInt64, table: String, pages: [UInt32])] {
    var database = try Database(main: try FileSystem().open(path))
    var result: [(digest: UInt64, table: String, pages: [UInt32])] = []
    let size = database.geometry.usableSize
    for entry in try database.schema().tables where tables(kind).contains(entry.name) {
      guard let definition = entry.tableDefinition else { continue }
      var rows = try database.rows(root: entry.rootPage)
      while let row = try rows.next() {
        var pages = [row.page]
        let local = database.geometry.localLength(of: row.record.payload.count, onTableLeaf: true)
        if local < row.record.payload.count {
          var next = try overflowPage(of: row, in: &database)
          var rest = row.record.payload.count - local
          while rest > 0, next > 1, let bytes = try database.page(next)?.bytes {
            pages.append(next)
            next = bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
            rest -= size - 4
          }
        }
        let values = definition.values(of: row)
        result.append((RecoveryScore.digest(values), entry.name, pages))
      }
    }
    return result
  }

  /// The first overflow page of a row.
  private static func overflowPage(of row: SQLiteFormat.Row, in database: inout SQLiteFormat.Database) throws -> UInt32
  {
    guard let page = try database.bTreePage(row.page) else { return 0 }
    for index in 0..<page.cellCount {
      if let cell = page.cell(at: index), cell.rowid == row.rowid { return cell.overflowPage ?? 0 }
    }
    return 0
  }

  // MARK: The stores

  private static let words = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system",
    "naïve", "größer", "東京", "ответ", "program", "question", "work", "government", "number", "night", "point",
  ]

  private static func text(_ random: inout SeededGenerator, _ count: Int) -> String {
    (0..<count).map { _ in words[Int.random(in: 0..<words.count, using: &random)] }.joined(separator: " ")
  }

  private static func blob(_ random: inout SeededGenerator, _ count: Int) -> Data {
    Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
  }

  /// Rows of articles, one in twenty of them on overflow pages, of authors, tags and the pairs of both.
  private static func makeCoreData(_ path: FilePath, records: Int) throws -> ModelBundle {
    let model = Self.model
    let bytes = try StoreCreation(
      model: model, uuid: "3F2504E0-4F89-41D3-9A0C-0305E82C3301", modelCache: try model.modelCache()
    ).bytes()
    try Data(bytes).write(to: URL(fileURLWithPath: path.string))
    var random = SeededGenerator(seed: 1)
    let articles = records * 45 / 100
    let authors = max(10, records / 20)
    let tags = max(5, records / 50)
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA foreign_keys = 0; BEGIN")
      for key in 1...authors {
        try database.execute(
          sql: "INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 2, 1, ?)",
          arguments: [key, text(&random, 3)])
      }
      for key in 1...tags {
        try database.execute(
          sql: "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 3, 1, ?)", arguments: [key, text(&random, 1)])
      }
      let article = try database.makeStatement(
        sql: "INSERT INTO ZARTICLE (Z_PK, Z_ENT, Z_OPT, ZFLAGS, ZAUTHOR, ZCREATED, ZSCORE, ZBODY, ZTITLE, ZUUID) "
          + "VALUES (?, 1, 1, ?, ?, ?, ?, ?, ?, ?)")
      let pair = try database.makeStatement(sql: "INSERT OR IGNORE INTO Z_1TAGS VALUES (?, ?)")
      for key in 1...articles {
        let length = key % 20 == 0 ? Int.random(in: 700...4000, using: &random) : Int.random(in: 5...60, using: &random)
        try article.execute(arguments: [
          key, Int.random(in: 0...30, using: &random), Int.random(in: 1...authors, using: &random),
          6e8 + Double(key) * 7.25, Double(key % 17) / 4, text(&random, length),
          text(&random, Int.random(in: 2...8, using: &random)), blob(&random, 16),
        ])
        try pair.execute(arguments: [key, Int.random(in: 1...tags, using: &random)])
      }
      try database.execute(sql: "COMMIT")
    }
    try queue.close()
    guard
      let bundle = ModelBundle(
        name: "Recovery", versions: [ModelVersion(name: "Recovery", model: model, isCurrent: true)])
    else { throw FileError(.notFound, operation: "make the benchmark's model", path: nil) }
    return bundle
  }

  private static func makePlain(_ path: FilePath, records: Int) throws -> SchemaScript {
    let script = """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, score REAL, picture BLOB, body TEXT);
      CREATE TABLE people (name TEXT, mail TEXT UNIQUE, age INTEGER);
      CREATE TABLE words (note INTEGER REFERENCES notes(id), place INTEGER, word TEXT);
      CREATE INDEX words_by_note ON words (note, place);
      """
    var random = SeededGenerator(seed: 2)
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: script + "BEGIN;")
      let note = try database.makeStatement(sql: "INSERT INTO notes VALUES (?, ?, ?, ?, ?)")
      let person = try database.makeStatement(sql: "INSERT INTO people VALUES (?, ?, ?)")
      let word = try database.makeStatement(sql: "INSERT INTO words VALUES (?, ?, ?)")
      for key in 1...max(10, records * 3 / 10) {
        let length = key % 20 == 0 ? Int.random(in: 700...4000, using: &random) : Int.random(in: 5...60, using: &random)
        try note.execute(arguments: [
          key, "\(text(&random, 3)) \(key)", key % 3 == 0 ? nil : Double(key) / 7,
          key % 5 == 0 ? blob(&random, Int.random(in: 1...200, using: &random)) : nil, text(&random, length),
        ])
        try person.execute(arguments: [text(&random, 2), "person\(key)@example.org", key % 97])
        for place in 0..<1 { try word.execute(arguments: [key, place, text(&random, 1)]) }
      }
      try database.execute(sql: "COMMIT")
    }
    try queue.close()
    return try SchemaScript(script)
  }

  private static let model = ManagedObjectModel(entities: [
    Entity(
      name: "Article",
      properties: [
        attribute("body", .string), attribute("created", .date), attribute("flags", .integer16),
        attribute("score", .double), attribute("title", .string), attribute("uuid", .uuid),
        relationship("author", "Author", "articles", 1), relationship("tags", "Tag", "articles", 0),
      ]),
    Entity(name: "Author", properties: [attribute("name", .string), relationship("articles", "Article", "author", 0)]),
    Entity(name: "Tag", properties: [attribute("name", .string), relationship("articles", "Article", "tags", 0)]),
  ])

  private static func attribute(_ name: String, _ type: AttributeType) -> Property {
    .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type))
  }

  private static func relationship(_ name: String, _ entity: String, _ inverse: String, _ maximum: Int) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: entity, inverseName: inverse,
        maximumCount: maximum))
  }
}
