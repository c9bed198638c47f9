import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Stores whose entities have other numbers than their model would give them")
struct EntityNumberTests {
  private static let numbers = [1: 17, 2: 3, 3: 9, 4: 1, 5: 12]

  private func scene(_ statements: String...) throws -> (scene: RebuildScene, other: FilePath) {
    let scene = try RebuildScene(seed: 41)
    let other = try RealMaterial.copy(scene.store, into: scene.folder, as: "Other.sqlite")
    let queue = try DatabaseQueue(path: other.string)
    try LostSchema.renumber(queue, Self.numbers)
    try queue.writeWithoutTransaction { database in
      for statement in statements { try database.execute(sql: statement) }
    }
    try queue.vacuum()
    try queue.close()
    return (scene, other)
  }

  @Test("The store's list of entities tells")
  func listed() throws {
    let (scene, other) = try scene()
    let result = try scene.rebuild(other)
    #expect(result.differences == [])
    #expect(result.report.entities.first { $0.name == "Ferry" }?.recovered ?? 0 > 0)
  }

  @Test("Without that list, tables and inheritance do")
  func unlisted() throws {
    let (scene, other) = try scene("DELETE FROM Z_PRIMARYKEY")
    let result = try scene.rebuild(other)
    #expect(result.count(.extraRecord) == 0)
    #expect(result.count(.value) == 0)
    #expect(!result.differences.contains { $0.entityName == "Person" && $0.kind == .missingRecord })
    #expect(!result.differences.contains { $0.entityName == "Ferry" && $0.kind == .missingRecord })
  }

  @Test("Rows as found keep their numbers and names")
  func raw() throws {
    let (scene, other) = try scene()
    let out = scene.folder.appending("Raw.sqlite")
    let report = try Salvager().salvageRaw(other, to: out, model: .coreData(scene.bundle))
    #expect(report.entities.allSatisfy { $0.keptApart == 0 })
    try DatabaseQueue(path: out.string).read { database in
      let pairs = try Int.fetchOne(database, sql: "SELECT count(Z_9PORTS) FROM Z_1PORTS") ?? 0
      #expect(pairs > 0)
      let ships = try Int.fetchAll(database, sql: "SELECT DISTINCT Z_ENT FROM ZSHIP ORDER BY 1")
      #expect(ships == [1, 12])
    }
  }

  @Test("A relationship keeps its pairs in another model that has it too")
  func otherModel() throws {
    let folder = try TemporaryFolder()
    let store = folder.appending("Ships.sqlite")
    let own = RebuildScene.model()
    let more = ManagedObjectModel(
      entities: Array(own.entities.values)
        + ["Anchor", "Barge"].map { name in
          Entity(
            name: name,
            properties: [
              .attribute(Attribute(traits: PropertyTraits(name: "mark", isOptional: true), type: .string))
            ])
        })
    try StoreGenerator(more, options: .init(.typical, seed: 5, records: 300)).write(to: store)
    let out = folder.appending("Out.sqlite")
    let report = try Salvager().salvage(
      store, to: out, model: .coreData(try RebuildScene.bundle()), options: .init(migrates: false, fitsModel: true))
    func pairs(_ path: FilePath, _ layout: StoreLayout) throws -> Set<[Int64]> {
      let table = try #require(layout.joinTables.first)
      return try DatabaseQueue(path: path.string).read { database in
        Set(
          try Row.fetchAll(database, sql: "SELECT \(table.sourceColumn), \(table.destinationColumn) FROM \(table.name)")
            .map { [$0[0], $0[1]] })
      }
    }
    let before = try pairs(store, StoreLayout(more))
    let after = try pairs(out, StoreLayout(own))
    #expect(!before.isEmpty && before == after)
    #expect(report.rebuild?.referencesCut.isEmpty == true)
    // The owner of a flag is in a column with a number in its name.
    let queue = try DatabaseQueue(path: out.string)
    let columns = try StoreLayout(own).table(of: "Flag")?.columns.filter {
      if case .owner = $0.role { true } else { false }
    }
    let column = try #require(columns?.first?.name)
    let owned = try queue.read { try Int.fetchOne($0, sql: "SELECT count(\(column)) FROM ZFLAG") }
    #expect(owned ?? 0 > 0)
  }

  // MARK: Damage

  /// How many rows have each number, by table, as SQLite reads a store.
  private func counts(_ path: FilePath) throws -> [String: [Int64: Int]] {
    let queue = try DatabaseQueue(path: path.string)
    let counts = try queue.read { database in
      var counts: [String: [Int64: Int]] = [:]
      for table in ["ZFLAG", "ZPERSON", "ZPORT", "ZSHIP"] {
        for row in try Row.fetchAll(database, sql: "SELECT Z_ENT, count(*) FROM \(table) NOT INDEXED GROUP BY 1") {
          let (number, count): (Int64, Int) = (row[0], row[1])
          counts[table, default: [:]][number] = count
        }
      }
      return counts
    }
    try queue.close()
    return counts
  }

  private static let rotation = """
    UPDATE Z_PRIMARYKEY SET Z_ENT = 100 + Z_ENT % 5 + 1 WHERE Z_ENT < 6;
    UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT - 100 WHERE Z_ENT BETWEEN 100 AND 110
    """

  @Test(
    "Wrong numbers in the store's list of entities change no record's entity",
    arguments: [
      "UPDATE Z_PRIMARYKEY SET Z_ENT = 40 WHERE Z_NAME = 'Ship'",
      "UPDATE Z_PRIMARYKEY SET Z_ENT = 40 WHERE Z_NAME = 'Ferry'",
      "UPDATE Z_PRIMARYKEY SET Z_ENT = 40 WHERE Z_NAME = 'Person'",
      "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Ferry'; UPDATE Z_PRIMARYKEY SET Z_ENT = 5 WHERE Z_NAME = 'Ship'",
      rotation,
    ])
  func refutedList(_ statements: String) throws {
    let scene = try RebuildScene(seed: 43)
    let before = try counts(scene.store)
    #expect(before["ZSHIP"]?.count == 2)
    let wrong = try RealMaterial.copy(scene.store, into: scene.folder, as: "Wrong.sqlite")
    let queue = try DatabaseQueue(path: wrong.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: statements) }
    try queue.close()
    let result = try scene.rebuild(wrong)
    #expect(result.differences == [])
    #expect(try counts(result.store) == before)
    let records = before.values.reduce(0) { $0 + $1.values.reduce(0, +) }
    #expect(result.report.count.recovered == Int64(records))
    #expect(result.report.count.total == Int64(records))
    #expect(result.report.remarks.contains { $0.contains("was not gone by") })
  }

  @Test("Rows whose number is of no entity are set aside and not lost")
  func unknownNumbers() throws {
    let scene = try RebuildScene(seed: 47)
    try scene.change("UPDATE ZSHIP SET Z_ENT = 99 WHERE Z_PK % 5 = 0")
    let before = try counts(scene.store)
    let apart = Int64(before["ZSHIP"]?[99] ?? 0)
    let records = Int64(before.values.reduce(0) { $0 + $1.values.reduce(0, +) })
    #expect(apart > 0)
    let out = scene.folder.appending("Out.sqlite")
    let report = try Salvager().salvage(
      scene.store, to: out, model: .coreData(scene.bundle), options: .init(migrates: false))
    #expect(report.count.lost == 0 && !report.count.hasUnknown)
    #expect(report.count.setAside == apart)
    #expect(report.count.total == records)
    #expect(!report.isComplete && report.count.percent.map { $0 < 100 } == true)
    #expect(report.entities.first { $0.name == "Ship" }?.setAside == apart)
    let aside = try #require(report.rebuild?.setAsideFile)
    let kept = try DatabaseQueue(path: aside.string).read { database in
      try Int64.fetchOne(database, sql: "SELECT count(*) FROM lazaret_other_ZSHIP WHERE Z_ENT = 99")
    }
    #expect(kept == apart)
  }

  @Test("Pairs in a table whose number is of no entity are in the result or beside it")
  func unclaimedPairs() throws {
    let (scene, other) = try scene("ALTER TABLE Z_1PORTS RENAME TO Z_4PORTS")
    let before = try DatabaseQueue(path: other.string).read { database in
      try Int.fetchOne(database, sql: "SELECT count(*) FROM Z_4PORTS") ?? 0
    }
    #expect(before > 0)
    let result = try scene.rebuild(other)
    var after = try DatabaseQueue(path: result.store.string).read { database in
      try Int.fetchOne(database, sql: "SELECT count(*) FROM Z_4PORTS") ?? 0
    }
    if let aside = result.report.rebuild?.setAsideFile {
      try DatabaseQueue(path: aside.string).read { database in
        for table in try String.fetchAll(
          database, sql: "SELECT name FROM sqlite_master WHERE name LIKE 'lazaret%PORTS%'")
        {
          after += try Int.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0
        }
      }
    }
    #expect(after == before)
  }

  @Test("Where only the list and the order of the model tell, and differently, records are doubtful")
  func disputed() throws {
    let folder = try TemporaryFolder()
    let store = folder.appending("Boats.sqlite")
    let name = Property.attribute(Attribute(traits: PropertyTraits(name: "name", isOptional: true), type: .string))
    let model = ManagedObjectModel(entities: [
      Entity(name: "Vessel", properties: [name]), Entity(name: "Barge", parentName: "Vessel", properties: []),
      Entity(name: "Canoe", parentName: "Vessel", properties: []),
    ])
    try StoreGenerator(model, options: .init(.typical, seed: 7, records: 90)).write(to: store)
    let queue = try DatabaseQueue(path: store.string)
    let concerned = try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 100 WHERE Z_NAME IN ('Barge', 'Canoe');
          UPDATE Z_PRIMARYKEY SET Z_ENT = 105 - Z_ENT WHERE Z_ENT > 100 AND Z_ENT < 200
          """)
      return try Int64.fetchOne(database, sql: "SELECT count(*) FROM ZVESSEL WHERE Z_ENT IN (2, 3)") ?? 0
    }
    try queue.close()
    #expect(concerned > 0)
    let version = ModelVersion(name: "V", model: model, isCurrent: true)
    let bundle = try #require(ModelBundle(name: "Boats", versions: [version]))
    let report = try Salvager().salvage(
      store, to: folder.appending("Out.sqlite"), model: .coreData(bundle), options: .init(migrates: false))
    #expect(report.count.doubtful == concerned)
    #expect(!report.isComplete && report.count.lost == 0)
    #expect(report.remarks.contains { $0.contains("nothing else tells") })
  }
}
