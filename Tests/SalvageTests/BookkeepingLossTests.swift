import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Core Data's own tables, damaged")
struct BookkeepingLossTests {
  private static let source = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="1">
      <entity name="Mark" syncable="YES">
        <attribute name="number" optional="YES" attributeType="Integer 32"/>
      </entity>
      <entity name="None" syncable="YES">
        <attribute name="number" optional="YES" attributeType="Integer 32"/>
      </entity>
    </model>
    """

  /// A store with some records, and the root pages of its tables.
  private func store(records: Int = 3) throws -> (bytes: [UInt8], roots: [String: UInt32]) {
    let model = try ManagedObjectModel(source: Array(Self.source.utf8))
    let folder = try TemporaryFolder()
    let path = try folder.write(
      StoreCreation(
        model: model, uuid: "6D7E5C0A-9E1B-4A55-8C11-0123456789AB", modelCache: try model.modelCache()
      ).bytes(), to: "Made.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      for index in 1...records {
        try db.execute(sql: "INSERT INTO ZMARK VALUES (?, 1, 2, ?)", arguments: [index, index])
      }
      try db.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = 1", arguments: [records])
    }
    try queue.close()
    let bytes = try FileSystem().contents(of: path, limit: 1 << 24)
    let schema = try SQLiteFormat.Database(main: MemoryBytes(bytes)).schema()
    return (bytes, Dictionary(uniqueKeysWithValues: schema.tables.map { ($0.name, $0.rootPage) }))
  }

  private func salvage(_ bytes: [UInt8]) throws -> SalvageReport {
    let folder = try TemporaryFolder()
    let path = try folder.write(bytes, to: "Store.sqlite")
    return try Salvager().salvageRaw(path, to: folder.appending("Out.sqlite"), model: nil, options: .init())
  }

  /// The bytes with a page of one table over that of another.
  private func copying(
    _ from: String, over table: String, _ store: (bytes: [UInt8], roots: [String: UInt32])
  ) throws -> [UInt8] {
    let size = Int(store.bytes[16]) << 8 | Int(store.bytes[17])
    let (source, place) = (Int(try #require(store.roots[from])), Int(try #require(store.roots[table])))
    var bytes = store.bytes
    bytes.replaceSubrange((place - 1) * size..<place * size, with: bytes[(source - 1) * size..<source * size])
    return bytes
  }

  @Test("Metadata that are gone are lost, although an empty table would be as empty")
  func metadata() throws {
    let store = try store()
    #expect(try salvage(store.bytes).isComplete)
    let report = try salvage(copying("ZNONE", over: "Z_METADATA", store))
    let metadata = try #require(report.ownTables.first { $0.table == "Z_METADATA" })
    #expect(metadata.recovered == 0 && metadata.lost == 1)
    #expect(!report.isComplete)
  }

  @Test("Records are no list of entities, whatever a column may hold")
  func entities() throws {
    let report = try salvage(copying("ZMARK", over: "Z_PRIMARYKEY", try store()))
    let list = try #require(report.ownTables.first { $0.table == "Z_PRIMARYKEY" })
    #expect(list.recovered == 0 && list.hasLosses)
    #expect(!report.isComplete)
    #expect(report.entities.first { $0.table == "ZMARK" }?.recovered == 3)
  }

  @Test("Where no model is left, the list of entities tells what a table lost at its end")
  func highestKey() throws {
    // More than half of a page of them: fewer at the end are taken for deleted ones.
    let store = try store(records: 2100)
    let size = Int(store.bytes[16]) << 8 | Int(store.bytes[17])
    let marks = try #require(store.roots["ZMARK"])
    // The root of the table, what tells the model, and the last page of the table, which is the last one of the file.
    let lost =
      [marks, UInt32(store.bytes.count / size)] + ["Z_METADATA", "Z_MODELCACHE"].compactMap { store.roots[$0] }
    var bytes = store.bytes
    for page in lost {
      bytes.replaceSubrange((Int(page) - 1) * size..<Int(page) * size, with: repeatElement(0, count: size))
    }
    let entity = try #require(try salvage(bytes).entities.first { $0.table == "ZMARK" })
    let missing = 2100 - entity.recovered
    #expect(missing > 0 && entity.recovered > 0, "the store is not what this test is about: \(entity.recovered)")
    #expect(entity.lost == missing, "\(entity.lost) of \(missing), \(entity.lostBasis)")
  }

  @Test("Of a list of entities that is gone, no number is made of the pages that are missing")
  func noNumber() throws {
    let store = try store(records: 2000)
    let size = Int(store.bytes[16]) << 8 | Int(store.bytes[17])
    let books = try ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].map { Int(try #require(store.roots[$0])) }
    // The list of tables behind the header is gone, and all pages behind those of the books.
    var bytes = Array(store.bytes[..<(try #require(books.max()) * size)])
    bytes.replaceSubrange(100..<size, with: repeatElement(0, count: size - 100))
    let report = try salvage(bytes)
    #expect(report.ownTables.contains { $0.table == "Z_PRIMARYKEY" && $0.recovered == 2 })
    for table in report.ownTables {
      #expect(table.lost <= 1, "\(table.table): \(table.lost)")
    }
    #expect(!report.isComplete)
  }

  @Test("Metadata and a cached model that cannot be read are doubtful, and a list of entities without any is not whole")
  func damagedBooks() throws {
    let store = try store()
    let size = Int(store.bytes[16]) << 8 | Int(store.bytes[17])
    #expect(try salvage(store.bytes).isComplete)
    for table in ["Z_METADATA", "Z_MODELCACHE"] {
      let start = (Int(try #require(store.roots[table])) - 1) * size
      var bytes = store.bytes
      // The end of the page has the value of its only row.
      for index in 0..<200 { bytes[start + size - 400 + index] = UInt8(index) ^ 0x5A }
      let report = try salvage(bytes)
      #expect(!report.isComplete, "\(table)")
      #expect(report.entities.first { $0.table == table }?.doubtful == 1, "\(table)")
    }
    // An empty leaf over the list of entities.
    var bytes = store.bytes
    let start = (Int(try #require(store.roots["Z_PRIMARYKEY"])) - 1) * size
    let empty = (Int(try #require(store.roots["ZNONE"])) - 1) * size
    bytes.replaceSubrange(start..<start + size, with: store.bytes[empty..<empty + size])
    let report = try salvage(bytes)
    #expect(!report.isComplete && report.recovered == 3)
  }

  @Test(
    "A damaged word of the statement of Core Data's own table changes no column of it",
    arguments: ["INTEGER", "PRIMARY", "Z_ENT"])
  func damagedStatement(word: String) throws {
    let store = try store()
    let statement = Array("CREATE TABLE Z_PRIMARYKEY".utf8)
    let place = try #require(store.bytes.indices.first { store.bytes[$0...].starts(with: statement) })
    let needle = Array(word.utf8)
    let at = try #require((place..<place + 120).first { store.bytes[$0...].starts(with: needle) })
    var bytes = store.bytes
    for index in needle.indices { bytes[at + index] = UInt8(ascii: "q") }
    let folder = try TemporaryFolder()
    let path = try folder.write(bytes, to: "Store.sqlite")
    let output = folder.appending("Out.sqlite")
    _ = try Salvager().salvageRaw(path, to: output, model: nil, options: .init())
    let queue = try DatabaseQueue(path: output.string)
    #expect(try queue.read { try Int.fetchAll($0, sql: "SELECT Z_ENT FROM Z_PRIMARYKEY ORDER BY 1") } == [1, 2])
    try queue.close()
  }
}
