import GRDB
import LazaretTesting
import PersistentStore
import TestSupport
import Testing

/// Comparisons find what was changed, and nothing else.
struct StoreComparisonTests {
  /// Two stores with the same records, the second one changed by a statement.
  private func compare(
    _ statement: String, options: StoreComparison.Options = .init()
  ) throws -> StoreComparison {
    let folder = try TemporaryFolder()
    for name in ["One", "Two"] {
      try FileSystem().makeDirectory(folder.appending(name))
      try StoreGenerator(Fixture.everything, options: .init(.typical, seed: 5, records: 12))
        .write(to: folder.appending("\(name)/Store.sqlite"))
    }
    let first = try PersistentStore(opening: folder.appending("One/Store.sqlite"), model: Fixture.everything)
    let second = try PersistentStore(opening: folder.appending("Two/Store.sqlite"), model: Fixture.everything)
    try second.write { try $0.execute(sql: statement) }
    let comparison = try StoreComparison(first, second, options: options)
    try first.close()
    try second.close()
    return comparison
  }

  @Test func equalStoresAreEqual() throws {
    let comparison = try compare("SELECT 1")
    #expect(comparison.isEqual, "\(comparison.differences)")
    #expect(comparison.comparedRecords >= 60)
    #expect(comparison.unmatchedEntities.isEmpty && comparison.unmatchedProperties.isEmpty)
  }

  @Test func aChangedValueIsFound() throws {
    let comparison = try compare("UPDATE ZPERSON SET ZNAME = 'secret' WHERE Z_PK = 3")
    #expect(comparison.differences.map(\.description) == ["value Person 3 name"])
    var options = StoreComparison.Options()
    options.includesValues = true
    let told = try compare("UPDATE ZPERSON SET ZNAME = 'secret' WHERE Z_PK = 3", options: options)
    #expect(told.differences.first?.second == "string(\"secret\")")
    options.ignoring = ["Person.name"]
    #expect(try compare("UPDATE ZPERSON SET ZNAME = 'secret' WHERE Z_PK = 3", options: options).isEqual)
  }

  @Test func missingAndExtraRecordsAreFound() throws {
    let missing = try compare("DELETE FROM ZPORT WHERE Z_PK = 2")
    #expect(missing.differences.contains(StoreDifference(.missingRecord, entity: "Port", primaryKey: 2)))
    let extra = try compare(
      "INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT 900, Z_ENT, 1, 'x' FROM ZPORT LIMIT 1")
    #expect(extra.differences == [StoreDifference(.extraRecord, entity: "Port", primaryKey: 900)])
  }

  @Test func cutRelationshipsAreFound() throws {
    let toOne = try compare(
      "UPDATE ZPERSON SET ZSHIP = NULL, Z_FOK_SHIP = NULL WHERE Z_PK = (SELECT min(Z_PK) FROM ZPERSON WHERE ZSHIP > 0)")
    // The relationship, its inverse, and the number of the inverse's records.
    #expect(
      Set(toOne.differences.map { "\($0.kind.rawValue) \($0.propertyName ?? "")" })
        == ["missing-destination ship", "missing-destination crew", "value crewCount"])
    let join = try compare("DELETE FROM Z_2PORTS WHERE rowid = (SELECT min(rowid) FROM Z_2PORTS)")
    #expect(
      Set(join.differences.map { "\($0.kind.rawValue) \($0.propertyName ?? "")" })
        == ["missing-destination ports", "missing-destination ships"])
  }

  @Test func anotherOrderIsFound() throws {
    let comparison = try compare("UPDATE ZPERSON SET Z_FOK_SHIP = -Z_FOK_SHIP")
    #expect(!comparison.isEqual)
    #expect(comparison.differences.allSatisfy { $0.kind == .order && $0.propertyName == "crew" })
  }

  @Test func theLimitKeepsTheCount() throws {
    var options = StoreComparison.Options()
    options.limit = 2
    let comparison = try compare("UPDATE ZPERSON SET ZNAME = ZNAME || 'x'", options: options)
    #expect(comparison.differences.count == 2)
    #expect(comparison.differenceCount == 12 || comparison.differenceCount > 2)
  }

  @Test func storesWithoutModelsAreRefused() throws {
    let folder = try TemporaryFolder()
    let made = try StoreGenerator(Fixture.everything).write(to: folder.appending("Store.sqlite"))
    let store = try PersistentStore(opening: made.path)
    defer { try? store.close() }
    #expect(throws: PersistentStoreError.self) { try StoreComparison(store, store) }
  }

  @Test func oneStoreIsOpenAtTwoVersions() throws {
    let old = model(
      entity("Car", attribute("maker"), attribute("doors", .integer16), toOne("owner", "Person", inverse: "cars")),
      entity("Person", attribute("name"), toMany("cars", "Car", inverse: "owner")))
    let new = model(
      entity(
        "Auto", attribute("brand", id: "maker"), attribute("doors", .integer64), attribute("color"),
        toOne("owner", "Person", inverse: "cars"), id: "Car"),
      entity("Person", attribute("name"), toMany("cars", "Auto", inverse: "owner")))
    let bundle = try #require(
      ModelBundle(
        name: "Garage", versions: [Fixture.version("V1", old), Fixture.version("V2", new, current: true)]))
    let folder = try TemporaryFolder()
    let made = try StoreGenerator(old, options: .init(.edge, journal: .log)).write(to: folder.appending("Store.sqlite"))
    let before = try FolderContents(of: folder.path)
    let pair = try SideBySide(made.path, bundle: bundle, from: "V1")
    #expect(try pair.before.recordCount(of: "Car") == 20)
    #expect(try pair.after.recordCount(of: "Auto") == 20)
    let comparison = try pair.comparison()
    #expect(comparison.isEqual, "\(comparison.differences)")
    #expect(comparison.comparedRecords == 40)
    #expect(comparison.unmatchedProperties == ["Auto.color"])
    #expect(try pair.migrationComparison()?.differenceCount == 0)
    #expect(try FolderContents(of: folder.path) == before)
    // A break in the later store shows in both comparisons.
    try pair.after.write { try $0.execute(sql: "UPDATE ZAUTO SET ZBRAND = 'x', ZOWNER = NULL WHERE Z_PK = 1") }
    #expect(try pair.comparison().differences.contains { $0.propertyName == "brand" && $0.primaryKey == 1 })
    #expect(try pair.migrationComparison()?.differences.contains { $0.propertyName == "brand" } == true)
    #expect(throws: PersistentStoreError.self) { try SideBySide(made.path, bundle: bundle, from: "V7") }
  }
}
