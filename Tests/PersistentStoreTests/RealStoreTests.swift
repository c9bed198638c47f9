import GRDB
import ManagedObjectModel
import PersistentStore
import SystemPackage
import Testing

/// Stores that Core Data wrote, against what this module would have written.
@Suite(.enabled(if: RealStores.isThere, "skipped: the real stores (../shared/real or LAZARET_REAL) are not there"))
struct RealStoreTests {
  /// A store opened as a private copy, with its model and the schema that it has.
  private struct Subject {
    let scratch: ScratchFolder
    let store: PersistentStore
    let layout: StoreLayout
    let metadata: StoreMetadata
    let schema: SQLSchema
  }

  private func open(_ name: String) throws -> Subject {
    let scratch = try ScratchFolder()
    let path = try RealStores.copy(name, into: scratch)
    let bare = try PersistentStore(opening: path)
    let model = try #require(try RealStores.model(of: bare), "no model for \(name)")
    let metadata = try #require(try bare.metadata())
    try bare.close()
    #expect(model.versionHashes() == metadata.versionHashes)
    let store = try PersistentStore(opening: path, model: model)
    return Subject(
      scratch: scratch, store: store, layout: try #require(try store.layout()), metadata: metadata,
      schema: try store.read { try SQLSchema($0) })
  }

  /// A Photos library: its model tells triggers and R-trees in user information that no public document describes.
  private static func isPhotos(_ name: String) -> Bool { name.contains("Photos-") }

  @Test(arguments: RealStores.names)
  func hasTheTablesItsModelGives(name: String) throws {
    let subject = try open(name)
    let expected = try SQLSchema(subject.layout)
    let isPhotos = Self.isPhotos(name)
    // Stores from before fw 637 have no cache table; persistent history is extra.
    let differences = expected.differences(to: subject.schema).filter { difference in
      switch difference {
      case .missingTable("Z_MODELCACHE"): return (subject.metadata.frameworkVersion ?? 0) >= 637
      case .unexpectedTable("Z_RT_GenericAsset_boundedByRect") where isPhotos: return false
      case .unexpectedTable(let table): return !["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(table)
      // The app of a Photos library has made one of its own.
      case .unexpectedIndex("ZINTERNALRESOURCE", _, true): return !isPhotos
      case .missingIndex(_, _, let isUnique), .unexpectedIndex(_, _, let isUnique): return isUnique
      default: return true
      }
    }
    #expect(differences.isEmpty, "\(differences)")
    for table in subject.layout.tables {
      let real = subject.schema.tables[table.name]?.columns.map(\.name) ?? []
      if real != table.columns.map(\.name) {
        print("RealStoreTests: \(name): the columns of \(table.name) are in another order: \(real)")
      }
      // iPhone OS 3 and Mac OS X 10.6 (fw 241) put columns in another order.
      let isFresh =
        subject.schema.tables[table.name]?.statement.hasSuffix(" )") == true
        && (subject.metadata.frameworkVersion ?? 0) >= 320
      if isFresh {
        #expect(real == table.columns.map(\.name), "the columns of a fresh table are in order")
        #expect(subject.schema.tables[table.name]?.statement == table.statement)
      }
    }
    for table in subject.layout.joinTables {
      #expect(subject.schema.tables[table.name]?.statement == table.statement)
    }
    try subject.store.close()
  }

  @Test(arguments: RealStores.names)
  func hasTheNumbersAndTriggersItsModelGives(name: String) throws {
    let subject = try open(name)
    let rows = try subject.store.read { (database) throws in
      try Row.fetchAll(
        database, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY Z_ENT")
    }
    #expect(rows.map { $0[0] as Int } == subject.layout.entities.map(\.number))
    #expect(rows.map { $0[2] as Int } == subject.layout.entities.map(\.parentNumber))
    // Core Data keeps the old name of an entity that it renamed in place.
    let renamed = zip(rows, subject.layout.entities).filter { ($0[1] as String) != $1.name }
    #expect(renamed.allSatisfy { ($0.0[1] as String) == "ExpensiveSportCar" && $0.1.name == "LuxuryCar" })

    let isOlder = (subject.metadata.frameworkVersion ?? 0) < 1344
    let real = subject.schema.triggers.filter { !$0.key.hasPrefix("Z_TRANSACTION") }.values.map {
      plain($0, withoutRanges: isOlder)
    }
    let ours = subject.layout.triggers.map { plain($0.statement, withoutRanges: isOlder) }
    if Self.isPhotos(name) {
      print("RealStoreTests: \(name): \(real.count) triggers of the model's user information are not compared")
    } else {
      #expect(Set(ours) == Set(real))
    }
    #expect(subject.layout.notes.isEmpty)
    try subject.store.close()
  }

  /// The text with single spaces; for stores of fw 1044 without the ranges of `Z_ENT` that newer systems leave out.
  private func plain(_ statement: String, withoutRanges: Bool) -> String {
    var text = statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    guard withoutRanges else { return text }
    for range in [" WHEN 1 <= NEW.Z_ENT AND NEW.Z_ENT <= 2", " AND 1 <= Z_ENT AND Z_ENT <= 2"] {
      text = text.split(separator: range).joined()
    }
    return text
  }

  @Test(arguments: RealStores.names)
  func hasTheIndexesItsModelGives(name: String) throws {
    let subject = try open(name)
    let framework = subject.metadata.frameworkVersion ?? 0
    // Older systems, and stores that they migrated, name indexes otherwise (format section 3.8).
    try #require(framework > 0)
    let isModern = framework >= 847
    let real = subject.schema.indexes.values.filter {
      !$0.name.hasPrefix("sqlite_") && !["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains($0.tableName)
    }
    let ours = Set(subject.layout.indexes.map(\.name))
    let missing = ours.subtracting(real.map(\.name))
    let extra = Set(real.map(\.name)).subtracting(ours)
    if Self.isPhotos(name) {
      // Migrated from system to system: indexes of old numbers stayed, and the app has made some of its own.
      #expect(missing.isEmpty, "\(missing.sorted())")
      #expect(
        extra.allSatisfy { $0.hasPrefix("RADAR_") || $0.contains("_Z_51") || $0.contains("_UNIQUE_") },
        "\(extra.sorted())")
    } else if isModern {
      #expect(missing.isEmpty, "\(missing.sorted())")
      #expect(extra.isEmpty, "\(extra.sorted())")
    } else {
      print("RealStoreTests: \(name) (fw \(framework)): \(missing.sorted()) are called \(extra.sorted())")
    }
    try subject.store.close()
  }

  @Test(arguments: RealStores.names)
  func createsAStoreOfTheSameShape(name: String) throws {
    let subject = try open(name)
    let bytes = try StoreCreation(
      model: subject.layout.model, uuid: testUUID, modelCache: try subject.layout.model.modelCache()
    ).bytes()
    let path = try subject.scratch.write(bytes, as: "Created.sqlite")
    let created = try PersistentStore(opening: path, model: subject.layout.model)
    try created.read { (database) throws in
      #expect(try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"])
      #expect(try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal")
      #expect(try Int.fetchOne(database, sql: "PRAGMA auto_vacuum") == 2)
    }
    #expect(try created.metadata()?.versionHashes == subject.metadata.versionHashes)
    let cache = try #require(try created.modelCache())
    #expect(try ManagedObjectModel(modelCache: cache).versionHashes() == subject.metadata.versionHashes)
    try created.close()
    try subject.store.close()
  }

  /// Every record is read, and every value is of its attribute's type.
  @Test(arguments: RealStores.names)
  func readsEveryRecord(name: String) throws {
    let subject = try open(name)
    for table in subject.layout.tables {
      var count = 0
      var unexpected: Set<String> = []
      try subject.store.forEachRecord(of: table.rootEntityName) { record in
        count += 1
        for (property, value) in record.values {
          if case .unexpected = value { unexpected.insert("\(record.entityName).\(property)") }
        }
      }
      #expect(unexpected.isEmpty)
      let rows = try subject.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \"\(table.name)\"") }
      #expect(count == rows)
      #expect(try subject.store.recordCount(of: table.rootEntityName) == rows)
    }
    try subject.store.close()
  }
}
