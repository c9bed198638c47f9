import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import Testing

@Suite struct PersistentStoreTests {
  private let model = ManagedObjectModel(
    entities: [
      Entity(
        name: "Car",
        properties: [
          attribute("name", .string), attribute("price", .decimal), attribute("built", .date), attribute("id", .uuid),
          attribute("photo", .binary, external: true), attribute("raw", .binary), attribute("fast", .boolean),
          attribute("site", .uri), attribute("power", .double),
          attribute("place", .composite, elements: [leaf("x", .float)]),
          toOne("owner", "Person", inverse: "cars"), toOne("garage", "Garage"),
          toMany("tags", "Tag", inverse: "cars"),
        ]),
      Entity(name: "SportCar", parentName: "Car", properties: [attribute("turbo", .integer32)]),
      Entity(name: "Van", parentName: "Car", properties: [attribute("seats", .integer16)]),
      Entity(name: "Garage"),
      Entity(
        name: "Person",
        properties: [
          toMany("cars", "Car", inverse: "owner", ordered: true),
          attribute("carCount", .integer16, derived: "cars.@count"),
        ]),
      Entity(name: "Child", parentName: "Person"),
      Entity(name: "Tag", properties: [toMany("cars", "Car", inverse: "tags")]),
    ])

  private func makeStore(in folder: ScratchFolder, named name: String = "Store.sqlite") throws -> FilePath {
    try folder.write(StoreCreation(model: model, uuid: testUUID, modelCache: [7]).bytes(), as: name)
  }

  private func fill(_ store: PersistentStore) throws {
    try store.write { (database) throws in
      try database.execute(
        sql: """
          INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (1, 6, 1), (2, 5, 1);
          INSERT INTO ZGARAGE (Z_PK, Z_ENT, Z_OPT) VALUES (9, 4, 1);
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPRICE, ZBUILT, ZID, ZPHOTO, ZRAW, ZFAST, ZSITE, ZPOWER, ZPLACE_X,
            ZOWNER, Z5_OWNER, Z_FOK_OWNER, ZGARAGE, ZTURBO)
            VALUES (1, 1, 1, 'Fiat', 10.11, 700000000.5, x'000102030405060708090a0b0c0d0e0f', x'01AABB', x'01AABB', 1,
            'https://a.b', 3, 0.5, 1, 6, 2048, 9, NULL),
            (2, 2, 1, 'Audi', 10, 5, x'00', CAST(x'02' || '6F9619FF-8B86-D011-B42D-00C04FC964FF' || x'00' AS BLOB), NULL, 2,
            NULL, 'x', NULL, 1, 6, 1024, NULL, 4),
            (3, 3, 1, x'FF', '12.50', NULL, NULL, x'03', NULL, 0, NULL, NULL, NULL, 2, 5, NULL, NULL, NULL);
          INSERT INTO Z_1TAGS (Z_1CARS, Z_7TAGS) VALUES (1, 4), (1, 3), (2, 3)
          """)
    }
  }

  // MARK: Records

  @Test func readsTypedRecords() throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder), model: model)
    #expect(store.kind == .coreData)
    try fill(store)
    let cars = try store.records(of: "Car")
    #expect(cars.map(\.entityName) == ["Car", "SportCar", "Van"])
    #expect(cars.map(\.primaryKey) == [1, 2, 3])
    let fiat = cars[0]
    #expect(fiat.values["name"] == .string("Fiat"))
    #expect(fiat.values["price"] == .decimal("10.11"))
    #expect(fiat.values["built"] == .date(700_000_000.5))
    #expect(fiat.values["id"] == .uuid(Array(0..<16)))
    #expect(fiat.values["photo"] == .data([0xAA, 0xBB]))
    #expect(fiat.values["raw"] == .data([1, 0xAA, 0xBB]))
    #expect(fiat.values["fast"] == .boolean(true))
    #expect(fiat.values["site"] == .uri("https://a.b"))
    #expect(fiat.values["power"] == .real(3))
    #expect(fiat.values["place.x"] == .real(0.5))
    #expect(fiat.values["turbo"] == nil, "a property of a sub-entity")
    #expect(fiat.toOne["owner"] == RecordReference(entityName: "Child", primaryKey: 1))
    #expect(fiat.toOne["garage"] == RecordReference(entityName: "Garage", primaryKey: 9))
    let audi = cars[1]
    #expect(audi.values["price"] == .decimal("10"))
    #expect(audi.values["id"] == .unexpected(.blob([0])))
    #expect(audi.values["photo"] == .externalData(fileName: "6F9619FF-8B86-D011-B42D-00C04FC964FF"))
    #expect(audi.values["fast"] == .unexpected(.integer(2)))
    #expect(audi.values["power"] == .unexpected(.text("x")))
    #expect(audi.values["turbo"] == .integer(4))
    #expect(audi.values["seats"] == nil)
    #expect(audi.toOne["garage"] == nil)
    #expect(cars[2].values["name"] == .unexpected(.blob([0xFF])))
    #expect(cars[2].values["photo"] == .unexpected(.blob([3])))
    #expect(cars[2].values["price"] == .decimal("12.5"), "SQLite's NUMERIC affinity keeps a number")
    #expect(try store.records(of: "SportCar").map(\.primaryKey) == [2])
    #expect(try store.recordCount(of: "Car") == 3)
    #expect(try store.recordCount(of: "Van") == 1)
    #expect(try store.destinationKeys(of: "cars", entity: "Person", primaryKey: 1) == [2, 1], "by Z_FOK_OWNER")
    #expect(try store.destinationKeys(of: "tags", entity: "SportCar", primaryKey: 2) == [3])
    #expect(try store.destinationKeys(of: "cars", entity: "Tag", primaryKey: 3) == [1, 2])
    #expect(try store.records(of: "Person").map { $0.values["carCount"] } == [.integer(2), .integer(1)])
    try store.close()
  }

  @Test func streamsByPrimaryKey() throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder), model: model)
    try store.write { (database) throws in
      let insert = try database.makeStatement(sql: "INSERT INTO ZGARAGE (Z_PK, Z_ENT) VALUES (?, 4)")
      for key in stride(from: 1, to: 2001, by: 2) { try insert.execute(arguments: [key]) }
      try insert.execute(arguments: [Int64.max])
      try insert.execute(arguments: [-5])
    }
    var keys: [Int64] = []
    try store.forEachRecord(of: "Garage", batchSize: 7) { keys.append($0.primaryKey) }
    #expect(keys.count == 1002)
    #expect(keys == keys.sorted())
    var few = 0
    #expect(throws: CancellationError.self) {
      try store.forEachRecord(of: "Garage") { _ in
        few += 1
        if few == 3 { throw CancellationError() }
      }
    }
    #expect(few == 3)
    try store.close()
  }

  @Test func readsMetadataAndCache() throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder))
    #expect(try store.metadata()?.versionHashes == model.versionHashes())
    #expect(try store.modelCache() == [7])
    #expect(try store.layout() == nil)
    let error = #expect(throws: PersistentStoreError.self) { try store.records(of: "Car") }
    #expect(error?.kind == .noModel)
    try store.write { try $0.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = x'00'") }
    #expect(throws: PersistentStoreError.self) { try store.metadata() }
    try store.write { try $0.execute(sql: "DELETE FROM Z_METADATA; DROP TABLE Z_MODELCACHE") }
    #expect(throws: PersistentStoreError.self) { try store.metadata() }
    #expect(try store.modelCache() == nil)
    try store.close()
  }

  @Test func opensPlainDatabases() throws {
    let folder = try ScratchFolder()
    let path = try folder.write(StoreCreation.bytes(of: SchemaScript("CREATE TABLE a (b)")))
    let store = try PersistentStore(opening: path)
    #expect(store.kind == .sqlite)
    #expect(try store.metadata() == nil)
    #expect(try store.modelCache() == nil)
    try store.close()
  }

  // MARK: Names and errors

  @Test(arguments: [
    "a?mode=memory&b.sqlite", "file:x.sqlite", "100%.sqlite", "with space 'n' \"q\".sqlite", "é😀.sqlite",
    "new\nline#.sqlite",
  ])
  func opensOddNames(name: String) throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder, named: name), model: model)
    #expect(try store.recordCount(of: "Car") == 0)
    try store.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path.string) == [name])
  }

  @Test func opensNamesThatAreNotUTF8() throws {
    let folder = try ScratchFolder()
    let plain = try makeStore(in: folder)
    let bytes: [CInterop.PlatformChar] = [0x41, CInterop.PlatformChar(bitPattern: 0xFF), 0x42, 0]
    let component = FilePath(platformString: bytes)
    let odd = folder.path.appending(component.components)
    let descriptor = try FileDescriptor.open(
      odd, .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
    try descriptor.closeAfter {
      _ = try descriptor.writeAll(Data(contentsOf: URL(fileURLWithPath: plain.string)))
    }
    let store = try PersistentStore(opening: odd, model: model)
    #expect(try store.recordCount(of: "Car") == 0)
    try store.close()
  }

  @Test func neverCreatesAFile() throws {
    let folder = try ScratchFolder()
    let error = #expect(throws: PersistentStoreError.self) {
      try PersistentStore(opening: folder.path.appending("missing.sqlite"))
    }
    #expect(error?.kind == .cannotOpen)
    #expect(error?.isEnvironmental == true)
    #expect(error?.resultCode == 14)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path.string).isEmpty)
  }

  @Test func tellsDamageFromEnvironmentalErrors() throws {
    let folder = try ScratchFolder()
    let text = try folder.write(Array(String(repeating: "<html>", count: 500).utf8), as: "text.sqlite")
    let foreign = #expect(throws: PersistentStoreError.self) { try PersistentStore(opening: text) }
    #expect(foreign?.kind == .notADatabase)
    #expect(foreign?.isEnvironmental == false)

    var bytes = try StoreCreation(model: model, uuid: testUUID, modelCache: nil).bytes()
    for index in 100..<4096 { bytes[index] = 0xA5 }
    let torn = try folder.write(bytes, as: "torn.sqlite")
    let damaged = #expect(throws: PersistentStoreError.self) { try PersistentStore(opening: torn) }
    #expect(damaged?.kind == .damaged)
    #expect(damaged?.isEnvironmental == false)

    let path = try makeStore(in: folder)
    let first = try PersistentStore(opening: path, model: model)
    let second = try PersistentStore(
      opening: path, model: model, options: .init(busyTimeout: .milliseconds(20)))
    try first.write { (database) throws in
      try database.execute(sql: "INSERT INTO ZGARAGE (Z_ENT) VALUES (4)")
      let error = #expect(throws: PersistentStoreError.self) {
        try second.write { try $0.execute(sql: "INSERT INTO ZGARAGE (Z_ENT) VALUES (4)") }
      }
      #expect(error?.kind == .locked)
      #expect(error?.isEnvironmental == true)
    }
    let readOnly = try PersistentStore(opening: path, model: model, options: .init(isReadOnly: true))
    let error = #expect(throws: PersistentStoreError.self) {
      try readOnly.write { try $0.execute(sql: "INSERT INTO ZGARAGE (Z_ENT) VALUES (4)") }
    }
    #expect(error?.kind == .readOnly)
    #expect(try readOnly.recordCount(of: "Garage") == 1)
    for store in [first, second, readOnly] { try store.close() }
  }

  @Test func keepsValuesOutOfErrors() throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder), model: model)
    let error = #expect(throws: PersistentStoreError.self) {
      try store.read {
        try Row.fetchAll($0, sql: "SELECT * FROM ZCAR WHERE ZNAME = ? AND 'secret'word", arguments: ["secret"])
      }
    }
    #expect(error?.description.contains("secret") == false)
    #expect(error?.kind == .database)
    #expect(error?.path == store.path)
    try store.close()
  }

  @Test func closesOnceAndForAll() throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder), model: model)
    try store.close()
    try store.close()
    let error = #expect(throws: PersistentStoreError.self) { try store.read { try $0.execute(sql: "SELECT 1") } }
    #expect(error?.kind == .closed)
    #expect(throws: PersistentStoreError.self) { try store.write { _ in } }
  }

  @Test func undoesAWriteThatThrows() throws {
    let folder = try ScratchFolder()
    let store = try PersistentStore(opening: makeStore(in: folder), model: model)
    #expect(throws: CancellationError.self) {
      try store.write { (database) throws in
        try database.execute(sql: "INSERT INTO ZGARAGE (Z_ENT) VALUES (4)")
        throw CancellationError()
      }
    }
    #expect(try store.recordCount(of: "Garage") == 0)
    #expect(throws: PersistentStoreError.self) { try store.records(of: "Unknown") }
    #expect(throws: PersistentStoreError.self) { try store.destinationKeys(of: "owner", entity: "Car", primaryKey: 1) }
    try store.close()
  }
}
