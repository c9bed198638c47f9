import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import SQLiteFormat
import Salvage
import StoreFiles
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

  /// A store with three records, and the root pages of its tables.
  private func store() throws -> (bytes: [UInt8], roots: [String: UInt32]) {
    let model = try ManagedObjectModel(source: Array(Self.source.utf8))
    let folder = try TemporaryFolder()
    let path = try folder.write(
      StoreCreation(
        model: model, uuid: "6D7E5C0A-9E1B-4A55-8C11-0123456789AB", modelCache: try model.modelCache()
      ).bytes(), to: "Made.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { db in
      for index in 1...3 { try db.execute(sql: "INSERT INTO ZMARK VALUES (?, 1, 2, ?)", arguments: [index, index]) }
      try db.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_ENT = 1")
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

  @Test("Of a list of entities that is gone, no number is made of the pages that are missing")
  func noNumber() throws {
    let store = try store()
    let size = Int(store.bytes[16]) << 8 | Int(store.bytes[17])
    let first = try #require(["Z_PRIMARYKEY", "Z_METADATA"].compactMap { store.roots[$0] }.min())
    let report = try salvage(Array(store.bytes[..<((Int(first) - 1) * size)]))
    for table in report.ownTables {
      #expect(table.lost <= 1, "\(table.table): \(table.lost)")
    }
    #expect(!report.isComplete)
  }
}
