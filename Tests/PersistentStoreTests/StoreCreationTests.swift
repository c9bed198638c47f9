import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import Testing

@Suite struct StoreCreationTests {
  private let model = ManagedObjectModel(
    entities: [
      Entity(
        name: "Car", properties: [attribute("name", .string), toOne("owner", "Person", inverse: "cars")],
        uniquenessConstraints: [["name"]]),
      Entity(name: "SportCar", parentName: "Car", properties: [attribute("power", .integer32)]),
      Entity(
        name: "Person",
        properties: [
          toMany("cars", "Car", inverse: "owner", ordered: true), toMany("friends", "Person", inverse: "friends"),
          attribute("carCount", .integer16, derived: "cars.@count"),
        ]),
    ], versionIdentifiers: ["1.0"])

  @Test func createsAFileThatSQLiteFindsInOrder() throws {
    let bytes = try StoreCreation(model: model, uuid: testUUID.lowercased(), modelCache: [1, 2, 3]).bytes()
    #expect(bytes.prefix(16).elementsEqual("SQLite format 3\0".utf8))
    #expect(Array(bytes[16..<20]) == [16, 0, 2, 2], "pages of 4,096 bytes, WAL")
    #expect(bytes.count % 4096 == 0)
    let folder = try ScratchFolder()
    let queue = try DatabaseQueue(path: folder.write(bytes).string)
    try queue.read { (database) throws in
      #expect(try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"])
      #expect(try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal")
      #expect(try Int.fetchOne(database, sql: "PRAGMA auto_vacuum") == 2)
      #expect(try String.fetchOne(database, sql: "PRAGMA encoding") == "UTF-8")
      #expect(try Int.fetchOne(database, sql: "PRAGMA freelist_count") == 0)
      let rows = try Row.fetchAll(
        database, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT")
      #expect(
        rows.map { "\($0[0] as Int) \($0[1] as String) \($0[2] as Int) \($0[3] as Int)" }
          == ["1 Car 0 0", "2 SportCar 1 0", "3 Person 0 0"])
      #expect(
        try String.fetchAll(database, sql: "SELECT Z_VERSION || ' ' || Z_UUID FROM Z_METADATA") == ["1 \(testUUID)"])
      #expect(try String.fetchAll(database, sql: "SELECT hex(Z_CONTENT) FROM Z_MODELCACHE") == ["010203"])
      #expect(try String.fetchOne(database, sql: "SELECT typeof(Z_PLIST) FROM Z_METADATA") == "blob")
    }
    try queue.close()
  }

  @Test func givesTheSameBytesForTheSameInput() throws {
    let first = try StoreCreation(model: model, uuid: testUUID, modelCache: nil).bytes()
    for _ in 0..<3 {
      #expect(try StoreCreation(model: model, uuid: testUUID, modelCache: nil).bytes() == first)
    }
    let other = "10000000-0000-0000-0000-000000000000"
    #expect(try StoreCreation(model: model, uuid: other, modelCache: nil).bytes() != first)
  }

  @Test func reportsWhatSQLiteRefuses() {
    let wide = Entity(name: "Wide", properties: (0..<2100).map { attribute("a\($0)", .integer16) })
    #expect(throws: PersistentStoreError.self) {
      try StoreCreation(model: ManagedObjectModel(entities: [wide]), uuid: testUUID, modelCache: nil).bytes()
    }
  }

  @Test func createsFromHostileNames() throws {
    let names = ["a\"b", "a'b", "x); --", "ü", "😀", "tab\t", "new\nline", "%s", "SELECT", "ſ", "ß", "İ"]
    let entities = names.map { name in
      Entity(
        name: name,
        properties: names.map { attribute($0, .string) } + [
          attribute("derived", .string, derived: "now()"), toMany("many", names[0], inverse: "many"),
        ], uniquenessConstraints: [[name]],
        fetchIndexes: [FetchIndex(name: name, elements: [FetchIndexElement(propertyName: name)])])
    }
    let bytes = try StoreCreation(
      model: ManagedObjectModel(entities: entities), uuid: "'\"", modelCache: nil
    ).bytes()
    let folder = try ScratchFolder()
    let queue = try DatabaseQueue(path: folder.write(bytes).string)
    try queue.read { (database) throws in
      #expect(try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"])
    }
    try queue.close()
  }

  // MARK: Metadata

  @Test func writesTheMetadataOfTheModel() throws {
    let metadata = StoreMetadata(model: model, uuid: testUUID.lowercased())
    let back = try StoreMetadata(uuid: testUUID, propertyList: metadata.propertyListBytes())
    #expect(back == metadata)
    #expect(back.uuid == testUUID)
    #expect(back.versionHashes == model.versionHashes())
    #expect(back.versionIdentifiers == ["1.0"])
    #expect(back.frameworkVersion == 1344)
    #expect(back.storeType == "SQLite")
    #expect(back.versionHashesDigest == model.versionHashesDigest())
    #expect(back.versionChecksum == model.versionChecksum())
    #expect(back.entries["_NSAutoVacuumLevel"] == .string("2"))
    #expect(back.entries["NSStoreModelVersionHashesVersion"] == .integer(3))
  }

  @Test func keepsForeignEntriesAndRefusesRubbish() throws {
    var metadata = StoreMetadata(model: model, uuid: testUUID)
    metadata.entries["com.example.key"] = .array([.real(1.5), .data([0, 255]), .date(3)])
    metadata.entries[StoreMetadata.Key.versionHashes] = .dictionary(["Short": .data([1, 2]), "Text": .string("x")])
    let back = try StoreMetadata(uuid: testUUID, propertyList: metadata.propertyListBytes())
    #expect(back.entries["com.example.key"] == .array([.real(1.5), .data([0, 255]), .date(3)]))
    #expect(back.versionHashes.isEmpty)
    #expect(back == metadata)
    for rubbish in [[], [1, 2, 3], Array("bplist00".utf8)] as [[UInt8]] {
      #expect(throws: PersistentStoreError.self) { try StoreMetadata(uuid: "", propertyList: rubbish) }
    }
    #expect(throws: PersistentStoreError.self) {
      try StoreMetadata(uuid: "", propertyList: PropertyList.array([]).binaryBytes())
    }
  }
}
